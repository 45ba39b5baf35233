"""The contestants of `cargo xtask bench loader`: makes the data, then answers one expression a line.

Arguments: a folder to write into. The answer to each line is the value of the expression as JSON.
"""

import json
import os
import statistics
import sys
import time
import warnings

import numpy as np
import tensilo
from made import noise, pictures

warnings.simplefilter("ignore")
FOLDER = sys.argv[1]
BATCH, WORKERS = 256, 2
#: Name of a size: records, bytes of a record, batches of a turn, batches before it that are not timed.
SIZES = {
    "784 B": (60_000, 784, 400, 16),
    "150,528 B": (1_000, 150_528, 24, 12),
    "784 B of noise": (60_000, 784, 400, 16),
    "150,528 B of noise": (1_000, 150_528, 24, 12),
}
#: Iterators of all contestants, by case and name.
OPEN = {}


def data(size):
    """Records and labels of a size, mapped; the label is the record's number."""
    records, width, _, _ = SIZES[size]
    kind = noise if "noise" in size else pictures
    path = f"{FOLDER}/{width}-{kind.__name__}.npy"
    if not os.path.exists(path):
        np.save(path, kind(records, width))
        np.save(f"{FOLDER}/{width}-labels.npy", np.arange(records))
    return np.load(path, mmap_mode="r"), np.load(f"{FOLDER}/{width}-labels.npy", mmap_mode="r")


def ours_mapped(size):
    """Our loader over mapped arrays."""
    return iter(tensilo.DataLoader(*data(size), WORKERS, BATCH, 4, "iid"))


def stores(size, codec):
    """Stores that loaderx wrote."""
    import loaderx

    paths = []
    for part, array in zip(("data", "label"), data(size), strict=True):
        paths.append(f"{FOLDER}/{size}-{codec}-{part}")
        if not os.path.exists(paths[-1]):
            loaderx.Dataset.write(paths[-1], array, codec=codec).close()
    return paths


def ours_stores(codec):
    """Our loader over the stores that loaderx wrote."""
    from tensilo.loaderx import Dataset

    return lambda size: iter(tensilo.DataLoader(*map(Dataset, stores(size, codec)), WORKERS, BATCH, 4, "iid"))


def ours_own(codec):
    """Our loader over a store of ours that has data and label."""

    def start(size):
        path = f"{FOLDER}/{size}-{codec}.trec"
        if not os.path.exists(path):
            records, labels = data(size)
            tensilo.Records.write(path, {"data": records, "label": labels}, codec=codec)
        return iter(tensilo.DataLoader(tensilo.Records(path), None, WORKERS, BATCH, 4, "iid"))

    return start


def loaderx_stores(codec):
    """loaderx over its stores."""
    import loaderx

    return lambda size: loaderx.DataLoader(*map(loaderx.Dataset, stores(size, codec)), WORKERS, BATCH, 4)


def torch_mapped(workers):
    """PyTorch's loader over mapped arrays."""
    import torch.utils.data

    def start(size):
        sampler = torch.utils.data.RandomSampler(Rows(size), replacement=True, num_samples=10**9)
        return iter(
            torch.utils.data.DataLoader(Rows(size), BATCH, sampler=sampler, num_workers=workers, drop_last=True)
        )

    return start


class Rows:
    """Mapped arrays as PyTorch and Grain take them."""

    def __init__(self, size):
        self.data, self.labels = data(size)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"data": np.array(self.data[i]), "label": int(self.labels[i])}


def grain_mapped(kind):
    """Grain over mapped arrays, by threads or by processes."""
    import grain.python as grain

    def start(size):
        if kind == "threads":
            dataset = grain.MapDataset.source(Rows(size)).shuffle(seed=1).repeat().batch(BATCH)
            return iter(dataset.to_iter_dataset(grain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=4)))
        sampler = grain.IndexSampler(SIZES[size][0], shuffle=True, seed=1, shard_options=grain.NoSharding())
        return iter(
            grain.DataLoader(
                data_source=Rows(size), sampler=sampler, operations=[grain.Batch(BATCH)], worker_count=WORKERS
            )
        )

    return start


#: Case, contestant, and what starts it; the first of a case is ours.
CONTESTANTS = [
    ("raw", "tensilo", lambda: ours_mapped),
    ("raw", "tensilo, loaderx's stores", lambda: ours_stores("raw")),
    ("raw", "tensilo, own store", lambda: ours_own("raw")),
    ("raw", "loaderx", lambda: loaderx_stores("raw")),
    ("raw", "torch, 0 workers", lambda: torch_mapped(0)),
    ("raw", "torch, 2 workers", lambda: torch_mapped(2)),
    ("raw", "grain, 2 threads", lambda: grain_mapped("threads")),
    ("raw", "grain, 2 processes", lambda: grain_mapped("processes")),
    ("flate", "tensilo, own store", lambda: ours_own("deflate:1")),
    ("flate", "tensilo, loaderx's stores", lambda: ours_stores("flate")),
    ("flate", "loaderx", lambda: loaderx_stores("flate")),
]


def names(case, size):
    """Starts the contestants of a case and compares what they deliver with the data; the names of those there are."""
    found = []
    rows, _ = data(size)
    for of, name, start in CONTESTANTS:
        if of != case:
            continue
        try:
            iterator = start()(size)
        except ImportError as e:
            print(f"not compared: {name}: {e}", file=sys.stderr)
            continue
        for _ in range(2):
            batch = next(iterator)
            assert np.array_equal(np.asarray(batch["data"]), rows[np.asarray(batch["label"])]), name
        OPEN[case, size, name] = iterator
        found.append(name)
    return found


def processor_time():
    """Seconds that this process and its children have worked, to hundredths for children."""
    ticks = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as children:
            for child in children.read().split():
                with open(f"/proc/{child}/stat") as stat:
                    ticks += sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def settle():
    """Waits until the contestant before has filled its queue, which would take the time of the next one."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        begin = processor_time()
        time.sleep(0.1)
        if processor_time() - begin < 0.005:
            return
    print("a contestant works on and on", file=sys.stderr)


def turn(case, size, name):
    """Seconds of a turn, after batches that were ready before it."""
    _, _, n, before = SIZES[size]
    iterator = OPEN[case, size, name]
    settle()
    for _ in range(before):
        next(iterator)
    begin = time.perf_counter()
    for _ in range(n):
        next(iterator)
    return time.perf_counter() - begin


def end(case, size):
    """Lets the contestants of a case go, and their processes."""
    for key in [k for k in OPEN if k[:2] == (case, size)]:
        iterator = OPEN.pop(key)
        # loaderx's own close may hang: its threads are left waiting.
        if hasattr(iterator, "close") and "loaderx" not in type(iterator).__module__:
            iterator.close()
    return True


def first_batch(size):
    """Seconds from nothing to the first batch, the median of nine times."""
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        iterator = ours_mapped(size)
        next(iterator)
        times.append(time.perf_counter() - begin)
        iterator.close()
    return statistics.median(times)


def resident():
    """Bytes of this process in memory: those that are no file's, and all."""
    with open("/proc/self/status") as status:
        found = dict(line.split(":") for line in status)
    return [int(found[name].split()[0]) << 10 for name in ("RssAnon", "VmRSS")]


def growth():
    """Resident bytes after 1,000 batches and after 10,000 more."""
    iterator = ours_mapped("784 B")
    for _ in range(1000):
        next(iterator)
    before = resident()
    for _ in range(10_000):
        next(iterator)
    after = resident()
    iterator.close()
    return [*before, *after]


def samplers(n):
    """Names of what makes batches of `n` record numbers."""
    length = 1_000_000
    OPEN["tensilo, iid"] = tensilo.Sampler(length, n, "iid").next
    OPEN["tensilo, sequential"] = tensilo.Sampler(length, n, "sequential").next
    OPEN["tensilo, epoch"] = tensilo.Sampler(length, n, "epoch").next
    OPEN["numpy randint"] = lambda: np.random.randint(0, length, size=n, dtype=np.uint64)
    found = ["tensilo, iid", "tensilo, sequential", "tensilo, epoch", "numpy randint"]
    try:
        from loaderx._sampler import Sampler
    except ImportError:
        return found
    OPEN["loaderx, iid"] = Sampler(length, n, 1).next
    OPEN["loaderx, sequential"] = Sampler(length, n, 0).next
    ours = tensilo.Sampler(length, n, "iid")
    assert all(np.array_equal(ours.next(), OPEN["loaderx, iid"]()) for _ in range(20))
    return [*found, "loaderx, iid", "loaderx, sequential"]


def sample(name):
    """Seconds of 1,000 batches of record numbers."""
    work = OPEN[name]
    begin = time.perf_counter()
    for _ in range(1000):
        work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    # Contestants print what they like; the answers go where standard output was.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(eval(line)), file=answers, flush=True)
