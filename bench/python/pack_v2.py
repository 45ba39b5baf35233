"""h5py with bitshuffle, and blosc2, as contestants of `pack-v2`: one stack of frames in a file, written, read, summed."""
import os
import time

import h5py
import hdf5plugin
import numpy as np

try:
    import blosc2

    blosc2.set_nthreads(1)
except ImportError:
    blosc2 = None

state = {}
VARIANTS = {
    "h5py bitshuffle/LZ4": (1, hdf5plugin.Bitshuffle(cname="lz4")),
    "h5py bitshuffle/zstd": (1, hdf5plugin.Bitshuffle(cname="zstd", clevel=3)),
    "h5py bitshuffle/zstd 1 MiB": (32, hdf5plugin.Bitshuffle(cname="zstd", clevel=3, nelems=524288)),
    "h5py Blosc2 zstd": (32, hdf5plugin.Blosc2(cname="zstd", clevel=3, filters=hdf5plugin.Blosc2.BITSHUFFLE)),
}


def names():
    return ",".join(list(VARIANTS) + (["blosc2 zstd"] if blosc2 else []))


def setup(folder, scans, side):
    state["folder"] = folder
    state["data"] = np.fromfile(os.path.join(folder, "stack.u16"), np.uint16).reshape(scans, side, side)
    state["back"] = np.empty_like(state["data"])
    state["mask"] = np.fromfile(os.path.join(folder, "mask.u8"), np.uint8).reshape(side, side) != 0


def timed(work):
    begin = time.perf_counter()
    out = work()
    return out, time.perf_counter() - begin


def path(name):
    return os.path.join(state["folder"], name.replace("/", "-").replace(" ", "-"))


def measure(name):
    """Ratio, and seconds of writing and of reading whole, the better of two."""
    data, back = state["data"], state["back"]
    if name == "blosc2 zstd":
        options = dict(codec=blosc2.Codec.ZSTD, clevel=5, filters=[blosc2.Filter.BITSHUFFLE], nthreads=1)
        write = lambda: blosc2.asarray(data, cparams=options, chunks=(128, *data.shape[1:]))
        packed, first = timed(write)
        _, second = timed(write)
        reads = [timed(lambda: packed[:])[1] for _ in range(2)]
        assert np.array_equal(packed[:], data)
        return data.nbytes / packed.schunk.cbytes, min(first, second), min(reads)
    frames, codec = VARIANTS[name]

    def write():
        with h5py.File(path(name), "w") as f:
            f.create_dataset("d", data=data, chunks=(frames, *data.shape[1:]), **codec)

    def read():
        with h5py.File(path(name), "r") as f:
            f["d"].read_direct(back)

    _, wrote = timed(write)
    back[:1] = 0
    seconds = min(timed(read)[1] for _ in range(2))
    assert np.array_equal(back, data)
    return data.nbytes / os.path.getsize(path(name)), wrote, seconds


def random_access(name):
    """Seconds of one frame, of an 8 × 8 region over all scans, and of a bright-field image."""
    frames = state["data"].shape[0]
    with h5py.File(path(name), "r", rdcc_nbytes=0) as f:
        d = f["d"]
        _, one = timed(lambda: d[frames // 2 + 3])
        _, eight = timed(lambda: d[:, 64:72, 96:104])
    mask = state["mask"]
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    small = mask[box].astype(np.uint16)

    def picked(part):
        return part[:, mask].sum(axis=1, dtype=np.uint64)

    def weighted(part):
        return np.einsum("ijk,jk->i", part[:, *box], small, dtype=np.uint64, casting="unsafe")

    def bright_field(sums):
        out = np.empty(frames, np.uint64)
        with h5py.File(path(name), "r") as f:
            for at in range(0, frames, 32):
                out[at : at + 32] = sums(f["d"][at : at + 32])
        return out

    images = [timed(lambda: bright_field(sums)) for sums in (picked, weighted)]
    assert np.array_equal(images[0][0], images[1][0])
    images[0][0].tofile(os.path.join(state["folder"], "bright-field.u64"))
    return one, eight, min(seconds for _, seconds in images)
