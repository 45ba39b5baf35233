"""make_kinds.py FOLDER: kinds.h5 holds every kind of object; plain.h5 only those that h5dump 1.10 prints without loss;
newest.h5 those that only libhdf5 2.0 writes.
"""
import ctypes as C
import glob
import os
import sys

import h5py
import numpy as np


os.chdir(sys.argv[1])
L = C.CDLL(glob.glob(os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*.so*"))[0])


def call(name, result, *arguments):
    f = getattr(L, name)
    f.restype, f.argtypes = result, [t for t, _ in arguments]
    found = f(*[v for _, v in arguments])
    assert found >= 0, name
    return found


def dataset(f, name, kind, space):
    return call("H5Dcreate2", C.c_int64, (C.c_int64, f.id.id), (C.c_char_p, name), (C.c_int64, kind), (C.c_int64, space.id),
                (C.c_int64, 0), (C.c_int64, 0), (C.c_int64, 0))


def write(d, kind, data):
    call("H5Dwrite", C.c_int, (C.c_int64, d), (C.c_int64, kind), (C.c_int64, 0), (C.c_int64, 0), (C.c_int64, 0), (C.c_void_p, data))
    call("H5Dclose", C.c_int, (C.c_int64, d))


class LinkClass(C.Structure):
    _fields_ = [("version", C.c_int), ("id", C.c_int), ("comment", C.c_char_p)] + [
        (n, C.c_void_p) for n in ("create", "move", "copy", "trav", "del", "query")]


NOWHERE = C.CFUNCTYPE(C.c_int64, C.c_char_p, C.c_int64, C.c_void_p, C.c_size_t, C.c_int64, C.c_int64)(lambda *_: -1)


def plain(f):
    f["big endian"] = np.arange(30, dtype=">i2").reshape(5, 6) * 1000
    f["floats"] = np.linspace(0, 1, 7, dtype="f4")
    f["doubles"] = np.array([1e-300, 1.5, np.nan, np.inf, -np.inf, -0.0, 1 / 3, 123456.0, 1234567.0, 1e-5, 0.0001])
    f["strings"] = np.array([b"ab", b"c d"], dtype="S5")
    f["texts"] = np.array(["one", "and two"], dtype=h5py.string_dtype())
    f["enum"] = np.array([0, 7, -3], dtype=h5py.enum_dtype({"RED": 0, "GREEN": 7, "b": -3}, "i2"))
    f["bool"] = np.array([True, False])
    f["compound"] = np.array([(1, 2.5, b"xy"), (3, 4.5, b"z")], dtype=[("a", "i4"), ("b", "f8"), ("s", "S3")])
    inner = np.dtype([("in", [("x", "i1"), ("y", "i1")]), ("ar", "u2", 3)])
    f["nested"] = np.array([((1, 2), [1, 2, 3]), ((3, 4), [4, 5, 6])], dtype=inner)
    d = f.create_dataset("sequences", (3,), dtype=h5py.vlen_dtype("i4"))
    d[0], d[1] = [1, 2, 3], [4]
    f.create_dataset("arrays", (2,), dtype=np.dtype(("i4", (2, 3))))
    f.create_dataset("opaque", data=np.array([b"ab\0c", b"\xff\0\0\0"], dtype="V4"))
    f["complex"] = np.array([1 + 2j, 3 - 4j], dtype="c8")
    f["null"] = h5py.Empty("f4")
    f["scalar"] = 3
    f["empty"] = np.zeros((0, 3), "i4")
    f["soft"] = h5py.SoftLink("/scalar")
    f["external"] = h5py.ExternalLink("other.h5", "/x")
    f["group/inside"] = np.uint8(1)
    f["hard"] = f["group"]
    f["group/cycle"] = f["/"]
    f["type"] = np.dtype([("a", "i4"), ("b", "f8")])
    f.create_dataset("of a type", (1,), dtype=f["type"])
    f["group"].attrs["numbers"] = np.arange(3)
    f["group"].attrs["text"] = "text"
    f["scalar"].attrs["pair"] = np.array([1.5, 2.5])
    f.create_dataset("chunked", data=np.arange(60, dtype="u1").reshape(20, 3), chunks=(7, 3), maxshape=(None, 3),
                     compression="gzip")
    f["long"] = np.arange(40) * 123456789
    space = h5py.h5s.create_simple((3,))
    h5py.h5d.create(f.id, b"bits", h5py.h5t.STD_B8LE, space)
    f["three"] = np.arange(24, dtype="i8").reshape(2, 3, 4)
    f.attrs["on the root"] = np.float32(0.1)


def kinds(f):
    plain(f)
    f["w\u00f6rter"] = np.array(["zw\u00f6lf", "a \"quote\"", "two\nlines"], dtype=h5py.string_dtype())
    f["references"] = np.array([f["scalar"].ref, f["group"].ref, h5py.Reference()], dtype=h5py.ref_dtype)
    r = f.create_dataset("regions", (2,), dtype=h5py.regionref_dtype)
    r[0] = f["big endian"].regionref[1:3, 2:4]
    r[1] = f["long"].regionref[:]
    layout = h5py.VirtualLayout(shape=(2, 7), dtype="f4")
    layout[1] = h5py.VirtualSource(f["floats"])
    f.create_virtual_dataset("virtual", layout, fillvalue=-1)
    f["type"].attrs["on a type"] = 5
    # Links of a class that this file's maker defined.
    c = LinkClass(1, 187, b"test")
    c.trav = C.cast(NOWHERE, C.c_void_p)
    call("H5Lregister", C.c_int, (C.c_void_p, C.byref(c)))
    call("H5Lcreate_ud", C.c_int, (C.c_int64, f.id.id), (C.c_char_p, b"user-defined"), (C.c_int, 187), (C.c_char_p, b"abc"),
         (C.c_size_t, 3), (C.c_int64, 0), (C.c_int64, 0))
    f["dangling"] = h5py.SoftLink("/nowhere")
    # Data in other places: in the header, and in a file beside.
    space = h5py.h5s.create_simple((3,))
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_layout(h5py.h5d.COMPACT)
    h5py.Dataset(h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I16BE, space, dcpl))[:] = [1, -2, 3]
    with open("raw.bin", "wb") as raw:
        raw.write(bytes(range(1, 7)))
    f.create_dataset("raw", (2, 3), "u1", external=[("raw.bin", 0, 6)])
    # Types of other classes and forms.
    h5py.h5d.create(f.id, b"time", h5py.h5t.UNIX_D32LE, space)
    odd = h5py.h5t.STD_I32BE.copy()
    odd.set_precision(20)
    odd.set_offset(3)
    h5py.Dataset(h5py.h5d.create(f.id, b"20 bits", odd, space))[:] = [5, -6, 7]
    half = h5py.h5t.IEEE_F32LE.copy()
    half.set_fields(15, 7, 8, 0, 7)
    half.set_precision(16)
    half.set_size(2)
    half.set_ebias(127)
    h5py.Dataset(h5py.h5d.create(f.id, b"bfloat16", half, space))[:] = [1.5, -2, 300]
    d = f.create_dataset("texts in sequences", (2,), dtype=h5py.vlen_dtype(np.dtype([("n", "i2"), ("s", "S3")])))
    d[0] = np.array([(1, b"one"), (2, b"two")], dtype=[("n", "i2"), ("s", "S3")])
    for n in range(12):
        f["group"].attrs[f"many {n:02}"] = n


def newest(f):
    f["data"] = np.arange(12).reshape(3, 4)
    f["data"].attrs["an attribute"] = 5
    space = h5py.h5s.create_simple((2,))
    kind = call("H5Tcomplex_create", C.c_int64, (C.c_int64, C.c_int64.in_dll(L, "H5T_IEEE_F32BE_g").value))
    pairs = np.array([1.5, -2, 3, 0.25], ">f4")
    write(dataset(f, b"complex", kind, space), kind, pairs.ctypes.data)
    references = (C.c_uint8 * (64 * 3))()
    at = [C.addressof(references) + 64 * i for i in range(3)]
    part = h5py.h5s.create_simple((3, 4))
    part.select_hyperslab((1, 0), (2, 3))
    here, data = (C.c_int64, f.id.id), (C.c_char_p, b"data")
    call("H5Rcreate_object", C.c_int, here, data, (C.c_int64, 0), (C.c_void_p, at[0]))
    call("H5Rcreate_region", C.c_int, here, data, (C.c_int64, part.id), (C.c_int64, 0), (C.c_void_p, at[1]))
    call("H5Rcreate_attr", C.c_int, here, data, (C.c_char_p, b"an attribute"), (C.c_int64, 0), (C.c_void_p, at[2]))
    kind = C.c_int64.in_dll(L, "H5T_STD_REF_g").value
    three = h5py.h5s.create_simple((3,))
    write(dataset(f, b"references", kind, three), kind, C.addressof(references))


for name, fill, libver in [("plain", plain, ("earliest", "v110")), ("kinds", kinds, ("earliest", "v110")),
                           ("newest", newest, ("v200", "v200"))]:
    with h5py.File(name + ".h5", "w", libver=libver) as f:
        fill(f)
