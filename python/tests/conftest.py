"""What the tests share: the repository's root, and small files written by h5py."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from absent import pytest_make_collect_report, pytest_runtest_makereport, pytest_terminal_summary

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport", "pytest_terminal_summary"]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository's root, as the working folder."""
    monkeypatch.chdir(ROOT)
    return ROOT


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a dataset of each kind."""
    path = tmp_path_factory.mktemp("sample") / "sample.h5"
    rng = np.random.default_rng(7)
    with h5py.File(path, "w") as f:
        f["cube"] = rng.integers(0, 1000, (7, 8, 9), dtype="u2")
        f.create_dataset(
            "chunked",
            data=rng.normal(size=(50, 40)).astype(">f4"),
            chunks=(7, 11),
            compression="gzip",
            shuffle=True,
        )
        f["scalar"] = np.float64(2.5)
        f["empty"] = np.zeros((0, 3), "i8")
        f["null"] = h5py.Empty("f4")
        f["bool"] = np.array([True, False])
        f["complex"] = np.array([1 + 2j, 3 - 4j], "c8")
        f["fixed"] = np.array([b"ab", b"c"], "S3")
        f["text"] = np.array(["", "µ", "long " * 100], dtype=h5py.string_dtype())
        record = np.dtype({"names": ["a", "b"], "formats": ["<i2", ("<f8", (2,))], "offsets": [0, 8], "itemsize": 32})
        f["record"] = np.array([(1, (2.0, 3.0)), (4, (5.0, 6.0))], record)
        f["array"] = np.zeros(3, dtype=np.dtype(("<i4", (2, 2))))
        f.create_dataset("arrays", (3,), dtype=np.dtype(("<i4", (2, 2))))[...] = np.arange(12).reshape(3, 2, 2)
        f["soft"] = h5py.SoftLink("/cube")
        f["reference"] = np.array([f["cube"].ref], dtype=h5py.ref_dtype)
    return path


