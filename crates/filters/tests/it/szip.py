"""The oracle of szip streams: libaec through h5py, many streams in one process.

szip.py generate CASES SEED   writes streams that h5py encoded, in the form of CASES that oracle.py states
szip.py check REPLIES SEED    puts streams that we encoded into datasets, reads them with h5py
REPLIES: u32 count, then per stream in the order of CASES: u32 length, bytes.
"""
import struct
import sys

import h5py
import numpy as np

EC, NN = 4, 32
CHUNKS = 60
TYPES = [("u1", 8), ("i1", 8), ("<u2", 16), (">u2", 16), ("<i2", 16), ("<u4", 32), (">i4", 32), ("<f4", 32), ("<i8", 64), ("<f8", 64),
         ("<u2", 12), ("<u2", 9), (">u2", 11), ("<u4", 20), (">u4", 24), ("<u4", 17), ("u1", 5)]
SHAPES = [(37,), (64,), (100,), (129,), (256,), (300,), (777,), (7, 33), (5, 128), (3, 4, 50)]


def counts(rng, n, bits):
    """Non-negative numbers of at most `bits` bits: what detectors count, what blocks of zeros are made of, noise."""
    most = (1 << bits) - 1
    kind = int(rng.integers(10))
    if kind == 0:  # sparse
        out = rng.poisson(10.0 ** -float(rng.uniform(0.3, 3)), n)
    elif kind == 1:  # sparse, with larger peaks
        out = np.where(rng.random(n) < 0.02, rng.integers(0, min(most, 5000) + 1, n), 0)
    elif kind == 2:  # noise in the low bits, up to all of them
        out = rng.integers(0, 1 << int(rng.integers(1, min(bits, 62) + 1)), n, dtype=np.uint64)
    elif kind == 3:  # zero blocks of all run lengths between single values
        out = np.zeros(n, np.int64)
        at = 0
        while at < n:
            out[at] = int(rng.integers(0, 3))
            at += 1 + int(rng.integers(0, 400))
    elif kind == 4:  # small pairs
        out = rng.integers(0, int(rng.integers(2, 8)), n)
    elif kind == 5:  # ramp
        out = np.arange(n) * int(rng.integers(1, 40))
    elif kind == 6:  # constant
        out = np.full(n, int(rng.integers(0, min(most, 1 << 40) + 1)))
    elif kind == 7:  # steps between the extremes
        out = np.where(rng.random(n) < 0.1, np.uint64(most), np.uint64(0))
    elif kind == 8:  # a walk
        out = np.abs(np.cumsum(rng.integers(-5, 6, n))) + int(rng.integers(0, 100))
    else:  # half quiet, half noise
        out = rng.integers(0, min(most, (1 << 62) - 1) + 1, n, dtype=np.uint64)
        out[: n // 2] = 3
    return np.minimum(out.astype(np.uint64), np.uint64(most))


class Set:
    """One dataset of many chunks, drawn from the seed alone."""

    def __init__(self, seed, number):
        rng = np.random.default_rng([seed, number])
        self.dtype, self.bits = TYPES[number % len(TYPES)]
        self.chunk = SHAPES[number // len(TYPES) % len(SHAPES)]
        n = int(np.prod(self.chunk))
        blocks = [b for b in (2, 4, 6, 8, 10, 16, 20, 32) if b <= self.chunk[-1]]
        self.options = (int(rng.choice([EC, NN])), int(rng.choice(blocks)))
        self.shape = (CHUNKS * self.chunk[0],) + self.chunk[1:]
        dt = np.dtype(self.dtype)
        unsigned = np.dtype(f"u{dt.itemsize}")
        if dt.kind == "f":
            values = [self.floats(rng, n, dt) for _ in range(CHUNKS)]
            self.data = np.concatenate(values)
        else:
            bits = min(self.bits, 8 * dt.itemsize)
            values = np.concatenate([counts(rng, n, bits) for _ in range(CHUNKS)]).astype(unsigned)
            self.data = values.view(dt.newbyteorder("=")).astype(dt)
        self.data = self.data.reshape(self.shape)
        self.type = h5py.h5t.py_create(dt)
        if self.bits < 8 * dt.itemsize:
            self.type = self.type.copy()
            self.type.set_precision(self.bits)

    @staticmethod
    def floats(rng, n, dt):
        if rng.random() < 0.5:
            return counts(rng, n, 20).astype(dt)
        return (np.cumsum(rng.integers(-9, 10, n)) / 8).astype(dt)

    def create(self, file, number):
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk(self.chunk)
        dcpl.set_szip(*self.options)
        space = h5py.h5s.create_simple(self.shape)
        return h5py.h5d.create(file.id, f"d{number}".encode(), self.type, space, dcpl)

    def offset(self, i):
        return (i * self.chunk[0],) + (0,) * (len(self.chunk) - 1)

    def fields(self, i, plist, mask, stored):
        fid, flags, values, _ = plist.get_filter(0)
        label = f"{self.dtype} of {self.bits} bits, chunk {self.chunk}, options {self.options}, number {i}".encode()
        raw = self.data[i * self.chunk[0]:(i + 1) * self.chunk[0]].tobytes()
        return b"".join([
            struct.pack("<I", len(label)), label, struct.pack("<H", 1),
            struct.pack(f"<HHH{len(values)}I", fid, flags, len(values), *values),
            struct.pack("<II", mask, np.dtype(self.dtype).itemsize),
            struct.pack(f"<B{2 * len(self.chunk)}I", len(self.chunk), *self.chunk, *self.chunk),
            struct.pack("<I", len(raw)), raw, struct.pack("<I", len(stored)), stored,
        ])


def sets(seed):
    return [Set(seed, number) for number in range(len(TYPES) * len(SHAPES) * 2)]


def generate(path, seed):
    out = []
    with h5py.File("in-memory", "w", driver="core", backing_store=False) as file:
        for number, one in enumerate(sets(seed)):
            ds = one.create(file, number)
            ds.write(h5py.h5s.ALL, h5py.h5s.ALL, one.data, mtype=one.type)
            h5py.h5f.flush(file.id)
            plist = ds.get_create_plist()
            for i in range(CHUNKS):
                mask, stored = ds.read_direct_chunk(one.offset(i))
                out.append(one.fields(i, plist, mask, stored))
    with open(path, "wb") as f:
        f.write(struct.pack("<I", len(out)) + b"".join(out))


def check(path, seed):
    with open(path, "rb") as f:
        data = f.read()
    at, read, wrong = 4, 0, 0
    name = path + ".h5"
    all_sets = sets(seed)
    with h5py.File(name, "w") as file:
        for number, one in enumerate(all_sets):
            ds = one.create(file, number)
            for i in range(CHUNKS):
                size = struct.unpack_from("<I", data, at)[0]
                ds.write_direct_chunk(one.offset(i), data[at + 4:at + 4 + size], 0)
                at += 4 + size
                read += 1
    with h5py.File(name) as file:
        for number, one in enumerate(all_sets):
            back = np.empty(one.shape, one.dtype)
            try:
                file[f"d{number}"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, back, mtype=one.type)
            except OSError as e:
                print(f"WRONG set {number} {one.dtype} {one.chunk} {one.options}: {e}")
                wrong += 1
                continue
            if back.tobytes() != one.data.tobytes():
                print(f"WRONG set {number} {one.dtype} of {one.bits} bits {one.chunk} {one.options}: other values")
                wrong += 1
    print(f"{read} streams read by h5py, {wrong} sets wrong")


if __name__ == "__main__":
    if sys.argv[1] == "generate":
        generate(sys.argv[2], int(sys.argv[3]))
    else:
        check(sys.argv[2], int(sys.argv[3]))
