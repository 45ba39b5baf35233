"""Which records come in which order: batches of ids, endless or by epoch, for any number of ranks."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _native

__all__ = ["Mode", "Sampler"]

Ids = np.ndarray[Any, np.dtype[np.uint64]]


class Mode(enum.IntEnum):
    """How records are ordered."""

    #: As they are stored, without end; a batch may run over the end into the next round.
    SEQUENTIAL = 0
    #: Each record is drawn by itself, without end.
    IID = 1
    #: Every record once in an epoch.
    EPOCH = 2

    @classmethod
    def of(cls, mode: int | str | None, epochs: int | None = None) -> Mode:
        """The mode of a number or a name; without one `EPOCH` if there are epochs, else `IID`."""
        if mode is None:
            return cls.IID if epochs is None else cls.EPOCH
        try:
            return cls[mode.upper()] if isinstance(mode, str) else cls(mode)
        except (KeyError, ValueError):
            names = ", ".join(f"{m.name} ({m.value})" for m in cls)
            raise ValueError(f"mode is one of {names}, not {mode!r}") from None


class Sampler(Iterator[Ids]):
    """Batches of record ids in one global order, of which each rank takes its part.

    A step of all ranks together is `batch_size` records, so that the order does not depend on the number of ranks.

    Parameters
    ----------
    length : int
        Number of records.
    batch_size : int
        Records of a step, of all ranks together.
    mode : Mode, int or str, optional
        The order, by value or name; ``IID`` if not given, or ``EPOCH`` when `epochs` is. The first two give loaderx's streams, bit for
        bit.
    seed : int, optional
        Chooses among random orders.
    rank, world : int, optional
        This rank, and the number of ranks.
    epochs : int, optional
        Number of epochs; without end if not given.
    drop_last : bool, optional
        Leave out an epoch's last batch if it is short.
    shuffle : bool or tuple of int, optional
        In epochs: ``False`` takes records as they are stored; ``(block, window)`` shuffles blocks of `block` records,
        and then the records of `window` blocks that follow each other.
    weights : list of tuple of int, optional
        ``(length, weight)`` of each source of a mixture, instead of a mode.
    worker : tuple of int, optional
        This worker and the number of workers that share the steps of a rank in turn.

    Examples
    --------
    >>> from tensilo import Sampler
    >>> sampler = Sampler(10, 4, "sequential")
    >>> [sampler.next().tolist() for _ in range(3)]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    >>> sorted(id for batch in Sampler(10, 4, epochs=1) for id in batch.tolist()) == list(range(10))
    True
    """

    #: `tensilo.Mode` under loaderx's name.
    Mode = Mode

    def __init__(
        self,
        length: int,
        batch_size: int,
        mode: int | str | None = None,
        seed: int = 42,
        *,
        rank: int = 0,
        world: int = 1,
        epochs: int | None = None,
        drop_last: bool = False,
        shuffle: bool | tuple[int, int] = True,
        weights: list[tuple[int, int]] | None = None,
        worker: tuple[int, int] = (0, 1),
    ) -> None:
        name = "mixture" if weights is not None else Mode.of(mode, epochs).name.lower()
        if weights is not None and mode is not None:
            raise ValueError("a mixture has an order of its own: give no mode")
        self._native = _native.Sampler(
            length,
            batch_size,
            name,
            seed,
            rank=rank,
            world=world,
            epochs=epochs,
            drop_last=drop_last,
            shuffle=bool(shuffle),
            blocks=None if isinstance(shuffle, bool) else (int(shuffle[0]), int(shuffle[1])),
            parts=weights or [],
            worker=worker,
        )
        self._arguments: tuple[tuple[Any, ...], dict[str, Any]] = (
            (length, batch_size, mode, seed),
            {
                "rank": rank,
                "world": world,
                "epochs": epochs,
                "drop_last": drop_last,
                "shuffle": shuffle,
                "weights": weights,
                "worker": worker,
            },
        )

    def next(self) -> Ids:
        """The ids of the next batch: a fresh array of ``uint64``."""
        ids = self._native.next()
        if ids is None:
            raise StopIteration
        return ids

    __next__ = next

    def __iter__(self) -> Sampler:
        return self

    def __len__(self) -> int:
        steps = self._native.total_steps
        if steps is None:
            raise TypeError("an endless sampler has no length")
        return steps

    def state_dict(self) -> dict[str, Any]:
        """The state behind the last batch: a few numbers and names, the same on every rank."""
        return self._native.state(self._native.position)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state, of whatever rank, world or batch size.

        Raises
        ------
        InvalidArgumentError
            The state is of another order, seed or number of records.
        """
        self._native.resume({k: v for k, v in state.items() if k != "fingerprint"})

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": self._arguments, "state": self.state_dict()}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        positional, named = pickled["arguments"]
        self.__init__(*positional, **named)  # type: ignore[misc]
        self.load_state_dict(pickled["state"])
