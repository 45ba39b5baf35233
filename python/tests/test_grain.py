"""Grain over our records."""

import numpy as np
import pytest

grain = pytest.importorskip("grain.python", reason="needs Grain")

from absl import flags  # noqa: E402

from tensilo import MapDataset  # noqa: E402

# A program's main function does this; beside JAX, Grain's worker processes ask for flags.
flags.FLAGS.mark_as_parsed()

DATA = np.arange(40 * 3, dtype="<i4").reshape(40, 3)
RECORDS = MapDataset(DATA, np.arange(40))


def test_it_is_a_random_access_data_source():
    assert isinstance(RECORDS, grain.RandomAccessDataSource)
    shuffled = grain.MapDataset.source(RECORDS).shuffle(seed=1).batch(8)
    seen = []
    for batch in shuffled:
        assert np.array_equal(batch["data"], DATA[batch["label"]])
        seen += batch["label"].tolist()
    assert sorted(seen) == list(range(40)) and seen != list(range(40))


@pytest.mark.parametrize("workers", [0, 2])
def test_its_loader_reads_in_worker_processes(workers):
    sampler = grain.IndexSampler(40, shuffle=True, seed=3, num_epochs=1, shard_options=grain.NoSharding())
    loader = grain.DataLoader(
        data_source=RECORDS, sampler=sampler, operations=[grain.Batch(8)], worker_count=workers
    )
    seen = []
    for batch in loader:
        assert np.array_equal(batch["data"], DATA[batch["label"]])
        seen += batch["label"].tolist()
    assert sorted(seen) == list(range(40))
