"""`loaderx.dataloader`: endless batches of data and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import loader

__all__ = ["DataLoader"]


def _same(pair: Any) -> Any:
    return pair


class DataLoader(loader.DataLoader):
    """Batches ``{"data": …, "label": …}`` for ever, with loaderx's arguments and its streams of records.

    Unlike loaderx's they come in the sampler's order, an error in `transform` or in a store reaches the consumer, and
    `close` returns. All else that `tensilo.DataLoader` has, such as ``state_dict``, is there too.

    Parameters
    ----------
    dataset, labelset : dataset
        Anything of one length with ``__getitems__``.
    num_workers : int, optional
        Threads that read, and as many that transform.
    batch_size : int, optional
        Records of a batch.
    prefetch_size : int, optional
        Batches that are ready before they are asked for.
    mode : int, optional
        `Sampler.Mode.SEQUENTIAL` (0) or `Sampler.Mode.IID` (1).
    seed : int, optional
        Chooses the stream.
    transform : callable, optional
        Gets and returns the pair ``(data, label)``.
    """

    def __init__(
        self,
        dataset: Any,
        labelset: Any,
        num_workers: int = 4,
        batch_size: int = 256,
        prefetch_size: int = 4,
        mode: int = 1,
        seed: int = 42,
        transform: Callable[[Any], Any] = _same,
    ) -> None:
        chosen = None if transform is _same else transform
        super().__init__(dataset, labelset, num_workers, batch_size, prefetch_size, mode, seed, chosen)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        raise TypeError("Eternal loader has no length.")
