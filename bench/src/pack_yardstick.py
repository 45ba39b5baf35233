"""The same packing job with h5py, hdf5plugin and NumPy: plain, or with the bits squeezed by shifts and hashing threads.

Defines `yardstick(master, folder, skilled)`, which packs a family whose scans are one shard and returns the SHA-256 of
payload and headers.
"""

import concurrent.futures
import glob
import hashlib
import os

import h5py
import hdf5plugin  # noqa: F401
import numpy as np

BYTES = np.uint64(0x00FF00FF00FF00FF)
PAIRS = np.uint64(0x0000FFFF0000FFFF)
LOW = np.uint64(0xFFFFFFFF)


def squeeze(words, w):
    """Eight bytes of each word to w bits each: three rounds of masks and shifts."""
    words = (words & BYTES) | ((words & ~BYTES) >> np.uint64(8 - w))
    words = (words & PAIRS) | ((words & ~PAIRS) >> np.uint64(16 - 2 * w))
    return (words & LOW) | ((words >> np.uint64(32)) << np.uint64(4 * w))


def packed(work, widths, w, skilled):
    """The tiles of all pixels of one width, as words."""
    chosen = np.flatnonzero(widths == w)
    of_pixel = np.ascontiguousarray(work[:, chosen].T)
    if skilled:
        squeezed = squeeze(of_pixel.view(np.uint64), w)
        data = squeezed.view(np.uint8).reshape(len(chosen), 4, 8)[:, :, :w]
    else:
        bits = np.unpackbits(of_pixel[:, :, None], axis=2, bitorder="little")[:, :, :w]
        data = np.packbits(bits.reshape(len(chosen), 32 * w), axis=1, bitorder="little")
    return chosen, np.ascontiguousarray(data).reshape(len(chosen), 4 * w).view(np.uint32)


def headers(widths, starts):
    """Base, checkpoints and width nibbles of every pixel."""
    pixels, tiles = widths.shape
    sums = np.cumsum(widths, axis=1, dtype=np.uint32)
    checkpoints = [starts[:, None]] + [sums[:, k - 1 : k] for k in range(32, tiles, 32)]
    nibbles = np.zeros((pixels, -(-tiles // 8) * 8), np.uint32)
    nibbles[:, :tiles] = widths
    shifts = np.arange(8, dtype=np.uint32) * 4
    words = np.bitwise_or.reduce(nibbles.reshape(pixels, -1, 8) << shifts, axis=2)
    return np.concatenate([*checkpoints, words], axis=1).astype(np.uint32)


def file_hash(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def frames(master):
    """Thirty-two frames at a time."""
    held = []
    with h5py.File(master) as f:
        for name in sorted(f["entry/data"]):
            stack = f["entry/data"][name]
            at = 0
            while at < len(stack):
                take = min(32 - sum(map(len, held)), len(stack) - at)
                held.append(stack[at : at + take])
                at += take
                if sum(map(len, held)) == 32:
                    yield np.concatenate(held) if len(held) > 1 else held[0]
                    held = []


def yardstick(master, folder, skilled):
    pool = concurrent.futures.ThreadPoolExecutor(2)
    run = pool.submit if skilled else lambda work, *a: work(*a)
    with h5py.File(master) as f:
        mask = f["entry/instrument/detector/detectorSpecific/pixel_mask"][()].reshape(-1)
    members = sorted(glob.glob(os.path.join(os.path.dirname(master), "*.h5")))
    for _ in range(2):
        list(pool.map(file_hash, members)) if skilled else [file_hash(m) for m in members]
    raw_sum, working_sum, pending = hashlib.sha256(), hashlib.sha256(), []
    tiles, all_widths = [], []
    length = np.array([int(v).bit_length() for v in range(256)], np.uint8)
    excluded = np.flatnonzero(mask)
    for raw in frames(master):
        raw = raw.reshape(32, -1)
        for wait in pending if skilled else []:
            wait.result()
        work = raw.copy()
        work[:, excluded] = 0
        most = np.bitwise_or.reduce(work, axis=0)
        if most.max() > 255:
            raise ValueError("a value does not fit")
        work = work.astype(np.uint8)
        pending = [run(raw_sum.update, raw), run(working_sum.update, work)]
        widths = length[most]
        all_widths.append(widths)
        tiles.append([packed(work, widths, w, skilled) for w in range(1, int(widths.max()) + 1)])
    for wait in pending if skilled else []:
        wait.result()
    widths = np.stack(all_widths, axis=1)
    ends = np.cumsum(widths.reshape(-1), dtype=np.int64)
    starts = (ends - widths.reshape(-1)).reshape(widths.shape)
    payload = np.empty(int(ends[-1]), np.uint32)
    for t, tile in enumerate(tiles):
        for chosen, words in tile:
            payload[starts[chosen, t][:, None] + np.arange(words.shape[1])] = words
    header = headers(widths, starts[:, 0].astype(np.uint32))
    sums = [run(lambda a: hashlib.sha256(a).hexdigest(), a) for a in (payload, header)]
    path = os.path.join(folder, "yardstick.bin")
    with open(path, "wb") as f:
        f.write(bytes(65536))
        payload.tofile(f)
        header.tofile(f)
        f.flush()
        os.fsync(f.fileno())
    file_hash(path)
    os.remove(path)
    pool.shutdown()
    sums = [s.result() for s in sums] if skilled else sums
    return (*sums, raw_sum.hexdigest(), working_sum.hexdigest())
