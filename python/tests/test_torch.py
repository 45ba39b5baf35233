"""PyTorch's DataLoader over our records and batches: processes by fork and spawn, states, a worker that is killed.

It runs under the Python that has PyTorch; `cargo xtask test` starts it with the system's (package `python3-torch`).
"""

import os
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch.utils.data import DataLoader as TorchLoader  # noqa: E402

from tensilo import DataLoader, MapDataset  # noqa: E402
from tensilo.torch import IterableDataset  # noqa: E402

DATA = np.arange(100 * 12, dtype="<f4").reshape(100, 3, 4)
LABELS = np.arange(100)
#: What PyTorch raises when a worker is gone: its own words, or what the broken connection says.
DIED = (RuntimeError, OSError, EOFError)
PROCESSES = [(0, None), (2, "fork"), (2, "spawn")]


def batches(**options):
    return DataLoader(DATA, LABELS, 2, 16, 2, **options)


def own(loader):
    return [batch["label"].tolist() for batch in loader]


def labels(loader):
    seen = []
    for batch in loader:
        assert isinstance(batch["data"], torch.Tensor)
        assert np.array_equal(batch["data"].numpy(), DATA[batch["label"].numpy()])
        seen.append(batch["label"].tolist())
    return seen


@pytest.mark.parametrize(("workers", "method"), PROCESSES)
def test_a_map_style_dataset(workers, method):
    loader = TorchLoader(
        MapDataset(DATA, LABELS), batch_size=16, shuffle=True, num_workers=workers, multiprocessing_context=method
    )
    assert sorted(sum(labels(loader), [])) == list(range(100))


@pytest.mark.parametrize(("workers", "method"), PROCESSES)
def test_an_iterable_dataset_keeps_the_global_order(workers, method):
    expected = own(batches(epochs=2))
    dataset = IterableDataset(batches(epochs=2))
    assert len(dataset) == 14
    loader = TorchLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=method)
    assert labels(loader) == expected
    if method != "spawn":
        assert labels(loader) == expected, "a second loop begins anew"


@pytest.mark.parametrize(("workers", "method"), PROCESSES[:2])
def test_a_loader_that_was_used_before_goes_to_worker_processes(workers, method):
    loader = batches(epochs=1)
    expected = own(loader)
    next(loader)
    torch_loader = TorchLoader(
        IterableDataset(loader), batch_size=None, num_workers=workers, multiprocessing_context=method
    )
    assert labels(torch_loader) in (expected, expected[1:])
    loader.close()


def test_the_state_is_that_of_the_contract_of_stateful_loaders():
    """What torchdata's StatefulDataLoader does: states of dataset iterators in each worker, loaded before a loop."""
    expected = own(batches(epochs=2))
    dataset = IterableDataset(batches(epochs=2))
    iterator = iter(dataset)
    before = [next(iterator)["label"].tolist() for _ in range(5)]
    state = iterator.state_dict()
    assert state == dataset.state_dict()
    other = IterableDataset(batches(epochs=2))
    other.load_state_dict(state)
    assert before + own(other) == expected
    iterator = iter(IterableDataset(batches(epochs=2)))
    iterator.load_state_dict(state)
    assert before + own(iterator) == expected


def test_the_workers_states_resume_each_workers_turns():
    expected = own(batches(epochs=2))
    workers = [batches(epochs=2).iterate((w, 2)) for w in range(2)]
    taken = [[next(worker)["label"].tolist() for worker in workers] for _ in range(3)]
    states = [worker.state_dict() for worker in workers]
    resumed = []
    for w, state in enumerate(states):
        loader = batches(epochs=2)
        loader.load_state_dict(state)
        resumed.append(loader.iterate((w, 2)))
    rest = [[next(worker)["label"].tolist() for worker in resumed] for _ in range(4)]
    assert sum(taken + rest, []) == expected


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [0, 1, 7])
def test_the_real_stateful_loader_resumes(workers, stop):
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata")
    expected = own(batches(epochs=2))

    def make():
        return stateful.StatefulDataLoader(IterableDataset(batches(epochs=2)), batch_size=None, num_workers=workers)

    loader = make()
    iterator = iter(loader)
    before = [next(iterator)["label"].tolist() for _ in range(stop)]
    state = loader.state_dict()
    other = make()
    other.load_state_dict(state)
    assert before + labels(other) == expected


class KillsItself:
    """Records, one of which kills the process that reads it."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        if i == 50 and torch.utils.data.get_worker_info() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.records[i]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_that_is_killed_is_an_error_and_no_hang(method):
    records = KillsItself(MapDataset(DATA, LABELS))
    loader = TorchLoader(records, batch_size=10, num_workers=2, multiprocessing_context=method, timeout=60)
    with pytest.raises(DIED):
        list(loader)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_killing_workers_of_batches_is_an_error_and_no_hang():
    dataset = IterableDataset(batches())
    loader = TorchLoader(dataset, batch_size=None, num_workers=2, timeout=60)
    iterator = iter(loader)
    next(iterator)
    for worker in iterator._workers:
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(DIED):
        for _ in range(1000):
            next(iterator)


def test_batches_become_tensors_without_a_copy():
    with batches() as loader:
        batch = next(loader)
        tensor = torch.from_dlpack(batch["data"])
        tensor += 1
        assert np.array_equal(batch["data"], DATA[batch["label"]] + 1)
        del batch
        kept = tensor.clone()
        for _ in range(30):
            next(loader)
        assert torch.equal(tensor, kept), "the tensor keeps the memory"
