"""make_files.py FOLDER DIGEST: files of every structure, made by h5py and, where it has no call, by the libhdf5 in it.

Each FOLDER/NAME.h5 gets a FOLDER/NAME.jsonl, the digest that DIGEST (a path of h5digest.py) makes of it.
"""
import contextlib
import ctypes as C
import importlib.util
import io
import os
import shutil
import sys

import h5py
import numpy as np
from h5py import h5p

folder, digest_path = sys.argv[1:3]
spec = importlib.util.spec_from_file_location("h5digest", digest_path)
digest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(digest)
L = digest.L
for name, *args in [
    ("H5Pset_deflate", C.c_int64, C.c_uint), ("H5Pset_shared_mesg_nindexes", C.c_int64, C.c_uint),
    ("H5Pset_shared_mesg_index", C.c_int64, C.c_uint, C.c_uint, C.c_uint),
    ("H5Pset_shared_mesg_phase_change", C.c_int64, C.c_uint, C.c_uint),
    ("H5Pset_sym_k", C.c_int64, C.c_uint, C.c_uint), ("H5Pset_istore_k", C.c_int64, C.c_uint),
    ("H5Pset_sizes", C.c_int64, C.c_size_t, C.c_size_t), ("H5Lregister", C.c_void_p),
    ("H5Lcreate_ud", C.c_int64, C.c_char_p, C.c_int, C.c_char_p, C.c_size_t, C.c_int64, C.c_int64),
    ("H5Oset_comment", C.c_int64, C.c_char_p),
    ("H5Pset_file_space_strategy", C.c_int64, C.c_int, C.c_bool, C.c_uint64),
    ("H5Pset_file_space_page_size", C.c_int64, C.c_uint64),
    ("H5Pset_chunk_opts", C.c_int64, C.c_uint),
    ("H5Pset_mdc_image_config", C.c_int64, C.c_void_p),
    ("H5Pset_attr_phase_change", C.c_int64, C.c_uint, C.c_uint),
    ("H5Pset_link_phase_change", C.c_int64, C.c_uint, C.c_uint),
]:
    f = getattr(L, name)
    f.restype, f.argtypes = C.c_int, args

BOUNDS = {
    "earliest": (h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_V18),
    "v18": (h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18),
    "v110": (h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110),
    "v112": (h5py.h5f.LIBVER_V112, h5py.h5f.LIBVER_V112),
    "latest": (h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST),
}


def check(status):
    assert status >= 0, "libhdf5 refused"


class ImageConfig(C.Structure):
    _fields_ = [("version", C.c_int), ("generate", C.c_bool), ("resize", C.c_bool), ("ageout", C.c_int)]


def create(name, bound="latest", prepare=lambda fcpl: None, image=False):
    fcpl = h5p.create(h5p.FILE_CREATE)
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(*BOUNDS[bound])
    if image:
        check(L.H5Pset_mdc_image_config(fapl.id, C.byref(ImageConfig(1, True, False, -1))))
    prepare(fcpl)
    path = os.path.join(folder, name + ".h5")
    fid = h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl)
    return h5py.File(fid)


def gcpl(filtered=False, order=False, link_phase=None):
    p = h5p.create(h5p.GROUP_CREATE)
    if order:
        p.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        p.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    if filtered:
        check(L.H5Pset_deflate(p.id, 6))
    if link_phase:
        check(L.H5Pset_link_phase_change(p.id, *link_phase))
    return p


def group(parent, name, **options):
    lcpl = h5p.create(h5p.LINK_CREATE)
    return h5py.Group(h5py.h5g.create(parent.id, name.encode(), lcpl, gcpl(**options)))


def everything(f):
    """Links of every kind, attributes, datasets of every layout and many types."""
    g = f.create_group("a/b/c")
    f["soft"] = h5py.SoftLink("/a/b")
    f["dangling"] = h5py.SoftLink("/nowhere/at/all")
    f["external"] = h5py.ExternalLink("other.h5", "/x/y")
    f["hard"] = f["a/b"]
    f["b\u00fccher/\u6570\u636e"] = np.arange(3)
    g["cycle"] = f["/"]
    g.attrs["one"] = 1
    g.attrs["text"] = "t\u00e9xt"
    g.attrs["fixed"] = np.array([b"ab", b"cde"])
    g.attrs["empty"] = h5py.Empty("f4")
    g.attrs["zero"] = np.zeros((0, 3), "i2")
    f.create_dataset("scalar", data=3.5)
    f.create_dataset("null", data=h5py.Empty("i4"))
    f.create_dataset("contiguous", data=np.arange(12.0).reshape(3, 4), fillvalue=9)
    f.create_dataset("unlimited", shape=(3, 0), maxshape=(None, 5), chunks=(2, 5), dtype="u1")
    f.create_dataset("filtered", data=np.arange(100, dtype="i2").reshape(10, 10), chunks=(4, 3),
                     compression="gzip", shuffle=True, fletcher32=True, maxshape=(None, None))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((5,))
    h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I16BE, space, dcpl)
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_external(b"raw.bin", 16, 40)
    h5py.h5d.create(f.id, b"raw", h5py.h5t.IEEE_F64BE, space, dcpl)


def everything_limited(f):
    everything(f)
    del f["unlimited"]


def basic(f):
    g = f.create_group("a/b")
    f["soft"] = h5py.SoftLink("/a/b")
    f["external"] = h5py.ExternalLink("other.h5", "/x")
    for i in range(30):
        g["link %d" % i] = f["a"]
    g.attrs["text"] = "t\u00e9xt"
    f.create_dataset("contiguous", data=np.arange(12.0).reshape(3, 4), fillvalue=9)
    d = f.create_dataset("filtered", data=np.arange(99, dtype="i2").reshape(9, 11), chunks=(4, 3), compression="gzip")
    for i in range(12):
        d.attrs["attribute %d" % i] = i


def deep_heap(f):
    """Links whose messages fill a fractal heap until its table holds tables."""
    g = group(f, "deep")
    for i in range(4000):
        g["link %d" % i] = h5py.SoftLink("/%0300d" % i)


def types(f):
    """Every class of datatype."""
    T = h5py.h5t
    space = h5py.h5s.create_simple((2,))

    def put(name, t):
        h5py.h5d.create(f.id, name.encode(), t, space)
        t = t.copy()
        t.commit(f.id, ("type of " + name).encode())
        if t.get_size() < 1000:
            h5py.h5a.create(f.id, ("attribute " + name).encode(), t, space)

    odd = T.STD_I32BE.copy()
    odd.set_precision(20)
    odd.set_offset(3)
    odd.set_pad(T.PAD_ONE, T.PAD_ZERO)
    put("odd", odd)
    put("f16", T.IEEE_F16LE.copy())
    half = T.IEEE_F32LE.copy()
    half.set_fields(15, 7, 8, 0, 7)
    half.set_precision(16)
    half.set_size(2)
    half.set_ebias(127)
    put("bfloat16", half)
    put("vax", T.VAX_F64.copy()) if hasattr(T, "VAX_F64") else None
    put("bits", T.STD_B16BE.copy())
    put("time", T.UNIX_D32LE.copy())
    opaque = T.create(T.OPAQUE, 7)
    opaque.set_tag(b"a \"tag\"")
    put("opaque", opaque)
    s = T.C_S1.copy()
    s.set_size(9)
    s.set_strpad(T.STR_SPACEPAD)
    s.set_cset(T.CSET_UTF8)
    put("string", s)
    v = T.C_S1.copy()
    v.set_size(T.VARIABLE)
    put("vstring", v)
    put("object", T.STD_REF_OBJ.copy())
    put("region", T.STD_REF_DSETREG.copy())
    put("enum", T.py_create(h5py.enum_dtype({"RED": 0, "GR\u00dcN": 7, "b": -3}, "i2"), logical=True))
    put("bool", T.py_create(np.dtype("?"), logical=True))
    put("vlen", T.py_create(h5py.vlen_dtype("f4"), logical=True))
    inner = np.dtype([("x", ">f8", (2, 3)), ("y", h5py.string_dtype()), ("z", "S4")])
    put("compound", T.py_create(np.dtype([("i", "i1"), ("in", inner, 4), ("v", h5py.vlen_dtype(np.dtype([("q", "u2")])))]),
                                logical=True))
    put("array", T.array_create(T.STD_U8LE, (70000,)))
    put("complex_pair", T.py_create(np.dtype("c8"), logical=True))
    # What h5py knows no name of, libhdf5 makes.
    std = C.c_int64.in_dll(L, "H5T_STD_REF_g").value
    L.H5Dcreate2.restype = C.c_int64
    L.H5Dcreate2.argtypes = [C.c_int64, C.c_char_p, C.c_int64, C.c_int64, C.c_int64, C.c_int64, C.c_int64]
    if f.libver[1] not in ("v108", "v110"):
        check(L.H5Dcreate2(f.id.id, b"std", std, space.id, 0, 0, 0))


def native_complex(f):
    L.H5Tcomplex_create.restype = C.c_int64
    L.H5Tcomplex_create.argtypes = [C.c_int64]
    t = L.H5Tcomplex_create(C.c_int64.in_dll(L, "H5T_IEEE_F32BE_g").value)
    check(t)
    L.H5Dcreate2.restype = C.c_int64
    L.H5Dcreate2.argtypes = [C.c_int64, C.c_char_p, C.c_int64, C.c_int64, C.c_int64, C.c_int64, C.c_int64]
    space = h5py.h5s.create_simple((4,))
    check(L.H5Dcreate2(f.id.id, b"complex", t, space.id, 0, 0, 0))


def many_links(f, n, **options):
    g = group(f, "many", **options)
    for i in range(n):
        name = "link %d" % (i * 7919 % n)
        if i % 3 == 0:
            g[name] = h5py.SoftLink("/target of %d" % i)
        elif i % 3 == 1:
            g[name] = f["/"]
        else:
            g[name] = h5py.ExternalLink("file%d.h5" % i, "/o")


def many_attributes(f, n, **options):
    g = group(f, "g", **options)
    d = g.create_dataset("d", data=1)
    for o in (g, d):
        for i in range(n):
            o.attrs["attribute %d" % (i * 7919 % n)] = np.arange(i % 9)
    g.attrs["large"] = np.arange(9000, dtype="f8")
    g.attrs["larger"] = np.arange(99000, dtype="u4")


def committed(f):
    f["type"] = np.dtype([("a", "i4"), ("b", "f8")])
    d = f.create_dataset("d", shape=(3,), dtype=f["type"])
    d.attrs.create("shared", np.zeros(2, f["type"].dtype), dtype=f["type"])
    f["type"].attrs["on a type"] = 5


def shared_messages(f):
    for i in range(40):
        d = f.create_dataset("d%d" % i, shape=(i // 8 + 1, 7), dtype=np.dtype([("a long name of a member", "i4"), ("b", "f8")]),
                             chunks=(1, 7), compression="gzip", fillvalue=None)
        d.attrs["the same attribute everywhere"] = np.arange(20)
        d.attrs["another %d" % (i // 8)] = "text %d" % (i // 8)
        d.attrs["scalar"] = 1


def sohm(nindexes, list_max, btree_min, least):
    def prepare(fcpl):
        check(L.H5Pset_shared_mesg_nindexes(fcpl.id, nindexes))
        if nindexes == 1:
            check(L.H5Pset_shared_mesg_index(fcpl.id, 0, 0x1F, least))
        else:
            for i, kinds in enumerate([0x02, 0x01 | 0x08, 0x10, 0x04]):
                check(L.H5Pset_shared_mesg_index(fcpl.id, i, kinds, least))
        check(L.H5Pset_shared_mesg_phase_change(fcpl.id, list_max, btree_min))
    return prepare


class LClass(C.Structure):
    _fields_ = [("version", C.c_int), ("id", C.c_int), ("comment", C.c_char_p)] + [
        (n, C.c_void_p) for n in ("create", "move", "copy", "trav", "del", "query")]


TRAVERSE = C.CFUNCTYPE(C.c_int64, C.c_char_p, C.c_int64, C.c_void_p, C.c_size_t, C.c_int64, C.c_int64)
NOWHERE = TRAVERSE(lambda *_: -1)


def user_defined(f):
    c = LClass(1, 187, b"test")
    c.trav = C.cast(NOWHERE, C.c_void_p)
    check(L.H5Lregister(C.byref(c)))
    check(L.H5Lcreate_ud(f.id.id, b"user", 187, b"abc\0def", 7, 0, 0))


def headers(f):
    """Continuations, times, comments, phases."""
    for i in range(3):
        g = group(f, "g%d" % i, order=i == 1)
        check(L.H5Oset_comment(g.id.id, b"a comment of %d" % i))
        for j in range(7):
            g.attrs["grows %d" % j] = np.arange(j * 30)
        for j in range(7):
            del g.attrs["grows %d" % j]
        for j in range(5):
            g.attrs["again %d" % j] = np.arange(j * 17)
    f.create_dataset("timed", data=np.arange(3), track_times=True)
    f.create_dataset("untimed", data=np.arange(3), track_times=False)


def edges(f):
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((4, 5))
    dcpl.set_deflate(3)
    if f.libver[1] != "v108":
        check(L.H5Pset_chunk_opts(dcpl.id, 2))
    h5py.h5d.create(f.id, b"edges", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((9, 9)), dcpl)
    for name, rows, chunk in [("three", 100000, (70000, 1)), ("two", 1000, (300, 2)), ("one", 40, (1, 1))]:
        f.create_dataset(name, shape=(rows, 3), chunks=chunk, dtype="u1", maxshape=(None, 3))
        f.create_dataset(name + " fixed", shape=(rows, 3), chunks=chunk, dtype="u1")
        f.create_dataset(name + " two", shape=(rows, 3), chunks=chunk, dtype="u1", maxshape=(None, None))
    f.create_dataset("single", data=np.arange(90).reshape(9, 10), chunks=(9, 10), compression="gzip")


class Lines(io.StringIO):
    def reconfigure(self, **_):
        pass


FILES = []
IMAGES = []


def file(name, fill, bound="latest", prepare=lambda fcpl: None, after=lambda path: None):
    f = create(name, bound, prepare)
    fill(f)
    f.close()
    path = os.path.join(folder, name + ".h5")
    after(path)
    FILES.append(path)


def images(name, fill):
    """A file with a metadata cache image, which libhdf5 2.0 writes but does not read: the digest is that of the same
    file without an image."""
    for image in (False, True):
        f = create(name + "_image" * image, "latest", image=image)
        fill(f)
        f.close()
    FILES.append(os.path.join(folder, name + ".h5"))
    IMAGES.append(os.path.join(folder, name))


def in_front(n):
    """Puts n bytes in front, so that the signature is not where the stored base address says."""
    def after(path):
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(b"x" * n + data)
    return after


for bound in BOUNDS:
    file("everything_" + bound, everything, bound)
    file("types_" + bound, types, bound)
    file("edges_" + bound, edges, bound)
file("complex", native_complex)
for size in (4, 8):
    for length in (4, 8):
        prepare = lambda p: check(L.H5Pset_sizes(p.id, size, length))  # noqa: E731
        file("sizes_%d_%d" % (size, length), everything, "earliest", prepare)
        # With lengths of 4 bytes libhdf5 does not open again what has one dimension without limit.
        file("sizes_new_%d_%d" % (size, length), everything_limited if length == 4 else everything, "latest", prepare)
        file("sizes_many_%d_%d" % (size, length), lambda f: (many_links(f, 300), many_attributes(f, 50)), "latest", prepare)
        file("sizes_old_many_%d_%d" % (size, length), lambda f: (many_links(f, 300), many_attributes(f, 50)), "v18", prepare)
for size in (2, 4, 8):
    for length in (2, 4, 8):
        for bound in ("earliest", "latest"):
            file("basic_%s_%d_%d" % (bound, size, length), basic, bound, lambda p: check(L.H5Pset_sizes(p.id, size, length)))
for length in (2, 4, 8):
    file("basic_wide_16_%d" % length, basic, "latest", lambda p: check(L.H5Pset_sizes(p.id, 16, length)))
file("links_deep", deep_heap)
for block in (512, 4096):
    file("userblock_%d" % block, everything, "earliest", lambda p: p.set_userblock(block))
    file("userblock_new_%d" % block, everything, "latest", lambda p: p.set_userblock(block))
file("moved", everything, "earliest", after=in_front(2048))
file("moved_new", everything, "latest", after=in_front(512))
file("moved_block", everything, "latest", lambda p: p.set_userblock(1024), in_front(1024))
file("ranks", lambda f: many_links(f, 400), "earliest", lambda p: check(L.H5Pset_sym_k(p.id, 2, 1)))
file("ranks_chunk", everything, "earliest", lambda p: (check(L.H5Pset_istore_k(p.id, 5)), check(L.H5Pset_sym_k(p.id, 3, 2))))
file("ranks_new", lambda f: many_links(f, 400), "latest", lambda p: check(L.H5Pset_sym_k(p.id, 2, 1)))
for n in (1, 7, 9, 100, 5000):
    file("links_%d" % n, lambda f: many_links(f, n))
    file("links_old_%d" % n, lambda f: many_links(f, n), "earliest")
file("links_ordered", lambda f: many_links(f, 700, order=True))
file("links_filtered", lambda f: many_links(f, 3000, filtered=True))
file("links_phase", lambda f: many_links(f, 20, link_phase=(0, 0)))
for n in (3, 50, 1500):
    file("attributes_%d" % n, lambda f: many_attributes(f, n))
file("attributes_ordered", lambda f: many_attributes(f, 300, order=True))
file("attributes_filtered", lambda f: many_attributes(f, 300, filtered=True))
for bound in BOUNDS:
    file("committed_" + bound, committed, bound)
file("user_defined", user_defined)
for bound in ("earliest", "latest"):
    file("headers_" + bound, headers, bound)
    file("shared_list_" + bound, shared_messages, bound, sohm(1, 500, 400, 50))
    file("shared_btree_" + bound, shared_messages, bound, sohm(1, 2, 1, 50))
    file("shared_four_" + bound, shared_messages, bound, sohm(4, 3, 2, 20))
    file("shared_tiny_" + bound, shared_messages, bound, sohm(1, 0, 0, 0))
for strategy in range(4):
    for persist in (False, True):
        file("space_%d_%d" % (strategy, persist), everything, "latest",
             lambda p: check(L.H5Pset_file_space_strategy(p.id, strategy, persist, 1)))
file("paged", lambda f: (many_links(f, 200), many_attributes(f, 30)), "latest",
     lambda p: (check(L.H5Pset_file_space_strategy(p.id, 1, True, 1)), check(L.H5Pset_file_space_page_size(p.id, 1024))))

images("plain", everything)
images("plain_links", lambda f: (many_links(f, 300), many_attributes(f, 40)))
images("plain_headers", headers)

for path in FILES:
    out = Lines()
    with contextlib.redirect_stdout(out):
        digest.main(["", "--storage", path])
    with open(path[:-3] + ".jsonl", "w") as f:
        f.write(out.getvalue())
for path in IMAGES:
    shutil.copy(path + ".jsonl", path + "_image.jsonl")
print(len(FILES) + len(IMAGES))
sys.stdout.flush()
os._exit(0)
