"""make_kinds.py FOLDER: kinds.h5 holds every kind of object; plain.h5 only those that h5dump 1.10 prints without loss."""
import os
import sys

import h5py
import numpy as np


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


for name, fill in [("plain", plain), ("kinds", kinds)]:
    with h5py.File(os.path.join(sys.argv[1], name + ".h5"), "w", libver=("earliest", "v110")) as f:
        fill(f)
