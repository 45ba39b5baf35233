"""Packs from Python: made, proven and read as h5py and NumPy read the source, and as the ground truth states."""

import doctest
import hashlib
import json
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401
import numpy as np
import pytest

import tensilo
from tensilo import _pack_counts, pack

# As the Rust tests find them: beside the repository unless said otherwise.
SHARED = Path(os.environ.get("TENSILO_SHARED") or Path(__file__).resolve().parents[3] / "shared")
PACKS = SHARED / "fixtures" / "pack"
needs_fixtures = pytest.mark.skipif(
    not PACKS.is_dir() and not os.environ.get("TENSILO_REQUIRE"), reason="needs the pack fixtures"
)


@pytest.fixture(scope="module")
def family() -> Path:
    return Path(__file__).resolve().parents[2] / "examples/family/demo_master.h5"


@pytest.fixture(scope="module")
def raw(family: Path) -> np.ndarray:
    with h5py.File(family) as f:
        stack = np.concatenate([f[f"entry/data/data_{i:06}"][()] for i in (1, 2, 3)])
    return stack.reshape(16, 32, 64, 64)


@pytest.fixture(scope="module")
def work(family: Path, raw: np.ndarray) -> np.ndarray:
    with h5py.File(family) as f:
        mask = f["entry/instrument/detector/detectorSpecific/pixel_mask"][()]
    return np.where(mask == 0, raw, 0).astype("u2")


@pytest.fixture(scope="module")
def made(family: Path, tmp_path_factory: pytest.TempPathFactory) -> pack.Produced:
    folder = tmp_path_factory.mktemp("pack")
    found = pack.inspect(family, index_dir=folder / "index")
    return pack.produce(pack.plan(found, folder / "scan.h5"))


@pytest.fixture
def scan(made: pack.Produced) -> pack.Pack:
    return pack.open(made.receipt["destination"])


def test_a_pack_is_made_with_its_receipt_and_proven(made: pack.Produced, family: Path) -> None:
    path = Path(made.receipt["destination"])
    assert json.loads(Path(made.receipt_path).read_text()) == made.receipt
    assert hashlib.sha256(path.read_bytes()).hexdigest() == made.receipt["outputSHA256"]
    assert pack.verify(path)
    found = pack.verify(path, source=family, receipt=False)
    assert found.proven and found["sourceChecked"] and found.findings == []
    with pytest.raises(tensilo.AlreadyExistsError):
        pack.produce(pack.plan(pack.inspect(family, index_dir=path.parent / "index"), path))


def test_a_changed_pack_is_false_and_not_an_exception(made: pack.Produced, tmp_path: Path) -> None:
    data = bytearray(Path(made.receipt["destination"]).read_bytes())
    data[70_000] ^= 1
    (tmp_path / "changed.h5").write_bytes(data)
    found = pack.verify(tmp_path / "changed.h5", receipt=False)
    assert not found and found.findings
    with pytest.raises(tensilo.MissingFileError):
        pack.verify(tmp_path / "nowhere.h5")


INDICES: list[Any] = [
    ...,
    np.s_[3],
    np.s_[-1, -2],
    np.s_[0, 0, 0, 0],
    np.s_[2:9:3],
    np.s_[::-5, 31],
    np.s_[..., 3],
    np.s_[1, ..., 5:9, ::-1],
    np.s_[:, :, 20:24, 30],
    np.s_[4:4],
    np.s_[[3, -1, 3]],
    np.s_[:, [5, 2]],
    np.s_[5, [1, 2, 9]],
    np.s_[5, :, [1, 2, 9]],
    np.s_[:, 5, [1, 2, 9], 3],
    np.s_[[1, 0], :, 7, :],
    np.s_[1:3, 2, :, [0, 63]],
    np.s_[2, 3, np.arange(64) % 7 == 0],
    np.s_[2, 3, np.array([], int)],
    np.s_[np.int8(3), np.uint64(4)],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_is_numpys(scan: pack.Pack, raw: np.ndarray, work: np.ndarray, index: Any) -> None:
    for frames, expected in ((scan, work[index]), (scan.raw, raw[index])):
        got = frames[index]
        assert got.shape == expected.shape and got.dtype == "u2"
        np.testing.assert_array_equal(got, expected)


def test_random_indices_are_numpys(scan: pack.Pack, work: np.ndarray) -> None:
    rng = np.random.default_rng(20260101)

    def part(side: int) -> Any:
        match rng.integers(3):
            case 0:
                return int(rng.integers(-side, side))
            case 1:
                start, stop = rng.integers(-side - 3, side + 3, 2)
                return slice(int(start), int(stop), int(rng.choice([-7, -2, -1, 1, 2, 5])))
            case _:
                return slice(None)

    for _ in range(60):
        index: list[Any] = [part(side) for side in work.shape[: rng.integers(1, 5)]]
        if rng.integers(2):
            axis = int(rng.integers(len(index)))
            side = work.shape[axis]
            index[axis] = rng.integers(-side, side, rng.integers(0, 6)).tolist()
        expected = work[tuple(index)]
        np.testing.assert_array_equal(scan[tuple(index)], expected, err_msg=str(index))


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (16, IndexError),
        (np.s_[0, -33], IndexError),
        (np.s_[0, 0, 0, 0, 0], IndexError),
        (np.s_[..., ...], IndexError),
        (np.s_[[1, 16]], IndexError),
        (1.0, TypeError),
        ("a", TypeError),
        (np.s_[[1.5]], TypeError),
        (np.s_[[0], [1.5]], TypeError),
        (np.s_[[0, 1], [0, 1, 2]], IndexError),
        (np.s_[[16], [0]], IndexError),
    ],
    ids=str,
)
def test_what_is_no_index_is_refused(scan: pack.Pack, index: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        scan[index]


def test_a_pack_is_an_array_to_numpy(scan: pack.Pack, work: np.ndarray) -> None:
    assert (scan.shape, scan.ndim, len(scan), scan.dtype, scan.nbytes) == (work.shape, 4, 16, work.dtype, work.nbytes)
    np.testing.assert_array_equal(np.asarray(scan), work)
    assert np.asarray(scan, dtype="f4").dtype == "f4"


def test_products_are_numpys(scan: pack.Pack, work: np.ndarray) -> None:
    w = work.astype("u8")
    r, c = np.mgrid[:64, :64]
    made = scan.products(bf=10, abf=(5, 10), adf=(14, 28), center=(30, 33.5))
    total = w.sum((2, 3))
    rows, columns = (w * r.astype("u8")).sum((2, 3)), (w * c.astype("u8")).sum((2, 3))
    d2 = (r - 30.0) ** 2 + (c - 33.5) ** 2
    expected = {
        "diffraction_sum": w.sum((0, 1)),
        "diffraction_max": w.max((0, 1)),
        "diffraction_mean": w.sum((0, 1)) / 512,
        "total_per_scan": total,
        "detector_row_moment_per_scan": rows,
        "detector_column_moment_per_scan": columns,
        "com_row": rows / total,
        "com_column": columns / total,
        "bf": (w * (d2 <= 100)).sum((2, 3)).astype("u4"),
        "abf": (w * ((d2 <= 100) & (d2 >= 25))).sum((2, 3)).astype("u4"),
        "adf": (w * ((d2 <= 784) & (d2 >= 196))).sum((2, 3)).astype("u4"),
    }
    assert set(made) == set(expected) | {"dpc_row", "dpc_column", "idpc"}
    for name, values in expected.items():
        np.testing.assert_array_equal(made[name], values, err_msg=name)
        assert made[name].dtype == values.dtype, name
    assert set(scan.products("com_row", "bf", bf=3)) == {"com_row", "bf"}
    for wrong in (("bf",), ("sums",)):
        with pytest.raises(tensilo.InvalidArgumentError):
            scan.products(*wrong)


def test_bins_are_sums_of_blocks(scan: pack.Pack, work: np.ndarray) -> None:
    edges = range(0, 64, 5)
    expected = np.add.reduceat(np.add.reduceat(work.astype("u4"), edges, axis=2), edges, axis=3)
    np.testing.assert_array_equal(scan.binned(5), expected.reshape(512, 13, 13))
    np.testing.assert_array_equal(scan.binned(5, 7, 40), expected.reshape(512, 13, 13)[7:40])
    with pytest.raises(tensilo.InvalidArgumentError):
        scan.binned(0)


def test_a_pack_pickles_by_path(scan: pack.Pack, work: np.ndarray) -> None:
    again = pickle.loads(pickle.dumps(scan))
    assert (again.path, again.shape) == (os.path.abspath(scan.path), scan.shape)
    np.testing.assert_array_equal(again[1, 2], work[1, 2])


def test_a_resident_pack_does_not_need_its_file(made: pack.Produced, tmp_path: Path, work: np.ndarray) -> None:
    path = tmp_path / "scan.h5"
    path.write_bytes(Path(made.receipt["destination"]).read_bytes())
    seen: list[tuple[str, int, int]] = []
    scan = pack.open(path).resident(progress=lambda *p: seen.append(p))
    os.truncate(path, 0)
    assert scan.is_resident and seen
    np.testing.assert_array_equal(scan[...], work)


def test_progress_is_told_and_cancelling_leaves_nothing(family: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    found = pack.inspect(family, index_dir=tmp_path / "index", progress=lambda *p: seen.append(p))
    pack.produce(pack.plan(found, tmp_path / "a.h5"), progress=lambda *p: seen.append(p))
    stages = {stage for stage, _, _ in seen}
    assert {"packing", "hashing pack"} <= stages, stages
    assert all(done <= total for _, done, total in seen if total)
    with pytest.raises(tensilo.Cancelled):
        pack.produce(pack.plan(found, tmp_path / "b.h5"), should_cancel=lambda: True)

    def broken(*_: object) -> None:
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        pack.produce(pack.plan(found, tmp_path / "b.h5"), progress=broken)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "a.h5.receipt.json", "index"]


def test_other_threads_run_while_a_pack_is_verified(made: pack.Produced) -> None:
    # should_cancel waits for a thread that only runs when the interpreter is free.
    ran = threading.Event()
    thread = threading.Timer(0.0, ran.set)
    thread.start()
    assert pack.verify(made.receipt["destination"], should_cancel=lambda: not ran.wait(10))
    thread.join()


def test_what_cannot_be_is_refused_in_the_plan(family: Path, tmp_path: Path) -> None:
    found = pack.inspect(family, index_dir=tmp_path / "index")
    for options, error in (
        ({"memory": 1 << 20}, tensilo.InsufficientMemoryError),
        ({"available_disk": 1 << 20}, tensilo.InsufficientDiskError),
        ({"backend": "metal"}, tensilo.UnsupportedError),
        ({"backend": "abacus"}, tensilo.InvalidArgumentError),
        ({"profile": "lossy"}, tensilo.InvalidArgumentError),
    ):
        with pytest.raises(error):
            pack.plan(found, tmp_path / "a.h5", **options)  # type: ignore[arg-type]
    with pytest.raises(tensilo.MissingFileError):
        pack.inspect(tmp_path / "nowhere_master.h5")


FIXTURES = ["mini", "family", "multishard", "prime", "allzero", "ext_96x96", "uint16_enc2", "uint16_lz4"]


@needs_fixtures
@pytest.mark.parametrize("name", FIXTURES)
def test_fixture_packs_hold_what_the_ground_truth_states(name: str) -> None:
    expected = json.loads((PACKS / name / "expected.json").read_text())
    scan = pack.open(PACKS / name / "cache.h5")
    assert list(scan.shape) == expected["sourceShape"]
    if "badPixelIndices" in expected:
        assert scan.excluded.tolist() == expected["badPixelIndices"]
    mask = np.zeros(scan.shape[2:], "<u4")
    mask.flat[scan.excluded] = 1
    first, masked = scan.raw[0, 0], scan[0, 0]
    assert (first[mask == 0] == masked[mask == 0]).all() and not masked[mask != 0].any()
    sha = lambda a: hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()  # noqa: E731
    assert sha(scan.raw[...]) == expected["sourceRawLogicalSHA256"]
    wide = scan.manifest.get("working_dtype") == "uint16"
    assert sha(scan[...].astype("u2" if wide else "u1")) == expected["workingLogicalSHA256"]
    stated = expected["products"]
    bf, adf = stated["bf"], stated["adf"]
    made = scan.products(bf=bf["radius"], adf=(adf["inner"], adf["outer"]), center=tuple(bf["center"]))
    for product, facts in stated.items():
        if product != "note":
            assert made[product].dtype == np.dtype(facts["dtype"]), product
            assert sha(made[product]) == facts["sha256"], product


@needs_fixtures
@pytest.mark.parametrize("name", ["mini", "multishard", "family"])
def test_produced_packs_have_the_hashes_of_the_ground_truth(name: str, tmp_path: Path) -> None:
    expected = json.loads((PACKS / name / "expected.json").read_text())
    sources = {"mini": "native_lossless_pack_v1_source.h5", "family": "scan_master.h5", "multishard": "wide_master.h5"}
    given = PACKS / name / sources[name]
    found = pack.inspect(given, index_dir=tmp_path / "index")
    made = pack.produce(pack.plan(found, tmp_path / "cache.h5"))
    for key in ("sourceRawLogicalSHA256", "workingLogicalSHA256", "badPixelIdentitySHA256", "sourceIdentitySHA256"):
        assert made.receipt[key] == expected[key], key


def test_the_examples_run(root: Path) -> None:
    assert root.is_dir()
    for module in (pack, _pack_counts):
        failed, ran = doctest.testmod(module)
        assert failed == 0 and ran > 5
