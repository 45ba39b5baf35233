"""`tensilo.read` gives what h5py gives."""

import doctest
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

import tensilo

EQUAL_TO_H5PY = ["cube", "chunked", "empty", "bool", "complex", "fixed", "array", "arrays", "soft", "scalar", "record"]

SELECTIONS = [
    np.s_[:],
    np.s_[...],
    np.s_[2],
    np.s_[-1],
    np.s_[1:5],
    np.s_[-3:],
    np.s_[::2],
    np.s_[1:7:3, ..., 2],
    np.s_[..., -1],
    np.s_[3, 4, 5],
    np.s_[0:0],
    np.s_[5:100],
    np.s_[::-1],
    np.s_[::-2, 7:1:-3],
    np.s_[:, [5, 1, 1]],
]


@pytest.mark.parametrize("name", EQUAL_TO_H5PY)
def test_whole_datasets_equal_h5py(sample: Path, name: str) -> None:
    with h5py.File(sample) as f:
        expected = np.asarray(f[name][()])
    got = tensilo.read(sample, name)
    assert isinstance(got, np.ndarray)
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    assert got.flags.c_contiguous and got.flags.writeable and got.flags.aligned


@pytest.mark.parametrize("selection", SELECTIONS, ids=repr)
def test_selections_equal_numpy(sample: Path, selection: object) -> None:
    with h5py.File(sample) as f:
        expected = f["cube"][()][selection]
    got = tensilo.read(str(sample), "/cube", selection)
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


def test_random_slices_equal_numpy(sample: Path) -> None:
    with h5py.File(sample) as f:
        whole = f["chunked"][()]
    rng = np.random.default_rng(11)

    def part(extent: int) -> slice | int:
        if rng.random() < 0.2:
            return int(rng.integers(-extent, extent))
        bounds = [None if rng.random() < 0.3 else int(v) for v in rng.integers(-2 * extent, 2 * extent, 2)]
        step = int(rng.choice([-7, -2, -1, 1, 2, 5]))
        return slice(bounds[0], bounds[1], step)

    for _ in range(300):
        selection = tuple(part(n) for n in whole.shape)
        np.testing.assert_array_equal(tensilo.read(sample, "chunked", selection, threads=1), whole[selection])


def test_strings_of_variable_length_are_str_objects(sample: Path) -> None:
    got = tensilo.read(sample, "text")
    assert got.dtype == object
    assert got.tolist() == ["", "µ", "long " * 100]
    assert tensilo.read(sample, "text", 1).item() == "µ"


def test_each_kind_of_error_has_its_class(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tensilo.read(tmp_path / "none.h5", "x")
    with pytest.raises(KeyError) as missing:
        tensilo.read(sample, "/none")
    assert isinstance(missing.value, tensilo.NotFoundError)
    assert missing.value.file == str(sample)
    assert "none" in str(missing.value)
    (tmp_path / "bad.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(2000))
    with pytest.raises(tensilo.TensiloError):
        tensilo.read(tmp_path / "bad.h5", "x")
    (tmp_path / "text.h5").write_bytes(b"no HDF5 here" * 100)
    with pytest.raises(tensilo.CorruptError):
        tensilo.read(tmp_path / "text.h5", "x")
    with pytest.raises(ValueError):
        tensilo.read(sample, "/")
    with pytest.raises(IndexError):
        tensilo.read(sample, "cube", 7)
    with pytest.raises(IndexError):
        tensilo.read(sample, "cube", (0, 0, 0, 0))
    with pytest.raises(tensilo.LimitError):
        tensilo.read(sample, "cube", limit=500)
    with pytest.raises(tensilo.UnsupportedError):
        tensilo.read(sample, "reference")
    with pytest.raises(tensilo.UnsupportedError):
        tensilo.read(sample, "null")
    for wrong in ["a", 1.5, {}]:
        with pytest.raises(TypeError):
            tensilo.read(sample, "cube", wrong)  # type: ignore[arg-type]


def test_all_errors_are_tensilo_errors() -> None:
    for name in tensilo.errors.__all__:
        assert issubclass(getattr(tensilo, name), tensilo.TensiloError)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that takes seconds to read on one thread, though it is small: highly compressed."""
    path = tmp_path_factory.mktemp("large") / "large.h5"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("zeros", (3000, 1 << 20), "u1", chunks=(1, 1 << 20), compression="gzip")
        chunk = np.zeros((1, 1 << 20), "u1")
        d[0:1] = chunk
        _, raw = d.id.read_direct_chunk((0, 0))
        for i in range(3000):
            d.id.write_direct_chunk((i, 0), raw)
    return path


def test_other_threads_run_during_a_read(large: Path) -> None:
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.perf_counter()
    tensilo.read(large, "zeros", np.s_[:1000], threads=1)
    ended = time.perf_counter()
    stop.set()
    thread.join()
    # Under a held GIL there would be none at all.
    assert sum(begun < t < ended for t in ticks) >= 3


def test_ctrl_c_stops_a_read(large: Path) -> None:
    code = (
        "import signal, sys, tensilo\n"
        # Who is started in the background may have it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True: tensilo.read(sys.argv[1], 'zeros', threads=1)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(large)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    try:
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "stopped\n"
    assert child.returncode == 0


def test_the_examples_in_the_docstrings_run(root: Path) -> None:
    assert root.is_dir()
    result = doctest.testmod(tensilo)
    assert result.attempted >= 4
    assert result.failed == 0
