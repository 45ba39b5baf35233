"""Both formats of packs index as NumPy does: some hundred random expressions of every kind."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensilo
from tensilo import pack

SHAPES = [(11,), (3, 4), (2, 3, 4, 5), (4, 9, 6, 7), (2, 3, 2, 5, 3), (5, 3, 2, 2, 3, 2)]


def one_axis(rng: np.random.Generator, side: int) -> Any:
    match rng.integers(6):
        case 0:
            return int(rng.integers(-side, side))
        case 1:
            return slice(None)
        case 2:
            return np.int16(rng.integers(side))
        case _:
            start, stop = (int(n) if rng.integers(4) else None for n in rng.integers(-side - 2, side + 3, 2))
            return slice(start, stop, int(rng.choice([-3, -2, -1, 1, 1, 2, 4])))


def expression(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Integers, slices, lists, masks of one axis or several, new axes and an ellipsis."""
    parts: list[Any] = []
    axis = 0
    used = int(rng.integers(0, len(shape) + 1))
    points = int(rng.integers(0, 5))
    masked = False
    while axis < used:
        side = shape[axis]
        match rng.integers(9):
            case 0:
                parts.append(rng.integers(-side, side, points).tolist() if points else np.zeros(0, int))
            case 1 if not masked:
                parts.append(rng.integers(-side, side, (2, 1)) if points != 2 else rng.integers(-side, side, (1, 2)))
                masked = True
            case 2 if not masked and not any(isinstance(p, (list, np.ndarray)) for p in parts):
                axes = int(rng.integers(1, used - axis + 1))
                parts.append(rng.random(shape[axis : axis + axes]) < 0.4)
                axis += axes - 1
                masked, points = True, int(parts[-1].sum()) if rng.integers(2) else points
            case 3:
                parts.append(None)
                continue
            case _:
                parts.append(one_axis(rng, side))
        axis += 1
    if rng.integers(2) and not any(p is Ellipsis for p in parts):
        # Nowhere but behind what was counted from the front.
        parts.append(Ellipsis)
    return parts[0] if len(parts) == 1 and rng.integers(2) else tuple(parts)


def agree(found: Any, counts: np.ndarray, index: Any) -> bool:
    """Is it NumPy's answer, or NumPy's refusal? True for an answer."""
    try:
        expected = counts[index]
    except IndexError:
        with pytest.raises(IndexError):
            found[index]
        return False
    got = found[index]
    assert np.shape(got) == np.shape(expected), index
    assert got.dtype == expected.dtype, index
    assert isinstance(got, (np.ndarray, np.generic)), index
    np.testing.assert_array_equal(got, expected, err_msg=str(index))
    return True


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_format_2_indexes_as_numpy(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape) + sum(shape))
    counts = rng.integers(-900, 900, shape).astype("i2")
    np.save(tmp_path / "counts.npy", counts)
    axes = max(1, len(shape) // 2)
    found = pack.inspect(tmp_path / "counts.npy", format=2, detector_axes=axes)
    pack.produce(pack.plan(found, tmp_path / "counts.h5"))
    scan = pack.open(tmp_path / "counts.h5")
    if len(shape) == 1:
        # One frame is a scan of one.
        counts = counts[None]
    answered = sum(agree(scan, counts, expression(rng, counts.shape)) for _ in range(150))
    assert answered > 90


def test_format_1_indexes_as_numpy(tmp_path: Path) -> None:
    family = Path(__file__).resolve().parents[2] / "examples/family/demo_master.h5"
    found = pack.inspect(family, index_dir=tmp_path)
    pack.produce(pack.plan(found, tmp_path / "scan.h5"))
    scan = pack.open(tmp_path / "scan.h5")
    counts = np.asarray(scan)
    rng = np.random.default_rng(4)
    answered = sum(agree(scan, counts, expression(rng, counts.shape)) for _ in range(200))
    assert answered > 120
    where = counts.sum(axis=(2, 3)) > np.median(counts.sum(axis=(2, 3)))
    np.testing.assert_array_equal(scan[where], counts[where])
    np.testing.assert_array_equal(scan[[1, 2], [3, 4]], counts[[1, 2], [3, 4]])
    np.testing.assert_array_equal(scan[np.ix_([1, 2], [3], [4, 5], [9])], counts[np.ix_([1, 2], [3], [4, 5], [9])])


@pytest.mark.parametrize("index", [4, (0, 9), np.s_[0, 0, 0], "x", 1.5, np.s_[..., ...], ([0, 1], [0, 1, 2])], ids=str)
def test_what_numpy_refuses_is_refused(tmp_path: Path, index: Any) -> None:
    counts = np.arange(12, dtype="u1").reshape(3, 4)
    np.save(tmp_path / "counts.npy", counts)
    found = pack.inspect(tmp_path / "counts.npy", format=2, detector_axes=1)
    pack.produce(pack.plan(found, tmp_path / "counts.h5"))
    with pytest.raises((IndexError, TypeError)) as caught:
        pack.open(tmp_path / "counts.h5")[index]
    with pytest.raises((IndexError, TypeError)):
        counts[index]
    assert not isinstance(caught.value, tensilo.CorruptError)
