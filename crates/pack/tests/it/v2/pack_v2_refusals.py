"""Writes one stack for each thing that format 1 refuses and format 2 takes.

Arguments: a folder. Prints a JSON object: file -> a part of format 1's refusal, empty where it takes the file.
"""

import json
import sys
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np

folder = Path(sys.argv[1])
rng = np.random.default_rng(3)
PATH = "entry/data/data"
MASK = "entry/instrument/detector/detectorSpecific/pixel_mask"
frames = rng.poisson(2, (64, 64, 96)).astype("<u2")
one = (1, 64, 96)
lz4 = hdf5plugin.Bitshuffle(cname="lz4")
made: dict[str, str] = {}


def write(name: str, refusal: str, data: np.ndarray, path: str = PATH, mask: np.ndarray | None = None, **how) -> None:
    with h5py.File(folder / f"{name}.h5", "w") as f:
        f.create_dataset(path, data=data, **how)
        if mask is not None:
            f[MASK] = mask
    made[f"{name}.h5"] = refusal


def chunk(f: h5py.File, data: np.ndarray = frames, **how) -> h5py.Dataset:
    return f.create_dataset(PATH, data.shape, data.dtype, chunks=one, **how)


write("taken", "", frames, chunks=one, **lz4)
for dtype in ("u1", "u4", ">u2", "i2", "i1", "i4"):
    write(f"type-{dtype.strip('>')}{'-be' if '>' in dtype else ''}", "uint16", frames.astype(dtype), chunks=one, **lz4)
write("rank-4", "rank 3", frames.reshape(8, 8, 64, 96), chunks=(1, 1, 64, 96), **lz4)
write("rank-2", "rank 3", frames[0], chunks=(64, 96), **lz4)
write("chunks", "one frame per chunk", frames, chunks=(2, 64, 96), **lz4)
write("contiguous", "not chunked", frames)
write("gzip", "filters", frames, chunks=one, compression="gzip")
write("bitshuffle-zstd", "filters", frames, chunks=one, **hdf5plugin.Bitshuffle(cname="zstd"))
write("bitshuffle-none", "filters", frames, chunks=one, **hdf5plugin.Bitshuffle(cname="none"))
write("no-filter", "filters", frames, chunks=one)
write("block-size", "bitshuffle blocks", frames, chunks=one, **hdf5plugin.Bitshuffle(nelems=2048, cname="lz4"))
write("no-square", "no square", frames[:60], chunks=one, **lz4)
write("tile", "not a multiple", frames[:36], chunks=one, **lz4)
hot = frames.copy()
hot[40, 3, 5] = 256
write("value", "does not fit uint8", hot, chunks=one, **lz4)
mask = np.zeros((64, 96), "u4")
mask[3, 5] = 1
write("excluded", "not constant", hot, mask=mask, chunks=one, **lz4)
with h5py.File(folder / "elsewhere.h5", "w") as f:
    f[PATH] = h5py.ExternalLink("taken.h5", PATH)
made["elsewhere.h5"] = "link to another file"
with h5py.File(folder / "missing-chunk.h5", "w") as f:
    d = chunk(f, **lz4)
    d[:30], d[31:] = frames[:30], frames[31:]
made["missing-chunk.h5"] = "stored"
with h5py.File(folder / "unfiltered-chunk.h5", "w") as f:
    d = chunk(f, **lz4)
    d[...] = frames
    d.id.write_direct_chunk((7, 0, 0), frames[7].tobytes(), filter_mask=1)
made["unfiltered-chunk.h5"] = "without bitshuffle"
with h5py.File(folder / "order.h5", "w") as f:
    d = chunk(f, **lz4)
    for k in reversed(range(64)):
        d[k] = frames[k]
        f.flush()
made["order.h5"] = "out of order"
with h5py.File(folder / "virtual.h5", "w") as f:
    layout = h5py.VirtualLayout(frames.shape, "<u2")
    layout[...] = h5py.VirtualSource("taken.h5", PATH, frames.shape)
    f.create_virtual_dataset(PATH, layout)
made["virtual.h5"] = "not chunked"
np.save(folder / "array.npy", frames)
made["array.npy"] = "?"
print(json.dumps(made))
