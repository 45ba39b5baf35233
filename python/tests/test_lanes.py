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


def test_the_examples_in_the_docstrings_run() -> None:
    result = doctest.testmod(tensilo.lanes)
    assert result.attempted >= 5
    assert result.failed == 0
