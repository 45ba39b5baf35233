"""Prints what h5py sees in a file, one line per fact, for comparison with what was written."""
import sys
import h5py
import numpy as np

try:
    import hdf5plugin  # noqa: F401
except ImportError:
    pass


def value(a, stored=None):
    a = np.asarray(a)
    if stored is not None and stored.subdtype is None and a.dtype.kind in "iufcbS":
        # A scalar comes in the machine's byte order, a string without its padding.
        a = a.astype(stored)
    if a.dtype.kind == "O":
        def one(x):
            if isinstance(x, bytes):
                return x.decode("utf-8", "surrogateescape")
            if isinstance(x, h5py.Reference):
                return "->" + FILE[x].name if x else "->nothing"
            if isinstance(x, np.ndarray):
                return value(x)
            return str(x)
        return "[" + "|".join(one(x) for x in a.ravel()) + "]"
    return a.tobytes().hex()


def attributes(path, obj):
    for name in sorted(obj.attrs):
        a = obj.attrs.get_id(name)
        if a.get_type().get_class() == h5py.h5t.OPAQUE and a.get_space().get_simple_extent_type() != h5py.h5s.NULL:
            # Opaque elements are converted only to a type of the same tag, which h5py's own does not have.
            v = np.empty(a.shape, a.dtype)
            a.read(v, mtype=a.get_type())
        else:
            v = obj.attrs[name]
        if isinstance(v, h5py.Empty):
            print(f"{path}@{name} empty {v.dtype}")
        else:
            if isinstance(v, str):
                v = np.array(v, dtype=object)
            print(f"{path}@{name} {a.dtype} {a.shape} {value(v, a.dtype)}")


def show(path, group):
    for name in sorted(group):
        link = group.get(name, getlink=True)
        here = path.rstrip("/") + "/" + name
        if isinstance(link, h5py.SoftLink):
            print(f"{here} soft {link.path}")
        elif isinstance(link, h5py.ExternalLink):
            print(f"{here} external {link.filename} {link.path}")
        else:
            obj = group[name]
            if isinstance(obj, h5py.Group):
                print(f"{here} group")
                attributes(here, obj)
                show(here, obj)
            elif isinstance(obj, h5py.Datatype):
                print(f"{here} datatype {obj.dtype}")
                attributes(here, obj)
            else:
                p = obj.id.get_create_plist()
                filters = [p.get_filter(i)[0] for i in range(p.get_nfilters())]
                if obj.shape is None:
                    data = "null"
                else:
                    if obj.id.get_type().get_class() == h5py.h5t.OPAQUE:
                        whole = np.empty(obj.shape, obj.dtype)
                        obj.id.read(h5py.h5s.ALL, h5py.h5s.ALL, whole, mtype=obj.id.get_type())
                    else:
                        whole = obj[()]
                    data = value(whole, obj.dtype)
                print(f"{here} dataset {obj.dtype} {obj.shape} {obj.maxshape} {obj.chunks} {filters} {data}")
                attributes(here, obj)


for name in sys.argv[1:]:
    if len(sys.argv) > 2:
        print(f"file {name.rsplit('/', 1)[-1]}")
    with h5py.File(name, "r") as FILE:
        attributes("/", FILE)
        show("/", FILE)
