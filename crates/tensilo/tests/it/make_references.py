"""make_references.py FOLDER: files of references and of virtual datasets, as far as h5py, or the libhdf5 in it, makes them."""
import ctypes as C
import glob
import os
import sys

import h5py
import numpy as np
from h5py import h5p

os.chdir(sys.argv[1])
site = os.path.dirname(os.path.dirname(h5py.__file__))
L = C.CDLL(glob.glob(os.path.join(site, "h5py.libs", "libhdf5-*.so*"))[0])
for name, *args in [
    ("H5Rcreate_object", C.c_int64, C.c_char_p, C.c_int64, C.c_void_p),
    ("H5Rcreate_region", C.c_int64, C.c_char_p, C.c_int64, C.c_int64, C.c_void_p),
    ("H5Rcreate_attr", C.c_int64, C.c_char_p, C.c_char_p, C.c_int64, C.c_void_p),
    ("H5Dwrite", C.c_int64, C.c_int64, C.c_int64, C.c_int64, C.c_int64, C.c_void_p),
]:
    f = getattr(L, name)
    f.restype, f.argtypes = C.c_int, args
L.H5Dcreate2.restype = C.c_int64
L.H5Dcreate2.argtypes = [C.c_int64, C.c_char_p, C.c_int64, C.c_int64, C.c_int64, C.c_int64, C.c_int64]
STD_REF = C.c_int64.in_dll(L, "H5T_STD_REF_g").value


def ok(status):
    assert status >= 0, "libhdf5 refused"


def selections():
    """A selection of every form, of an array of 8 x 9."""
    S = h5py.h5s

    def new():
        return S.create_simple((8, 9))

    s = new()
    s.select_all()
    yield s
    s = new()
    s.select_none()
    yield s
    s = new()
    s.select_hyperslab((1, 2), (2, 3), (3, 2), (2, 1))
    yield s
    s = new()
    s.select_hyperslab((1, 2), (3, 3))
    s.select_hyperslab((3, 4), (4, 4), op=S.SELECT_OR)
    s.select_hyperslab((0, 8), (1, 1), op=S.SELECT_OR)
    yield s
    s = new()
    s.select_elements([(7, 1), (0, 0), (3, 8)])
    yield s


def old(f):
    f["data"] = np.arange(72).reshape(8, 9)
    f["group/inside"] = 1
    f.create_dataset("objects", data=np.array([f["data"].ref, f["group"].ref, f["group/inside"].ref, h5py.Reference()],
                                              dtype=h5py.ref_dtype))
    spaces = list(selections())
    d = f.create_dataset("regions", (len(spaces) + 1,), dtype=h5py.regionref_dtype)
    for i, s in enumerate(spaces):
        d[i] = h5py.h5r.create(f.id, b"data", h5py.h5r.DATASET_REGION, s)
    f["group"].attrs["object"] = f["data"].ref
    f["group"].attrs["in a compound"] = np.array([(f["data"].ref, 5)], dtype=[("r", h5py.ref_dtype), ("n", "i4")])


def new(f):
    f["data"] = np.arange(72).reshape(8, 9)
    f["data"].attrs["an attribute"] = 5
    f["group/inside"] = 1
    spaces = list(selections())
    n = len(spaces) + 4
    refs = (C.c_uint8 * (64 * n))()
    at = [C.addressof(refs) + 64 * i for i in range(n)]
    ok(L.H5Rcreate_object(f.id.id, b"data", 0, at[0]))
    ok(L.H5Rcreate_object(f.id.id, b"group", 0, at[1]))
    ok(L.H5Rcreate_attr(f.id.id, b"data", b"an attribute", 0, at[2]))
    for i, s in enumerate(spaces):
        ok(L.H5Rcreate_region(f.id.id, b"data", s.id, 0, at[3 + i]))
    space = h5py.h5s.create_simple((n,))
    d = L.H5Dcreate2(f.id.id, b"references", STD_REF, space.id, 0, 0, 0)
    ok(d)
    ok(L.H5Dwrite(d, STD_REF, 0, 0, 0, refs))


def virtual(f):
    f["numbers"] = np.arange(60, dtype="i4").reshape(6, 10)
    f["texts"] = np.array(["a%d" % i for i in range(10)], dtype=h5py.string_dtype())
    f.create_dataset("sequences", (4,), dtype=h5py.vlen_dtype("i2"))
    for i in range(4):
        f["sequences"][i] = np.arange(i)
    f["references"] = np.array([f["numbers"].ref, f["texts"].ref], dtype=h5py.ref_dtype)
    for name, n, dtype in [("texts", 10, h5py.string_dtype()), ("sequences", 4, h5py.vlen_dtype("i2")),
                           ("references", 2, h5py.ref_dtype)]:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        target = h5py.h5s.create_simple((2, n))
        target.select_hyperslab((1, 0), (1, n))
        dcpl.set_virtual(target, b".", name.encode(), h5py.h5s.create_simple((n,)))
        h5py.h5d.create(f.id, b"virtual " + name.encode(), h5py.h5t.py_create(dtype, logical=True),
                        h5py.h5s.create_simple((2, n)), dcpl)
    # Points, and a union of boxes, as source and as target.
    source = h5py.h5s.create_simple((6, 10))
    source.select_hyperslab((0, 0), (2, 2))
    source.select_hyperslab((4, 5), (1, 3), op=h5py.h5s.SELECT_OR)
    target = h5py.h5s.create_simple((5, 5))
    target.select_hyperslab((1, 1), (1, 4))
    target.select_hyperslab((3, 0), (1, 3), op=h5py.h5s.SELECT_OR)
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_fill_value(np.array(-7, dtype="i4"))
    dcpl.set_virtual(target, b".", b"numbers", source)
    h5py.h5d.create(f.id, b"virtual boxes", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((5, 5)), dcpl)
    try:
        source = h5py.h5s.create_simple((6, 10))
        source.select_elements([(5, 9), (0, 1), (2, 2)])
        target = h5py.h5s.create_simple((5, 5))
        target.select_elements([(4, 4), (0, 0), (2, 3)])
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_virtual(target, b".", b"numbers", source)
        h5py.h5d.create(f.id, b"virtual points", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((5, 5)), dcpl)
    except (ValueError, RuntimeError):
        pass  # a libhdf5 that maps no points


for bound in ("earliest", "v110", "latest"):
    with h5py.File("old_%s.h5" % bound, "w", libver=(bound, "latest")) as f:
        old(f)
for bound in ("v112", "latest"):
    with h5py.File("new_%s.h5" % bound, "w", libver=(bound, "latest")) as f:
        new(f)
for bound in ("v110", "latest"):
    with h5py.File("virtual_%s.h5" % bound, "w", libver=(bound, "latest")) as f:
        virtual(f)
sys.stdout.flush()
os._exit(0)
