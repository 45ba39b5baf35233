"""Makes the seeds in corpus/ anew. Needs the test environment (`cargo xtask env`).

Run it from the repository's root: `.venv/bin/python fuzz/make_corpus.py`.
"""

import io
import pathlib
import struct

import h5py
import hdf5plugin
import numpy as np

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def counts(n, dtype, seed=1):
    return np.random.default_rng(seed).poisson(2.0, n).astype(dtype)


def stored_chunk(data, **creation):
    """The filters and the first chunk of a dataset, in the form that the target `filters` reads."""
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        dataset = file.create_dataset("d", data=data, chunks=data.shape, **creation)
        plist = dataset.id.get_create_plist()
        specs = [plist.get_filter(i) for i in range(plist.get_nfilters())]
        file.flush()
        mask, chunk = dataset.id.read_direct_chunk((0,) * data.ndim)
    head = struct.pack("<BHB", data.dtype.itemsize - 1, data.size, len(specs))
    for number, _flags, values, _name in specs:
        head += struct.pack("<HB", number, len(values)) + struct.pack(f"<{len(values)}I", *values)
    return head + struct.pack("<I", mask) + chunk


def filters():
    u2, f4 = counts(600, "u2"), np.linspace(0, 1, 300, dtype="f4")
    for name, creation in {
        "deflate": {"compression": "gzip"},
        "shuffle-deflate-fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf"},
        "szip": {"compression": "szip"},
        "scaleoffset": {"scaleoffset": 0},
        "lz4": hdf5plugin.LZ4(),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle-lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle-lz4-blocks": hdf5plugin.Bitshuffle(nelems=128, cname="lz4"),
        "bitshuffle-zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        "zstd": hdf5plugin.Zstd(),
        "bzip2": hdf5plugin.BZip2(),
        "blosc-lz4": hdf5plugin.Blosc(cname="lz4"),
        "blosc-blosclz": hdf5plugin.Blosc(cname="blosclz", shuffle=2),
        "blosc2-zstd": hdf5plugin.Blosc2(cname="zstd"),
    }.items():
        write("filters", f"u2-{name}", stored_chunk(u2, **creation))
        if name != "scaleoffset":
            write("filters", f"f4-{name}", stored_chunk(f4, **creation))


def one_filter(data, number, options):
    """Client values and the first chunk of a dataset with one filter, in the form that each decoder's target reads."""
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(data.shape)
        if number == 3:
            plist.set_fletcher32()
        elif number == 4:
            plist.set_szip(*options)
        elif number == 6:
            plist.set_scaleoffset(*options)
        else:
            plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, options)
        kind = h5py.h5t.py_create(data.dtype)
        if number == 5:
            kind = kind.copy()
            kind.set_precision(11)
        space = h5py.h5s.create_simple(data.shape)
        dataset = h5py.h5d.create(file.id, b"d", kind, space, plist)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=kind)
        h5py.h5f.flush(file.id)
        _, _, values, _ = dataset.get_create_plist().get_filter(0)
        mask, chunk = dataset.read_direct_chunk((0,) * data.ndim)
        assert mask == 0, number
    head = struct.pack("<BHB", data.dtype.itemsize - 1, data.size, len(values))
    return head + struct.pack(f"<{len(values)}I", *values) + chunk


def decoders():
    import vbz_h5py_plugin  # noqa: F401  (registers VBZ)

    few, runs = counts(400, "u2"), np.repeat(counts(12, "u2", 3), 40)
    for name, number, choices in [
        ("deflate", 1, [(1,), (9,)]),
        ("fletcher32", 3, [()]),
        ("szip", 4, [(4, 8), (32, 16)]),
        ("nbit", 5, [()]),
        ("scaleoffset", 6, [(2, 0), (2, 11)]),
        ("bzip2", 307, [(1,)]),
        ("lzf", 32000, [()]),
        ("blosc", 32001, [(0, 0, 0, 0, 5, shuffle, codec) for shuffle in (0, 1, 2) for codec in (0, 1, 3, 4, 5)]),
        ("lz4", 32004, [(), (256,)]),
        ("bitshuffle", 32008, [(), (0, 2), (128, 2), (0, 3, 3)]),
        ("zstandard", 32015, [(3,)]),
        ("vbz", 32020, [(0, 2, 1, 1), (1, 2, 1, 0)]),
        ("blosc2", 32026, [hdf5plugin.Blosc2(c, 5, f).filter_options for f in (0, 1, 2) for c in ("blosclz", "lz4", "zlib", "zstd")]),
    ]:
        for i, options in enumerate(choices):
            for kind, data in ("few", few), ("runs", runs):
                write(name, f"{kind}-{i}", one_filter(data, number, options))
    for i, options in enumerate([{"reversible": True}, {"rate": 8}, {"accuracy": 0.01}, {"precision": 12}]):
        field = np.sin(np.arange(400, dtype="f4").reshape(20, 20) / 9)
        write("zfp", f"f4-{i}", one_filter(field, 32013, hdf5plugin.Zfp(**options).filter_options))
    grid = counts(400, "u2").reshape(20, 20)
    write("blosc2", "grid", one_filter(grid, 32026, hdf5plugin.Blosc2("zstd").filter_options))
    write("scaleoffset", "f4", one_filter(np.linspace(0, 1, 300, dtype="f4"), 6, (0, 2)))


def wire():
    write("wire", "ramp", bytes(range(256)))
    write("wire", "every-field", bytes([0, 1, 2, 3, 4, 0x35, 6, 7, 8]) * 12)


def hdf5():
    """One small file per structure that a reader meets."""

    def file(name, fill, **options):
        memory = io.BytesIO()
        with h5py.File(memory, "w", **options) as h5:
            fill(h5)
        write("hdf5", f"{name}.h5", memory.getvalue())

    def tree(h5):
        for i in range(3):
            group = h5.require_group(f"entry/g{i}")
            group.attrs["title"] = "counts"
            group.attrs["shape"] = np.arange(i + 1)
        h5["soft"] = h5py.SoftLink("/entry/g0")
        h5["away"] = h5py.ExternalLink("other.h5", "/data")
        h5["entry/g1/text"] = "variable"
        h5["entry/g1/texts"] = np.array(["a", "bb", ""], dtype=h5py.string_dtype())
        pair = np.dtype([("x", "<i4"), ("y", "<f8", (2,)), ("s", "S3")])
        h5["entry/g2/pairs"] = np.zeros(2, pair)
        h5["entry/g2/flags"] = np.array([True, False])
        h5["entry/g2/opaque"] = np.array([b"abc"], dtype="V3")

    def chunked(h5):
        h5.create_dataset("one", data=counts(40, "u2"), chunks=(40,))
        h5.create_dataset("grid", data=counts(60, "u2").reshape(6, 10), chunks=(2, 5), compression="gzip")
        h5.create_dataset("grow", data=counts(30, "u1"), chunks=(4,), maxshape=(None,))
        h5.create_dataset(
            "both", data=counts(36, "u4").reshape(6, 6), chunks=(2, 2), maxshape=(None, None), shuffle=True
        )
        h5.create_dataset("empty", data=h5py.Empty("f8"))

    def dense(h5):
        group = h5.create_group("many", track_order=True)
        for i in range(12):
            group.attrs[f"a{i:02}"] = i
            group[f"d{i:02}"] = i

    def detector(h5):
        frames = counts(4 * 8 * 8, "u2").reshape(4, 8, 8)
        h5.create_dataset("entry/data/data", data=frames, chunks=(1, 8, 8), **hdf5plugin.Bitshuffle())

    for libver in ("earliest", "latest"):
        file(f"tree-{libver}", tree, libver=libver)
        file(f"chunked-{libver}", chunked, libver=libver)
        file(f"dense-{libver}", dense, libver=libver)
        file(f"detector-{libver}", detector, libver=libver)
    file("user-block", tree, userblock_size=512)


if __name__ == "__main__":
    wire()
    filters()
    decoders()
    hdf5()
