"""Makes HDF5 files of every layout, chunk index, filter and number type, and says what must be read from them.

Usage: generate.py FOLDER. Writes FOLDER/*.h5, FOLDER/expected.bin and FOLDER/manifest.tsv with lines
file, path, mode, selection, offset in expected.bin, bytes, shape.
Modes: raw (bytes as stored), as:TYPE (converted), strings (NUL after each), error:as:TYPE (a value does not fit),
refused:KIND (opening or reading fails with this kind of error).
Selections: np:TEXT (NumPy's syntax), pts:A,B;C,D (points), or:START/STRIDE/COUNT/BLOCK|... (union).
"""
import ctypes
import glob
import os
import sys

import h5py
import numpy as np

import linked

folder = os.path.abspath(sys.argv[1])
rng = np.random.default_rng(20240607)
manifest = open(os.path.join(folder, "manifest.tsv"), "w")
expected = open(os.path.join(folder, "expected.bin"), "wb")
lib = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*.so*"))[0])


def say(file, path, mode, selection, data, shape):
    manifest.write("\t".join([file, path, mode, selection, str(expected.tell()), str(len(data)),
                              ",".join(map(str, shape))]) + "\n")
    expected.write(data)


def random_slice(n):
    kind = rng.integers(0, 6)
    if kind == 0:
        return ":"
    if kind == 1:
        return str(int(rng.integers(-n, n))) if n else "0:0"
    a, b = (int(x) for x in rng.integers(-n - 2, n + 3, 2))
    if kind == 2:
        return f"{a}:{b}"
    if kind == 3:
        return f"{a}:{b}:{int(rng.integers(1, 5))}"
    if kind == 4:
        return f"{a}:{b}:{int(-rng.integers(1, 5))}"
    a, b = sorted((a, b))
    return f"{a}:{b}"


def selections(shape, count):
    yield "np:", lambda a: a
    rank = len(shape)
    if rank == 0 or 0 in shape:
        return
    for _ in range(count):
        kind = rng.integers(0, 6)
        if kind == 0:
            n = int(rng.integers(1, 30))
            points = np.stack([rng.integers(0, s, n) for s in shape])
            text = ";".join(",".join(map(str, p)) for p in points.T)
            yield "pts:" + text, lambda a, p=points: a[tuple(p)]
        elif kind == 1:
            parts, mask = [], np.zeros(shape, bool)
            for _ in range(int(rng.integers(1, 4))):
                starts, strides, counts, blocks = [], [], [], []
                for s in shape:
                    start = int(rng.integers(0, s))
                    block = int(rng.integers(1, min(4, s - start) + 1))
                    stride = block + int(rng.integers(0, 4))
                    most = (s - start - block) // stride + 1
                    n = int(rng.integers(1, most + 1))
                    starts.append(start), strides.append(stride), counts.append(n), blocks.append(block)
                axes = [np.concatenate([np.arange(o + i * t, o + i * t + b) for i in range(c)])
                        for o, t, c, b in zip(starts, strides, counts, blocks)]
                mask[np.ix_(*axes)] = True
                parts.append("/".join(",".join(map(str, x)) for x in (starts, strides, counts, blocks)))
            yield "or:" + "|".join(parts), lambda a, m=mask: a[m]
        elif kind == 2:
            axis = int(rng.integers(0, rank))
            items = ["[" + ", ".join(map(str, rng.integers(-s, s, int(rng.integers(0, 9))))) + "]" if i == axis
                     else ":" if rng.integers(0, 2) else f"{int(rng.integers(0, s))}:" for i, s in enumerate(shape)]
            text = ", ".join(items)
            yield "np:" + text, lambda a, t=text: eval("a[" + t.replace("[]", "np.zeros(0, int)") + "]", {"a": a, "np": np})
        else:
            named = int(rng.integers(1, rank + 1))
            items = [random_slice(s) for s in shape[:named]]
            if rng.integers(0, 3) == 0:
                items.insert(int(rng.integers(0, len(items) + 1)), "...")
                # Which dimension an item stands for changes with the dots; let NumPy say whether it fits.
            text = ", ".join(items)
            try:
                eval("a[" + text + "]", {"a": np.empty(shape, bool)})
            except IndexError:
                continue
            yield "np:" + text, lambda a, t=text: eval("a[" + t + "]", {"a": a})


def expect(file, path, array, count=6, targets=()):
    array = np.asarray(array)
    for text, pick in selections(array.shape, count):
        got = np.ascontiguousarray(pick(array))
        say(file, path, "raw", text, got.tobytes(), np.shape(pick(array)))
        for target in targets:
            say(file, path, "as:" + target, text, got.astype("<" + target).tobytes(), np.shape(pick(array)))


def numbers(shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 50).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    low, high = (0, 90) if dtype.kind == "u" else (-60, 60)
    return rng.integers(low, high, shape).astype(dtype)


bounds = [("earliest", "v108"), ("earliest", "v200"), ("v108", "v108"), ("v110", "v110"), ("v112", "v112"),
          ("v114", "v114"), ("v200", "v200")]

# Layouts, indexes and filters under every version bound.
for low, high in bounds:
    name = f"layouts-{low}-{high}.h5"
    new = low not in ("earliest", "v108")
    with h5py.File(os.path.join(folder, name), "w", libver=(low, high)) as f:
        def make(path, shape, dtype="<i4", **kw):
            fill = kw.pop("fill", None)
            part = kw.pop("part", None)
            d = f.create_dataset(path, shape, dtype, fillvalue=fill, **kw)
            whole = np.full(shape, 0 if fill is None else fill, dtype)
            if part is None:
                whole = numbers(shape, dtype)
                if 0 not in np.shape(whole):
                    d[...] = whole
            else:
                values = numbers(whole[part].shape, dtype)
                d[part] = values
                whole[part] = values
            expect(name, path, whole)
        make("contiguous", (20, 31))
        make("contiguous3", (5, 300, 301), "<u2")
        make("scalar", ())
        make("empty", (0, 4))
        make("unwritten", (7, 9), fill=-5, part=np.s_[0:0])
        make("chunked", (20, 31), chunks=(7, 10))
        make("one", (20, 31), chunks=(20, 31))
        make("one-larger", (20, 31), chunks=(20, 31), maxshape=(40, 31))
        make("one-filtered", (20, 31), chunks=(20, 31), compression="gzip", shuffle=True)
        make("few", (50, 60), chunks=(7, 10), fill=9, part=np.s_[10:30, 5:17])
        make("few-filtered", (50, 60), chunks=(7, 10), fill=9, part=np.s_[10:30, 5:17], compression="gzip",
             fletcher32=True)
        make("many-fixed", (61, 47), "<u2", chunks=(1, 1))
        make("many-fixed-filtered", (61, 47), "<u2", chunks=(1, 1), compression=1)
        make("holes-fixed", (5000,), chunks=(1,), fill=3, part=np.s_[2100:2200])
        make("holes-fixed-filtered", (5000,), chunks=(1,), fill=3, part=np.s_[2100:2200], shuffle=True)
        make("unlimited", (61, 47), chunks=(3, 5), maxshape=(None, 47))
        make("unlimited-second", (30, 470), chunks=(4, 3), maxshape=(60, None), shuffle=True, compression=1)
        make("unlimited-holes", (9000,), chunks=(2,), maxshape=(None,), fill=1, part=np.s_[5000:5600])
        make("unlimited-both", (61, 47), chunks=(2, 2), maxshape=(None, None))
        make("unlimited-both-filtered", (61, 147), chunks=(2, 2), maxshape=(None, None), compression=1)
        make("unlimited-all4", (5, 6, 7, 8), chunks=(2, 3, 3, 2), maxshape=(None,) * 4, fletcher32=True)
        make("lzf", (100, 100), "<f4", chunks=(30, 33), compression="lzf", shuffle=True)
        make("five", (4, 3, 5, 2, 6), ">f8", chunks=(2, 2, 3, 2, 4), compression=2)
        make("large", (300, 4000), "<f4", chunks=(64, 512), compression=1, shuffle=True)
        # Shrunk and grown again: what was cut off is the fill value.
        d = f.create_dataset("resized", data=np.arange(400, dtype="<i8").reshape(20, 20), chunks=(3, 4),
                             maxshape=(None, 40), fillvalue=-1)
        whole = np.arange(400, dtype="<i8").reshape(20, 20)
        d.resize((10, 11))
        d.resize((25, 13))
        grown = np.full((25, 13), -1, "<i8")
        grown[:10, :11] = whole[:10, :11]
        expect(name, "resized", grown)
        # Early allocation without filters: implicit index in new files.
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((3, 4))
        dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        whole = numbers((10, 13), "<i4")
        space = h5py.h5s.create_simple((10, 13), (20, 26))
        d = h5py.Dataset(h5py.h5d.create(f.id, b"early", h5py.h5t.STD_I32LE, space, dcpl))
        d[...] = whole
        expect(name, "early", whole)
        # Compact.
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_layout(h5py.h5d.COMPACT)
        whole = numbers((9, 13), "<i2")
        d = h5py.Dataset(h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I16LE, h5py.h5s.create_simple((9, 13)), dcpl))
        d[...] = whole
        expect(name, "compact", whole)
        # Filters skipped for single chunks.
        d = f.create_dataset("masked", (8, 8), "<u2", chunks=(4, 4), shuffle=True, compression=1, maxshape=(None, 8))
        whole = numbers((8, 8), "<u2")
        d[...] = whole
        raw = np.ascontiguousarray(whole[0:4, 4:8])
        d.id.write_direct_chunk((0, 4), raw.tobytes(), filter_mask=3)
        shuffled = np.frombuffer(np.ascontiguousarray(whole[4:8, 4:8]).tobytes(), "u1").reshape(-1, 2).T.tobytes()
        d.id.write_direct_chunk((4, 4), shuffled, filter_mask=2)
        expect(name, "masked", whole)
        if new:
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_chunk((4, 5))
            dcpl.set_deflate(3)
            assert lib.H5Pset_chunk_opts(ctypes.c_int64(dcpl.id), ctypes.c_uint(2)) >= 0
            whole = numbers((10, 13), "<i4")
            for path, top in ((b"edges-fixed", (10, 13)), (b"edges-extensible", (h5py.h5s.UNLIMITED, 13)),
                              (b"edges-tree", (h5py.h5s.UNLIMITED,) * 2)):
                space = h5py.h5s.create_simple((10, 13), top)
                h5py.Dataset(h5py.h5d.create(f.id, path, h5py.h5t.STD_I32LE, space, dcpl))[...] = whole
                expect(name, path.decode(), whole)

# Array indexes deep enough for super blocks and pages.
for low, high in (("v110", "v110"), ("v200", "v200")):
    for filtered in (False, True):
        name = f"deep-{low}-{'filtered' if filtered else 'plain'}.h5"
        with h5py.File(os.path.join(folder, name), "w", libver=(low, high)) as f:
            kw = {"shuffle": True} if filtered else {}
            d = f.create_dataset("extensible", (200_000,), "<u2", chunks=(1,), maxshape=(None,), fillvalue=7, **kw)
            whole = np.full(200_000, 7, "<u2")
            for a, b in ((0, 40), (1000, 1100), (131_050, 131_100), (140_000, 140_003), (199_000, 199_010)):
                whole[a:b] = numbers(b - a, "<u2")
                d[a:b] = whole[a:b]
            expect(name, "extensible", whole, 10)
            d = f.create_dataset("tree", (400, 400), "u1", chunks=(2, 3), maxshape=(None, None), fillvalue=7, **kw)
            whole = numbers((400, 400), "u1")
            d[...] = whole
            expect(name, "tree", whole, 10)

# Small files with every structure, to be damaged.
for low, high in (("earliest", "v108"), ("v110", "v110"), ("v200", "v200")):
    with h5py.File(os.path.join(folder, f"seed-{low}.h5"), "w", libver=(low, high)) as f:
        for i, (top, n) in enumerate((((40, 9), 3), ((None, 9), 1), ((None, None), 2), ((12, 9), 12))):
            for kw in ({}, dict(compression=1, fletcher32=True), dict(shuffle=True)):
                f.create_dataset(f"d{i}{len(kw)}{'z' if 'compression' in kw else ''}", data=numbers((12, 9), "<i2"),
                                 chunks=(n, min(n, 9)), maxshape=top, **kw)
        f.create_dataset("pages", (1500,), "u1", chunks=(1,), fillvalue=3)[1100:1110] = 1
        f.create_dataset("words", data=["a", "bc"], dtype=h5py.string_dtype())
        f.create_dataset("plain", data=numbers((5, 4), ">f4"))
        f["plain"].attrs["a"] = "text"

# User blocks and widths of addresses and lengths.
for i, (user, sizes) in enumerate((u, s) for u in (0, 512, 4096) for s in ((8, 8), (4, 4), (4, 8), (8, 4), (2, 4))):
    name = f"sizes-{i}.h5"
    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    fcpl.set_userblock(user)
    fcpl.set_sizes(*sizes)
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    if i % 2:
        fapl.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    f = h5py.File(h5py.h5f.create(os.path.join(folder, name).encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl))
    for path, kw in (("plain", {}), ("chunked", dict(chunks=(3, 4))), ("grow", dict(chunks=(3, 4), maxshape=(None, 9))),
                     ("zip", dict(chunks=(3, 4), compression=1)),
                     ("both", dict(chunks=(3, 4), compression=1, maxshape=(None, None)))):
        whole = numbers((11, 9), "<i2")
        f.create_dataset(path, data=whole, **kw)
        expect(name, path, whole, 3)
    f.close()

# Number types, as stored and converted.
name = "types.h5"
with h5py.File(os.path.join(folder, name), "w") as f:
    targets = ("i1", "i2", "i4", "i8", "f4", "f8", "f2")
    for order in "<>":
        for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"):
            whole = numbers((13, 8), order + code)
            for path, kw in ((f"{code}{order}c", {}), (f"{code}{order}k", dict(chunks=(4, 3), compression=1))):
                f.create_dataset(path, data=whole, **kw)
                kind = np.dtype(code).kind
                more = targets[1:] if kind == "f" else targets + (("u1", "u2", "u4", "u8") if kind == "u" else ())
                expect(name, path, whole, 3, more)
        for code, target in (("c8", "c16"), ("c16", "c16")):
            whole = numbers((6, 5), order + code)
            f.create_dataset(f"{code}{order}", data=whole)
            expect(name, f"{code}{order}", whole, 2, (target,))
    f.create_dataset("bool", data=numbers((7, 5), "?"))
    expect(name, "bool", f["bool"][...].astype("i1"), 3, ("i1", "u8", "f4"))
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324, 1e-40, 1.5, 65504.0], ">f8")
    f.create_dataset("special", data=special)
    expect(name, "special", special, 1, ("f8", "f4"))
    f.create_dataset("special4", data=special.astype(">f4"))
    expect(name, "special4", special.astype(">f4"), 1, ("f8", "f4"))
    for path, data, target in (("big", [1, 300], "u1"), ("negative", [1, -1], "u4"), ("huge", [2**63], "i8"),
                               ("nan", [1.0, np.nan], "i4"), ("inf", [np.inf], "i8"), ("1e300", [1e300], "f4"),
                               ("1e10", [1e10], "i4"), ("2p63", [2.0**63], "i8"), ("2p64", [2.0**64], "u8"),
                               ("m1", [-1.0], "u8")):
        data = np.array(data)
        f.create_dataset(path, data=data)
        say(name, path, "error:as:" + target, "np:", b"", data.shape)
    for path, data, target in (("edge63", [-(2.0**63), 2.0**63 - 1024], "i8"), ("edge64", [2.0**64 - 2048, -0.5], "u8"),
                               ("edge7", [127.9, -128.9], "i1"), ("cut", [1.9, -1.9, 0.5], "i4"),
                               ("wide", [2**64 - 1, 2**53 + 1], "f8")):
        data = np.array(data)
        f.create_dataset(path, data=data)
        say(name, path, "as:" + target, "np:", data.astype("<" + target).tobytes(), data.shape)
    # Integers of odd precision and offset; the values must survive.
    for size, precision, offset, signed, order in ((4, 17, 3, True, "LE"), (2, 11, 5, False, "BE"), (8, 33, 9, True, "BE"),
                                                  (1, 3, 2, True, "LE"), (4, 32, 0, False, "BE"), (8, 60, 4, False, "LE")):
        base = {1: h5py.h5t.STD_I8LE if signed else h5py.h5t.STD_U8LE,
                2: h5py.h5t.STD_I16LE if signed else h5py.h5t.STD_U16LE,
                4: h5py.h5t.STD_I32LE if signed else h5py.h5t.STD_U32LE,
                8: h5py.h5t.STD_I64LE if signed else h5py.h5t.STD_U64LE}[size].copy()
        base.set_precision(precision)
        base.set_offset(offset)
        base.set_order(h5py.h5t.ORDER_LE if order == "LE" else h5py.h5t.ORDER_BE)
        top = 2 ** (precision - 1)
        values = rng.integers(-top if signed else 0, top if signed else 2 * top, 50, dtype="i8" if signed else "u8")
        path = f"bits-{size}-{precision}-{offset}-{signed}-{order}"
        d = h5py.h5d.create(f.id, path.encode(), base, h5py.h5s.create_simple((50,)))
        memory = h5py.h5t.NATIVE_INT64 if signed else h5py.h5t.NATIVE_UINT64
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values), memory)
        target = "i8" if signed else "u8"
        say(name, path, "as:" + target, "np:", values.astype("<" + target).tobytes(), values.shape)
        say(name, path, "as:f8", "np:", values.astype("<f8").tobytes(), values.shape)
    # Floats of other layouts, written by libhdf5's own conversion.
    all_values = np.concatenate([rng.standard_normal(60) * 1000, [0, -0.0, 1, -2]])
    layouts = {  # size, precision, sign, exponent (position, size), mantissa (position, size), bias
        "bfloat16": (2, 16, 15, 7, 8, 0, 7, 127), "fp8-e4m3": (1, 8, 7, 3, 4, 0, 3, 7), "fp8-e5m2": (1, 8, 7, 2, 5, 0, 2, 15),
        "f24": (3, 24, 23, 16, 7, 0, 16, 63),
        "f48": (6, 48, 47, 36, 11, 0, 36, 1023), "shifted": (8, 40, 50, 41, 9, 20, 21, 255)}
    for path, (size, precision, sign, ep, es, mp, ms, bias) in layouts.items():
        # Above 240, E4M3 has numbers where libhdf5, which knows no such format, has infinity.
        values = all_values.clip(-200, 200) if path == "fp8-e4m3" else all_values
        for order in ("LE", "BE"):
            t = h5py.h5t.IEEE_F64LE.copy()
            t.set_fields(sign, ep, es, mp, ms) if precision == 64 else None
            if path == "shifted":
                t.set_fields(sign, ep, es, mp, ms)
                t.set_ebias(bias)
            else:
                t.set_fields(sign, ep, es, mp, ms)
                t.set_ebias(bias)
                t.set_precision(precision)
                t.set_size(size)
            t.set_order(h5py.h5t.ORDER_LE if order == "LE" else h5py.h5t.ORDER_BE)
            d = h5py.h5d.create(f.id, f"{path}{order}".encode(), t, h5py.h5s.create_simple(values.shape))
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, values, h5py.h5t.NATIVE_DOUBLE)
            back = np.empty_like(values)
            d.read(h5py.h5s.ALL, h5py.h5s.ALL, back, h5py.h5t.NATIVE_DOUBLE)
            say(name, f"{path}{order}", "as:f8", "np:", back.astype("<f8").tobytes(), back.shape)
    long = numbers((20,), "f8").astype(np.longdouble) * np.longdouble(3) / np.longdouble(7)
    f.create_dataset("longdouble", data=long)
    say(name, "longdouble", "as:f8", "np:", long.astype("<f8").tobytes(), long.shape)
    # VAX floats: libhdf5 2.0 converts them wrongly both ways, so their bytes are made here, as the VAX has them.
    for order, size in (("F32", 4), ("F64", 8)):
        t = h5py.h5t.TypeFloatID(ctypes.c_int64.in_dll(lib, f"H5T_VAX_{order}_g").value).copy()
        ebits, bias = (8, 128) if size == 4 else (11, 1024)
        values, raw = [0.0, 1.0, -1.0, 0.5, 3.25, -1234.5, 2.0**-60, 1e20], b""
        values = [float(np.float32(v)) for v in values]
        for v in values:
            m, e = np.frexp(abs(v))  # 0.1mmm times 2 to the e
            bits = 0
            if v:
                fraction = int(m * 2 ** (size * 8 - ebits)) - (1 << (size * 8 - ebits - 1))
                bits = (int(v < 0) << (size * 8 - 1)) | (int(e) + bias) << (size * 8 - 1 - ebits) | fraction
            words = bits.to_bytes(size, "big")
            raw += b"".join(words[i:i + 2][::-1] for i in range(0, size, 2))
        d = h5py.h5d.create(f.id, f"vax{order}".encode(), t, h5py.h5s.create_simple((8,)))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(raw, f"V{size}").copy(), t)
        say(name, f"vax{order}", "as:f8", "np:", np.array(values).tobytes(), (8,))
    # Types without a conversion, as bytes.
    compound = np.dtype([("a", "<i2"), ("b", ">f8", (2, 3)), ("c", [("x", "S3"), ("y", "<u4")])])
    whole = np.frombuffer(rng.bytes(35 * compound.itemsize), compound).reshape(7, 5)
    f.create_dataset("compound", data=whole)
    expect(name, "compound", f["compound"][...], 3)
    f.create_dataset("compound-chunked", data=whole, chunks=(3, 2), compression=1)
    expect(name, "compound-chunked", f["compound"][...], 3)
    opaque = np.frombuffer(rng.bytes(7 * 40), "V7").reshape(8, 5)
    f.create_dataset("opaque", data=opaque, chunks=(3, 2), shuffle=True)
    expect(name, "opaque", opaque, 3)
    text = np.array([b"", b"a", b"abcde", b"ab"], "S5")
    f.create_dataset("fixed", data=text)
    expect(name, "fixed", text, 2)
    say(name, "fixed", "strings", "np:", b"".join(s + b"\0" for s in text), text.shape)
    t = h5py.h5t.C_S1.copy()
    t.set_size(6)
    for padding, path in ((h5py.h5t.STR_NULLTERM, "nullterm"), (h5py.h5t.STR_NULLPAD, "nullpad"),
                          (h5py.h5t.STR_SPACEPAD, "spacepad")):
        t.set_strpad(padding)
        d = h5py.h5d.create(f.id, path.encode(), t, h5py.h5s.create_simple((4,)))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, text, h5py.h5t.py_create(np.dtype("S5")))
        say(name, path, "strings", "np:", b"".join(s + b"\0" for s in text), text.shape)
    words = ["", "één", "x" * 5000, "日本", "end"]
    f.create_dataset("variable", data=words, dtype=h5py.string_dtype())
    say(name, "variable", "strings", "np:", b"".join(w.encode() + b"\0" for w in words), (5,))
    f.create_dataset("variable-chunked", data=words, dtype=h5py.string_dtype(), chunks=(2,), compression=1)
    say(name, "variable-chunked", "strings", "np:", b"".join(w.encode() + b"\0" for w in words), (5,))
    f.create_dataset("array", (4, 3), np.dtype(("<i2", (2, 2))), chunks=(2, 2))
    f["array"][...] = whole = numbers((4, 3, 2, 2), "<i2")
    say(name, "array", "raw", "np:", whole.tobytes(), (4, 3))
    say(name, "array", "as:f4", "np:", whole.astype("<f4").tobytes(), (4, 3))
    f.create_dataset("null", data=h5py.Empty("<f4"))
    say(name, "null", "raw", "np:", b"", ())
    say(name, "null", "as:f8", "np:", b"", ())
    f.create_dataset("filled", (10, 10), ">f4", fillvalue=2.5, chunks=(3, 3))
    say(name, "filled", "as:f8", "np:1:5, 2", np.full(4, 2.5).tobytes(), (4,))
    e = h5py.enum_dtype({"RED": 0, "GREEN": 500, "BLUE": -7}, basetype=">i2")
    f.create_dataset("enum", data=np.array([0, 500, -7, 500], ">i2"), dtype=e)
    say(name, "enum", "as:i4", "np:", np.array([0, 500, -7, 500], "<i4").tobytes(), (4,))

# Complex numbers of a class of their own, which h5py makes none of.
with h5py.File(os.path.join(folder, "complex.h5"), "w", libver=("v200", "v200")) as f:
    for call, *arguments in [("H5Tcomplex_create", ctypes.c_int64),
                             ("H5Dcreate2", ctypes.c_int64, ctypes.c_char_p, *[ctypes.c_int64] * 5),
                             ("H5Dwrite", *[ctypes.c_int64] * 5, ctypes.c_void_p)]:
        getattr(lib, call).restype = ctypes.c_int if call == "H5Dwrite" else ctypes.c_int64
        getattr(lib, call).argtypes = arguments
    for path, part, code in (("c4", "H5T_IEEE_F16LE_g", "f2"), ("c8", "H5T_IEEE_F32BE_g", ">f4"), ("c16", "H5T_IEEE_F64LE_g", "<f8")):
        whole = numbers((6, 5), "c16")
        parts = np.stack([whole.real, whole.imag], -1).astype(code)
        kind = lib.H5Tcomplex_create(ctypes.c_int64.in_dll(lib, part).value)
        space = h5py.h5s.create_simple((6, 5))
        d = lib.H5Dcreate2(f.id.id, path.encode(), kind, space.id, 0, 0, 0)
        assert kind >= 0 and d >= 0 and lib.H5Dwrite(d, kind, 0, 0, 0, parts.ctypes.data) >= 0
        lib.H5Dclose(ctypes.c_int64(d))
        say("complex.h5", path, "raw", "np:", parts.tobytes(), (6, 5))
        say("complex.h5", path, "as:c16", "np:", parts.astype("<f8").tobytes(), (6, 5))

# Many small datasets.
for low in ("earliest", "v110"):
    with h5py.File(os.path.join(folder, f"many-{low}.h5"), "w", libver=(low, "v200" if low == "earliest" else low)) as f:
        for i in range(2000):
            f[f"d{i:04}"] = np.arange(i, i + 10, dtype="<i4")

linked.make(folder, say, expect, numbers)
manifest.close()
expected.close()
