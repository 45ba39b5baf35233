"""libhdf5 and hdf5plugin as contestants of `filters`: one chunk in a file in memory, past the chunk cache."""
import os
import struct

import h5py
import hdf5plugin  # noqa: F401  (registers its filters)
import numpy as np

OPTIONAL = 1
NBIT, SCALE_OFFSET, ZFP = 5, 6, 32013
file = h5py.File("in-memory", "w", driver="core", backing_store=False, rdcc_nbytes=0)
plain, filtered = {}, {}


def setup(folder, dtype, filters):
    """Writes raw.bin of the folder as one chunk, checks what is read back, leaves values and bytes in chunk.bin."""
    data = np.fromfile(os.path.join(folder, "raw.bin"), dtype)
    kind = h5py.h5t.py_create(data.dtype).copy()
    if any(number == NBIT for number, _ in filters):
        kind.set_precision(12)
    create(plain, data, kind, [])
    create(filtered, data, kind, filters)
    ds, back = filtered["ds"], filtered["back"]
    lossy = any(number in (SCALE_OFFSET, ZFP) for number, _ in filters)
    assert lossy or back.tobytes() == data.tobytes()
    mask, stored = ds.read_direct_chunk((0,))
    assert mask == 0, filters
    plist = ds.get_create_plist()
    with open(os.path.join(folder, "chunk.bin"), "wb") as out:
        out.write(struct.pack("<I", plist.get_nfilters()))
        for i in range(plist.get_nfilters()):
            number, _, values, _ = plist.get_filter(i)
            out.write(struct.pack(f"<II{len(values)}I", number, len(values), *values))
        out.write(struct.pack("<I", len(back.tobytes())) + back.tobytes() + stored)


def create(state, data, kind, filters):
    """Makes a dataset of one chunk that replaces the state's one, and runs it both ways."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(data.shape)
    for number, options in filters:
        if number == 2:
            plist.set_shuffle()
        elif number == 3:
            plist.set_fletcher32()
        elif number == 4:
            plist.set_szip(*options)
        elif number == SCALE_OFFSET:
            plist.set_scaleoffset(*options)
        else:
            plist.set_filter(number, OPTIONAL, tuple(options))
    space = h5py.h5s.create_simple(data.shape)
    if state:
        file.id.unlink(state["name"])
    name = b"filtered" if filters else b"plain"
    ds = h5py.h5d.create(file.id, name, kind, space, plist)
    state.update(name=name, ds=ds, data=data, back=np.empty_like(data), kind=kind)
    encode(state, 1)
    decode(state, 1)


def decode(state, times):
    for _ in range(times):
        state["ds"].read(h5py.h5s.ALL, h5py.h5s.ALL, state["back"], mtype=state["kind"])


def encode(state, times):
    for _ in range(times):
        state["ds"].write(h5py.h5s.ALL, h5py.h5s.ALL, state["data"], mtype=state["kind"])
