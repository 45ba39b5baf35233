"""Packs of format 2 from Python: any counts and any shape, compared with NumPy and h5py."""

import pickle
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401
import numpy as np
import pytest

import tensilo
from tensilo import pack


def packed(folder: Path, counts: np.ndarray, **options: Any) -> pack.CountPack:
    np.save(folder / "source.npy", counts)
    found = pack.inspect(folder / "source.npy", format=2, **options)
    pack.produce(pack.plan(found, folder / "scan.h5"))
    return pack.open(folder / "scan.h5", format=2)


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    return np.random.default_rng(5).poisson(0.7, (6, 9, 20, 37)).astype("u2")


@pytest.fixture(scope="module")
def scan(counts: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> pack.CountPack:
    return packed(tmp_path_factory.mktemp("scan"), counts)


INDICES = [
    ...,
    0,
    -1,
    (2, 3),
    (2, 3, 4, 5),
    np.s_[1:5:2, ::-1, 3, 7:30],
    np.s_[..., 5],
    np.s_[:, None, 4],
    np.s_[[3, 1, 1], 2:4],
    np.s_[[0, 5], [8, 2]],
    np.s_[[0, 5], :, [[3], [4]]],
    np.s_[1, :, 2:2],
    np.s_[:, :, 5:13, 8:16],
    None,
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_is_numpys(scan: pack.CountPack, counts: np.ndarray, index: Any) -> None:
    expected = counts[index]
    found = scan[index]
    assert np.shape(found) == np.shape(expected)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_masks_select_and_bad_indices_raise_as_in_numpy(scan: pack.CountPack, counts: np.ndarray) -> None:
    where = counts.sum(axis=(2, 3)) > 500
    assert np.array_equal(scan[where], counts[where])
    everywhere = counts > 3
    assert np.array_equal(scan[everywhere], counts[everywhere])
    with pytest.raises(IndexError):
        scan[6]
    with pytest.raises(IndexError):
        scan[0, 0, 0, 0, 0]
    with pytest.raises(TypeError):
        scan["a"]


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i1", "i2", "i4"])
@pytest.mark.parametrize("shape, axes", [((7, 5), 1), ((3, 4, 5), 2), ((2, 3, 2, 3, 4), 2), ((40, 3, 4, 5), 3)])
def test_every_type_and_rank_comes_back(tmp_path: Path, dtype: str, shape: tuple[int, ...], axes: int) -> None:
    info = np.iinfo(dtype)
    counts = np.random.default_rng(1).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    made = packed(tmp_path, counts, detector_axes=axes)
    assert made.shape == shape and made.dtype == np.dtype(dtype)
    assert made.scan_shape == shape[:-axes] and made.detector_shape == shape[-axes:]
    assert np.array_equal(made[...], counts)
    assert np.array_equal(np.asarray(made), counts)
    found = pack.verify(tmp_path / "scan.h5", deep=True, source=tmp_path / "source.npy")
    assert found, found.findings
    assert pack.verify(tmp_path / "scan.h5", shard=0)


def test_virtual_images_and_products_are_numpys_sums(scan: pack.CountPack, counts: np.ndarray) -> None:
    mask = np.zeros((20, 37), bool)
    mask[5:12, 10:25] = True
    image = scan.virtual_image(mask)
    assert image.dtype == np.uint64 and image.shape == (6, 9)
    assert np.array_equal(image, counts[..., mask].sum(axis=-1))
    detector = scan.virtual_detector(mask)
    for step in range(4):
        moved = np.roll(mask, (step, 2 * step), (0, 1))
        assert np.array_equal(detector.move_to(moved), counts[..., moved].sum(axis=-1))
    made = scan.resident().products("diffraction_sum", "diffraction_max", "total_per_scan", "com_row", "bf", bf=6)
    assert np.array_equal(made["diffraction_sum"], counts.sum(axis=(0, 1)))
    assert np.array_equal(made["diffraction_max"], counts.max(axis=(0, 1)))
    assert np.array_equal(made["total_per_scan"], counts.sum(axis=(2, 3)))
    rows = np.arange(20)[:, None]
    assert np.allclose(made["com_row"], (counts * rows).sum(axis=(2, 3)) / counts.sum(axis=(2, 3)))
    y, x = np.mgrid[:20, :37]
    disk = (y - 9.5) ** 2 + (x - 18) ** 2 <= 36
    assert np.array_equal(made["bf"], counts[..., disk].sum(axis=-1))
    with pytest.raises(tensilo.errors.InvalidArgumentError):
        scan.virtual_image(mask[1:])
    with pytest.raises(tensilo.errors.InvalidArgumentError):
        scan.products("bf")


def test_a_dataset_of_any_hdf5_file_is_packed_and_written_again(tmp_path: Path) -> None:
    counts = np.random.default_rng(2).poisson(3, (5, 4, 8, 8)).astype(">i4") - 2
    with h5py.File(tmp_path / "any.h5", "w") as f:
        f.create_dataset("a/b/cube", data=counts, chunks=(2, 3, 8, 4), compression="gzip", shuffle=True)
    found = pack.inspect(tmp_path / "any.h5", format=2, object="a/b/cube")
    assert found.format == 2 and found.shape == (5, 4, 8, 8)
    made = pack.produce(pack.plan(found, tmp_path / "scan.h5"))
    assert made.receipt["sourceObject"] == "a/b/cube"
    scan = pack.open(tmp_path / "scan.h5", format=2)
    assert np.array_equal(scan[...], counts)
    again = scan.to_hdf5(tmp_path / "again.h5")
    assert again == scan.counts_sha256
    with h5py.File(tmp_path / "again.h5") as f:
        stack = f["entry/data/data"]
        assert stack.attrs["scan_shape"].tolist() == [5, 4]
        assert np.array_equal(stack[()], counts.reshape(20, 8, 8))
    with pytest.raises(FileExistsError):
        scan.to_hdf5(tmp_path / "again.h5")


def test_packs_pickle_and_know_their_format(tmp_path: Path, scan: pack.CountPack, counts: np.ndarray) -> None:
    again = pickle.loads(pickle.dumps(scan))
    assert np.array_equal(again[2, 3], counts[2, 3])
    with pytest.raises(tensilo.errors.InvalidArgumentError):
        pack.inspect(tmp_path, format=3)
    with pytest.raises(tensilo.errors.InvalidArgumentError):
        pack.inspect(tmp_path, scan_shape=(3, 4))


def test_producing_is_cancelled_and_reports_progress(tmp_path: Path, counts: np.ndarray) -> None:
    np.save(tmp_path / "source.npy", counts)
    found = pack.inspect(tmp_path / "source.npy", format=2, scan_shape=(54,))
    assert found.shape == (54, 20, 37)
    plan = pack.plan(found, tmp_path / "scan.h5")
    with pytest.raises(tensilo.errors.Cancelled):
        pack.produce(plan, should_cancel=lambda: True)
    assert not (tmp_path / "scan.h5").exists()
    seen: list[str] = []
    made = pack.produce(plan, progress=lambda stage, done, total: seen.append(stage))
    assert "packing" in seen
    assert 0 < made.peak_bytes <= plan["plannedPeakTransientBytes"]
