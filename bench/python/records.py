"""The contestants of `cargo xtask bench records`: makes the stores, then answers one expression a line.

Arguments: a folder to write into. The answer to each line is the value of the expression as JSON. Every contestant's first
batch of a case is compared with NumPy's before anything is timed.
"""

import json
import os
import shutil
import sys
import time

import numpy as np
import tensilo
from made import noise, pictures

FOLDER = sys.argv[1]
BATCH = 256
#: Name of a size: records, bytes of a record, most batches of a turn, records that are appended.
SIZES = {
    "784 B": (60_000, 784, 150, 20_000),
    "150,528 B": (600, 150_528, 4, 150),
    "784 B of noise": (60_000, 784, 150, 20_000),
    "150,528 B of noise": (600, 150_528, 4, 150),
}
#: Seconds after which a turn ends early.
TURN = 0.1
CODECS = {"raw": "raw", "deflate": "deflate:1", "zstd": "zstd:1", "lz4": "lz4"}
#: What gathers a batch, by size and name.
GATHER = {}


def data(size):
    """Records of a size, mapped: see `pictures`; with `noise` in the name, of noise in smooth rows."""
    count, width, *_ = SIZES[size]
    path = f"{FOLDER}/{folder_name(size)}.npy"
    if not os.path.exists(path):
        np.save(path, noise(count, width) if "noise" in size else pictures(count, width))
    return np.load(path, mmap_mode="r")


def folder_name(size):
    """Part of the names of a size's files."""
    return f"{SIZES[size][1]}{'-noise' if 'noise' in size else ''}"


def ids(size, order, k):
    """The records of the k-th batch."""
    count = SIZES[size][0]
    if order == "random":
        return np.random.default_rng(k).integers(0, count, BATCH)
    return (np.arange(BATCH) + k * BATCH) % count


def ours(size):
    """Our stores."""
    array = data(size)
    found = {}
    for name, codec in CODECS.items():
        path = f"{FOLDER}/{folder_name(size)}-{name}.trec"
        if not os.path.exists(path):
            tensilo.Records.write(path, array, codec=codec)
        found[f"tensilo {name}"] = tensilo.Records(path)
    gather = {name: store.__getitem__ for name, store in found.items()}
    for name, store in found.items():
        out = np.empty((BATCH, array.shape[1]), "u1")
        gather[f"{name}, out"] = lambda i, store=store, out=out: store.gather(i, out=out)
    return gather


def peers(size):
    """NumPy, and the stores of others that are installed."""
    array = data(size)
    width = array.shape[1]
    out = np.empty((BATCH, width), "u1")
    gather = {
        "numpy fancy": lambda i: array[i],
        "numpy take, out": lambda i: np.take(array, i, axis=0, out=out, mode="clip"),
    }
    try:
        import loaderx

        for codec in ("raw", "flate"):
            path = f"{FOLDER}/{folder_name(size)}-{codec}-loaderx"
            if not os.path.exists(path):
                loaderx.Dataset.write(path, array, codec=codec).close()
            gather[f"loaderx {codec}"] = loaderx.Dataset(path).__getitem__
    except ImportError:
        pass
    try:
        import pyarrow as pa

        path = f"{FOLDER}/{folder_name(size)}.arrow"
        if not os.path.exists(path):
            column = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(width), len(array), [None, pa.py_buffer(np.ascontiguousarray(array))]
            )
            table = pa.table({"data": column})
            with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        column = pa.ipc.open_file(pa.memory_map(path)).read_all()["data"].combine_chunks()

        def taken(i):
            part = column.take(pa.array(i))
            start = part.offset * width
            return np.frombuffer(part.buffers()[1], "u1")[start : start + len(i) * width].reshape(len(i), width)

        gather["pyarrow IPC"] = taken
    except ImportError:
        pass
    try:
        import lmdb

        path = f"{FOLDER}/{folder_name(size)}.lmdb"
        if not os.path.exists(path):
            env = lmdb.open(path, map_size=array.nbytes * 2 + (1 << 28))
            with env.begin(write=True) as t:
                for k, row in enumerate(array):
                    t.put(k.to_bytes(8, "big"), row.tobytes())
            env.close()
        env = lmdb.open(path, readonly=True, lock=False)

        def fetched(i):
            rows = np.empty((len(i), width), "u1")
            with env.begin(buffers=True) as t:
                for row, k in zip(rows, i, strict=True):
                    row[:] = np.frombuffer(t.get(int(k).to_bytes(8, "big")), "u1")
            return rows

        gather["lmdb"] = fetched
    except ImportError:
        pass
    try:
        from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

        path = f"{FOLDER}/{folder_name(size)}.array_record"
        if not os.path.exists(path):
            writer = ArrayRecordWriter(path, "group_size:1,uncompressed")
            for row in array:
                writer.write(row.tobytes())
            writer.close()
        reader = ArrayRecordReader(path)

        def read(i):
            return np.stack([np.frombuffer(r, "u1") for r in reader.read([int(k) for k in i])])

        gather["array_record"] = read
    except ImportError:
        pass
    return gather


def names(size, order):
    """Names of the contestants of a case; each gives NumPy's first batch."""
    if size not in GATHER:
        GATHER[size] = {**peers(size), **ours(size)}
    first = ids(size, order, 0)
    for name, gather in GATHER[size].items():
        assert np.array_equal(gather(first), data(size)[first]), name
    return list(GATHER[size])


def turn(size, order, name):
    """Seconds of a batch: the mean of a turn's."""
    gather, lists = GATHER[size][name], [ids(size, order, k) for k in range(SIZES[size][2])]
    begin, done = time.perf_counter(), 0
    for done, i in enumerate(lists, 1):
        gather(i)
        if time.perf_counter() - begin > TURN:
            break
    return (time.perf_counter() - begin) / done


def writers():
    """Names of what appends."""
    found = [f"tensilo {name}" for name in CODECS] + ["numpy save"]
    try:
        import loaderx  # noqa: F401
    except ImportError:
        return found
    return [*found, "loaderx raw", "loaderx flate"]


def append(size, name):
    """Seconds to write records of a size."""
    array = np.array(data(size)[: SIZES[size][3]])
    path = f"{FOLDER}/appended"
    library, codec = name.split()
    begin = time.perf_counter()
    if library == "tensilo":
        tensilo.Records.write(path, array, codec=CODECS[codec])
    elif library == "numpy":
        with open(path, "wb") as file:
            np.save(file, array)
            file.flush()
            os.fsync(file.fileno())
    else:
        import loaderx

        store = loaderx.Dataset.write(path, array, codec=codec)
        store.close()
    seconds = time.perf_counter() - begin
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.remove(path)
    return seconds


def resident():
    """Bytes of this process in memory: those that are no file's, and all."""
    with open("/proc/self/status") as status:
        found = dict(line.split(":") for line in status)
    return [int(found[name].split()[0]) << 10 for name in ("RssAnon", "VmRSS")]


def growth():
    """Resident bytes after 1,000 batches and after 10,000 more, LZ4."""
    gather = ours("784 B")["tensilo lz4"]
    lists = [ids("784 B", "random", k) for k in range(50)]
    for k in range(1000):
        gather(lists[k % 50])
    before = resident()
    for k in range(10_000):
        gather(lists[k % 50])
    return [*before, *resident()]


if __name__ == "__main__":
    # Contestants print what they like; the answers go where standard output was.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(eval(line)), file=answers, flush=True)
