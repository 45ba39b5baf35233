"""Judges the files of everything.rs: lines `name TAB bound TAB path` on stdin, `everything.py H5DIGEST`."""
import contextlib
import ctypes
import hashlib
import importlib.util
import io
import json
import os
import shutil
import struct
import sys

os.environ["HDF5_EXTFILE_PREFIX"] = "${ORIGIN}"
import h5py  # noqa: E402
import numpy as np  # noqa: E402
from h5py import h5d, h5t  # noqa: E402

spec = importlib.util.spec_from_file_location("h5digest", sys.argv[1])
h5digest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(h5digest)


class Text(io.StringIO):
    def reconfigure(self, **_):
        pass


def digest(f, path):
    """The line of an object in h5digest.py's output."""
    out = Text()
    with contextlib.redirect_stdout(out):
        h5digest.main(["h5digest.py", "--refs=path", f.filename])
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    return next(line for line in lines if line.get("path") == path)


def same(f, path, dtype, data):
    line = digest(f, path)
    assert line["dtype"] == dtype, line
    assert line["sha256"] == hashlib.sha256(data).hexdigest() and line["nbytes"] == len(data), line


def time(f):
    same(f, "/little", "time32le", struct.pack("<2I", 1, 1 << 24))
    # Big-endian elements are reversed.
    same(f, "/big", "time32be", struct.pack(">2I", 1, 1 << 24))


def bits(f):
    t = f["field"].id.get_type()
    assert t.get_class() == h5t.BITFIELD
    same(f, "/field", "b8(prec=5,off=2,lopad=0,hipad=1)", b"\x7c\x10")
    assert list(f["nbit"][()]) == [1, 2, -1, 2047]


def halves(f):
    assert f["half"].dtype == "<f2" and list(f["half"][()]) == [1, -2]
    t = f["brain"].id.get_type()
    assert t.get_fields() == (15, 7, 8, 0, 7) and t.get_ebias() == 127 and t.get_size() == 2
    wide = np.empty(2, "f4")
    f["brain"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, wide, mtype=h5t.NATIVE_FLOAT)
    assert list(wide) == [1, -2]


def complex(f):
    kind = h5t.COMPOUND if BOUND != "v200" else getattr(h5t, "COMPLEX", 11)
    assert f["c"].id.get_type().get_class() == kind
    assert f["c"].dtype == ">c8" and list(f["c"][()]) == [1 - 2j, 0.5 + 3j]


def opaque(f):
    t = f["o"].id.get_type()
    assert t.get_class() == h5t.OPAQUE and t.get_tag() == b"three"
    same(f, "/o", 'opaque3:"three"', b"abcdef")


def sequences(f):
    assert [v.tolist() for v in f["numbers"][()]] == [[1, 2], [], [65535]]
    assert [v.tolist() for v in f["numbers"].attrs["too"]] == [[7], [8, 9]]
    assert list(f["texts"].asstr()[()]) == ["a", "", "größer"]


def old_references(f):
    a, nothing, root = f["objects"][()]
    assert f[a] == f["d"] and not nothing and f[root] == f["/"]
    block, points = f["regions"][()]
    assert f["d"][block].tolist() == [[7, 8], [12, 13]] and f["d"][points].tolist() == [0, 19]


def new_references(f):
    text = lambda s: struct.pack("<Q", len(s)) + s
    data = b"\2" + text(b"/d") + b"\3" + text(b"/d") + struct.pack("<6Q", 6, 2, 1, 2, 2, 4)
    data += b"\4" + text(b"/d") + text(b"units") + b"\0"
    same(f, "/references", "ref(std)", data)


def committed(f):
    t = f["d"].id.get_type()
    assert t.committed() and f["types/pair"].attrs["of"] == "two"
    a = h5py.h5a.open(f["d"].id, b"a")
    assert a.get_type().committed() and f["d"].attrs["a"] == 1.5 - 1j
    # Each use counts as a link: none may take the datatype away with it.
    copy = f.filename + ".copy"
    shutil.copyfile(f.filename, copy)
    with h5py.File(copy, "r+") as g:
        assert h5py.h5o.get_info(g["types/pair"].id).rc == 3
        del g["d"].attrs["a"]
        assert h5py.h5o.get_info(g["types/pair"].id).rc == 2
        del g["d"]
        assert h5py.h5o.get_info(g["types/pair"].id).rc == 1 and g["types/pair"].dtype == "c16"


def spaces(f):
    assert f["scalar"][()] == 1 and f["null"].shape is None and f["zero"].shape == (0, 3)
    assert f["unlimited"].maxshape == (None, 3) and f["unlimited"].shape == (0, 3)
    assert f["both"].maxshape == (None, None) and f["both"][()].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert f["compact"].id.get_create_plist().get_layout() == h5d.COMPACT and f["compact"][()].tolist() == [[1, 2], [3, 4]]
    assert f["rank32"].ndim == 32 and f["rank32"][()].ravel()[0] == 5


def fills(f):
    for v in range(3):
        for t, time in enumerate((h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_NEVER, h5d.FILL_TIME_IFSET)):
            for a, allocation in enumerate((h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR)):
                d = f["%d%d%d" % (v, t, a)]
                p = d.id.get_create_plist()
                state = p.fill_value_defined()
                assert state == (h5d.FILL_VALUE_UNDEFINED, h5d.FILL_VALUE_DEFAULT, h5d.FILL_VALUE_USER_DEFINED)[v], state
                assert (p.get_fill_time(), p.get_alloc_time()) == (time, allocation), d.name
                if v == 2 and t != 1:
                    assert list(d[()]) == [9, 9, 9]


def links(f):
    assert f["hard"] == f["g/d"] and f["soft"][0] == 3
    assert f.get("dangling", getlink=True).path == "nowhere"
    e = f.get("external", getlink=True)
    assert (e.filename, e.path) == ("other.h5", "/x")
    assert f.id.links.get_info(b"own").type == 77
    assert len(f["dense"]) == 20 and h5py.h5o.get_info(f["g/d"].id).rc == 22


def order(f):
    def names(g):
        found = []
        g.id.links.iterate(lambda n: found.append(n.decode()) and None, idx_type=h5py.h5.INDEX_CRT_ORDER)
        return found
    assert names(f["indexed"]) == ["b", "c", "a"] and names(f["tracked"]) == ["c", "a", "b"]
    for name, flags in (("indexed", 3), ("tracked", 1), ("none", 0)):
        p = f[name].id.get_create_plist()
        assert p.get_link_creation_order() == flags and p.get_attr_creation_order() == flags, name
        assert sorted(f[name].attrs) == ["a", "b", "c"]
    assert list(f["indexed"].attrs) == ["c", "a", "b"]


def comments(f):
    text = ctypes.create_string_buffer(64)
    d = f["d"]
    length = h5digest.L.H5Oget_comment(ctypes.c_int64(d.id.id), text, ctypes.c_size_t(64))
    assert (length, text.value) == (9, b"a comment"), (length, text.value)


def direct_chunks(f):
    assert f["d"][()].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert f["d"].id.get_chunk_info_by_coord((0,)).filter_mask == 1


def elsewhere(f):
    assert f["virtual"].is_virtual and f["virtual"][()].tolist() == [2, 3, 4, -1, -1]
    assert bytes(f["external"][()]) == b"abc"


def user_block(f):
    assert f.userblock_size == 512 and f["d"][0] == 3
    assert open(f.filename, "rb").read(8) == b"\0\0\0mine\0"


n = 0
for line in sys.stdin.read().splitlines():
    name, BOUND, path = line.split("\t")
    with h5py.File(path, "r") as file:
        try:
            globals()[name](file)
            n += 1
        except Exception as e:
            print(name, BOUND, type(e).__name__, e)
print(n, "files")
