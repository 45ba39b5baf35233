"""The loader: what it reads, the order of batches, states, memory, errors, processes."""

import doctest
import gc
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tensilo import (
    DataLoader,
    LaneStore,
    MapDataset,
    Mix,
    Ragged,
    Sampler,
    _native,
    loader,
    map_dataset,
    sampler,
    sources,
)
from tensilo.errors import SourceChangedError, TensiloError

DATA = np.arange(100 * 12, dtype="<f4").reshape(100, 3, 4)
LABELS = np.arange(100)


def labels(batches):
    return [batch["label"].tolist() for batch in batches]


def take(loader, n):
    return [batch for _, batch in zip(range(n), loader, strict=False)]


class Slow:
    """A dataset that only Python can read, later records faster than earlier ones."""

    def __init__(self, values, seconds=0.0):
        self.values, self.seconds = values, seconds

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        time.sleep(self.seconds * (i % 3))
        return self.values[i]


@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("kind", ["array", "strided", "memmap", "python"])
def test_batches_hold_the_records_of_their_ids(tmp_path, kind, num_workers):
    data = DATA
    if kind == "strided":
        data = np.zeros((100, 5, 4), "<f4")[:, 1:4]
        data[...] = DATA
    elif kind == "memmap":
        np.save(tmp_path / "data.npy", DATA)
        data = np.load(tmp_path / "data.npy", mmap_mode="r")
    elif kind == "python":
        data = Slow(DATA)
    with DataLoader(data, LABELS, num_workers, 32, epochs=2) as loader:
        assert len(loader) == 8
        iterator = iter(loader)
        seen = []
        for batch in iterator:
            assert batch["data"].dtype == np.float32 and batch["label"].dtype == LABELS.dtype
            assert np.array_equal(batch["data"], DATA[batch["label"]])
            assert np.array_equal(iterator.ids, batch["label"])
            seen.append((iterator.step, iterator.epoch, len(batch["label"])))
        assert seen == [(i, i // 4, 4 if i % 4 == 3 else 32) for i in range(8)]


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "<u2", ">i4", "<f2", "c16", "S5", "<U3", "<M8[ns]", [("a", "<i2"), ("b", ">f8", (2,))]]
)
def test_every_dtype_without_objects_stays_what_it_is(dtype):
    dtype = np.dtype(dtype)
    data = np.arange(20 * dtype.itemsize, dtype="u1") % 2
    data = data.view(dtype).reshape(10, 2) if dtype.kind != "U" else np.array([["a", "bcd"]] * 10)
    with DataLoader(data, batch_size=4, mode="sequential") as loader:
        batch = next(loader)["data"]
    assert batch.dtype == data.dtype and batch.tobytes() == data[:4].tobytes()


def test_arrays_that_are_no_records_are_refused():
    for wrong in [np.float64(3), np.array(["a", None], object), np.zeros((4, 4)).T, np.arange(4)[::-1], 7]:
        with pytest.raises((ValueError, TypeError)):
            DataLoader(wrong)
    with pytest.raises(ValueError, match="100 records of data and 99"):
        DataLoader(DATA, LABELS[:99])
    with pytest.raises(ValueError, match="no records"):
        DataLoader(DATA[:0], LABELS[:0])


def test_fields_of_stores_and_mappings(tmp_path):
    path = tmp_path / "lanes.pts"
    with LaneStore.create(path, 10, {"x": ("f4", (2, 3)), "y": ("i8", 1)}) as writer:
        for k in range(10):
            writer.write("x", k, np.full(6, k))
            writer.write("y", k, [k * k])
    store = LaneStore(path)
    with DataLoader(store, batch_size=4, mode="sequential") as loader:
        batch = take(loader, 2)[1]
        assert batch["x"].tolist() == [[[k] * 3] * 2 for k in (4, 5, 6, 7)]
        assert batch["y"].tolist() == [[16], [25], [36], [49]]
    with DataLoader(store, batch_size=4, fields=["y"]) as loader:
        assert list(next(loader)) == ["y"]
    with pytest.raises(KeyError, match="there are: x, y"):
        DataLoader(store, fields=["z"])
    with DataLoader({"a": DATA, "b": LABELS}, batch_size=8) as loader:
        batch = next(loader)
        assert np.array_equal(batch["a"], DATA[batch["b"]])
    assert pickle.loads(pickle.dumps(MapDataset(store)))[3]["y"].tolist() == [9]


def test_batches_are_in_order_whatever_the_transform_takes():
    def uneven(pair):
        time.sleep(0.001 * (pair[1][0] % 4))
        return pair[0] * 2, pair[1]

    expected = labels(DataLoader(DATA, LABELS, 0, 16, epochs=3))
    with DataLoader(DATA, LABELS, 4, 16, 2, epochs=3, transform=uneven) as loader:
        batches = list(loader)
    assert labels(batches) == expected
    assert all(np.array_equal(b["data"], DATA[b["label"]] * 2) for b in batches)


def test_a_transform_without_labels_gets_the_dictionary():
    columns = {"a": DATA, "b": LABELS}
    with DataLoader(columns, batch_size=8, mode="sequential", transform=lambda d: d["b"] + 1) as loader:
        assert next(loader).tolist() == list(range(1, 9))


def test_a_transform_never_holds_up_the_native_prefetch():
    gate = threading.Event()

    def waits(pair):
        gate.wait(10)
        return pair

    with DataLoader(DATA, LABELS, 1, 8, 3, transform=waits) as loader:
        iterator = iter(loader)
        until = time.monotonic() + 10
        while iterator._threads.ahead < 4 and time.monotonic() < until:
            time.sleep(0.001)
        assert iterator._threads.ahead == 4, "prefetch and the worker's own, while the transform waits"
        gate.set()
        next(iterator)


def test_an_error_of_a_transform_arrives_with_its_records_and_the_rest_goes_on():
    def fails(pair):
        if 42 in pair[1]:
            raise ValueError("no 42")
        return pair

    for num_workers in (0, 1, 3):
        with DataLoader(DATA, LABELS, num_workers, 10, mode="epoch", shuffle=False, epochs=1, transform=fails) as loader:
            iterator = iter(loader)
            assert [next(iterator)["label"][0] for _ in range(4)] == [0, 10, 20, 30]
            with pytest.raises(ValueError, match="no 42") as raised:
                next(iterator)
            assert raised.value.step == 4 and raised.value.record_ids.tolist() == list(range(40, 50))
            assert "step 4, records [40 41" in raised.value.__notes__[0]
            assert iterator.state_dict()["step"] == 5
            assert [b["label"][0] for b in iterator] == [50, 60, 70, 80, 90]


def test_an_error_of_a_store_arrives_with_its_records(tmp_path):
    path = tmp_path / "lanes.pts"
    with LaneStore.create(path, 10, {"x": ("f4", 1000)}) as writer:
        for k in range(10):
            writer.write("x", k, np.full(1000, k + 1))
    raw = bytearray(path.read_bytes())
    at = raw.find(np.full(1000, 7, "<f4").tobytes())
    raw[at + 100] ^= 1
    path.write_bytes(raw)
    with DataLoader(LaneStore(path), batch_size=5, num_workers=2, mode="sequential") as loader:
        next(loader)
        with pytest.raises(TensiloError) as raised:
            next(loader)
    assert raised.value.record_ids.tolist() == [5, 6, 7, 8, 9] and raised.value.record == 6
    assert raised.value.kind == "corrupt" and raised.value.step == 1


def test_close_always_returns_and_closed_is_closed():
    for workers, prefetch in [(8, 1), (8, 4), (16, 2), (4, 1), (2, 1), (1, 0), (0, 0)]:
        for transform in (None, lambda pair: pair):
            loader = DataLoader(DATA, LABELS, workers, 8, prefetch, transform=transform)
            iterator = iter(loader)
            next(iterator)
            loader.close()
            loader.close()
            assert list(iterator) == []


def test_close_leaves_a_transform_that_hangs():
    gate = threading.Event()

    def hangs(pair):
        gate.wait(30)
        return pair

    loader = DataLoader(DATA, LABELS, 2, 8, transform=hangs)
    iter(loader)
    iterator = iter(loader)
    time.sleep(0.05)
    begin = time.monotonic()
    loader.close()
    assert time.monotonic() - begin < 20
    gate.set()
    assert list(iterator) == []


def test_a_forgotten_iterator_ends_its_threads():
    before = threading.active_count()
    loader = DataLoader(DATA, LABELS, 3, 8, transform=lambda pair: pair)
    next(iter(loader))
    next(loader)
    del loader
    gc.collect()
    until = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_iterators_share_nothing():
    with DataLoader(DATA, LABELS, 2, 8) as loader:
        first, second = iter(loader), iter(loader)
        alone = labels(take(first, 3))
        assert labels(take(second, 3)) == alone
        assert labels([next(loader), next(loader)]) == alone[:2]
        assert labels(take(loader, 3)) == alone, "a new loop begins anew"
        assert next(loader)["label"].tolist() == alone[2], "and next goes on with its own"


@pytest.mark.parametrize("mode", ["sequential", "iid", "epoch"])
def test_a_state_resumes_exactly_on_another_world(mode):
    whole = labels(take(DataLoader(DATA, LABELS, 0, 24, mode=mode), 12))
    for cut in (0, 1, 5, 8):
        with DataLoader(DATA, LABELS, 3, 24, mode=mode, rank=1, world=2) as loader:
            iterator = iter(loader)
            for _ in range(cut):
                next(iterator)
            state = json.loads(json.dumps(loader.state_dict()))
        assert state["step"] == cut
        ranks = [DataLoader(DATA, LABELS, 1, 24, mode=mode, rank=r, world=3) for r in range(3)]
        for rank in ranks:
            rank.load_state_dict(state)
        for step in whole[cut : cut + 4]:
            assert sum(labels([next(rank) for rank in ranks]), []) == step
        for rank in ranks:
            rank.close()


def test_a_state_of_other_records_is_refused():
    state = DataLoader(DATA, LABELS).state_dict()
    other = DATA.copy()
    other[0, 0, 0] += 1
    with pytest.raises(SourceChangedError):
        DataLoader(other, LABELS).load_state_dict(state)
    with pytest.raises(ValueError, match="another seed"):
        DataLoader(DATA, LABELS, seed=1).load_state_dict(state)


def test_epochs_one_by_one_are_those_of_the_whole():
    loader = DataLoader(DATA, LABELS, 2, 30, mode="epoch", drop_last=True)
    whole = labels(take(loader, 9))
    parts = [labels(loader.epoch(number)) for number in range(3)]
    loader.close()
    assert sum(parts, []) == whole and [len(p) for p in parts] == [3, 3, 3]
    with pytest.raises(TypeError):
        len(loader)


def test_mixtures_keep_their_weights():
    mix = Mix([np.zeros(100), np.ones(10)], [0.75, 0.25])
    with DataLoader(mix, batch_size=40, num_workers=1) as loader:
        assert {float(batch["data"].sum()) for batch in take(loader, 20)} == {10.0}
    with pytest.raises(ValueError):
        DataLoader(mix, mode="iid")
    with pytest.raises(ValueError):
        Mix([np.zeros(3)], [0])


def test_memory_is_used_again_only_when_nobody_holds_it():
    with DataLoader(DATA, num_workers=2, batch_size=8) as loader:
        addresses = {next(loader)["data"].ctypes.data for _ in range(200)}
        assert len(addresses) <= 4 + 2 * 2 + 2
        held = take(loader, 50)
        assert len({b["data"].ctypes.data for b in held}) == 50
        copies = [b["data"].copy() for b in held]
        take(loader, 50)
        assert all(np.array_equal(b["data"], c) for b, c in zip(held, copies, strict=True))
        part = held[0]["data"][1:2]
        del held
        before = part.copy()
        take(loader, 50)
        assert np.array_equal(part, before), "a view keeps the memory"
    with DataLoader(DATA, num_workers=1, batch_size=8, recycle=False) as loader:
        assert next(loader)["data"].flags.owndata


def test_batches_are_writable_and_go_through_dlpack():
    with DataLoader(DATA, LABELS, batch_size=8) as loader:
        batch = next(loader)
        same = np.from_dlpack(batch["data"])
        batch["data"] += 1
        assert np.array_equal(same, DATA[batch["label"]] + 1)


def test_ctrl_c_stops_a_wait():
    code = (
        "import numpy as np, tensilo, time, threading, os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "gate = threading.Event()\n"
        "loader = tensilo.DataLoader(np.arange(9), transform=lambda d: gate.wait(60))\n"
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    next(loader)\nexcept KeyboardInterrupt:\n    print('stopped'); os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "stopped\n", done.stderr


def in_child(work):
    """Runs work in a forked child, and returns what it says; fails if it hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        signal.alarm(60)
        try:
            text = pipe.read()
        finally:
            signal.alarm(0)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return json.loads(text)


@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.parametrize("transform", [None, lambda pair: pair])
def test_a_forked_child_goes_on_where_the_parent_stands(transform):
    expected = labels(take(DataLoader(DATA, LABELS, 0, 8), 6))
    for _ in range(10):
        with DataLoader(DATA, LABELS, 3, 8, 2, transform=transform) as loader:
            iterator = iter(loader)
            assert labels(take(iterator, 2)) == expected[:2]

            def child(iterator=iterator):
                return labels(take(iterator, 3))

            assert in_child(child) == expected[2:5]
            assert labels(take(iterator, 3)) == expected[2:5], "and so does the parent"


@pytest.mark.filterwarnings("ignore:This process")
def test_the_native_loader_starts_anew_in_a_forked_child():
    source = _native.Source.array("x", LABELS, LABELS.dtype.str)
    sampler = Sampler(100, 8)
    expected = [sampler.next().tolist() for _ in range(6)]
    for _ in range(10):
        native = _native.Loader(source, Sampler(100, 8)._native, workers=3, prefetch=2, fields=[])
        assert [native.next()[2].tolist() for _ in range(2)] == expected[:2]

        def child(native=native):
            return [native.next()[2].tolist() for _ in range(3)]

        assert in_child(child) == expected[2:5]
        assert native.next()[2].tolist() == expected[2]
        native.close()


@pytest.mark.parametrize("num_workers", [0, 3])
def test_large_batches_are_copied_by_several_threads(num_workers):
    data = np.random.default_rng(3).integers(0, 256, (40, 200_000), dtype="u1")
    with DataLoader(data, np.arange(40), num_workers, 32, epochs=2) as loader:
        for batch in loader:
            assert np.array_equal(batch["data"], data[batch["label"]])


def serve(loader, queue):
    queue.put(labels(take(loader, 3)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process")
def test_a_loader_goes_to_other_processes(tmp_path, method):
    np.save(tmp_path / "data.npy", DATA)
    data = np.load(tmp_path / "data.npy", mmap_mode="r")
    with DataLoader(data, LABELS, 2, 8) as loader:
        expected = labels(take(loader, 5))
        iterator = iter(loader)
        next(iterator), next(iterator)
        assert len(pickle.dumps(MapDataset(data))) < 1000, "a mapped file travels by its name"
        state = loader.state_dict()
        loader.load_state_dict(state)
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        child = context.Process(target=serve, args=(loader, queue))
        child.start()
        assert queue.get(timeout=60) == expected[2:5]
        child.join(60)
        assert child.exitcode == 0


def test_records_by_their_numbers():
    records = MapDataset(DATA, LABELS)
    assert len(records) == 100 and np.array_equal(records[-1]["data"], DATA[-1])
    batch = records.__getitems__([5, -2, 5])
    assert [int(r["label"]) for r in batch] == [5, 98, 5]
    assert sum(1 for _ in records) == 100, "a loop over it stops"
    for wrong in (100, -101):
        with pytest.raises(IndexError):
            records[wrong]
    with pytest.raises(TypeError):
        records[1.5]


def test_the_examples_of_the_documentation_run():
    for module in (loader, map_dataset, sampler, sources):
        failed, ran = doctest.testmod(module)
        assert failed == 0 and ran > 0, module


def test_ragged_fields_are_values_and_offsets():
    ragged = Ragged(np.arange(6).reshape(6, 1), np.array([0, 2, 2, 6], np.uint64))
    assert [ragged.record(i).shape for i in range(3)] == [(2, 1), (0, 1), (4, 1)]
