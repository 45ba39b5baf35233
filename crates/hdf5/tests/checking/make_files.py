"""make_files.py FOLDER: small files in which every structure with a checksum occurs, made by h5py and the libhdf5 in it.

FOLDER/NAME.h5 gets a FOLDER/NAME.json: addresses of object headers with their paths, and chunks under Fletcher-32.
"""
import ctypes as C
import glob
import json
import os
import sys

import h5py
import numpy as np
from h5py import h5p

folder = sys.argv[1]
site = os.path.dirname(os.path.dirname(h5py.__file__))
L = C.CDLL(glob.glob(os.path.join(site, "h5py.libs", "libhdf5-*.so*"))[0])
for name, *args in [
    ("H5Pset_deflate", C.c_int64, C.c_uint), ("H5Pset_shared_mesg_nindexes", C.c_int64, C.c_uint),
    ("H5Pset_shared_mesg_index", C.c_int64, C.c_uint, C.c_uint, C.c_uint),
    ("H5Pset_shared_mesg_phase_change", C.c_int64, C.c_uint, C.c_uint),
    ("H5Pset_link_phase_change", C.c_int64, C.c_uint, C.c_uint),
    ("H5Oset_comment", C.c_int64, C.c_char_p),
    ("H5Pset_file_space_strategy", C.c_int64, C.c_int, C.c_bool, C.c_uint64),
    ("H5Pset_file_space_page_size", C.c_int64, C.c_uint64),
    ("H5Pset_mdc_image_config", C.c_int64, C.c_void_p),
]:
    f = getattr(L, name)
    f.restype, f.argtypes = C.c_int, args


def ok(status):
    assert status >= 0, "libhdf5 refused"


class ImageConfig(C.Structure):
    _fields_ = [("version", C.c_int), ("generate", C.c_bool), ("resize", C.c_bool), ("ageout", C.c_int)]


def file(name, fill, prepare=lambda fcpl: None, image=False, bound=h5py.h5f.LIBVER_LATEST):
    fcpl = h5p.create(h5p.FILE_CREATE)
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(bound, h5py.h5f.LIBVER_LATEST)
    if image:
        ok(L.H5Pset_mdc_image_config(fapl.id, C.byref(ImageConfig(1, True, False, -1))))
    prepare(fcpl)
    path = os.path.join(folder, name + ".h5")
    f = h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl))
    fill(f)
    headers = {h5py.h5o.get_info(f.id).addr: "/"}
    chunks = []

    def visit(name, o):
        headers.setdefault(h5py.h5o.get_info(o.id).addr, "/" + name)
        if isinstance(o, h5py.Dataset) and o.fletcher32:
            for i in range(o.id.get_num_chunks()):
                c = o.id.get_chunk_info(i)
                chunks.append(["/" + name, c.byte_offset, c.size])

    f.visititems(visit)
    f.close()
    with open(path[:-3] + ".json", "w") as out:
        json.dump({"headers": [[a, p] for a, p in headers.items()], "chunks": chunks}, out)


def group(parent, name, filtered=False, order=False, dense=False):
    p = h5p.create(h5p.GROUP_CREATE)
    if order:
        p.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        p.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    if filtered:
        ok(L.H5Pset_deflate(p.id, 6))
    if dense:
        ok(L.H5Pset_link_phase_change(p.id, 0, 0))
    return h5py.Group(h5py.h5g.create(parent.id, name.encode(), h5p.create(h5p.LINK_CREATE), p))


def headers(f):
    for i in range(3):
        g = group(f, "group %d" % i, order=i == 1)
        d = g.create_dataset("data", data=np.arange(3), track_times=True)
        for j in range(7):
            d.attrs["attribute %d" % j] = np.arange(j * 9)
        ok(L.H5Oset_comment(d.id.id, b"a comment"))
    f["type"] = np.dtype([("a", "i4"), ("b", "f8")])
    f["of a type"] = h5py.Empty(f["type"].dtype)


def links(f):
    g = group(f, "many", order=True, dense=True)
    for i in range(90):
        g["link %d with a name that takes room" % i] = h5py.SoftLink("/%0120d" % i)
    g.create_dataset("one object", data=7)


def attributes(f):
    d = group(f, "group", order=True).create_dataset("d", data=1)
    for o in (f["group"], d):
        for i in range(40):
            o.attrs["attribute %d" % i] = np.arange(i % 9)
    f["group"].attrs["huge"] = np.arange(9000, dtype="u1")


def filtered(f):
    g = group(f, "filtered", filtered=True, dense=True)
    for i in range(60):
        g["link %d" % i] = h5py.SoftLink("/target %d" % i)


def shared(f):
    for i in range(12):
        d = f.create_dataset("d%d" % i, shape=(i // 4 + 1, 7), dtype=np.dtype([("a long name of a member", "i4"), ("b", "f8")]))
        d.attrs["the same attribute everywhere"] = np.arange(20)
        d.attrs["another %d" % (i // 4)] = "text %d" % (i // 4)


def sohm(nindexes, list_max, btree_min):
    def prepare(fcpl):
        ok(L.H5Pset_shared_mesg_nindexes(fcpl.id, nindexes))
        for i, kinds in enumerate([0x1F] if nindexes == 1 else [0x02 | 0x01 | 0x08, 0x10]):
            ok(L.H5Pset_shared_mesg_index(fcpl.id, i, kinds, 20))
        ok(L.H5Pset_shared_mesg_phase_change(fcpl.id, list_max, btree_min))
    return prepare


def holes(f):
    for i in range(9):
        f.create_dataset("d%d" % i, data=np.arange(50 * i + 1))
    for i in (1, 2, 5, 7):
        del f["d%d" % i]


def space(strategy, page=None):
    def prepare(fcpl):
        ok(L.H5Pset_file_space_strategy(fcpl.id, strategy, True, 1))
        if page:
            ok(L.H5Pset_file_space_page_size(fcpl.id, page))
    return prepare


def indexes(f):
    def d(name, shape, chunks, maxshape=None, **more):
        return f.create_dataset(name, shape=shape, chunks=chunks, maxshape=maxshape, dtype="u1", **more)

    d("fixed array", (20, 3), (1, 3))[:] = 1
    d("filtered fixed array", (20, 30), (5, 30), fletcher32=True, compression="gzip")[:] = np.arange(30)
    d("paged fixed array", (1100,), (1,))[::10] = 3
    grows = d("extensible array", (200000, 2), (1, 2), (None, 2))
    grows[0:40] = 5
    grows[140000] = 5
    d("filtered extensible array", (40, 4), (4, 4), (None, 4), fletcher32=True, shuffle=True)[:] = 9
    d("tree", (60, 60), (2, 2), (None, None))[:] = 4
    d("filtered tree", (6, 6), (3, 3), (None, None), fletcher32=True)[:] = 6
    d("single", (9, 9), (9, 9), fletcher32=True)[:] = 8


def old(f):
    d = f.create_dataset("a/b", data=np.arange(400, dtype="i2").reshape(20, 20), chunks=(5, 7), fletcher32=True, compression="gzip")
    d.attrs["texts"] = np.array(["one", "zw\u00f6lf"], dtype=h5py.string_dtype())


def virtual(f):
    f.create_dataset("source", data=np.arange(20))
    layout = h5py.VirtualLayout(shape=(4, 20), dtype="i8")
    for i in range(4):
        layout[i] = h5py.VirtualSource(".", "source", shape=(20,))
    f.create_virtual_dataset("virtual", layout, fillvalue=-1)


file("headers", headers)
file("links", links)
file("attributes", attributes)
file("filtered", filtered)
file("shared_list", shared, sohm(1, 500, 400))
file("shared_tree", shared, sohm(2, 2, 1))
file("holes", holes, space(0))
file("paged", holes, space(1, 512))
file("indexes", indexes)
file("old", old, bound=h5py.h5f.LIBVER_EARLIEST)
file("virtual", virtual)
file("image", headers, image=True)
sys.stdout.flush()
os._exit(0)
