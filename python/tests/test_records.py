"""Record stores: NumPy is the oracle, and readers see whole commits whatever others do."""

import doctest
import multiprocessing
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensilo
from tensilo import Records, _record_writer, records

N = 300
IMAGES = (np.random.default_rng(3).random((N, 5, 7)) * 4000).astype("<u2")
LABELS = np.arange(N) % 10
TEXTS = [np.frombuffer(b"abc" * (i % 9), "u1") for i in range(N)]


@pytest.fixture(params=["raw", "deflate:1", "bitshuffle+zstd:3", "lz4"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store of three fields."""
    p = tmp_path / "train.trec"
    data = {"image": IMAGES, "label": LABELS, "text": TEXTS}
    assert Records.write(p, data, codec=request.param, metadata={"set": "train"}) == N
    return p


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A store of one field."""
    p = tmp_path / "plain.trec"
    Records.write(p, IMAGES)
    return p


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        np.int64(7),
        np.s_[:],
        np.s_[5:50:3],
        np.s_[::-1],
        np.s_[10:5],
        [3, 1, 1, -2],
        [],
        np.array([[1, 2], [3, -4]]),
        np.arange(N) % 3 == 0,
        np.array([5], dtype=np.uint64),
    ],
)
def test_indexing_is_numpys(plain: Path, path: Path, index: object) -> None:
    store = Records(plain)
    got, want = store[index], IMAGES[index]
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    fields = Records(path)[index]
    np.testing.assert_array_equal(fields["image"], want)
    np.testing.assert_array_equal(fields["label"], LABELS[index])
    flat = np.atleast_1d(np.arange(N)[index]).reshape(-1)
    texts = [fields["text"]] if np.ndim(np.arange(N)[index]) == 0 else fields["text"]
    assert [t.tobytes() for t in texts] == [TEXTS[i].tobytes() for i in flat]


@pytest.mark.parametrize("index", [N, -N - 1, [0, N], 1.0, [1.5], np.ones(5, bool), "image", np.array([1.0])])
def test_what_numpy_refuses_is_refused(plain: Path, index: object) -> None:
    with pytest.raises((IndexError, TypeError)):
        IMAGES[index]
    with pytest.raises(IndexError):
        Records(plain)[index]


def test_iteration_stops_and_batches_are_lists(path: Path) -> None:
    store = Records(path)
    labels = [int(r["label"]) for r in store]
    assert labels == LABELS.tolist()
    batch = store.__getitems__([4, 2, 4])
    assert [int(r["label"]) for r in batch] == [4, 2, 4]
    np.testing.assert_array_equal(batch[1]["image"], IMAGES[2])
    assert batch[2]["text"].tobytes() == TEXTS[4].tobytes()


def test_out_is_filled_and_must_fit(plain: Path) -> None:
    store = Records(plain)
    out = np.empty((4, 5, 7), "<u2")
    assert store.gather([9, 8, 7, 9], out=out) is out
    np.testing.assert_array_equal(out, IMAGES[[9, 8, 7, 9]])
    out.flags.writeable = False
    for bad in (out, np.empty((3, 5, 7), "<u2"), np.empty((4, 5, 7), "<i2"), np.empty((4, 7, 5), "<u2").transpose(0, 2, 1)):
        with pytest.raises(tensilo.InvalidArgumentError):
            store.gather([9, 8, 7, 9], out=bad)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?", "c8"])
def test_out_is_filled_whatever_the_dtype_and_the_kind_of_ids(tmp_path: Path, dtype: str) -> None:
    rows = (np.arange(60 * 6).reshape(60, 2, 3) * 37 % 251).astype(dtype)
    Records.write(tmp_path / "a.trec", rows)
    store = Records(tmp_path / "a.trec")
    ids = np.array([3, 59, 0, 3])
    for index in (
        ids, ids.astype("u8"), ids.astype("i4"), ids.astype(">i8"), ids - 60, ids.tolist(), np.repeat(ids, 2)[::2],
        np.isin(np.arange(60), [1, 2, 5, 7]), slice(4, 8),
    ):
        for _ in range(3):
            out = np.zeros((4, 2, 3), dtype)
            assert store.gather(index, out=out) is out
            np.testing.assert_array_equal(out, rows[index])
            assert store.gather(index, fields="data", out=out) is out
    for bad in ([60], np.array([60]), np.array([-61]), np.array([2**63], "u8")):
        with pytest.raises(IndexError):
            store.gather(bad, out=np.zeros((1, 2, 3), dtype))
    out = np.zeros((8, 2, 3), dtype)
    for wrong in (out, out[::2], out[:4].reshape(4, 3, 2), out[:4].view(f"V{out.itemsize}")):
        with pytest.raises(tensilo.InvalidArgumentError):
            store.gather(ids, out=wrong)
    assert not out.any()
    nothing = np.zeros((0, 2, 3), dtype)
    assert store.gather(ids[:0], out=nothing) is nothing


def test_what_a_store_says_of_itself(path: Path) -> None:
    store = Records(path)
    assert (store.format, store.metadata, len(store)) == ("tensilo", {"set": "train"}, N)
    assert [(f.name, f.dtype, f.shape, f.ragged) for f in store.fields.values()] == [
        ("image", np.dtype("<u2"), (5, 7), False),
        ("label", np.dtype("<i8"), (), False),
        ("text", np.dtype("u1"), (), True),
    ]
    assert "image" in store._repr_html_() and "300 records" in repr(store)
    assert store.verify() == []
    np.testing.assert_array_equal(store.lengths("text", [1, 2]), [3, 6])
    assert store.stats["file"] > store.stats["live"]


def test_stores_pickle_and_views_keep_their_order(path: Path) -> None:
    store = pickle.loads(pickle.dumps(Records(path)))
    view = store.view([5, 3, -1])
    np.testing.assert_array_equal(view[:]["label"], LABELS[[5, 3, -1]])
    np.testing.assert_array_equal(view[-1]["image"], IMAGES[-1])
    assert len(list(view)) == 3
    again = pickle.loads(pickle.dumps(view))
    np.testing.assert_array_equal(again[:]["label"], LABELS[[5, 3, -1]])
    pickled = pickle.dumps(view)
    with Records.open_writer(path) as writer:
        writer.delete(3)
    with pytest.raises(tensilo.SourceChangedError):
        pickle.loads(pickled)


@pytest.mark.parametrize(
    ("dtype", "values", "good"),
    [
        ("i1", np.array([-128, 127]), True), ("i1", np.array([300]), False), ("i1", np.array([200], "u1"), False),
        ("u1", [0, 255], True), ("u1", [-1], False), ("u8", np.array([2**63], "u8"), True), ("i8", np.array([2**63], "u8"), False),
        ("i4", [1.0], False), ("f4", [0.1, np.inf, np.nan], True), ("f4", [1e300], False), ("f2", np.array([1e6], "f4"), False),
        ("f4", [1j], False), ("c8", [1e300 + 1j], False), ("?", [2], False), ("i2", [True], True), ("f4", [1, 2], True),
    ],
)  # fmt: skip
def test_values_that_a_field_cannot_hold_are_refused(tmp_path: Path, dtype: str, values: Any, good: bool) -> None:
    with Records.create(tmp_path / "a.trec", {"x": (dtype, ()), "r": (dtype, (None,))}) as writer:
        if good:
            writer.append({"x": values, "r": [values] * len(values)})
        else:
            for given in ({"x": values, "r": [[]] * len(values)}, {"x": np.zeros(1, dtype), "r": [values]}):
                with pytest.raises(tensilo.InvalidArgumentError):
                    writer.append(given)
    store = Records(tmp_path / "a.trec")
    assert len(store) == (len(values) if good else 0)
    if good:
        want = np.asarray(values).astype(dtype)
        np.testing.assert_array_equal(store[:]["x"], want)
        np.testing.assert_array_equal(store[-1]["r"], want)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    bad: list[Any] = [
        {"x": np.arange(3), "y": np.arange(4)}, [np.zeros(2), np.zeros((2, 2))], [np.zeros(2), 3], [[1], [1.5]],
        {"x": np.array([b"a"])}, {},
    ]  # fmt: skip
    path = tmp_path / "a.trec"
    for data in bad:
        for mode in ("x", "w", "a"):
            with pytest.raises((tensilo.TensiloError, ValueError)):
                Records.write(path, data, mode=mode)
            assert os.listdir(tmp_path) == [], (data, mode)
    Records.write(path, np.arange(100))
    before = path.read_bytes()
    for data in bad:
        for mode in ("w", "a"):
            with pytest.raises((tensilo.TensiloError, ValueError)):
                Records.write(path, data, mode=mode)
            assert os.listdir(tmp_path) == ["a.trec"]
            np.testing.assert_array_equal(Records(path)[:], np.arange(100))
    with Records.open_writer(path), pytest.raises(tensilo.LockedError):
        Records.write(path, np.arange(3), mode="w")
    with pytest.raises(RuntimeError), Records.create(path, {"x": ("u1", ())}, overwrite=True, whole=True) as writer:
        writer.append([1, 2])
        raise RuntimeError
    assert path.read_bytes() == before


def test_what_would_mean_something_else_in_numpy_is_refused(plain: Path) -> None:
    store = Records(plain)
    for index in ((0, 1), (0,)):
        with pytest.raises(IndexError):
            store[index]
    with pytest.raises(IndexError):
        store.__getitems__([0.7])
    with pytest.raises(tensilo.InvalidArgumentError):
        store.gather([0], out=[0])
    assert store.__getitems__([]) == []


def test_appending_deleting_and_compacting(tmp_path: Path) -> None:
    p = tmp_path / "a.trec"
    Records.write(p, IMAGES[:100])
    with pytest.raises(FileExistsError):
        Records.write(p, IMAGES)
    Records.write(p, IMAGES[100:], mode="a")
    store = Records(p)
    np.testing.assert_array_equal(store[:], IMAGES)
    with Records.open_writer(p) as writer:
        with pytest.raises(tensilo.LockedError):
            Records.open_writer(p)
        writer.delete(np.s_[10:290])
        writer.compact()
    kept = list(range(N))
    for i in reversed(range(10, 290)):
        kept[i] = kept[-1]
        kept.pop()
    assert store.refresh() and not store.refresh()
    np.testing.assert_array_equal(store[:], IMAGES[kept])
    with pytest.raises(tensilo.InvalidArgumentError):
        Records.write(p, LABELS, mode="a")
    with pytest.raises(ZeroDivisionError), Records.open_writer(p) as writer:
        writer.append(IMAGES[:5])
        raise ZeroDivisionError
    assert not store.refresh()
    assert Records.write(p, IMAGES[:3], mode="w") == 3
    assert len(Records(p)) == 3


def test_mapped_arrays_are_written_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    monkeypatch.setattr(_record_writer, "WRITE_BLOCK_BYTES", 1000)
    Records.write(tmp_path / "a.trec", np.load(tmp_path / "a.npy", mmap_mode="r"))
    np.testing.assert_array_equal(Records(tmp_path / "a.trec")[:], IMAGES)


def test_other_types_and_shapes_round_trip(tmp_path: Path) -> None:
    arrays = {
        "flag": np.array([True, False, True]),
        "big": np.arange(3, dtype=">i4"),
        "complex": np.array([1j, 2, 3], "c8"),
        "none": np.empty((3, 0, 2), "f8"),
        "half": np.array([0.5, np.inf, np.nan], "f2"),
        "list": [1, 2, 3],
    }
    Records.write(tmp_path / "a.trec", arrays, codec={"big": "zstd"})
    store = Records(tmp_path / "a.trec")
    for name, array in arrays.items():
        np.testing.assert_array_equal(store.gather(slice(None), fields=name), np.asarray(array))


def test_damage_is_named_and_the_rest_is_saved(tmp_path: Path) -> None:
    p = tmp_path / "a.trec"
    Records.write(p, IMAGES, codec="raw")
    content = bytearray(p.read_bytes())
    at = content.find(IMAGES[42].tobytes())
    content[at + 3] ^= 1
    p.write_bytes(content)
    with pytest.raises(tensilo.CorruptError, match="record 42"):
        Records(p)[40:50]
    assert Records(p).verify()[0].startswith("record 42")
    saved, lost = records.salvage(p, tmp_path / "b.trec")
    assert saved == N - 1 and len(lost) == 1
    np.testing.assert_array_equal(Records(tmp_path / "b.trec")[:], np.delete(IMAGES, 42, 0))
    with pytest.raises(tensilo.MissingFileError):
        Records(tmp_path / "nothing")


def test_a_dictionary_helps_small_records(tmp_path: Path) -> None:
    texts = [f'{{"name":"sample {i}","unit":"kelvin","value":{i * 7919 % 1000}}}'.encode() for i in range(2000)]
    rows = [np.frombuffer(t, "u1") for t in texts]
    dictionary = records.train_dictionary(texts, 4096)
    sizes = []
    for d in (None, dictionary):
        with Records.create(tmp_path / "d.trec", {"t": ("u1", (None,))}, codec="zstd", dictionary=d, overwrite=True) as w:
            w.append(rows)
        store = Records(tmp_path / "d.trec")
        assert [r.tobytes() for r in store[::100]] == texts[::100]
        sizes.append(store.stats["live"])
    assert sizes[1] * 3 < sizes[0] * 2


def _child(store: Records, pipe: "multiprocessing.connection.Connection") -> None:
    pipe.send([bool((store[i]["image"] == IMAGES[i]).all()) for i in range(0, N, 7)])
    pipe.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_reads(path: Path, method: str) -> None:
    store = Records(path)
    assert len(store[:]["image"]) == N  # used before the fork
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(store, theirs))
    child.start()
    assert ours.poll(60)
    assert all(ours.recv())
    child.join(60)
    assert child.exitcode == 0


def _batches(store: Records, images: "np.ndarray[Any, np.dtype[np.uint8]]") -> bool:
    """Reads batches one right behind the other, as those for which a thread stands by."""
    rng = np.random.default_rng(4)
    out = np.empty((256, images.shape[1]), "u1")
    right = True
    for _ in range(60):
        ids = rng.integers(0, len(images), 256)
        right &= bool((store.gather(ids, out=out) == images[ids]).all())
        for _ in range(5):
            store.gather(ids, out=out)
    return right


@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_forked_between_batches_reads_small_records(tmp_path: Path) -> None:
    images = (np.arange(2000 * 784) // 7 % 251).astype("u1").reshape(2000, 784)
    for codec in ("raw", "lz4"):
        path = tmp_path / codec
        Records.write(path, images, codec=codec)
        store = Records(path, threads=2)
        assert _batches(store, images)
        child = os.fork()
        if child == 0:
            right = False
            try:
                right = _batches(store, images)
            finally:
                os._exit(0 if right else 1)
        assert _batches(store, images)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0


def test_threads_read_while_one_appends(tmp_path: Path) -> None:
    p = tmp_path / "a.trec"
    Records.write(p, IMAGES[:50], codec="lz4")
    stop = threading.Event()
    failures: list[object] = []

    def read() -> None:
        store = Records(p, threads=1)
        rng = np.random.default_rng(os.getpid())
        while not stop.is_set():
            store.refresh()
            ids = rng.integers(0, len(store), 20)
            if not (store[ids] == IMAGES[ids]).all():
                failures.append(ids)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for r in readers:
        r.start()
    for i in range(50, N, 25):
        Records.write(p, IMAGES[i : i + 25], mode="a")
    stop.set()
    for r in readers:
        r.join(60)
    assert not failures
    assert len(Records(p)) == N


def test_loaders_take_records(path: Path) -> None:
    loader = tensilo.DataLoader(Records(path).view(np.arange(100)), batch_size=10, seed=1)
    seen = next(iter(loader))
    assert seen["image"].shape == (10, 5, 7)


def test_examples_run() -> None:
    assert doctest.testmod(records).failed == 0
