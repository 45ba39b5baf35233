"""Opens files with the tool whose layout they have, `layouts.py TOOL FILE…`, and looks at what it makes of them."""
import os
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


def pandas(path):
    import pandas as pd

    frame = pd.read_hdf(path, "frame")
    expected = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": [4.0, 5.0, 6.0], "n": [1, 2, 3]}, index=[10, 20, 30])
    pd.testing.assert_frame_equal(frame, expected)
    with pd.HDFStore(path, "r") as store:
        assert store.keys() == ["/frame"], store.keys()


def anndata(path):
    import anndata

    data = anndata.read_h5ad(path)
    assert data.X.toarray().tolist() == [[0, 1.5, 0], [2, 0, 3]]
    assert list(data.obs["kind"]) == ["x", "y"] and str(data.obs["kind"].dtype) == "category"
    assert list(data.obs["n"]) == [1, 2] and list(data.obs_names) == ["c0", "c1"]
    assert list(data.var_names) == ["g0", "g1", "g2"] and data.uns["title"] == "a title"


def netcdf(path):
    import netCDF4
    import xarray

    with netCDF4.Dataset(path) as f:
        assert list(f.dimensions) == ["time", "x"], f.dimensions
        assert f["temperature"].dimensions == ("time", "x") and f["temperature"].units == "K"
    with xarray.open_dataset(path, engine="netcdf4") as f:
        t = f["temperature"]
        assert t.dims == ("time", "x") and f.attrs["title"] == "a title"
        assert np.array_equal(t.values, [[0, 1, 2], [3, 4, np.nan]], equal_nan=True)
        assert list(f["x"].values) == [10, 20, 30]
        assert list(f["time"].values.astype("M8[D]").astype(str)) == ["2000-01-01", "2000-01-02"]
        assert float(f.sel(x=20.0).isel(time=1)["temperature"]) == 4


def keras(path):
    os.environ["KERAS_BACKEND"] = "jax"
    import keras as k

    layers = [k.Input((3,)), k.layers.Dense(2, name="first"), k.layers.Dense(1, name="second")]
    model = k.Sequential(layers)
    model.load_weights(path)
    expected = [np.arange(6.0).reshape(3, 2), [0.5, -0.5], [[2.0], [3.0]], [0.25]]
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), expected, strict=True))
    import h5py

    with h5py.File(path) as f:
        found = {}
        f.visititems(lambda name, o: found.update({name: getattr(o, "shape", None)}))
        assert found == {
            "layers": None, "layers/dense": None, "layers/dense/vars": None, "layers/dense/vars/0": (3, 2),
            "layers/dense/vars/1": (2,), "layers/dense_1": None, "layers/dense_1/vars": None,
            "layers/dense_1/vars/0": (2, 1), "layers/dense_1/vars/1": (1,), "vars": None,
        }, found
        assert f["layers/dense/vars"].attrs["name"] == "first" and f["layers/dense/vars/0"].dtype == "f4"


def matlab(path):
    import mat73

    data = mat73.loadmat(path)
    assert data["matrix"].tolist() == [[1, 2, 3], [4, 5, 6]] and data["matrix"].dtype == "f8"
    assert data["word"] == "größe" and data["record"]["name"] == "abc" and float(data["record"]["x"]) == 2.5
    assert data["flags"].tolist() == [True, False, True] and data["flags"].dtype == bool
    assert data["counts"].tolist() == [7, -8] and data["counts"].dtype == "i4"
    assert float(data["cell"][0]) == 9 and data["cell"][1] == "in a cell"
    assert data["nothing"] is None or np.size(data["nothing"]) == 0
    assert open(path, "rb").read(19) == b"MATLAB 7.3 MAT-file"


for path in sys.argv[2:]:
    {"pandas": pandas, "anndata": anndata, "netcdf": netcdf, "keras": keras, "matlab": matlab}[sys.argv[1]](path)
print(len(sys.argv) - 2, "opened")
