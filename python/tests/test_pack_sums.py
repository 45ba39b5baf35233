"""Sums of packs, of signed counts too: products, virtual images, planes in memory and bins are NumPy's."""

import pickle
from pathlib import Path

import h5py
import hdf5plugin  # noqa: F401
import numpy as np
import pytest

import tensilo
from tensilo import pack

DTYPES = ["u1", "u2", "u4", "i1", "i2", "i4"]


def packed(folder: Path, counts: np.ndarray, axes: int = 2) -> pack.CountPack:
    np.save(folder / "source.npy", counts)
    found = pack.inspect(folder / "source.npy", format=2, detector_axes=axes)
    pack.produce(pack.plan(found, folder / "scan.h5"))
    return pack.open(folder / "scan.h5", format=2)


def random_counts(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Mostly small, with some at the ends of the type's range."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    counts = rng.poisson(2, shape) - (1 if info.min else 0)
    ends = rng.random(shape)
    counts[ends < 0.02] = info.max
    counts[ends > 0.98] = info.min
    return counts.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_every_type_are_numpys(tmp_path: Path, dtype: str) -> None:
    counts = random_counts(dtype, (5, 60, 11, 13), 3)
    scan = packed(tmp_path, counts)
    wide = counts.astype("i8" if counts.dtype.kind == "i" else "u8")
    rows, columns = (a.astype(wide.dtype) for a in np.mgrid[:11, :13])
    disk = (rows.astype("f8") - 5) ** 2 + (columns.astype("f8") - 6) ** 2 <= 16
    total = wide.sum((2, 3))
    made = scan.products(bf=4)
    expected = {
        "diffraction_sum": wide.sum((0, 1)),
        "diffraction_max": wide.max((0, 1)),
        "total_per_scan": total,
        "detector_row_moment_per_scan": (wide * rows).sum((2, 3)),
        "detector_column_moment_per_scan": (wide * columns).sum((2, 3)),
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(made[name], values, err_msg=name)
        assert made[name].dtype == values.dtype
    bf = wide[..., disk].sum(-1)
    np.testing.assert_array_equal(made["bf"], bf)
    assert made["bf"].dtype == (wide.dtype if wide.dtype.kind == "i" or bf.max() > 2**32 - 1 else "u4")
    np.testing.assert_allclose(made["diffraction_mean"], wide.mean((0, 1)), rtol=1e-14)
    with np.errstate(divide="ignore", invalid="ignore"):
        com = np.where(total == 0, np.nan, expected["detector_row_moment_per_scan"] / total)
    np.testing.assert_allclose(made["com_row"], com, rtol=1e-15)
    # Each alone is the same as together.
    for name, values in expected.items():
        np.testing.assert_array_equal(scan.products(name)[name], values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_images_from_memory_are_numpys(tmp_path: Path, dtype: str) -> None:
    counts = random_counts(dtype, (3, 100, 20, 37), 4)
    scan = packed(tmp_path, counts)
    planes = scan.planes()
    assert 0 < planes.nbytes and "20, 37" in repr(planes)
    kind = "i8" if counts.dtype.kind == "i" else "u8"
    rng = np.random.default_rng(9)
    masks = [rng.random((20, 37)) < share for share in (0.0, 0.01, 0.5, 1.1)]
    detector = scan.virtual_detector(masks[1])
    for mask in masks:
        expected = counts.astype(kind)[..., mask].sum(-1).astype(kind)
        for image in (planes.virtual_image(mask), scan.virtual_image(mask), detector.move_to(mask)):
            assert image.shape == (3, 100) and image.dtype == kind
            np.testing.assert_array_equal(image, expected)
    with pytest.raises(tensilo.InvalidArgumentError):
        planes.virtual_image(masks[0][1:])
    with pytest.raises(tensilo.Cancelled):
        scan.planes(should_cancel=lambda: True)


def binned(counts: np.ndarray, factor: int) -> np.ndarray:
    for axis in {counts.ndim - 1, max(1, counts.ndim - 2)}:
        counts = np.add.reduceat(counts, range(0, counts.shape[axis], factor), axis=axis)
    return counts


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axes"), [((4, 70, 9, 14), 2), ((5, 30), 1), ((300, 3, 5, 4), 3), ((1, 1, 1, 1), 2)])
def test_bins_are_sums_of_blocks(tmp_path: Path, dtype: str, shape: tuple[int, ...], axes: int) -> None:
    counts = random_counts(dtype, shape, 5)
    scan = packed(tmp_path, counts, axes)
    flat = counts.reshape(-1, *shape[-axes:]).astype("i8" if counts.dtype.kind == "i" else "u8")
    for factor in (1, 2, 3, 100):
        found = scan.binned(factor)
        expected = binned(flat, factor)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
        if flat.dtype.kind == "u":
            pixels = int(np.prod([min(factor, n) for n in shape[-min(axes, 2) :]]))
            assert found.dtype == ("u4" if pixels * int(np.iinfo(dtype).max) < 2**32 else "u8")
        else:
            assert found.dtype == "i8"
        np.testing.assert_array_equal(scan.binned(factor, len(flat) // 2, len(flat)), expected[len(flat) // 2 :])
    for wrong in ((0,), (2, 3, 2), (2, 0, len(flat) + 1)):
        with pytest.raises(tensilo.InvalidArgumentError):
            scan.binned(*wrong)


SHAPES = [
    ((1, 1), 1),
    ((1, 1, 1), 2),
    ((3, 1, 1), 2),
    ((3, 1, 17), 2),
    ((3, 17, 1), 2),
    ((1, 9, 769), 2),
    ((2, 3, 1, 1000), 2),
    ((257, 1, 1), 2),
    ((513, 2), 1),
    ((5, 1, 70003), 2),
    ((2, 1, 3, 5, 7), 2),
    ((2, 3, 2, 2, 5, 7), 2),
    ((2, 3, 2, 2, 5, 7), 3),
]


@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["u2", "i2"])
def test_odd_shapes_come_back_and_sum_up(tmp_path: Path, shape: tuple[int, ...], axes: int, dtype: str) -> None:
    counts = random_counts(dtype, shape, 6)
    scan = packed(tmp_path, counts, axes)
    assert scan.shape == shape
    np.testing.assert_array_equal(scan[...], counts)
    np.testing.assert_array_equal(scan[-1], counts[-1])
    np.testing.assert_array_equal(scan[..., ::-2], counts[..., ::-2])
    kind = "i8" if dtype == "i2" else "u8"
    detector = tuple(range(len(shape) - axes, len(shape)))
    every = np.ones(shape[-axes:], bool)
    total = counts.sum(detector, dtype=kind)
    np.testing.assert_array_equal(scan.virtual_image(every), total)
    np.testing.assert_array_equal(scan.planes().virtual_image(every), total)
    made = scan.products("diffraction_sum", "total_per_scan")
    np.testing.assert_array_equal(made["total_per_scan"], total)
    np.testing.assert_array_equal(
        made["diffraction_sum"], counts.sum(tuple(range(len(shape) - axes)), dtype=kind)
    )
    assert pack.verify(tmp_path / "scan.h5", deep=True, source=tmp_path / "source.npy")


def test_sums_at_the_ends_of_the_range_do_not_overflow(tmp_path: Path) -> None:
    for dtype in ("i4", "u4"):
        info = np.iinfo(dtype)
        (tmp_path / dtype).mkdir()
        for name, value in (("least", info.min), ("most", info.max)):
            folder = tmp_path / dtype / name
            folder.mkdir()
            counts = np.full((2, 3, 64, 96), value, dtype)
            scan = packed(folder, counts)
            every = np.ones((64, 96), bool)
            expected = int(value) * 64 * 96
            for image in (scan.virtual_image(every), scan.planes().virtual_image(every)):
                assert image.tolist() == [[expected] * 3] * 2
            moment = scan.products("detector_column_moment_per_scan")["detector_column_moment_per_scan"]
            assert moment.tolist() == [[int(value) * 64 * sum(range(96))] * 3] * 2
            assert scan.binned(100).tolist() == [[[expected]]] * 6


def test_format_1_has_virtual_images_files_and_pickles_too(tmp_path: Path) -> None:
    family = Path(__file__).resolve().parents[2] / "examples/family/demo_master.h5"
    pack.produce(pack.plan(pack.inspect(family, index_dir=tmp_path), tmp_path / "scan.h5"))
    scan = pack.open(tmp_path / "scan.h5", format=1)
    assert scan.scan_shape + scan.detector_shape == scan.shape
    counts = np.asarray(scan).astype("u8")
    mask = np.random.default_rng(2).random((64, 64)) < 0.3
    image = scan.virtual_image(mask)
    assert image.dtype == np.uint64
    np.testing.assert_array_equal(image, counts[..., mask].sum(-1))
    assert not scan.virtual_image(np.zeros((64, 64), bool)).any()
    with pytest.raises(tensilo.InvalidArgumentError):
        scan.virtual_image(mask[1:])
    again = pickle.loads(pickle.dumps(scan))
    np.testing.assert_array_equal(again[3], scan[3])
    scan.to_hdf5(tmp_path / "again.h5")
    with h5py.File(tmp_path / "again.h5") as f:
        np.testing.assert_array_equal(f["entry/data/data"][()].reshape(scan.shape), scan.raw[...])
    with pytest.raises(FileExistsError):
        scan.to_hdf5(tmp_path / "again.h5")
