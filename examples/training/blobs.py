"""A store of records to train on: ten clouds of points in 64 dimensions, each with its number."""

import numpy as np

from tensilo import DataLoader, LaneStore

RECORDS, FEATURES, CLASSES, BATCH = 2000, 64, 10, 64


def write(path):
    """Write the store."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(CLASSES, FEATURES))
    with LaneStore.create(path, RECORDS, {"x": ("f4", FEATURES), "y": ("i4", 1)}) as writer:
        for k in range(RECORDS):
            label = int(rng.integers(CLASSES))
            writer.write("x", k, centres[label] + 1.5 * rng.normal(size=FEATURES))
            writer.write("y", k, [label])


def loaders(path, world):
    """The loader of every rank; a launcher would give each process its own."""
    store = LaneStore(path)
    return [
        DataLoader(store, batch_size=BATCH, mode="epoch", seed=1, num_workers=1, rank=rank, world=world)
        for rank in range(world)
    ]
