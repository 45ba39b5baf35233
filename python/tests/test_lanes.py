"""Lane stores: what is written is read, as read-only arrays that outlive their store."""

import doctest
import pickle
from pathlib import Path

import numpy as np
import pytest

import tensilo


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three slabs of a lane in two dimensions, and a flat lane."""
    path = tmp_path / "model.pts"
    lanes = {"PORO": ("f4", (2, 5)), "DEPTH": {"dtype": "i8", "shape": 7, "flat": True}}
    with tensilo.LaneStore.create(path, 3, lanes, app={"name": "µ"}) as w:
        for k in range(3):
            w.write("PORO", k, np.arange(10).reshape(2, 5) + 100 * k)
        w.write("DEPTH", None, np.arange(7))
    return path


def expected() -> np.ndarray:
    return (np.arange(10).reshape(2, 5) + 100 * np.arange(3)[:, None, None]).astype("f4")


def test_lanes_read_as_they_were_written(store: Path) -> None:
    s = tensilo.LaneStore(store, verify=True)
    assert sorted(s) == ["DEPTH", "PORO"]
    assert (s.nslabs, s.app) == (3, {"name": "µ"})
    np.testing.assert_array_equal(s["PORO"], expected())
    np.testing.assert_array_equal(s["DEPTH"], np.arange(7))
    assert s["PORO"].dtype == np.dtype("f4")


@pytest.mark.parametrize(
    "index", [np.s_[1], np.s_[-1], np.s_[::-1], np.s_[0:2, 1], np.s_[..., 3], np.s_[[2, 0]], np.s_[2:0:-2, :, ::2]]
)
def test_lazy_lanes_index_as_numpy_does(store: Path, index: object) -> None:
    lane = tensilo.LaneStore(store).lane("PORO")
    assert (lane.shape, lane.ndim, lane.chunks) == ((3, 2, 5), 3, (1, 2, 5))
    np.testing.assert_array_equal(lane[index], expected()[index])


def test_arrays_are_read_only_and_outlive_the_store(store: Path) -> None:
    array = tensilo.LaneStore(store)["PORO"]
    with pytest.raises(ValueError):
        array[0] = 0
    np.testing.assert_array_equal(array, expected())


def test_stores_pickle_as_their_path(store: Path) -> None:
    again = pickle.loads(pickle.dumps(tensilo.LaneStore(store)))
    np.testing.assert_array_equal(again["PORO"], expected())


def test_errors_have_their_classes(store: Path, tmp_path: Path) -> None:
    with pytest.raises(tensilo.NotFoundError):
        tensilo.LaneStore(store)["NONE"]
    with pytest.raises(FileNotFoundError):
        tensilo.LaneStore(tmp_path / "none.pts")
    with pytest.raises(FileExistsError):
        with tensilo.LaneStore.create(store, 1, {"A": ("f4", 1)}) as w:
            w.write("A", 0, [1])
    with pytest.raises(RuntimeError):
        with tensilo.LaneStore.create(tmp_path / "given-up.pts", 1, {"A": ("f4", 1)}):
            raise RuntimeError
    assert not (tmp_path / "given-up.pts").exists()


def test_a_damaged_slab_is_refused_on_first_touch_and_raw_does_not_look(store: Path) -> None:
    data = bytearray(store.read_bytes())
    at = data.find(expected()[1].tobytes())
    data[at] ^= 1
    store.write_bytes(data)
    lane = tensilo.LaneStore(store).lane("PORO")
    np.testing.assert_array_equal(lane[0], expected()[0])
    with pytest.raises(tensilo.CorruptError, match="slab 1"):
        lane[1]
    with pytest.raises(tensilo.CorruptError):
        tensilo.LaneStore(store)["PORO"]
    with pytest.raises(tensilo.CorruptError):
        tensilo.LaneStore(store, verify=True)
    assert len(tensilo.LaneStore(store).verify()) == 1
    np.testing.assert_array_equal(tensilo.LaneStore(store).raw("PORO")[::2].ravel(), expected()[::2].ravel())


def test_lanes_have_what_dask_and_xarray_ask_of_an_array(store: Path) -> None:
    lane = tensilo.LaneStore(store).lane("PORO")
    again = pickle.loads(pickle.dumps(lane))
    assert (again.shape, again.dtype, again.ndim, again.chunks) == ((3, 2, 5), np.dtype("f4"), 3, (1, 2, 5))
    # What their blocks ask for: a tuple of slices, one for each dimension; then an array of it.
    for k in range(3):
        block = np.asarray(again[(slice(k, k + 1), slice(0, 2), slice(2, 5))])
        np.testing.assert_array_equal(block, expected()[k : k + 1, 0:2, 2:5])
    assert np.asarray(again, dtype="f8").dtype == np.dtype("f8")
    np.testing.assert_array_equal(np.concatenate([again[:1], again[1:]]), expected())
    flat = tensilo.LaneStore(store).lane("DEPTH")
    assert (flat.shape, flat.chunks) == ((7,), (7,))


def test_dask_computes_on_a_lane(store: Path) -> None:
    import dask.array as array

    lane = tensilo.LaneStore(store).lane("PORO")
    blocks = array.from_array(lane, chunks=lane.chunks)
    assert blocks.chunks == ((1, 1, 1), (2,), (5,))
    np.testing.assert_array_equal(blocks.mean(axis=0).compute(), expected().mean(axis=0))


def test_a_store_grows_and_is_overwritten_in_place(store: Path) -> None:
    with tensilo.LaneStore.append(store) as w:
        w.append_slabs("PORO", 1)
        w.write("PORO", 3, np.full((2, 5), -1))
        w.add_lane("MASK", {"dtype": "?", "shape": (4,)})
        for k in range(3):
            w.write("MASK", k, [True, False, True, k == 0])
    s = tensilo.LaneStore(store, verify=True)
    assert s.lane("PORO").shape == (4, 2, 5)
    np.testing.assert_array_equal(s["PORO"][:3], expected())
    assert s["MASK"].dtype == np.dtype("?") and s["MASK"][:, 3].tolist() == [True, False, False]
    with pytest.raises(tensilo.LockedError):
        tensilo.LaneStore.overwrite(store)
    del s
    with tensilo.LaneStore.overwrite(store) as w:
        w.write("PORO", 0, np.zeros((2, 5)))
        with pytest.raises(tensilo.LockedError):
            tensilo.LaneStore(store)
    assert not tensilo.LaneStore(store, verify=True)["PORO"][0].any()


def test_stores_open_for_reading_serve_processes_by_fork_and_spawn(store: Path) -> None:
    import multiprocessing

    opened = tensilo.LaneStore(store)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(_sum, (opened,)) == float(expected().sum())


def _sum(store: tensilo.LaneStore) -> float:
    return float(store["PORO"].sum())


def test_the_examples_in_the_docstrings_run() -> None:
    result = doctest.testmod(tensilo.lanes)
    assert result.attempted >= 5
    assert result.failed == 0
