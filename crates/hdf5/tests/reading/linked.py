"""Files that name other files: links, external raw data, virtual datasets. See generate.py."""
import os

import h5py
import numpy as np


def make(folder, say, expect, numbers):
    os.chdir(folder)
    os.makedirs("sub", exist_ok=True)
    links(say, expect, numbers)
    external_raw(say, expect, numbers)
    virtual(expect, numbers)


def links(say, expect, numbers):
    whole = numbers((6, 5), "<i4")
    with h5py.File("sub/target.h5", "w") as f:
        f["g/data"] = whole
        f["g/back"] = h5py.ExternalLink("../linked.h5", "/own")
        f["up"] = h5py.ExternalLink("../outside.h5", "/x")
    with h5py.File("outside.h5", "w") as f:
        f["x"] = whole
    with h5py.File("linked.h5", "w", libver="latest") as f:
        f["own"] = whole
        f["a/b/c"] = whole + 1
        f["soft"] = h5py.SoftLink("/a/b")
        f["a/relative"] = h5py.SoftLink("b/c")
        f["chain"] = h5py.SoftLink("/soft")
        f["loop"] = h5py.SoftLink("/loop2")
        f["loop2"] = h5py.SoftLink("loop")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["external"] = h5py.ExternalLink("sub/target.h5", "/g")
        f["missing-file"] = h5py.ExternalLink("sub/none.h5", "/g")
        f["missing-object"] = h5py.ExternalLink("sub/target.h5", "/h")
        f["passwd"] = h5py.ExternalLink("/etc/passwd", "/")
        f["out"] = h5py.ExternalLink("sub/target.h5", "/up")
        f["self"] = h5py.ExternalLink("linked.h5", "/a")
    for path, data in (("own", whole), ("soft/c", whole + 1), ("a/relative", whole + 1), ("chain/c", whole + 1),
                       ("/./a//b/c/", whole + 1), ("external/data", whole), ("self/b/c", whole + 1)):
        expect("linked.h5", path, data, 2)
    for path, kind in (("loop", "limit"), ("dangling", "not-found"), ("missing-file/x", "not-found"),
                       ("missing-object/x", "not-found"), ("passwd", "limit"), ("external/back", "limit"),
                       ("out", "limit"), ("a/b/d", "not-found"), ("own/x", "not-found")):
        say("linked.h5", path, "refused:" + kind, "np:", b"", ())


def external_raw(say, expect, numbers):
    whole = numbers((40, 7), "<i4")
    raw = whole.tobytes()
    with open("sub/raw1.bin", "wb") as f:
        f.write(b"head" + raw[:300])
    with open("raw2.bin", "wb") as f:
        f.write(raw[300:900])
    with open("raw3.bin", "wb") as f:
        f.write(raw[900:])
    with h5py.File("external.h5", "w") as f:
        f.create_dataset("three", (40, 7), "<i4",
                         external=[("sub/raw1.bin", 4, 300), ("raw2.bin", 0, 600), ("raw3.bin", 0, h5py.h5f.UNLIMITED)])
        f.create_dataset("gone", (40, 7), "<i4", external=[("none.bin", 0, 5000)])
        f.create_dataset("short", (400, 7), "<i4", external=[("raw3.bin", 0, 20000)])
    expect("external.h5", "three", whole, 8, ("f8",))
    short = np.zeros((400, 7), "<i4")
    short.reshape(-1)[:(len(raw) - 900) // 4] = np.frombuffer(raw[900:], "<i4")
    expect("external.h5", "short", short, 3)
    say("external.h5", "gone", "refused:not-found", "np:", b"", ())


def virtual(expect, numbers):
    for i in range(4):
        with h5py.File(f"sub/part{i}.h5", "w") as f:
            f["data"] = numbers((5, 8), "<i2")
            f["big"] = numbers((5, 8), ">i4")
            f.create_dataset("grow", data=numbers((3 + i, 8), "<i2"), maxshape=(None, 8), chunks=(2, 4))
            f.create_dataset("frames", data=numbers((8,), "<i2"))
    def part(i, name):
        with h5py.File(f"sub/part{i}.h5", "r") as f:
            return f[name][...]
    for low in ("v110", "v200"):
        name = f"virtual-{low}.h5"
        with h5py.File(name, "w", libver=(low, low)) as f:
            f["local"] = numbers((5, 8), "<i2")
            layout = h5py.VirtualLayout((20, 8), "<i2")
            for i in range(4):
                layout[5 * i:5 * i + 5] = h5py.VirtualSource(f"sub/part{i}.h5", "data", (5, 8))
            f.create_virtual_dataset("stack", layout)
            layout = h5py.VirtualLayout((9, 5, 8), "<i2")
            for i in range(4):
                layout[2 * i] = h5py.VirtualSource(f"sub/part{i}.h5", "data", (5, 8))
            layout[8] = h5py.VirtualSource("sub/none.h5", "data", (5, 8))
            f.create_virtual_dataset("gaps", layout, fillvalue=-7)
            layout = h5py.VirtualLayout((10, 16), "<i2")
            layout[::2, ::2] = h5py.VirtualSource("sub/part0.h5", "data", (5, 8))
            layout[1::2, 1:16:4] = h5py.VirtualSource("sub/part1.h5", "data", (5, 8))[:, 2:6]
            layout[1:9, 14] = h5py.VirtualSource(".", "local", (5, 8))[3, :]
            f.create_virtual_dataset("strided", layout, fillvalue=99)
            layout = h5py.VirtualLayout((5, 8), "<i4")
            layout[...] = h5py.VirtualSource("sub/part2.h5", "big", (5, 8))
            f.create_virtual_dataset("converted", layout)
            layout = h5py.VirtualLayout((4, 10), "<i2")
            layout[...] = h5py.VirtualSource("sub/part2.h5", "data", (5, 8))
            f.create_virtual_dataset("reshaped", layout)
            layout = h5py.VirtualLayout((20, 4), "<i2")
            layout[...] = h5py.VirtualSource(".", "stack", (20, 8))[:, 2:6]
            f.create_virtual_dataset("nested", layout)
            # Unlimited: grows with its source.
            space = h5py.h5s.create_simple((4, 8), (h5py.h5s.UNLIMITED, 8))
            source = h5py.h5s.create_simple((3, 8), (h5py.h5s.UNLIMITED, 8))
            for count, block, path in ((1, h5py.h5s.UNLIMITED, "unlimited-block"), (h5py.h5s.UNLIMITED, 1, "unlimited-count")):
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                space.select_hyperslab((0, 0), (count, 1), (1, 1), (block, 8))
                source.select_hyperslab((0, 0), (count, 1), (1, 1), (block, 8))
                dcpl.set_virtual(space, b"sub/part2.h5", b"grow", source)
                h5py.h5d.create(f.id, path.encode(), h5py.h5t.STD_I16LE, space, dcpl)
            # Every second row from one source, the others from another that is shorter.
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_fill_value(np.array(55, "<i2"))
            for first, part_number in ((0, 3), (1, 1)):
                space.select_hyperslab((first, 0), (h5py.h5s.UNLIMITED, 1), (2, 1), (1, 8))
                source.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (1, 1), (1, 8))
                dcpl.set_virtual(space, f"sub/part{part_number}.h5".encode(), b"grow", source)
            h5py.h5d.create(f.id, b"interleaved", h5py.h5t.STD_I16LE, space, dcpl)
            # One file for each block.
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            space.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (2, 1), (1, 8))
            frames = h5py.h5s.create_simple((8,))
            dcpl.set_virtual(space, b"sub/part%b.h5", b"frames", frames)
            h5py.h5d.create(f.id, b"printf", h5py.h5t.STD_I16LE, space, dcpl)
        with h5py.File(name, "r") as f:
            for path in ("stack", "gaps", "strided", "converted", "reshaped", "nested", "unlimited-block",
                         "unlimited-count", "interleaved", "printf"):
                expect(name, path, f[path][...], 8, ("f8",))
