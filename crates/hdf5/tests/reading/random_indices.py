"""Makes random datasets of every layout and says what random NumPy indices select from them.

Usage: random_indices.py FOLDER SEED. Writes FOLDER/random-*.h5, FOLDER/random.bin and FOLDER/random.tsv with lines
file, path, index (NumPy's syntax), offset in random.bin, bytes, shape. Two thirds of the indices mix lists, masks,
integers, slices, new axes and ellipses as NumPy allows; the values are NumPy's, on the whole array in memory.
"""
import os
import sys

import h5py
import numpy as np

folder, rng = sys.argv[1], np.random.default_rng(int(sys.argv[2]))
manifest = open(os.path.join(folder, "random.tsv"), "w")
expected = open(os.path.join(folder, "random.bin"), "wb")

TYPES = ["u1", "<i2", ">i4", "<u8", "<f4", ">f8", "<c8", "S5"]
BOUNDS = [("earliest", "v108"), ("v108", "v110"), ("v110", "v112"), ("v114", "v114"), ("v200", "v200")]


def bounds(n):
    return int(rng.integers(-n - 3, n + 4)) if rng.random() < 0.7 else None


def a_slice(n):
    step = int(rng.choice([-3, -2, -1, 1, 1, 1, 2, 5])) if rng.random() < 0.6 else None
    return slice(bounds(n), bounds(n), step)


def a_list(n, shape):
    return rng.integers(-n, n, shape)


def basic(shape):
    items = []
    for n in shape[: int(rng.integers(0, len(shape) + 1))]:
        items.append(int(rng.integers(-n, n)) if rng.random() < 0.3 else a_slice(n))
    return items


def advanced(shape):
    """A mixture; lists share a shape to be broadcast to, or have fewer or shorter dimensions."""
    whole = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(1, 3))))
    items, axis, count = [], 0, None
    while axis < len(shape) and rng.random() < 0.85:
        n, kind = shape[axis], rng.random()
        if kind < 0.45:
            cut = tuple(1 if rng.random() < 0.2 else k for k in whole[int(rng.integers(0, len(whole))):])
            items.append(a_list(n, cut))
        elif kind < 0.55 and len(whole) == 1 and n >= whole[0]:
            mask = np.zeros(n, bool)
            mask[rng.choice(n, whole[0], replace=False)] = True
            items.append(mask)
        elif kind < 0.62 and axis + 1 < len(shape) and len(whole) == 1 and n * shape[axis + 1] >= whole[0]:
            mask = np.zeros(n * shape[axis + 1], bool)
            mask[rng.choice(mask.size, whole[0], replace=False)] = True
            items.append(mask.reshape(n, shape[axis + 1]))
            axis += 1
        elif kind < 0.72:
            items.append(int(rng.integers(-n, n)))
        else:
            items.append(a_slice(n))
        axis += 1
    return items


def index(shape):
    kind = rng.random()
    if kind < 0.1:
        mask = rng.random(shape) < rng.choice([0.05, 0.5])
        return (mask,)
    items = basic(shape) if kind < 0.35 else advanced(shape)
    if rng.random() < 0.3:
        items.insert(int(rng.integers(0, len(items) + 1)), None)
    used = sum(i.ndim if isinstance(i, np.ndarray) and i.dtype == bool else i is not None for i in items)
    if rng.random() < 0.3:
        # What stands behind an ellipsis speaks of the last dimensions: only where nothing is left out.
        at = len(items) if used < len(shape) else int(rng.integers(0, len(items) + 1))
        items.insert(at, Ellipsis)
    return tuple(items)


def text(item):
    if item is None:
        return "None"
    if item is Ellipsis:
        return "..."
    if isinstance(item, slice):
        parts = ["" if v is None else str(v) for v in (item.start, item.stop, item.step)]
        return ":".join(parts if item.step is not None else parts[:2])
    if isinstance(item, np.ndarray):
        return str(item.tolist()).replace(" ", "")
    return str(item)


def data(kind, shape):
    n = int(np.prod(shape))
    raw = rng.integers(0, 50, n)
    if kind == "S5":
        return np.array([b"t%d" % v for v in raw], "S5").reshape(shape)
    if kind == "<c8":
        return (raw - 1j * raw[::-1]).astype(kind).reshape(shape)
    return raw.astype(kind).reshape(shape)


def layout(shape, kind):
    """Keyword arguments of create_dataset."""
    which = int(rng.integers(0, 6))
    if which == 0 or len(shape) == 0:
        return {}
    if which == 1:
        return {"compact": True}
    how = {"chunks": tuple(int(rng.integers(1, n + 3)) for n in shape)}
    how["maxshape"] = tuple(None if rng.random() < 0.35 else max(n, c) for n, c in zip(shape, how["chunks"]))
    if which >= 3:
        how["compression"] = str(rng.choice(["gzip", "lzf"]))
    how["shuffle"] = bool(rng.random() < 0.4)
    how["fletcher32"] = bool(rng.random() < 0.2)
    if kind not in ("S5", "<c8") and rng.random() < 0.3:
        how["fillvalue"] = 7
    return how


def make(f, name):
    kind = str(rng.choice(TYPES))
    rank = int(rng.choice([0, 1, 1, 2, 2, 3, 3, 4]))
    shape = tuple(int(n) for n in rng.integers(1, [300, 40, 14, 7, 7][rank], rank))
    values = data(kind, shape)
    how = layout(shape, kind)
    if how.pop("compact", False):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(shape)
        d = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(values.dtype), space, plist))
    else:
        d = f.create_dataset(name, shape, values.dtype, **how)
    if rank and "chunks" in how and rng.random() < 0.5:
        # Some chunks are never written.
        first = tuple(slice(0, int(rng.integers(0, n + 1))) for n in shape)
        d[first] = values[first]
        return d[()]
    d[()] = values
    return values


for low, high in BOUNDS:
    file = f"random-{low}-{high}.h5"
    with h5py.File(os.path.join(folder, file), "w", libver=(low, high)) as f:
        for i in range(24):
            name = f"d{i}"
            values = make(f, name)
            for _ in range(14):
                try:
                    where = index(values.shape)
                    wanted = values[where]
                except IndexError:
                    continue
                raw = np.asarray(wanted, values.dtype).tobytes()
                spec = ",".join(text(item) for item in where)
                manifest.write("\t".join([file, name, spec, str(expected.tell()), str(len(raw)),
                                          ",".join(map(str, np.shape(wanted)))]) + "\n")
                expected.write(raw)
