"""Writes with libhdf5 what encodings.rs wrote, and compares the headers of the same objects.

`encodings.py BOUND OURS THEIRS`. Versions, flags and bodies of messages must be the same, addresses and stored sizes
aside; what differs is printed.
"""
import ctypes
import re
import struct
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

BOUNDS = {"earliest": 0, "v18": 1, "v110": 2, "v112": 3, "v114": 4, "v200": 5}
BOUND, OURS, THEIRS = sys.argv[1:]
NIL, DATASPACE, OLD_FILL, LAYOUT, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE = 0, 1, 4, 8, 12, 16, 17
# Of these the addresses are the file's own: link info, link, external files, attribute info.
PLACES = {0x02, 0x06, 0x07, 0x15}


def write():
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(BOUNDS[BOUND], 5)
    with h5py.File(h5py.h5f.create(THEIRS.encode(), h5py.h5f.ACC_TRUNC, h5p.create(h5p.FILE_CREATE), fapl)) as f:
        def dataset(name, t, shape, maximum=None, chunk=None, data=None, tune=None):
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_obj_track_times(False)
            if chunk:
                p.set_chunk(chunk)
            if tune:
                tune(p)
            space = h5s.create_simple(shape, maximum) if shape else h5s.create(h5s.SCALAR)
            d = h5d.create(f.id, name.encode(), t, space, dcpl=p)
            if data is not None:
                d.write(h5s.ALL, h5s.ALL, np.asarray(data))
            return d

        def zipped(p):
            p.set_shuffle(), p.set_deflate(4), p.set_fletcher32()

        def early(p):
            p.set_alloc_time(h5d.ALLOC_TIME_EARLY)

        U = h5s.UNLIMITED
        i4, f8 = h5t.STD_I32LE, h5t.IEEE_F64LE
        n = np.arange(1, 101, dtype="<i4")
        dataset("contiguous", i4, (10, 10), data=n.reshape(10, 10))
        dataset("unwritten", f8, (3, 4))
        dataset("scalar", f8, (), data=np.float64(2.5))
        dataset("compact", i4, (5,), data=n[:5], tune=lambda p: p.set_layout(h5d.COMPACT))
        dataset("filled", i4, (5,), tune=lambda p: p.set_fill_value(np.array(7, "<i4")))
        dataset("single", i4, (10, 10), chunk=(10, 10), data=n.reshape(10, 10))
        dataset("single_zipped", i4, (10, 10), chunk=(10, 10), data=n.reshape(10, 10), tune=zipped)
        dataset("implicit", i4, (100,), chunk=(7,), data=n, tune=early)
        dataset("fixed", i4, (100,), chunk=(7,), data=n)
        dataset("fixed_zipped", i4, (100,), (200,), chunk=(7,), data=n, tune=zipped)
        dataset("growing", i4, (100,), (U,), chunk=(7,), data=n, tune=zipped)
        dataset("growing_twice", i4, (10, 10), (U, U), chunk=(3, 4), data=n.reshape(10, 10))
        dataset("wide", i4, (100,), (U,), chunk=(70_000,), data=n)
        dataset("wider", h5t.STD_U8LE, (10,), (U,), chunk=(300,), data=np.arange(10, dtype="u1"))
        enum = h5t.enum_create(h5t.STD_I8LE)
        enum.enum_insert(b"FALSE", 0), enum.enum_insert(b"TRUE", 1)
        complex_ = h5t.create(h5t.COMPOUND, 16)
        complex_.insert(b"r", 0, f8), complex_.insert(b"i", 8, f8)
        text = h5t.C_S1.copy()
        text.set_size(h5t.VARIABLE), text.set_cset(h5t.CSET_UTF8)
        types = {"enum": enum, "compound": complex_, "text": text, "vlen": h5t.vlen_create(i4),
                 "array": h5t.array_create(f8, (2, 3)), "f16": h5t.IEEE_F16BE, "reference": h5t.STD_REF_OBJ}
        for name, t in types.items():
            dataset("type_" + name, t, (2,))
            t = t.copy()
            t.commit(f.id, ("committed_" + name).encode())
            dataset("of_" + name, t, (2,))
        null = h5d.create(f.id, b"null", i4, h5s.create(h5s.NULL), dcpl=plain())
        for count in (3, 20):
            g = f.create_group("links_%d" % count)
            for i in range(count):
                g["soft_%d" % i] = h5py.SoftLink("/scalar")
            d = dataset("attributes_%d" % count, i4, (2,))
            for i in range(count):
                attribute(d, b"number %d" % i, i4, (), np.array(i, "<i4"))
        attribute(null, b"three", f8, (3,), np.arange(3, dtype="<f8"))
        fixed = h5t.C_S1.copy()
        fixed.set_size(5), fixed.set_strpad(h5t.STR_NULLPAD)
        attribute(null, b"fixed", fixed, (), np.array(b"fixed"))
        attribute(null, "größe".encode(), i4, (), np.array(1, "<i4"), utf8=True)


def plain():
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_obj_track_times(False)
    return p


def attribute(d, name, t, shape, value, utf8=False):
    space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
    # h5py makes every attribute's name UTF-8; the names here are as libhdf5 makes them by default.
    hid = ctypes.c_int64
    L.H5Acreate2.restype = L.H5Pcreate.restype = hid
    p = hid(L.H5Pcreate(hid.in_dll(L, "H5P_CLS_ATTRIBUTE_CREATE_ID_g")))
    assert L.H5Pset_char_encoding(p, 1 if utf8 else 0) >= 0
    a = L.H5Acreate2(hid(d.id), name, hid(t.id), hid(space.id), p, hid(0))
    assert a > 0
    value = np.ascontiguousarray(value)
    assert L.H5Awrite(hid(a), hid(t.id), value.ctypes.data_as(ctypes.c_void_p)) >= 0
    L.H5Aclose(hid(a))
    L.H5Pclose(p)


def library():
    for line in open("/proc/self/maps"):
        m = re.search(r"(/\S*/libhdf5[-.][^/\s]*)$", line)
        if m:
            return ctypes.CDLL(m.group(1))


def messages(data, at):
    """Version of a header, its flags, its count of links (version 1), and its messages: type, flags, body."""
    links = None
    if data[at] == 1:
        links, size = struct.unpack_from("<II", data, at + 4)
        blocks, version, flags, tracked = [(at + 16, at + 16 + size)], 1, 0, 0
    else:
        flags, version = data[at + 5], 2
        p = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        size = int.from_bytes(data[p:p + width], "little")
        blocks, tracked = [(p + width, p + width + size)], 2 if flags & 4 else 0
    found = []
    while blocks:
        p, end = blocks.pop(0)
        while p + (8 if version == 1 else 4 + tracked) <= end:
            if version == 1:
                kind, length, flag = struct.unpack_from("<HHB", data, p)
                p += 8
            else:
                kind, length, flag = struct.unpack_from("<BHB", data, p)
                p += 4 + tracked
            body = data[p:p + length]
            p += length
            if kind == CONTINUATION:
                a, n = struct.unpack_from("<QQ", body)
                blocks.append((a, a + n) if version == 1 else (a + 4, a + n - 4))
            elif kind not in (NIL, OLD_FILL):
                # The old fill value is for releases before 1.6.
                found.append((kind, flag, body))
    # Times (0x20) and the width of the size (3) follow from how the header came about.
    return version, flags & ~0x23, links, found


def without_maximum(body):
    """A dataspace: maximum extents that are the extents may be left out."""
    at = 8 if body[0] == 1 else 4
    half = (len(body) - at) // 2
    if not body[2] or body[at:at + half] != body[at + half:]:
        return body
    return body[:2] + b"\0" + body[3:at + half]


def masked(kind, flag, body):
    if kind == SYMBOL_TABLE:
        return (kind, flag)
    if kind in PLACES:
        return (kind, flag, body[:2].hex())
    if kind == DATASPACE:
        body = without_maximum(body)
    if kind == ATTRIBUTE:
        pad = (lambda n: -(-n // 8) * 8) if body[0] == 1 else (lambda n: n)
        name, datatype, space = struct.unpack_from("<3H", body, 2)
        at = (9 if body[0] == 3 else 8) + pad(name) + pad(datatype)
        body = body[:6] + body[8:at] + without_maximum(body[at:at + space]) + body[at + pad(space):]
    if flag & 2:
        return (kind, flag, body[:2].hex())
    if kind == LAYOUT:
        version, cls = body[0], body[1]
        if version == 3 and cls == 1:
            body = body[:2] + body[10:18]
        elif version == 3 and cls == 2:
            body = body[:3] + body[11:]
        elif cls == 2:
            # The address stands last, in front of it for one filtered chunk its size and mask.
            rank, width = body[3], body[4]
            body = body[:5 + rank * width + (1 if body[2] & 2 else len(body) - 8 - 5 - rank * width)]
    return (kind, flag, bytes(body).rstrip(b"\0").hex())


def facts(path):
    data = open(path, "rb").read()
    out = {"superblock": [data[8]]}
    with h5py.File(path, "r") as f:
        names = ["/"]
        f.visit(names.append)
        for name in names:
            address = h5py.h5o.get_info(f[name].id).addr
            version, flags, links, found = messages(data, address)
            out[name] = [("header", version, flags, links)] + sorted(masked(*m) for m in found)
    return out


L = library()
write()
ours, theirs = facts(OURS), facts(THEIRS)
for name in sorted(set(ours) | set(theirs)):
    a, b = ours.get(name), theirs.get(name)
    if a != b:
        print(BOUND, name)
        print("   ours  ", [m for m in a or [] if m not in (b or [])])
        print("   theirs", [m for m in b or [] if m not in (a or [])])
print(len(ours))
