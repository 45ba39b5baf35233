"""Writes a stack in every way that h5py and hdf5plugin write one, and says what h5py reads of each.

Arguments: a folder. Prints one JSON object: file -> [dtype, shape, SHA-256 of the counts in C order, little-endian,
the files that hold them].
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np

folder = Path(sys.argv[1])
# libhdf5 looks for raw data from here on.
os.chdir(folder)
rng = np.random.default_rng(7)
PATH = "entry/data/data"
made: dict[str, list[str]] = {}


def counts(dtype: str, shape: tuple[int, ...] = (6, 12, 20)) -> np.ndarray:
    values = rng.poisson(2, shape)
    values.flat[:: 97] = np.iinfo(dtype).max
    return values.astype(dtype)


def create(f: h5py.File, data: np.ndarray, **how: object) -> None:
    f.create_dataset(PATH, data=data, **how)


def write(name: str, data: np.ndarray, **how: object) -> None:
    with h5py.File(folder / f"{name}.h5", "w") as f:
        create(f, data, **how)
    made[f"{name}.h5"] = []


chunks = (1, 12, 20)
for dtype in ("u1", "<u2", ">u2", "<u4", ">u4", "i1", "<i2", ">i2", "<i4", ">i4"):
    data = counts(dtype)
    name = dtype.replace("<", "le-").replace(">", "be-")
    write(f"contiguous-{name}", data)
    write(f"chunked-{name}", data, chunks=(4, 5, 7), compression="gzip", shuffle=True)
data = counts("<u2")
filters = {
    "gzip": {"compression": "gzip"},
    "gzip-shuffle-fletcher": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "fletcher": {"fletcher32": True},
    "scaleoffset": {"scaleoffset": 0},
    "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
    "bitshuffle-lz4": hdf5plugin.Bitshuffle(cname="lz4"),
    "bitshuffle-zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    "blosc-lz4": hdf5plugin.Blosc(cname="lz4"),
    "blosc-zstd": hdf5plugin.Blosc(cname="zstd", shuffle=2),
    "blosc-blosclz": hdf5plugin.Blosc(cname="blosclz"),
    "blosc-zlib": hdf5plugin.Blosc(cname="zlib"),
    "blosc2-lz4": hdf5plugin.Blosc2(cname="lz4"),
    "blosc2-zstd": hdf5plugin.Blosc2(cname="zstd"),
    "zstd": hdf5plugin.Zstd(),
    "lz4": hdf5plugin.LZ4(),
    "bzip2": hdf5plugin.BZip2(),
}
if h5py.h5z.get_filter_info(h5py.h5z.FILTER_SZIP) & h5py.h5z.FILTER_CONFIG_ENCODE_ENABLED:
    filters["szip"] = {"compression": "szip", "compression_opts": ("nn", 8)}
for name, how in filters.items():
    write(name, data, chunks=chunks, **how)


def low(name: str, data: np.ndarray, change, dtype=None) -> None:
    """A dataset whose creation properties `change` makes."""
    with h5py.File(folder / f"{name}.h5", "w", libver="latest") as f:
        f.create_group("entry/data")
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        change(dcpl)
        kind = dtype or h5py.h5t.py_create(data.dtype)
        space = h5py.h5s.create_simple(data.shape)
        dataset = h5py.h5d.create(f.id, PATH.encode(), kind, space, dcpl)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data))
    made[f"{name}.h5"] = []


def nbit(dcpl) -> None:
    dcpl.set_chunk(chunks)
    dcpl.set_filter(5, h5py.h5z.FLAG_MANDATORY, ())


twelve = h5py.h5t.STD_U16LE.copy()
twelve.set_precision(12)
low("nbit", data & 4095, nbit, twelve)
high = h5py.h5t.STD_U16BE.copy()
high.set_precision(12)
high.set_offset(3)
low("nbit-high", data & 4095, nbit, high)
small = counts("u1", (3, 4, 5))
low("compact", small, lambda dcpl: dcpl.set_layout(h5py.h5d.COMPACT))

# Raw data in two other files, the second of which begins with something else.
raw = counts("<u4", (5, 6, 8))
(folder / "raw").mkdir()
cut = raw.nbytes // 3
(folder / "raw/one.bin").write_bytes(raw.tobytes()[:cut])
(folder / "raw/two.bin").write_bytes(b"head" + raw.tobytes()[cut:])
with h5py.File(folder / "external.h5", "w") as f:
    f.create_dataset(
        PATH, raw.shape, "<u4", external=[("raw/one.bin", 0, cut), ("raw/two.bin", 4, h5py.h5f.UNLIMITED)]
    )
made["external.h5"] = ["raw/one.bin", "raw/two.bin"]

# A virtual dataset over two files, one of which is virtual itself, and another type in between.
parts = [counts("<u2", (4, 6, 8)), counts("<u2", (3, 6, 8))]
for k, part in enumerate(parts):
    with h5py.File(folder / f"part-{k}.h5", "w") as f:
        f.create_dataset("part", data=part, chunks=(2, 3, 8), **hdf5plugin.LZ4())
layout = h5py.VirtualLayout((3, 6, 8), "<u2")
layout[:] = h5py.VirtualSource("part-1.h5", "part", (3, 6, 8))
with h5py.File(folder / "inner.h5", "w") as f:
    f.create_virtual_dataset("inner", layout)
for name, dtype in (("virtual", "<u2"), ("virtual-wide", "<i4")):
    layout = h5py.VirtualLayout((7, 6, 8), dtype)
    layout[:4] = h5py.VirtualSource("part-0.h5", "part", (4, 6, 8))
    layout[4:] = h5py.VirtualSource("inner.h5", "inner", (3, 6, 8))
    with h5py.File(folder / f"{name}.h5", "w") as f:
        f.create_virtual_dataset(PATH, layout)
    made[f"{name}.h5"] = ["part-0.h5", "inner.h5", "part-1.h5"]
# One whose sources are in its own file, and one behind a link.
with h5py.File(folder / "own.h5", "w") as f:
    f.create_dataset("part", data=parts[0])
    layout = h5py.VirtualLayout((4, 3, 8), "<u2")
    layout[:] = h5py.VirtualSource(".", "part", (4, 6, 8))[:, 1:4]
    f.create_virtual_dataset(PATH, layout)
made["own.h5"] = []
with h5py.File(folder / "link.h5", "w") as f:
    f[PATH] = h5py.ExternalLink("part-0.h5", "part")
made["link.h5"] = ["part-0.h5"]

out = {}
for name, files in made.items():
    with h5py.File(folder / name) as f:
        a = f[PATH][()]
    little = a.astype(a.dtype.newbyteorder("<"))
    out[name] = [a.dtype.name, list(a.shape), hashlib.sha256(little.tobytes()).hexdigest(), files]
print(json.dumps(out))
