"""Batches for PyTorch's own ``DataLoader``, which must be installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .loader import BatchIterator, DataLoader

_Base: Any
try:
    import torch.utils.data as _torch  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    _torch, _Base = None, object
else:
    _Base = _torch.IterableDataset

__all__ = ["IterableDataset"]


class IterableDataset(_Base):  # type: ignore[misc,unused-ignore]
    """The batches of a `tensilo.DataLoader`, in its order, in any number of PyTorch's worker processes.

    Give PyTorch's ``DataLoader`` this with ``batch_size=None``: it then delivers the batches as they are, its workers
    taking turns. The state is that of the loader, so ``StatefulDataLoader`` of torchdata resumes it.

    Parameters
    ----------
    loader : tensilo.DataLoader
        What makes the batches.

    Raises
    ------
    ImportError
        PyTorch is not installed.
    """

    def __init__(self, loader: DataLoader) -> None:
        if _torch is None:
            raise ImportError("tensilo.torch needs PyTorch, which is not installed")
        super().__init__()
        self.loader = loader
        self._latest: _Batches | None = None

    def __iter__(self) -> Iterator[Any]:
        info = _torch.get_worker_info()
        worker = (0, 1) if info is None else (info.id, info.num_workers)
        self._latest = _Batches(self.loader, worker)
        return self._latest

    def __len__(self) -> int:
        return len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        """The state behind the last batch of this process."""
        return self.loader.state_dict() if self._latest is None else self._latest.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration begin where a state stands."""
        self._latest = None
        self.loader.load_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        return {"loader": self.loader}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        self.__init__(pickled["loader"])  # type: ignore[misc]


class _Batches(Iterator[Any]):
    """The batches of one worker."""

    def __init__(self, loader: DataLoader, worker: tuple[int, int]) -> None:
        self._loader, self._worker = loader, worker
        self._iterator: BatchIterator = loader.iterate(worker)

    def __next__(self) -> Any:
        return next(self._iterator)

    def state_dict(self) -> dict[str, Any]:
        return self._iterator.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._iterator.close()
        self._loader.load_state_dict(state)
        self._iterator = self._loader.iterate(self._worker)
