"""The oracle of the filter tests: h5py and hdf5plugin.

oracle.py generate CASES SEED COUNT GROUP   writes chunks that h5py encoded
oracle.py check CASES REPLIES SEED COUNT GROUP   puts chunks that we encoded into a file, reads them with h5py
oracle.py corpus CASES FOLDER   writes chunks of the files in a folder

Numbers are little-endian. CASES: u32 count, then per case: text label; u16 filters, each u16 id, u16 flags,
u16 values, u32 each; u32 mask; u32 element size; u8 rank, u32 dimensions of the chunk, u32 of
its part inside the dataset; bytes raw; bytes stored.
REPLIES: u32 count, then per case: u32 case number, u32 mask, bytes stored. Text and bytes carry a u32 length.
"""
import os
import struct
import sys

import h5py
import hdf5plugin  # noqa: F401  (registers the filters)
import numpy as np

try:
    import vbz_h5py_plugin  # noqa: F401  (registers VBZ)
except ImportError:
    pass

OPTIONAL = 1
DEFLATE, SHUFFLE, FLETCHER, SZIP, NBIT, SCALE = 1, 2, 3, 4, 5, 6
BZIP2, LZF, BLOSC, LZ4, BSHUF, ZFP, ZSTD, VBZ, BLOSC2 = 307, 32000, 32001, 32004, 32008, 32013, 32015, 32020, 32026

INTS = ["<i1", "<u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i2", ">u4", ">i8"]
FLOATS = ["<f2", "<f4", "<f8", ">f4", ">f8"]
ALL = INTS + FLOATS
# (dataset shape, chunk shape): single elements, odd sizes, partial edges, several dimensions
SHAPES = [
    ((1,), (1,)),
    ((7,), (7,)),
    ((8,), (8,)),
    ((100,), (37,)),
    ((1000,), (1000,)),
    ((5003,), (2500,)),
    ((13, 17), (13, 17)),
    ((20, 33), (7, 16)),
    ((64, 64), (64, 64)),
    ((3, 50, 41), (2, 25, 41)),
    ((9, 5, 4, 11), (3, 5, 4, 7)),
    ((40, 300), (40, 128)),
]
# several blocks of every format that has blocks
LARGE = [((200000,), (150001,)), ((300, 500), (211, 407)), ((31, 90, 70), (23, 81, 67)), ((9, 20, 30, 40), (7, 19, 23, 31))]
BLOSC_CODECS = {"blosclz": 0, "lz4": 1, "lz4hc": 2, "snappy": 3, "zlib": 4, "zstd": 5}


def filters_of(group, rng):
    """Draws a pipeline: a list of (id, options)."""
    pick = lambda items: items[rng.integers(len(items))]
    draw = {
        DEFLATE: lambda: (DEFLATE, (int(pick([0, 1, 4, 6, 9])),)),
        SHUFFLE: lambda: (SHUFFLE, ()),
        FLETCHER: lambda: (FLETCHER, ()),
        LZF: lambda: (LZF, ()),
        LZ4: lambda: (LZ4, pick([(), (0,), (64,), (1000,), (4096,)])),
        ZSTD: lambda: (ZSTD, pick([(), (1,), (3,), (19,)])),
        BSHUF: lambda: (BSHUF, pick([(), (0, 0), (0, 2), (0, 3, 3), (8, 2), (64, 3, 1), (128, 0), (1024, 2), (4096, 3, 5)])),
        BZIP2: lambda: (BZIP2, (int(pick([1, 9])),)),
        BLOSC: lambda: (BLOSC, (0, 0, 0, 0, int(rng.integers(0, 10)), int(rng.integers(0, 3)),
                                int(pick(list(BLOSC_CODECS.values()))))),
        BLOSC2: lambda: (BLOSC2, (0, 0, 0, 0, int(rng.integers(0, 10)), int(rng.integers(0, 3)),
                                  int(pick([0, 1, 2, 4, 5])))),
        SZIP: lambda: (SZIP, (pick([4, 32]), int(pick([4, 8, 16, 32])))),
        NBIT: lambda: (NBIT, ()),
        SCALE: lambda: (SCALE, None),
        ZFP: lambda: (ZFP, None),
        VBZ: lambda: (VBZ, None),
    }
    if group == "chain":
        ids = [DEFLATE, SHUFFLE, FLETCHER, LZF, LZ4, ZSTD, BSHUF, BZIP2, BLOSC, BLOSC2]
        first = [SZIP, NBIT, SCALE] if rng.random() < 0.2 else ids
        n = int(rng.integers(2, 4))
        chain = [draw[pick(first)]()]
        while len(chain) < n:
            f = draw[pick(ids)]()
            # bitshuffle wants whole elements: only where the sizes still are those of the chunk
            whole = all(i in (SHUFFLE, BSHUF) and (i == SHUFFLE or o in ((), (0, 0), (128, 0))) for i, o in chain)
            if f[0] in [i for i, _ in chain] or (f[0] == BSHUF and not whole):
                continue
            chain.append(f)
        return chain
    by_name = {"deflate": DEFLATE, "shuffle": SHUFFLE, "fletcher32": FLETCHER, "lzf": LZF, "lz4": LZ4,
               "zstd": ZSTD, "bitshuffle": BSHUF, "bzip2": BZIP2, "blosc": BLOSC, "blosc2": BLOSC2,
               "szip": SZIP, "nbit": NBIT, "scaleoffset": SCALE, "zfp": ZFP, "vbz": VBZ}
    return [draw[by_name[group]]()]


def data_of(dtype, shape, rng):
    """Draws data: counts, ramps, noise, constants, sparse values."""
    dt = np.dtype(dtype)
    n = int(np.prod(shape))
    kind = rng.integers(7)
    if dt.kind in "iu":
        info = np.iinfo(dt)
        small = {
            0: lambda: rng.poisson(0.3, n),
            1: lambda: np.arange(n) * int(rng.integers(1, 9)),
            2: lambda: rng.integers(info.min, info.max, n, dtype=dt.newbyteorder("="), endpoint=True),
            3: lambda: np.full(n, int(rng.integers(0, 100))),
            4: lambda: np.where(rng.random(n) < 0.02, rng.integers(0, 120, n), 0),
            5: lambda: np.cumsum(rng.integers(-3, 4, n)),
            6: lambda: info.max - rng.integers(0, 16, n, dtype=dt.newbyteorder("=")),
        }[int(kind)]()
        with np.errstate(over="ignore"):
            return small.astype(dt.newbyteorder("=")).astype(dt).reshape(shape)
    values = {
        0: lambda: rng.normal(size=n),
        1: lambda: np.sin(np.arange(n) / 17.0) * 100,
        2: lambda: rng.integers(-1000, 1000, n) / 8.0,
        3: lambda: np.full(n, rng.normal()),
        4: lambda: np.where(rng.random(n) < 0.05, rng.normal(size=n), 0.0),
        5: lambda: np.cumsum(rng.normal(size=n)) + 100,
        6: lambda: np.frombuffer(rng.bytes(n * dt.itemsize), dt.newbyteorder("<")),
    }[int(kind)]()
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values).astype(dt).reshape(shape)


def type_of(dtype, fid, rng):
    """The HDF5 type of a case: sometimes one with fewer significant bits, for nbit."""
    t = h5py.h5t.py_create(np.dtype(dtype))
    bits = np.dtype(dtype).itemsize * 8
    if fid == NBIT and np.dtype(dtype).kind in "iu" and rng.random() < 0.7:
        t = t.copy()
        precision = int(rng.integers(1, bits + 1))
        t.set_precision(precision)
        t.set_offset(int(rng.integers(0, bits - precision + 1)))
    return t


class Case:
    """One dataset to be: its type, shape, pipeline and data, drawn from the seed alone."""

    def __init__(self, group, seed, number):
        rng = np.random.default_rng([seed, number])
        self.shape, self.chunk = SHAPES[number % len(SHAPES)]
        if number % 17 == 5 and group in ("blosc", "blosc2", "bitshuffle", "lz4", "lzf"):
            self.shape, self.chunk = LARGE[number // 17 % len(LARGE)]
        self.filters = filters_of(group, rng)
        first = self.filters[0][0]
        types = ALL
        if any(i == SZIP for i, _ in self.filters):
            types = [t for t in ALL if np.dtype(t).itemsize in (1, 2, 4, 8)]
        if any(i == SCALE for i, _ in self.filters):
            types = INTS + [f for f in FLOATS if np.dtype(f).itemsize in (4, 8)]
        if first == ZFP:
            types = ["<i4", "<i8", "<f4", "<f8"]
            self.shape, self.chunk = [(s, c) for s, c in SHAPES if len(s) <= 4][number % len(SHAPES)]
        if first == VBZ:
            types = [t for t in INTS if t[0] == "<" and np.dtype(t).itemsize <= 4]
        self.dtype = types[(number // len(SHAPES)) % len(types)]
        self.data = data_of(self.dtype, self.shape, rng)
        self.type = type_of(self.dtype, first, rng)
        self.options = []
        self.lossy = first == ZFP
        kind = np.dtype(self.dtype).kind
        for fid, options in self.filters:
            if fid == SCALE:
                if kind in "iu":
                    # with too few bits values are lost, as agreed: those cases are compared with h5py's reading
                    bits = np.dtype(self.dtype).itemsize * 8
                    options = (2, int(rng.choice([0, 0, min(4, bits), bits])))
                else:
                    options = (0, int(rng.integers(-2, 6)))
            if fid == ZFP:
                options = zfp_options(self.dtype, rng)
            if fid == VBZ:
                # version, bytes per integer, differences, level
                options = (int(rng.integers(2)), np.dtype(self.dtype).itemsize, int(rng.integers(2)),
                           int(rng.choice([0, 1, 5])))
            self.options.append((fid, options))
        self.label = f"{group} #{number} {self.dtype} {self.shape} in {self.chunk} {self.options}"

    def create(self, file, name):
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk(self.chunk)
        for fid, options in self.options:
            if fid == SHUFFLE:
                dcpl.set_shuffle()
            elif fid == FLETCHER:
                dcpl.set_fletcher32()
            elif fid == SZIP:
                dcpl.set_szip(*options)
            elif fid == SCALE:
                dcpl.set_scaleoffset(*options)
            else:
                dcpl.set_filter(fid, 0 if fid == BSHUF else OPTIONAL, options)
        space = h5py.h5s.create_simple(self.shape)
        return h5py.h5d.create(file.id, name.encode(), self.type, space, dcpl)


def zfp_options(dtype, rng):
    kw = [{"reversible": True}, {"rate": float(rng.choice([4, 8, 16]))},
          {"precision": int(rng.integers(8, 30))}, {"accuracy": float(rng.choice([1e-3, 0.1, 1]))}]
    kw = kw[rng.integers(4)]
    if np.dtype(dtype).kind == "i" and "accuracy" in kw:
        kw = {"reversible": True}
    return tuple(hdf5plugin.Zfp(**kw).filter_options)


def memory_file():
    return h5py.File("in-memory", "w", driver="core", backing_store=False)


def sized(data):
    return struct.pack("<I", len(data)) + data


def chunk_of(array, offset, chunk):
    """The chunk at an offset, filled up with zeros behind the dataset's edge."""
    out = np.zeros(chunk, array.dtype)
    part = array[tuple(slice(o, o + c) for o, c in zip(offset, chunk))]
    out[tuple(slice(0, n) for n in part.shape)] = part
    return out


def chunks_of(case, file):
    """Yields (filters, mask, expected raw bytes, stored bytes) for each chunk h5py writes."""
    ds = case.create(file, "d")
    ds.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(case.data), mtype=case.type)
    h5py.h5f.flush(file.id)
    file_plist = ds.get_create_plist()
    filters = []
    for i in range(file_plist.get_nfilters()):
        fid, flags, values, _ = file_plist.get_filter(i)
        filters.append((fid, flags, values))
    # Closing the dataset drops its chunk cache, so that what is read now was decoded.
    del ds, file_plist
    ds = h5py.h5d.open(file.id, b"d")
    back = np.empty(case.shape, case.dtype)
    ds.read(h5py.h5s.ALL, h5py.h5s.ALL, back, mtype=case.type)
    for i in range(ds.get_num_chunks()):
        info = ds.get_chunk_info(i)
        mask, stored = ds.read_direct_chunk(info.chunk_offset)
        whole = chunk_of(back, info.chunk_offset, case.chunk)
        if case.lossy and mask == 0:
            # What lies behind the edge is rounded too: have the stored chunk read as a whole one.
            case.shape, shape = case.chunk, case.shape
            one = case.create(file, f"whole {i}")
            case.shape = shape
            one.write_direct_chunk((0,) * len(case.chunk), stored, mask)
            one.read(h5py.h5s.ALL, h5py.h5s.ALL, whole, mtype=case.type)
        yield filters, mask, whole.tobytes(), stored


def generate(path, seed, count, group):
    out, number = [], 0
    skipped = 0
    while number < count:
        case = Case(group, seed, number)
        number += 1
        with memory_file() as file:
            try:
                chunks = list(chunks_of(case, file))
            except (ValueError, OSError, RuntimeError):
                skipped += 1  # a pipeline that libhdf5 itself refuses for this type or shape
                continue
        seen = set()
        for filters, mask, raw, stored in chunks[:3] + chunks[-1:]:
            if (raw, stored) in seen:
                continue
            seen.add((raw, stored))
            fields = [sized(f"{number - 1}: {case.label}".encode()), struct.pack("<H", len(filters))]
            for fid, flags, values in filters:
                fields.append(struct.pack(f"<HHH{len(values)}I", fid, flags, len(values), *values))
            fields.append(struct.pack("<II", mask, np.dtype(case.dtype).itemsize))
            fields.append(struct.pack(f"<B{2 * len(case.chunk)}I", len(case.chunk), *case.chunk, *case.chunk))
            out.append(b"".join(fields) + sized(raw) + sized(stored))
    write(path, out)
    print(f"{len(out)} chunks of {count - skipped} datasets, {skipped} refused by libhdf5")


def write(path, cases):
    with open(path, "wb") as f:
        f.write(struct.pack("<I", len(cases)) + b"".join(cases))


def is_plain(t):
    """Whether elements are plain bytes: no pointers into heaps."""
    kind = t.get_class()
    if kind == h5py.h5t.COMPOUND:
        return all(is_plain(t.get_member_type(i)) for i in range(t.get_nmembers()))
    if kind in (h5py.h5t.ARRAY, h5py.h5t.ENUM):
        return is_plain(t.get_super())
    return kind in (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.BITFIELD, h5py.h5t.OPAQUE) or (
        kind == h5py.h5t.STRING and not t.is_variable_str())


def corpus_chunks(ds, label):
    """Yields up to four filtered chunks of a dataset as cases."""
    plist = ds.get_create_plist()
    t = ds.get_type()
    if plist.get_layout() != h5py.h5d.CHUNKED or plist.get_nfilters() == 0 or not is_plain(t):
        return
    filters = [plist.get_filter(i)[:3] for i in range(plist.get_nfilters())]
    chunk, shape = plist.get_chunk(), ds.get_space().get_simple_extent_dims()
    total = ds.get_num_chunks()
    for i in sorted({0, 1, total // 2, total - 1}):
        if not 0 <= i < total:
            continue
        info = ds.get_chunk_info(i)
        mask, stored = ds.read_direct_chunk(info.chunk_offset)
        inside = tuple(min(c, n - o) for c, n, o in zip(chunk, shape, info.chunk_offset))
        if min(inside) <= 0 or int(np.prod(chunk)) * t.get_size() > 1 << 26:
            continue
        raw = np.zeros(inside, f"V{t.get_size()}")
        space = ds.get_space()
        space.select_hyperslab(info.chunk_offset, inside)
        ds.read(h5py.h5s.create_simple(inside), space, raw, mtype=t)
        fields = [sized(f"{label} chunk {info.chunk_offset} {filters}".encode()), struct.pack("<H", len(filters))]
        for fid, flags, values in filters:
            fields.append(struct.pack(f"<HHH{len(values)}I", fid, flags, len(values), *values))
        fields.append(struct.pack("<II", mask, t.get_size()))
        fields.append(struct.pack(f"<B{2 * len(chunk)}I", len(chunk), *chunk, *inside))
        yield b"".join(fields) + sized(raw.tobytes()) + sized(stored)


def corpus(path, folder):
    out, unread = [], 0
    for parent, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            try:
                file = h5py.File(os.path.join(parent, name))
            except (OSError, ValueError, RuntimeError, KeyError):
                continue
            with file:
                objects = []
                try:
                    file.visititems(lambda n, o: objects.append(n) if isinstance(o, h5py.Dataset) else None)
                except Exception:
                    pass
                for n in objects:
                    try:
                        out.extend(corpus_chunks(h5py.h5d.open(file.id, n.encode()), f"{name}:{n}"))
                    except Exception:
                        unread += 1
    write(path, out)
    print(f"{len(out)} chunks, {unread} datasets that h5py does not read")


def check(cases, replies, seed, count, group):
    """Each reply holds a chunk that we encoded from the raw bytes of a case; h5py must read those bytes."""
    raws = {}
    with open(cases, "rb") as f:
        data = f.read()
    n = struct.unpack_from("<I", data)[0]
    at = 4
    for i in range(n):
        size = struct.unpack_from("<I", data, at)[0]
        label = data[at + 4:at + 4 + size].decode()
        at += 4 + size
        filters = struct.unpack_from("<H", data, at)[0]
        at += 2
        for _ in range(filters):
            at += 6 + 4 * struct.unpack_from("<HHH", data, at)[2]
        at += 8
        at += 1 + 8 * data[at]
        size = struct.unpack_from("<I", data, at)[0]
        raws[i] = (label, data[at + 4:at + 4 + size])
        at += 4 + size
        at += 4 + struct.unpack_from("<I", data, at)[0]
    with open(replies, "rb") as f:
        data = f.read()
    n = struct.unpack_from("<I", data)[0]
    at, bad, todo = 4, 0, []
    # One file, closed and opened again: libhdf5 forgets a directly written chunk's mask only then.
    name = replies + ".h5"
    with h5py.File(name, "w") as file:
        for k in range(n):
            i, mask, size = struct.unpack_from("<III", data, at)
            stored = data[at + 12:at + 12 + size]
            at += 12 + size
            case = Case(group, seed, int(raws[i][0].split(":")[0]))
            case.shape = case.chunk
            ds = case.create(file, f"d{k}")
            ds.write_direct_chunk((0,) * len(case.chunk), stored, mask)
            if case.lossy:
                # Rounding rounds again: what libhdf5 makes of the same values must be what it makes of our chunk.
                values = np.frombuffer(raws[i][1], case.dtype).reshape(case.chunk)
                case.create(file, f"e{k}").write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=case.type)
            todo.append((i, mask, case))
    with h5py.File(name) as file:
        for k, (i, mask, case) in enumerate(todo):
            label, raw = raws[i]
            back = np.empty(case.chunk, case.dtype)
            try:
                file[f"d{k}"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, back, mtype=case.type)
            except (ValueError, OSError, RuntimeError) as e:
                print(f"WRONG {label}: h5py cannot read our chunk (mask {mask}): {e}")
                bad += 1
                continue
            if case.lossy and mask == 0:
                expected = np.empty(case.chunk, case.dtype)
                file[f"e{k}"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, expected, mtype=case.type)
                raw = expected.tobytes()
            if back.tobytes() != raw and not equal_enough(case, back, raw):
                byte = next(i for i, (a, b) in enumerate(zip(back.tobytes(), raw)) if a != b)
                print(f"WRONG {label}: h5py reads other values from our chunk (mask {mask}) at byte {byte} of {len(raw)}")
                bad += 1
    print(f"{n} chunks read by h5py, {bad} wrong")


def equal_enough(case, back, raw):
    """Floats that scale-offset rounded once are rounded again: the last digit kept may move by
    rounding errors, and what comes nearer to the fill value than that digit becomes it."""
    scale = [o[1] for i, o in case.options if i == SCALE and o[0] == 0]
    if not scale or any(i == ZFP for i, _ in case.options):
        return False
    want = np.frombuffer(raw, case.dtype).reshape(back.shape).astype("f8")
    back = back.astype("f8")
    precision = 1e-6 if np.dtype(case.dtype).itemsize == 4 else 1e-14
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(back - want) <= 10.0 ** -scale[0] * 1.001 + precision * np.nanmax(np.abs(want))
    return bool(np.all(near | (np.isnan(back) & np.isnan(want)) | (back == want)))


def main():
    if sys.argv[1] == "generate":
        generate(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    elif sys.argv[1] == "corpus":
        corpus(sys.argv[2], sys.argv[3])
    else:
        check(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])


if __name__ == "__main__":
    main()
