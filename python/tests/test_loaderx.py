"""`tensilo.loaderx`: the cases of loaderx's own tests, its defects mended, and stores that go back and forth with it."""

import doctest
import inspect
import json
import os
import pickle
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensilo.loaderx as ours
from tensilo.loaderx import Dataset, Zrecord, ZrecordError, _lib, dataset
from tensilo.loaderx._zrecord import CODECS, MAX_RECORD_LEN


@pytest.fixture
def theirs() -> Any:
    """loaderx 0.5.0 itself."""
    if os.environ.get("TENSILO_REQUIRE"):
        import loaderx

        return loaderx
    return pytest.importorskip("loaderx", reason="needs loaderx 0.5.0")


@pytest.fixture
def samples() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.arange(64 * 3 * 8 * 8, dtype=np.float32).reshape(64, 3, 8, 8) % 17


def code(work: Any) -> int:
    """The code of the error that work ends with."""
    with pytest.raises(ZrecordError) as caught:
        work()
    return caught.value.code


def test_fixed_shapes_are_indexed_like_the_array(tmp_path: Path, samples: Any) -> None:
    ds = Dataset.write(tmp_path / "a", samples)
    assert len(ds) == 64 and ds.dtype == np.float32 and ds.shape == (3, 8, 8) and ds.codec == "flate"
    mask = np.arange(64) % 5 == 2
    picks: list[Any] = [5, -1, -64, np.int8(3), np.uint64(9), np.array(7), slice(2, 9), slice(None, None, -7)]
    picks += [slice(70, 80), [1, 4, 2], [-1, 0], [], np.array([63, 0, 31, 7, 7], np.uint64), np.array([], int)]
    picks += [mask, list(mask), ~mask & False, np.array([[1, 2, 3], [-4, 5, 6]])]
    for pick in picks:
        got = ds[pick]
        assert got.dtype == np.float32 and np.array_equal(got, samples[pick]), pick
    assert np.array_equal(ds.__getitems__([3, 1]), samples[[3, 1]])
    assert np.array_equal(ds.__getitems__(mask), samples[mask])
    assert ds.__getitems__([]).shape == (0, 3, 8, 8)
    bad: list[Any] = [999, -65, [0, 64], [0, -65], 64.0, [1.5], "a", mask[:9], np.ones((64, 2), bool), True, None]
    for pick in bad:
        with pytest.raises(IndexError):
            ds[pick]


def test_a_dataset_survives_reopening(tmp_path: Path, samples: Any) -> None:
    Dataset.write(tmp_path / "a", samples).close()
    with Dataset(tmp_path / "a") as ds:
        assert np.array_equal(ds[np.arange(64)], samples)
        assert "64 samples" in repr(ds)
        copy = pickle.loads(pickle.dumps(ds))
        assert np.array_equal(copy[3], samples[3])


def test_scalars_are_samples(tmp_path: Path) -> None:
    labels = np.arange(64, dtype=np.int32)
    ds = Dataset.write(tmp_path / "a", labels)
    assert ds.shape == () and ds[5] == 5 and np.array_equal(ds[:], labels)


def test_structure_shrinks_and_noise_reads_back(tmp_path: Path, samples: Any) -> None:
    ds = Dataset.write(tmp_path / "a", samples)
    assert 0 < os.stat(ds.path / "0.zr").st_blocks * 512 < samples.nbytes
    noise = np.random.default_rng(0).integers(0, 256, (32, 4096), dtype=np.uint8)
    assert np.array_equal(Dataset.write(tmp_path / "b", noise)[:], noise)
    assert np.array_equal(Dataset.write(tmp_path / "c", samples, codec="raw")[:], samples)


def test_writing_again_appends_and_keeps_the_codec(tmp_path: Path, samples: Any) -> None:
    Dataset.write(tmp_path / "a", samples, codec="raw").close()
    ds = Dataset.write(tmp_path / "a", samples[:9], "flate", chunk_bytes=1000)
    assert len(ds) == 73 and ds.codec == "raw" and np.array_equal(ds[64:], samples[:9])
    assert ds.stats()["live_bytes"] == 73 * 768


def test_what_does_not_fit_is_refused(tmp_path: Path, samples: Any) -> None:
    ds = Dataset.write(tmp_path / "a", samples)
    assert code(lambda: ds[999]) == -3
    for bad in (samples.astype("f8"), samples[:, :2], samples.astype(">f4")):
        with pytest.raises(ValueError, match="cannot append"):
            Dataset.write(tmp_path / "a", bad)
    with pytest.raises(ValueError, match="exceeds"):
        Dataset.write(tmp_path / "big", np.zeros((2, MAX_RECORD_LEN + 1), np.uint8))
    with pytest.raises(ValueError, match="codec"):
        Dataset.write(tmp_path / "b", samples, codec="zip")
    with pytest.raises(ValueError, match="sample axis"):
        Dataset.write(tmp_path / "b", np.float32(1))
    with pytest.raises(FileNotFoundError):
        Dataset(tmp_path / "absent")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/schema.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="not a loaderx-zrecord"):
        Dataset(tmp_path / "foreign")
    with pytest.raises(ValueError):
        Zrecord(tmp_path / "c", codec="zip")
    with pytest.raises(KeyError):
        Zrecord(tmp_path / "c").append(samples, 1, 4, codec="zip")
    assert len(ds) == 64


def test_delete_compact_and_append_keep_indices_dense(tmp_path: Path) -> None:
    data = np.repeat(np.arange(200, dtype=np.int32)[:, None], 512, axis=1)
    ds = Dataset.write(tmp_path / "a", data)
    expected = list(range(200))
    for gone in ([199, 3, 3, 11], list(range(0, 190, 2))):
        for i in sorted(set(gone), reverse=True):
            expected[i] = expected[-1]
            expected.pop()
        ds.delete(gone)
    assert ds[:][:, 0].tolist() == expected
    assert code(lambda: ds[len(expected)]) == -3
    dirty = ds.stats()
    ds.compact()
    clean = ds.stats()
    assert clean["records"] == len(expected) and clean["live_bytes"] == dirty["live_bytes"]
    assert clean["reclaimable"] == 0 < dirty["reclaimable"]
    ds.compact()
    assert ds.stats() == clean
    ds.close()
    more = Dataset.write(tmp_path / "a", data[:1])
    assert more[:][:, 0].tolist() == [*expected, 0]


def test_ragged_records(tmp_path: Path) -> None:
    blobs = [bytes([i % 251]) * (100 + i * 13) for i in range(40)]
    flat = np.frombuffer(b"".join(blobs), dtype=np.uint8)
    lens = np.array([len(b) for b in blobs], dtype=np.uint32)
    offsets = np.concatenate([[0], np.cumsum(lens[:-1])]).astype(np.uint64)
    with Zrecord(tmp_path / "a") as zr:
        assert zr.append_var(flat, offsets, lens) == 0
        assert len(zr) == 40 and np.array_equal(zr.lengths(np.arange(40)), lens)
        out = np.empty(flat.size, dtype=np.uint8)
        zr.gather_var(np.arange(40, dtype=np.uint64), out, offsets)
        assert np.array_equal(out, flat)
        assert code(lambda: zr.append_var(flat, [0], [MAX_RECORD_LEN + 1])) == -4
        assert code(lambda: zr.append_var(flat, [0], [0])) == -4
        assert code(lambda: zr.append(flat, 2, flat.size)) == -6
        assert code(lambda: zr.gather([0, 1], out, 99)) == -6
        zr.sync()
        zr.delete([0, 1])
        assert len(zr) == 38


def test_threads_gather_side_by_side(tmp_path: Path, samples: Any) -> None:
    ds = Dataset.write(tmp_path / "a", samples)
    errors: list[str] = []

    def hammer(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            k = rng.integers(0, 64, 32)
            if not np.array_equal(ds.__getitems__(k), samples[k]):
                errors.append("rows do not match")

    threads = [threading.Thread(target=hammer, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_an_index_out_of_range_is_both_errors() -> None:
    e = ZrecordError(-3)
    assert {IndexError, RuntimeError, ZrecordError} < set(type(e).__mro__) and e.code == -3
    assert str(e) == "index out of range"
    for number in (-1, -2, -4, -5, -6, -7, -8):
        assert not isinstance(ZrecordError(number), IndexError)
    copy = pickle.loads(pickle.dumps(ZrecordError(-3, "why")))
    assert type(copy) is type(e) and (copy.code, str(copy)) == (-3, "index out of range: why")


def test_defect_7_other_handles_see_what_is_appended(tmp_path: Path, samples: Any) -> None:
    a = Dataset.write(tmp_path / "a", samples[:4])
    b = Dataset(tmp_path / "a")
    Zrecord(tmp_path / "a").append(samples[4:6], 2, 768)
    assert len(a) == len(b) == 6 and np.array_equal(b[:], samples[:6])


def test_defect_8_a_forked_child_reads_and_appends(tmp_path: Path, samples: Any) -> None:
    ds = Dataset.write(tmp_path / "a", samples)
    ds[:]
    child = os.fork()
    if child == 0:
        ok = np.array_equal(ds[::-1], samples[::-1])
        with Zrecord(tmp_path / "a") as zr:
            ok = ok and zr.append(samples, 1, 768) == 64
        try:
            ds.delete([0])
            ok = False
        except ZrecordError as e:
            ok = ok and e.code == -2
        os._exit(0 if ok else 1)
    deadline = time.monotonic() + 30
    done, status = 0, 0
    while not done and time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done and os.waitstatus_to_exitcode(status) == 0
    assert len(ds) == 65 and np.array_equal(ds[64], samples[0])


def test_defect_12_a_closed_store_says_so(tmp_path: Path, samples: Any) -> None:
    ds = Dataset.write(tmp_path / "a", samples)
    store = Zrecord(tmp_path / "b")
    for closed in (ds, store):
        closed.close()
        closed.close()
        with pytest.raises(ValueError, match="closed"):
            len(closed)
    with pytest.raises(ValueError, match="closed"):
        store.gather([0], np.zeros(1), 1)


def test_defect_13_paths_are_not_made_up_and_stores_open_read_only(tmp_path: Path, samples: Any) -> None:
    assert code(lambda: Zrecord(tmp_path / "typo/path")) == -2
    assert not list(tmp_path.iterdir())
    Dataset.write(tmp_path / "a", samples).close()
    with Zrecord(tmp_path / "a", mode="r") as zr:
        assert len(zr) == 64
        assert code(lambda: zr.append(samples, 1, 768)) == -2
    assert code(lambda: Zrecord(tmp_path / "b", mode="r")) == -8
    with pytest.raises(ValueError):
        Zrecord(tmp_path / "a", mode="w")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/schema.json").write_text((tmp_path / "a/schema.json").read_text())
    assert code(lambda: Dataset(tmp_path / "c")) == -8


def test_defect_14_read_only_memory_is_not_written(tmp_path: Path, samples: Any) -> None:
    with Zrecord(tmp_path / "a") as zr:
        zr.append(samples, 64, 768)
        locked = np.zeros(192, np.float32)
        locked.flags.writeable = False
        for dst in (locked, np.frombuffer(bytes(768), np.float32)):
            with pytest.raises(ValueError, match="read-only"):
                zr.gather([1], dst, 768)
            assert not dst.any()
        with pytest.raises(ValueError, match="C-contiguous"):
            zr.gather([1], np.zeros((2, 192), np.float32).T, 768)
        with pytest.raises(ValueError, match="C-contiguous"):
            zr.append(samples[:, :, ::2], 1, 768)
        with pytest.raises(TypeError):
            zr.gather([1], bytearray(768), 768)  # type: ignore[arg-type]


def test_defect_15_iteration_stops_and_indices_mean_what_numpy_means(tmp_path: Path, samples: Any) -> None:
    ds = Dataset.write(tmp_path / "a", samples)
    assert np.array_equal(np.stack(list(ds)), samples)
    assert np.array_equal(ds[[-1]], samples[[-1]])
    with Zrecord(tmp_path / "a") as zr:
        for ids in ([0.0], np.zeros(2), ["a"]):
            with pytest.raises(TypeError):
                zr.lengths(ids)
        with pytest.raises(ValueError):
            zr.lengths(np.zeros((2, 2), int))
        assert code(lambda: zr.lengths([-1])) == -3
        assert code(lambda: zr.lengths([64])) == -3


def test_defect_16_fields_are_kept_and_empty_samples_named(tmp_path: Path) -> None:
    dtype = np.dtype([("id", "<i4"), ("box", "<f4", (2, 2)), ("inner", [("a", "u1"), ("b", ">i2")])])
    data = np.zeros(5, dtype)
    data["id"] = range(5)
    data["box"] = np.arange(20).reshape(5, 2, 2)
    data["inner"]["b"] = -1
    Dataset.write(tmp_path / "a", data).close()
    ds = Dataset(tmp_path / "a")
    assert ds.dtype == dtype and np.array_equal(ds[:], data)
    assert len(Dataset.write(tmp_path / "a", data)) == 10
    padded = np.zeros(3, np.dtype({"names": ["x", "y"], "formats": ["u1", "<f8"], "offsets": [0, 8]}))
    padded["y"] = [1, 2, 3]
    assert np.array_equal(Dataset.write(tmp_path / "p", padded)[:]["y"], padded["y"])
    with pytest.raises(ValueError, match="no bytes"):
        Dataset.write(tmp_path / "b", np.zeros((3, 0)))
    with pytest.raises(ValueError, match="objects"):
        Dataset.write(tmp_path / "b", np.array([{}, []], object))
    assert not (tmp_path / "b").exists()


def test_an_interrupted_process_leaves_no_lock(tmp_path: Path, samples: Any) -> None:
    Dataset.write(tmp_path / "a", samples).close()
    script = (
        "import sys, os, numpy as np\nfrom tensilo.loaderx import Dataset\n"
        "ds = Dataset(sys.argv[1]); ds[:]; print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "a")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"open\n"
        ds = Dataset(tmp_path / "a")
        with pytest.raises(ZrecordError, match="other handles") as caught:
            ds.delete([0])
        assert caught.value.code == -2
        other.kill()
        other.wait()
    ds.delete([0])
    assert len(ds) == 63


def test_names_signatures_and_defaults_are_those_of_loaderx(theirs: Any) -> None:
    import loaderx._zrecord
    import loaderx.dataset

    assert ours.__version__ == theirs.__version__
    assert (CODECS, MAX_RECORD_LEN) == (loaderx._zrecord.CODECS, loaderx._zrecord.MAX_RECORD_LEN)
    for name in ("SCHEMA", "FORMAT", "WRITE_CHUNK_BYTES"):
        assert getattr(dataset, name) == getattr(loaderx.dataset, name)

    def parameters(function: Any) -> list[tuple[str, Any]]:
        found = inspect.signature(function).parameters.values()
        return [(p.name, p.default) for p in found if p.kind is not inspect.Parameter.KEYWORD_ONLY]

    for ours_class, theirs_class in ((Zrecord, theirs.Zrecord), (Dataset, theirs.Dataset)):
        checked = 0
        for name, method in inspect.getmembers(theirs_class, callable):
            if name in vars(theirs_class) and name != "__del__" and not name.startswith("__class"):
                assert parameters(getattr(ours_class, name)) == parameters(method), name
                checked += 1
        assert checked >= 8
    for number in range(-8, 0):
        assert str(ZrecordError(number)) == str(theirs.ZrecordError(number))


def test_datasets_go_back_and_forth_with_loaderx(tmp_path: Path, theirs: Any, samples: Any) -> None:
    rng = np.random.default_rng(3)
    arrays = {
        "f4": samples,
        "i4": np.arange(50, dtype=np.int32),
        "u1": rng.integers(0, 9, (20, 28, 28), dtype=np.uint8),
        "big": samples.astype(">f8"),
        "bool": samples > 8,
        "text": np.array(["a", "bc", "def"]),
        "time": np.arange(7).astype("M8[ns]"),
        "c16": samples[:5] * 1j,
    }
    for name, array in arrays.items():
        for codec in CODECS:
            a, b = tmp_path / f"{name}-{codec}-ours", tmp_path / f"{name}-{codec}-theirs"
            Dataset.write(a, array, codec).close()
            theirs.Dataset.write(b, array, codec).close()
            assert (a / "schema.json").read_bytes() == (b / "schema.json").read_bytes()
            with theirs.Dataset(a) as ds:
                assert ds.dtype == array.dtype and np.array_equal(ds[np.arange(len(array))], array), name
            with Dataset(b) as ds:
                assert ds.dtype == array.dtype and np.array_equal(ds[:], array), name
            theirs.Dataset.write(a, array).close()
            Dataset.write(b, array).close()
            twice = np.concatenate([array, array])
            with theirs.Dataset(b) as ds:
                assert np.array_equal(ds[np.arange(len(twice))], twice), name
            with Dataset(a) as ds:
                assert np.array_equal(ds[:], twice), name
    # The table and raw data of the same appends are the same bytes.
    for name in ("meta.zr", "0.zr"):
        heads = [(tmp_path / f"f4-raw-{who}" / name).open("rb").read(80_000) for who in ("ours", "theirs")]
        assert heads[0].rstrip(b"\0") == heads[1].rstrip(b"\0")


def test_the_functions_for_c_are_in_the_extension_module(tmp_path: Path, samples: Any) -> None:
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef(
        "typedef struct Z Z; Z* zr_open(const char*, size_t, int32_t*); void zr_close(Z*); uint32_t zr_len(Z*);"
        "typedef struct S S; S* cinit(uint64_t, uint64_t, uint8_t, uint64_t); void cdeinit(S*);"
        "void cnext(S*, uint64_t*, size_t);"
    )
    Dataset.write(tmp_path / "a", samples).close()
    path = str(tmp_path / "a").encode()
    lib = ffi.dlopen(_lib.path("zrecord"))
    store = lib.zr_open(path, len(path), ffi.NULL)
    assert lib.zr_len(store) == 64
    lib.zr_close(store)
    lib = ffi.dlopen(_lib.path("sampler"))
    sampler = lib.cinit(10, 4, 0, 42)
    numbers = ffi.new("uint64_t[4]")
    for _ in range(3):
        lib.cnext(sampler, numbers, 4)
    assert list(numbers) == [8, 9, 0, 1]
    lib.cdeinit(sampler)
    with pytest.raises(ImportError):
        _lib.path("other")


def test_a_loader_reads_datasets_of_every_type_without_the_interpreter(tmp_path: Path, samples: Any) -> None:
    import tensilo

    arrays = {
        "f4": samples,
        "big": samples.astype(">f8"),
        "bool": samples > 8,
        "text": np.array([f"text {i}" for i in range(64)]),
        "fields": np.array([(i, -i) for i in range(64)], [("a", "<i4"), ("b", "<f4")]),
        "half": samples.astype("f2"),
        "c16": samples * 1j,
    }
    labels = np.arange(64)
    for name, array in arrays.items():
        ds, marks = Dataset.write(tmp_path / name, array), Dataset.write(tmp_path / f"{name} labels", labels)
        with ours.DataLoader(ds, marks, num_workers=2, batch_size=10) as loader:
            for _ in range(8):
                batch = next(loader)
                assert batch["data"].dtype == array.dtype
                assert np.array_equal(batch["data"], array[batch["label"]]), name
        with tensilo.DataLoader(ds, batch_size=64, mode="sequential") as plain:
            assert np.array_equal(next(iter(plain))["data"], array), name


def test_the_examples_are_right() -> None:
    assert doctest.testmod(dataset).failed == 0


def test_schemas_are_json_as_loaderx_writes_it(tmp_path: Path, samples: Any) -> None:
    Dataset.write(tmp_path / "a", samples).close()
    text = (tmp_path / "a/schema.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"
    assert list(json.loads(text)) == ["format", "version", "dtype", "shape", "codec"]


#: Lets a program that imports loaderx find `tensilo.loaderx`, and runs loaderx's own tests.
OWN_TESTS = """
import importlib, sys
names = ["", "._lib", "._sampler", "._zrecord", ".dataloader", ".dataset"]
for name in names:
    sys.modules["loaderx" + name] = importlib.import_module("tensilo.loaderx" + name)
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]]))
"""


def test_loaderxs_own_tests_pass(tmp_path: Path) -> None:
    wanted = ["--quiet", "--no-binary", "loaderx", "--no-deps", "--dest", str(tmp_path), "loaderx==0.5.0"]
    got = subprocess.run([sys.executable, "-m", "pip", "download", *wanted], capture_output=True, text=True)
    if got.returncode and not os.environ.get("TENSILO_REQUIRE"):
        pytest.skip("needs pip and the source distribution of loaderx 0.5.0")
    assert got.returncode == 0, got.stderr
    with tarfile.open(tmp_path / "loaderx-0.5.0.tar.gz") as source:
        source.extract("loaderx-0.5.0/tests/test_loaderx.py", tmp_path, filter="data")
    test = tmp_path / "loaderx-0.5.0/tests/test_loaderx.py"
    out = subprocess.run([sys.executable, "-c", OWN_TESTS, str(test)], capture_output=True, text=True, cwd=tmp_path)
    assert out.returncode == 0 and "15 passed" in out.stdout, out.stdout
