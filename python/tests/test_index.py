"""`tensilo.read` takes any index that NumPy takes, and gives what NumPy gives on the whole array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tensilo

SHAPE = (6, 7, 5, 4)


@pytest.fixture(scope="module")
def whole() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(0, 10_000, SHAPE).astype("<i4")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, whole: np.ndarray[Any, Any]) -> Path:
    path = tmp_path_factory.mktemp("index") / "index.h5"
    with h5py.File(path, "w") as f:
        f["contiguous"] = whole
        f.create_dataset("chunked", data=whole, chunks=(2, 3, 5, 1), compression="gzip", shuffle=True)
        f["number"] = np.int32(5)
    return path


def a_slice(rng: np.random.Generator, n: int) -> slice:
    start, stop = (None if rng.random() < 0.3 else int(v) for v in rng.integers(-n - 2, n + 3, 2))
    return slice(start, stop, int(rng.choice([-3, -2, -1, 1, 2, 4])))


def a_list(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> Any:
    values = rng.integers(-n, n, tuple(1 if rng.random() < 0.2 else k for k in shape))
    return values.tolist() if rng.random() < 0.5 else values.astype(rng.choice(["i1", "i4", ">i8"]))


def an_index(rng: np.random.Generator) -> tuple[Any, ...]:
    """A mixture of everything; the lists of one index have one shape, or broadcast to it."""
    shape = tuple(int(k) for k in rng.integers(1, 4, int(rng.integers(1, 3))))
    items: list[Any] = []
    axis = 0
    while axis < len(SHAPE) and rng.random() < 0.9:
        n, kind = SHAPE[axis], rng.random()
        if kind < 0.4:
            items.append(a_list(rng, n, shape[int(rng.integers(0, len(shape))) :]))
        elif kind < 0.5:
            mask = np.zeros(n, bool)
            mask[rng.choice(n, min(n, shape[-1]), replace=False)] = True
            items.append(mask)
        elif kind < 0.6 and axis + 1 < len(SHAPE):
            masks = np.zeros(n * SHAPE[axis + 1], bool)
            masks[rng.choice(masks.size, shape[-1], replace=False)] = True
            items.append(masks.reshape(n, SHAPE[axis + 1]))
            axis += 1
        elif kind < 0.75:
            items.append(rng.choice([int, np.int16, np.array])(rng.integers(-n, n)))
        else:
            items.append(a_slice(rng, n))
        axis += 1
    if rng.random() < 0.3:
        items.insert(int(rng.integers(0, len(items) + 1)), None)
    if rng.random() < 0.3:
        items.insert(len(items) if axis < len(SHAPE) else int(rng.integers(0, len(items) + 1)), ...)
    return tuple(items)


@pytest.mark.parametrize("name", ["contiguous", "chunked"])
def test_random_indices_equal_numpy(file: Path, whole: np.ndarray[Any, Any], name: str) -> None:
    rng = np.random.default_rng(17)
    compared = 0
    for _ in range(700):
        index = an_index(rng)
        try:
            expected = whole[index]
        except IndexError:
            with pytest.raises(IndexError):
                tensilo.read(file, name, index)
            continue
        got = tensilo.read(file, name, index, threads=1 + compared % 2)
        assert got.shape == expected.shape, index
        np.testing.assert_array_equal(got, expected, err_msg=str(index))
        compared += 1
    assert compared > 500


def test_masks_of_the_whole_array_and_grids_of_positions(file: Path, whole: np.ndarray[Any, Any]) -> None:
    for index in [
        whole > 5000,
        whole[..., 0] > 5000,
        np.ix_([0, 5], [6, 0, 3], [2], [1, 1]),
        np.nonzero(whole < 300),
        np.array([], int),
        [],
        [True, False, False, True, False, True],
        True,
        (False, 1),
        (np.True_, ..., 2),
        (0, slice(None), [1, 2]),
        (None, [0, 1], None, [1, 0]),
        slice(-(10**30), 10**30),
        np.uint64(3),
    ]:
        np.testing.assert_array_equal(tensilo.read(file, "chunked", index), whole[index])


def test_a_single_number_takes_the_indices_that_have_no_dimension(file: Path) -> None:
    five = np.int32(5)
    for index in [(), ..., (None, None), (..., None), True, (None, False)]:
        expected = np.asarray(five)[index]
        got = tensilo.read(file, "number", index)
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "index",
    [
        6,
        -7,
        [6],
        np.array([-7]),
        ([0, 1], [0, 1, 2]),
        np.zeros(5, bool),
        np.zeros((6, 6), bool),
        (0, 0, 0, 0, 0),
        (..., ...),
        10**30,
    ],
    ids=repr,
)
def test_what_numpy_refuses_is_refused(file: Path, whole: np.ndarray[Any, Any], index: Any) -> None:
    with pytest.raises(IndexError):
        whole[index]
    with pytest.raises(IndexError):
        tensilo.read(file, "contiguous", index)


@pytest.mark.parametrize("index", ["a", 1.5, [0.5], {}, {1}, b"x", ["a"], slice("a")], ids=repr)
def test_what_is_no_index_is_a_type_error(file: Path, index: Any) -> None:
    with pytest.raises(TypeError):
        tensilo.read(file, "contiguous", index)
