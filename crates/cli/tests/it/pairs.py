"""Makes pairs of files that are the same or differ in one or two ways, and asks h5diff about each.

Usage: pairs.py FOLDER H5DIFF N SEED. Writes FOLDER/a-I.h5 and FOLDER/b-I.h5, and prints a line for each pair: number,
h5diff's exit code, 1 where h5diff met objects that it cannot compare, what was changed.
"""
import copy
import os
import subprocess
import sys

import h5py
import numpy as np

folder, h5diff, pairs, rng = sys.argv[1], sys.argv[2], int(sys.argv[3]), np.random.default_rng(int(sys.argv[4]))
TYPES = ["i1", "<i4", ">i8", "u2", "f4", ">f8", "S3", "bool", "vstr", "record", "enum"]


def values(kind, shape):
    raw = rng.integers(0, 50, shape)
    if kind == "S3":
        return np.array([b"%d" % v for v in raw.ravel()], "S3").reshape(shape)
    if kind == "vstr":
        out = np.empty(raw.size, object)
        out[:] = ["text %d" % v for v in raw.ravel()]
        return out.reshape(shape)
    if kind == "record":
        out = np.zeros(shape, [("a", "<i4"), ("b", ">f4"), ("c", "S2")])
        out["a"], out["b"], out["c"] = raw, raw / 2, b"x"
        return out
    if kind == "bool":
        return raw % 2 == 1
    if kind == "enum":
        return (raw % 3).astype("i2")
    if kind[-2:] in ("f4", "f8"):
        out = (raw / 4).astype(kind)
        if out.size and rng.random() < 0.3:
            out.ravel()[0] = np.nan
        return out
    return raw.astype(kind)


def dataset():
    kind = str(rng.choice(TYPES))
    shape = tuple(int(n) for n in rng.integers(1, 9, int(rng.integers(0, 4))))
    how = {}
    if shape and rng.random() < 0.5:
        how["chunks"] = tuple(int(rng.integers(1, n + 1)) for n in shape)
        if kind != "vstr" and rng.random() < 0.6:
            how["compression"] = "gzip"
    return {"is": "dataset", "kind": kind, "data": values(kind, shape), "how": how, "attrs": attributes()}


def attributes():
    out = {}
    for name in rng.choice(["units", "gain", "title"], int(rng.integers(0, 3)), replace=False):
        out[str(name)] = rng.choice([1, 2.5, 7]) if rng.random() < 0.6 else "text %d" % rng.integers(0, 9)
    return out


def tree(depth=0):
    group = {"is": "group", "attrs": attributes(), "links": {}}
    for i in range(int(rng.integers(1, 4))):
        group["links"][f"d{i}"] = dataset()
    if depth < 2 and rng.random() < 0.7:
        group["links"]["sub"] = tree(depth + 1)
    if rng.random() < 0.4:
        group["links"]["soft"] = {"is": "soft", "to": str(rng.choice(["/d0", "/nowhere", "d0"]))}
    if rng.random() < 0.2:
        group["links"]["far"] = {"is": "external", "file": "none.h5", "to": "/x"}
    if rng.random() < 0.3:
        group["links"]["type"] = {"is": "type", "type": str(rng.choice(["<i4", "<f8"]))}
    return group


def write(h, node):
    for name, value in node["attrs"].items():
        h.attrs[name] = value
    for name, child in node["links"].items():
        if child["is"] == "group":
            write(h.create_group(name), child)
        elif child["is"] == "soft":
            h[name] = h5py.SoftLink(child["to"])
        elif child["is"] == "external":
            h[name] = h5py.ExternalLink(child["file"], child["to"])
        elif child["is"] == "type":
            h[name] = np.dtype(child["type"])
        else:
            dtype = child["data"].dtype
            if child["kind"] == "vstr":
                dtype = h5py.string_dtype()
            if child["kind"] == "enum":
                dtype = h5py.enum_dtype({"A": 0, "B": 1, "C": 2}, "i2")
            d = h.create_dataset(name, child["data"].shape, dtype, **child["how"])
            d[()] = child["data"]
            for key, value in child["attrs"].items():
                d.attrs[key] = value


def nodes(node, kind):
    found = [node] if node["is"] == kind else []
    for child in node.get("links", {}).values():
        found += nodes(child, kind)
    return found


def pick(items):
    return items[int(rng.integers(0, len(items)))] if items else None


def value(root):
    d = pick([d for d in nodes(root, "dataset") if d["data"].size])
    flat = d["data"].reshape(-1)
    at = int(rng.integers(0, flat.size))
    kind = d["kind"]
    if kind in ("bool", "enum"):
        flat[at] = (int(flat[at]) + 1) % 2
    else:
        flat[at] = {"S3": b"zz", "vstr": "other", "record": (99, 9, b"y")}.get(kind, 99)
    d["data"] = flat.reshape(d["data"].shape)


def width(root):
    d = pick([d for d in nodes(root, "dataset") if d["kind"] in ("i1", "<i4", "f4")])
    if d:
        d["data"] = d["data"].astype({"i1": "i2", "<i4": ">i8", "f4": "f8"}[d["kind"]])


def sign(root):
    d = pick([d for d in nodes(root, "dataset") if d["kind"] in ("i1", "<i4", "u2")])
    if d:
        d["data"] = d["data"].astype({"i1": "u1", "<i4": "u4", "u2": "i2"}[d["kind"]])


def shape(root):
    d = pick([d for d in nodes(root, "dataset") if d["data"].ndim])
    if d:
        d["data"] = np.concatenate([d["data"], d["data"][:1]])
        d["how"] = {}


def storage(root):
    for d in nodes(root, "dataset"):
        d["how"] = {"chunks": True} if d["data"].ndim and rng.random() < 0.5 else {}


def nan(root):
    d = pick([d for d in nodes(root, "dataset") if d["data"].dtype.kind == "f" and d["data"].size])
    if d:
        d["data"].reshape(-1)[-1] = rng.choice([np.nan, np.inf, -0.0])


def add(root):
    pick(nodes(root, "group"))["links"]["new"] = dataset()


def remove(root):
    links = pick(nodes(root, "group"))["links"]
    del links[pick(sorted(links))]


def kind(root):
    pick(nodes(root, "group"))["links"]["d0"] = {"is": "group", "attrs": {}, "links": {}}


def attribute(root):
    pick(nodes(root, "group") + nodes(root, "dataset"))["attrs"]["units"] = 99


def attribute_text(root):
    node = pick([n for n in nodes(root, "group") + nodes(root, "dataset") if n["attrs"]])
    if node:
        node["attrs"][pick(sorted(node["attrs"]))] = "another text"


def drop_attribute(root):
    node = pick([n for n in nodes(root, "group") + nodes(root, "dataset") if n["attrs"]])
    if node:
        del node["attrs"][pick(sorted(node["attrs"]))]


def target(root):
    link = pick(nodes(root, "soft") + nodes(root, "external"))
    if link:
        link["to"] = "/elsewhere"


def committed(root):
    t = pick(nodes(root, "type"))
    if t:
        t["type"] = "<u2"


CHANGES = [value, value, value, width, sign, shape, storage, nan, add, remove, kind, attribute, attribute_text,
           drop_attribute, target, committed]

for i in range(pairs):
    first = tree()
    second = copy.deepcopy(first)
    changes = [CHANGES[int(k)] for k in rng.integers(0, len(CHANGES), int(rng.choice([0, 1, 1, 1, 2])))]
    for change in changes:
        change(second)
    names = [os.path.join(folder, f"{side}-{i}.h5") for side in "ab"]
    for name, root in zip(names, (first, second)):
        with h5py.File(name, "w") as f:
            write(f, root)
    found = subprocess.run([h5diff, *names], capture_output=True, text=True)
    apart = int("not comparable" in found.stdout)
    print(i, found.returncode, apart, ",".join(c.__name__ for c in changes) or "nothing")
