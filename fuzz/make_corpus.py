"""Makes the seeds in corpus/ anew. Needs the test environment (`cargo xtask env`).

Run it from the repository's root: `.venv/bin/python fuzz/make_corpus.py`.
"""

import ctypes
import io
import os
import pathlib
import struct
import tempfile
import zlib

import h5py
import hdf5plugin
import numpy as np
import tensilo

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


def deflater():
    rng = np.random.default_rng(4)
    slope = (np.arange(3000) // 8 + rng.integers(0, 4, 3000)).astype("u1").tobytes()
    text = (pathlib.Path(__file__).parent / "README.md").read_bytes()[:3000]
    for level in 1, 4, 6:
        write("deflater", f"slope-{level}", bytes([level, 0, 0]) + slope)
        write("deflater", f"text-{level}", bytes([level, 1, 7]) + text)
        write("deflater", f"runs-{level}", bytes([level, 15, 40]) + bytes(300) + counts(300, "u2").tobytes())


def inflate_pair():
    rng = np.random.default_rng(5)

    def stream(raw, level=1):
        made = zlib.compressobj(level, wbits=-15)
        return made.compress(raw) + made.flush()

    def pair(name, a, b, room_a=250, room_b=250):
        write("inflate_pair", name, struct.pack("<HHH", len(a), room_a, room_b) + a + b)

    # Values that occur seldom: no copies, and rows of literals.
    noise = [stream(rng.integers(0, 90, n, dtype="u1").tobytes(), 6) for n in (3000, 2000)]
    runs = stream(bytes(2000) + counts(300, "u2").tobytes() + bytes(3000))
    pair("noise", *noise)
    pair("noise-and-runs", noise[0], runs)
    pair("runs-and-noise", runs, noise[1])
    pair("cut", noise[0][:1500], noise[1])
    pair("no-room", noise[0], noise[1], 20)
    pair("stored", stream(bytes(100), 0), noise[1])


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


SAME = b"\0"  # in front of what depends on the widths of addresses and lengths: both have 8 bytes
# Message types: their target, and what stands in front of the body.
MESSAGES = {
    0x01: ("message_dataspace", SAME), 0x02: ("message_group", SAME + b"\0"), 0x03: ("datatype", b""),
    0x04: ("message_fill_value", b""), 0x05: ("message_fill_value", b""), 0x06: ("message_link", SAME),
    0x07: ("message_external_files", SAME), 0x08: ("message_data_layout", SAME), 0x0A: ("message_group", SAME + b"\2"),
    0x0B: ("message_filter_pipeline", b""), 0x0C: ("message_attribute", b""), 0x0D: ("message_file", SAME + b"\7"),
    0x0E: ("message_file", SAME + b"\6"), 0x0F: ("message_shared", SAME + b"\1"), 0x10: ("message_file", SAME + b"\11"),
    0x11: ("message_group", SAME + b"\3"), 0x12: ("message_file", SAME + b"\5"), 0x13: ("message_file", SAME + b"\4"),
    0x14: ("message_file", SAME + b"\1"), 0x15: ("message_group", SAME + b"\1"), 0x16: ("message_file", SAME + b"\10"),
    0x17: ("message_file", SAME + b"\0"), 0x18: ("message_file", SAME + b"\3"),
}
# Signatures: their target, what stands in front, and how many bytes are taken.
SIGNATURES = {
    b"TREE\0": ("btree_v1", SAME + b"\x10", 544), b"TREE\1": ("chunk_node", SAME, 300), b"SNOD": ("btree_v1", SAME + b"\4", 328),
    b"HEAP": ("local_heap", SAME, 120), b"GCOL": ("global_heap", SAME, 4096), b"FRHP": ("fractal_heap", SAME, 146),
    b"BTHD": ("btree_v2", SAME, 38), b"FAHD": ("fixed_array", SAME, 28), b"EAHD": ("extensible_array", SAME, 72),
    b"SMTB": ("shared_messages", SAME + b"\1", 80), b"SMLI": ("shared_messages", SAME + b"\4", 400),
    b"FSHD": ("free_space", SAME, 82),
}
# What a header's address, at a place in it, leads to; it is put behind the header.
LEADS_TO = {b"BTHD": (16, 600), b"FRHP": (132, 600), b"FAHD": (16, 400), b"EAHD": (60, 500), b"FSHD": (54, 300)}
MOST_OF_A_KIND = 3


class Cutter:
    """Cuts structures out of files, few of each kind."""

    def __init__(self):
        self.kept = {}

    def keep(self, target, kind, data):
        names = self.kept.setdefault((target, kind), [])
        if data not in names and len(names) < MOST_OF_A_KIND:
            write(target, f"{kind}-{len(names)}", data)
            names.append(data)

    def messages(self, body, indexed, old):
        at = 0
        head = 8 if old else 6 if indexed else 4
        while at + head <= len(body):
            if old:
                kind, size, flags = struct.unpack_from("<HHB", body, at)
            else:
                kind, size, flags = struct.unpack_from("<BHB", body, at)
            data = body[at + head : at + head + size]
            at += head + size
            if flags & 2:
                self.keep("message_shared", f"to-{data[:2].hex()}", SAME + b"\0" + data)
            elif kind in MESSAGES:
                target, front = MESSAGES[kind]
                # Version, and class or the like behind it, make a kind of their own.
                of = "" if target == "message_file" else f"-{data[:2].hex()}"
                self.keep(target, f"{kind:02x}{of}", front + data)

    def header(self, file, at):
        """The first chunk of an object header."""
        if file[at : at + 4] == b"OHDR":
            flags = file[at + 5]
            start = at + 6 + (16 if flags & 32 else 0) + (4 if flags & 16 else 0)
            width = 1 << (flags & 3)
            size = int.from_bytes(file[start : start + width], "little")
            self.keep("object_header", "new", file[at : start + width + size])
            self.messages(file[start + width : start + width + size], flags & 4, False)
        elif file[at] == 1:
            size = int.from_bytes(file[at + 8 : at + 12], "little")
            self.keep("object_header", "old", file[at : at + 16 + size])
            self.messages(file[at + 16 : at + 16 + size], False, True)

    def file(self, data, headers=()):
        version = data[8]
        self.keep("superblock", f"v{version}", data[: 96 if version == 0 else 48])
        if version == 0:
            self.keep("symbol_entry", "root", SAME + data[56:96])
        for at in headers:
            self.header(data, at)
        for signature, (target, front, size) in SIGNATURES.items():
            at = data.find(signature)
            while at >= 0:
                cut = data[at : at + size]
                if signature == b"FRHP" and (filters := int.from_bytes(cut[7:9], "little")):
                    cut = data[at : at + size + 12 + filters]
                if signature in LEADS_TO:
                    place, more = LEADS_TO[signature]
                    to = int.from_bytes(cut[place : place + 8], "little")
                    cut += data[to : to + more] if to < len(data) else b""
                if signature == b"GCOL":
                    self.heap(data, at)
                    cut = cut[: int.from_bytes(cut[8:16], "little")]
                if signature == b"SNOD":
                    self.keep("symbol_entry", "link", SAME + cut[8:48])
                of = f"-{cut[5]}" if signature == b"BTHD" else f"-{len(cut)}" if signature == b"FRHP" else signature[4:].hex()
                self.keep(target, signature[:4].decode() + of, front + cut)
                at = data.find(signature, at + 4)
        for at in (i for i in range(len(data)) if data.startswith(b"OHDR", i)):
            self.header(data, at)
        for at in (i for i in range(len(data)) if data.startswith(b"BTLF\0", i)):
            kind = data[at + 5]
            if kind in (10, 11):
                width = 24 if kind == 10 else 24 + 4 + 2
                self.keep("chunk_record", f"type{kind}", SAME + bytes([kind - 10, width, 2]) + data[at + 6 : at + 6 + width])
        at = data.find(b"MDCI")
        if at >= 0:
            self.keep("cache_image", "image", data[at : at + int.from_bytes(data[at + 6 : at + 14], "little") - 4])

    def heap(self, data, at):
        """Objects of a global heap: mappings, regions."""
        end, place = at + int.from_bytes(data[at + 8 : at + 16], "little"), at + 16
        while place + 16 <= end:
            index, size = struct.unpack_from("<H6xQ", data, place)
            if index == 0:
                break
            body = data[place + 16 : place + 16 + size]
            if body[:1] in (b"\0", b"\1") and int.from_bytes(body[1:9], "little") < 100 and size > 40:
                self.keep("virtual_block", f"v{body[0]}", SAME + body[:-4])
            elif size > 16:
                self.keep("selection", "region", body[8:])
            place += 16 + -(-size // 8) * 8


def structures():
    """Every structure alone, cut out of small files."""
    cutter = Cutter()

    def file(fill, prepare=lambda fcpl, fapl: None, low="earliest"):
        fcpl, fapl = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        bounds = {"earliest": h5py.h5f.LIBVER_EARLIEST, "v110": h5py.h5f.LIBVER_V110, "latest": h5py.h5f.LIBVER_LATEST}
        fapl.set_libver_bounds(bounds[low], h5py.h5f.LIBVER_LATEST)
        prepare(fcpl, fapl)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "seed.h5"
            h5 = h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl))
            fill(h5)
            headers = {h5py.h5o.get_info(h5.id).addr}
            h5.visititems(lambda _, o: headers.add(h5py.h5o.get_info(o.id).addr))
            h5.close()
            cutter.file(path.read_bytes(), sorted(headers))

    def many(h5):
        group = h5.create_group("many", track_order=True)
        for i in range(40):
            group[f"link {i:02}"] = h5py.SoftLink(f"/target {i}")
            group.attrs[f"attribute {i:02}"] = i
        for i in range(30):
            h5[f"external {i}"] = h5py.ExternalLink("other.h5", "/x")
        if h5.libver[0] != "earliest":
            h5.attrs["huge"] = np.zeros(9000)

    def types(h5):
        pair = np.dtype([("x", ">f8", (2, 3)), ("y", h5py.string_dtype()), ("z", "S4")])
        for i, kind in enumerate(["<i4", ">u2", "<f2", ">f8", "c8", "?", "S7", "V5", pair, h5py.vlen_dtype("f4"), h5py.ref_dtype,
                                  h5py.regionref_dtype, h5py.enum_dtype({"RED": 0, "b": -3}, "i2"), np.dtype(("i4", (2, 3)))]):
            h5.create_dataset(f"type {i}", (2,), kind)
            h5.create_dataset(f"chunks {i}", (2,), kind, chunks=(1,), compression="gzip", shuffle=True, fillvalue=None)
        h5["committed"] = pair
        h5.create_dataset("of a type", (2,), h5["committed"])
        h5.create_dataset("timed", data=3, track_times=True, fillvalue=9)
        h5.create_dataset("raw", (20,), "u1", external=[("a.bin", 0, 10), ("b.bin", 5, h5py.h5f.UNLIMITED)])
        h5["timed"].attrs["text"] = "a text"

    def chunks(h5):
        h5.create_dataset("fixed", data=np.arange(60).reshape(20, 3), chunks=(1, 3))
        h5.create_dataset("paged", (1100,), "u1", chunks=(1,))[::10] = 3
        h5.create_dataset("extensible", (20000, 2), "u1", chunks=(1, 2), maxshape=(None, 2))[:300] = 5
        h5.create_dataset("tree", data=np.arange(400, dtype="u1").reshape(20, 20), chunks=(2, 2), maxshape=(None, None))
        h5.create_dataset("filtered tree", data=np.arange(400, dtype="u2").reshape(20, 20), chunks=(5, 5),
                          maxshape=(None, None), compression="gzip")
        h5.create_dataset("many", data=np.arange(2500, dtype="u1").reshape(50, 50), chunks=(1, 1), maxshape=(None, None))

    def regions(h5):
        h5["data"] = np.arange(72).reshape(8, 9)
        d = h5.create_dataset("regions", (5,), h5py.regionref_dtype)
        d[0], d[1], d[2] = h5["data"].regionref[1:3, 2:4], h5["data"].regionref[:], h5["data"].regionref[::2, ::3]
        points = h5py.h5s.create_simple((8, 9))
        points.select_elements([(7, 1), (0, 0)])
        d[3] = h5py.h5r.create(h5.id, b"data", h5py.h5r.DATASET_REGION, points)
        for i in range(3):
            layout = h5py.VirtualLayout((4, 9), "i8", (None, 9) if i == 1 else None)
            layout[1:3, ::2] = h5py.VirtualSource("." if i else "other.h5", "data", (8, 9))[3:5, :5]
            h5.create_virtual_dataset(f"virtual {i}", layout)

    def sharing(list_max):
        def prepare(fcpl, _):
            for call, *arguments in [("nindexes", 1), ("index", 0, 0x1F, 20), ("phase_change", list_max, 0)]:
                assert getattr(libhdf5(), f"H5Pset_shared_mesg_{call}")(ctypes.c_int64(fcpl.id), *arguments) >= 0

        return prepare

    def shared(h5):
        for i in range(9):
            h5.create_dataset(f"d{i}", (7,), "u2").attrs["the same attribute everywhere"] = np.arange(20)

    def filtered(h5):
        gcpl = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        assert libhdf5().H5Pset_deflate(ctypes.c_int64(gcpl.id), 6) >= 0
        assert libhdf5().H5Pset_link_phase_change(ctypes.c_int64(gcpl.id), 0, 0) >= 0
        group = h5py.Group(h5py.h5g.create(h5.id, b"filtered", gcpl=gcpl))
        for i in range(30):
            group[f"link {i}"] = h5py.SoftLink(f"/target {i}")

    def paged(fcpl, _):
        fcpl.set_file_space_strategy(h5py.h5f.FSPACE_STRATEGY_PAGE, True, 1)

    def ranks(fcpl, _):
        assert libhdf5().H5Pset_istore_k(ctypes.c_int64(fcpl.id), 9) >= 0

    def holes(h5):
        for i in range(9):
            h5[f"d{i}"] = np.arange(50 * i + 1)
        for i in (1, 2, 5, 7):
            del h5[f"d{i}"]

    def image(_, fapl):
        assert libhdf5().H5Pset_mdc_image_config(ctypes.c_int64(fapl.id), struct.pack("<i??2xi", 1, True, False, -1)) >= 0

    def commented(h5):
        group = h5.create_group("g")
        assert libhdf5().H5Oset_comment(ctypes.c_int64(group.id.id), b"a comment") >= 0
        h5["same"] = h5["g"]
        h5["soft"] = h5py.SoftLink("/g")
        h5["away"] = h5py.ExternalLink("other.h5", "/x")

    for low in ("earliest", "v110", "latest"):
        for fill in many, types, chunks, regions, commented:
            file(fill, low=low)
    file(commented, ranks, "latest")
    file(filtered, low="latest")
    file(shared, sharing(50), "latest")
    file(shared, sharing(2), "latest")
    file(shared, sharing(50))
    file(holes, paged, "latest")
    file(many, image, "latest")
    # What h5py does not write in one piece.
    write("message_file", "driver-block", SAME + b"\2" + struct.pack("<B3xI8s", 0, 8, b"NCSAfami") + struct.pack("<Q", 4096))
    write("message_file", "driver", SAME + b"\1" + struct.pack("<B8sH", 0, b"NCSAfami", 8) + struct.pack("<Q", 4096))
    write("message_file", "continuation", SAME + b"\11" + struct.pack("<QQ", 4096, 120))
    missing = [t for t in {t for t, *_ in [*MESSAGES.values(), *SIGNATURES.values()]} if not (CORPUS / t).is_dir()]
    assert not missing, missing


def libhdf5():
    site = pathlib.Path(h5py.__file__).parents[1]
    return ctypes.CDLL(str(next((site / "h5py.libs").glob("libhdf5-*.so*"))))


def records():
    """Small stores of our own format, one for each codec, and one of several fields."""

    def store(name, fields, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/store.trec"
            tensilo.Records.write(path, fields, **options)
            with open(path, "rb") as file:
                write("records", name, file.read())

    rows = counts(140 * 24, "u2").reshape(140, 24)
    for codec in ("raw", "deflate:1", "zstd:1", "lz4", "shuffle+deflate:6", "bitshuffle+lz4"):
        store(codec.replace(":", "-").replace("+", "-"), rows, codec=codec)
    store("two-fields", {"image": rows[:9].reshape(9, 4, 6), "label": np.arange(9)}, metadata={"made": "for fuzzing"})


def zrecord():
    """The stores that loaderx wrote for the tests, as the target wants them."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../crates/records/tests/fixtures/zrecord")
    for name in sorted(os.listdir(folder)):
        parts = []
        for part in ("meta.zr.head", "0.zr.head"):
            with open(os.path.join(folder, name, part), "rb") as file:
                parts.append(file.read())
        meta, chunk = parts
        # Zeros at the ends were left out.
        end, count = struct.unpack_from("<II", meta, 8)
        meta, chunk = meta.ljust(16 + 16 * count, b"\0"), chunk.ljust(end, b"\0")
        if len(meta) < 1 << 16 and len(chunk) < 1 << 14:
            write("zrecord", name, len(meta).to_bytes(2, "little") + meta + chunk)


if __name__ == "__main__":
    wire()
    filters()
    decoders()
    deflater()
    inflate_pair()
    hdf5()
    structures()
    records()
    zrecord()
