"""Batches of records, ready before they are asked for, endless or by epoch, in one order that can be resumed."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _native
from .errors import SourceChangedError
from .sampler import Ids, Mode, Sampler
from .sources import Mix, Ragged, Table, arrived, portable
from .stage import Stage

__all__ = ["BatchIterator", "DataLoader", "Mix", "Mode", "Ragged", "Sampler"]

#: Blocks that are shuffled together when the blocks are the store's own.
_WINDOW = 16

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_native.pause_reading,
        after_in_parent=_native.resume_reading,
        after_in_child=_native.resume_reading,
    )


class DataLoader:
    """Batches of records: dictionaries of NumPy arrays, in an order that a few numbers describe.

    Native threads read ahead without the interpreter. Every ``iter(loader)`` begins anew (or at the state that was
    loaded) and shares nothing with other iterators; ``next(loader)`` goes on with one iterator of the loader's own.

    Parameters
    ----------
    dataset : array, mapping of arrays, store, or any dataset
        NumPy arrays and mapped files are read where they lie, `LaneStore` and record stores by their fields.
        Anything else with ``__getitems__`` or ``__getitem__`` and ``__len__`` is called from Python threads. `Mix`
        mixes several.
    labelset : like dataset, optional
        Labels: batches are then ``{"data": …, "label": …}``.
    num_workers : int, optional
        Threads that read, and as many that transform; 0 does both when a batch is asked for.
    batch_size : int, optional
        Records of a step, of all ranks together: rank `r` of `w` gets the `r`-th of `w` nearly equal parts.
    prefetch_size : int, optional
        Batches that are ready before they are asked for.
    mode : Mode, int or str, optional
        ``SEQUENTIAL`` (0), ``IID`` (1) or ``EPOCH`` (2); IID if not given, or EPOCH when `epochs` is.
    seed : int, optional
        Chooses among random orders.
    transform : callable, optional
        Gets and returns the pair ``(data, label)`` where there are labels, else gets the dictionary and returns what
        takes its place.
    fields : sequence of str, optional
        Fields to read; all if not given.
    rank, world : int, optional
        This rank, and the number of ranks. The global order does not depend on them.
    epochs : int, optional
        Number of epochs; without end if not given.
    drop_last : bool, optional
        Leave out an epoch's last batch if it is short.
    shuffle : bool, "blocks" or tuple of int, optional
        In epochs: ``False`` takes records as they are stored, ``"blocks"`` or ``(block, window)`` keeps records together
        that are cheap together; see `Sampler`.
    recycle : bool, optional
        Fill memory again once no array uses it any more; ``False`` gives every batch fresh memory.
    limit : int, optional
        Most bytes that batches may take together; 16 GiB if not given.

    Raises
    ------
    ValueError
        Data and labels differ in length, there are no records, or the options make no sense.

    Examples
    --------
    >>> import numpy as np
    >>> from tensilo import DataLoader
    >>> images, labels = np.zeros((100, 28, 28), "u1"), np.arange(100)
    >>> with DataLoader(images, labels, batch_size=32, epochs=1) as loader:
    ...     print(len(loader), [batch["data"].shape[0] for batch in loader])
    4 [32, 32, 32, 4]
    """

    def __init__(
        self,
        dataset: Any,
        labelset: Any = None,
        num_workers: int = 4,
        batch_size: int = 256,
        prefetch_size: int = 4,
        mode: int | str | None = None,
        seed: int = 42,
        transform: Callable[[Any], Any] | None = None,
        *,
        fields: Sequence[str] | None = None,
        rank: int = 0,
        world: int = 1,
        epochs: int | None = None,
        drop_last: bool = False,
        shuffle: bool | str | tuple[int, int] = True,
        recycle: bool = True,
        limit: int | None = None,
    ) -> None:
        if num_workers < 0 or prefetch_size < 0:
            raise ValueError("num_workers and prefetch_size are at least 0")
        self.dataset, self.labelset = dataset, labelset
        self.num_workers, self.batch_size, self.prefetch_size = num_workers, batch_size, prefetch_size
        self.seed, self.transform = seed, transform
        self.rank, self.world, self.epochs, self.drop_last = rank, world, epochs, drop_last
        self._arguments = {"mode": mode, "fields": fields, "shuffle": shuffle, "recycle": recycle, "limit": limit}
        self._opened: Table | None = None
        self._fields = None if self._table.native is None else self._table.fields(fields)
        self._wanted = fields
        self._recycle, self._limit = recycle, limit
        if shuffle == "blocks":
            shuffle = (self._table.native.block, _WINDOW) if self._table.native is not None else True
        elif isinstance(shuffle, str):
            raise ValueError(f'shuffle is True, False, "blocks" or (block, window), not {shuffle!r}')
        self.mode = None if self._table.weights is not None else Mode.of(mode, epochs)
        if self.mode is None and mode is not None:
            raise ValueError("a mixture has an order of its own: give no mode")
        self._shuffle = shuffle
        self._start: dict[str, Any] | None = None
        self._fingerprint: str | None = None
        self._own: BatchIterator | None = None
        self._latest: weakref.ref[BatchIterator] | None = None
        self._iterators: weakref.WeakSet[BatchIterator] = weakref.WeakSet()
        self._first = self._sampler()

    @property
    def _table(self) -> Table:
        """The records; looked at anew after `close`, which lets them go."""
        if self._opened is None:
            self._opened = Table(self.dataset, self.labelset)
        return self._opened

    def _sampler(self, epochs: int | None = None, worker: tuple[int, int] = (0, 1)) -> Sampler:
        return Sampler(
            self._table.length,
            self.batch_size,
            self.mode,
            self.seed,
            rank=self.rank,
            world=self.world,
            epochs=self.epochs if epochs is None else epochs,
            drop_last=self.drop_last,
            shuffle=self._shuffle,
            weights=self._table.weights,
            worker=worker,
        )

    def _begin(self, sampler: Sampler) -> BatchIterator:
        iterator = BatchIterator(self, sampler)
        self._iterators.add(iterator)
        self._latest = weakref.ref(iterator)
        return iterator

    def iterate(self, worker: tuple[int, int] = (0, 1)) -> BatchIterator:
        """A new iterator, which takes every step of this rank, or as worker `w` of `n` every `n`-th."""
        sampler = self._sampler(worker=worker)
        if self._start is not None:
            sampler.load_state_dict(self._start)
            self._start = None
        return self._begin(sampler)

    def __iter__(self) -> Iterator[Any]:
        return self.iterate()

    def epoch(self, number: int) -> BatchIterator:
        """An iterator over one epoch.

        Examples
        --------
        >>> import numpy as np
        >>> from tensilo import DataLoader
        >>> loader = DataLoader(np.arange(10), batch_size=4, mode="epoch")
        >>> for number in range(2):
        ...     print(number, sorted(x for batch in loader.epoch(number) for x in batch["data"].tolist())[-3:])
        0 [7, 8, 9]
        1 [7, 8, 9]
        """
        sampler = self._sampler(epochs=number + 1)
        sampler._native.start_epoch(number)
        return self._begin(sampler)

    def __next__(self) -> Any:
        if self._own is None:
            self._own = self.iterate()
        return next(self._own)

    def __len__(self) -> int:
        steps = self._first._native.total_steps
        if steps is None:
            raise TypeError("an endless loader has no length")
        return steps

    def _identity(self) -> str:
        if self._fingerprint is None:
            self._fingerprint = self._table.fingerprint()
        return self._fingerprint

    def state_dict(self) -> dict[str, Any]:
        """The state behind the last batch of the latest iterator: plain values, the same on every rank."""
        latest = None if self._latest is None else self._latest()
        if self._start is not None:
            state = dict(self._start)
        elif latest is not None:
            return latest.state_dict()
        else:
            state = self._first.state_dict()
        return {**state, "fingerprint": self._identity()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iterator begin where a state stands, whatever its rank, world or number of workers.

        Raises
        ------
        SourceChangedError
            The records are others than those of the state.
        InvalidArgumentError
            The state is of another order, seed or number of records.
        """
        theirs = state.get("fingerprint")
        self._sampler().load_state_dict(state)
        if theirs is not None and theirs != self._identity():
            raise SourceChangedError("the state is of other records than these")
        self._start = dict(state)
        if self._own is not None:
            self._own.close()
            self._own = None

    def close(self) -> None:
        """End all iterators and their threads, and let the records go, so that their stores may be changed."""
        for iterator in list(self._iterators):
            iterator.close()
        self._own = None
        self._opened = self._fingerprint = None

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "dataset": portable(self.dataset),
            "labelset": portable(self.labelset),
            "named": {
                name: getattr(self, name)
                for name in (
                    "num_workers batch_size prefetch_size seed transform rank world epochs drop_last".split()
                )
            }
            | self._arguments,
            "state": self.state_dict(),
        }

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        dataset, labelset = arrived(pickled["dataset"]), arrived(pickled["labelset"])
        DataLoader.__init__(self, dataset, labelset, **pickled["named"])
        self._start = {k: v for k, v in pickled["state"].items()}

    def __repr__(self) -> str:
        order = "mixture" if self.mode is None else self.mode.name
        return f"<DataLoader: {self._table.length} records in batches of {self.batch_size}, {order}>"


class BatchIterator(Iterator[Any]):
    """Batches from where its loader's iteration began; made by ``iter(loader)``.

    Attributes
    ----------
    step, epoch : int
        Step and epoch of the last batch; -1 before the first.
    ids : numpy.ndarray
        Records of the last batch.
    """

    def __init__(self, loader: DataLoader, sampler: Sampler) -> None:
        self._loader = loader
        self._sampler = sampler
        self._position = sampler._native.position
        self.step, self.epoch = -1, -1
        self.ids: Ids = np.empty(0, np.uint64)
        self._closed = False
        self._start()

    def _start(self) -> None:
        loader = self._loader
        self._process = os.getpid()
        self._stage: Stage | None = None
        self._threads: _native.Loader | None = None
        sampler = self._sampler._native.copy()
        if loader._table.native is not None:
            self._threads = _native.Loader(
                loader._table.native,
                sampler,
                workers=loader.num_workers,
                prefetch=loader.prefetch_size,
                fields=loader._fields or [],
                limit=loader._limit,
            )
        work = _Work(loader, sampler, self._threads)
        self._work: _Work | None = work
        inline = loader.num_workers == 0 or (work.transform is None and self._threads is not None)
        if not inline:
            self._stage = Stage(
                work.take,
                work.finish,
                threads=loader.num_workers,
                depth=loader.prefetch_size + loader.num_workers,
                stop=work.stop,
            )

    def __next__(self) -> Any:
        if self._closed:
            raise StopIteration
        if os.getpid() != self._process:
            # The parent's threads are not in a forked child, and its locks may be held: neither is touched.
            self._sampler._native.resume(self._sampler._native.state(self._position))
            self._start()
        try:
            stage, work = self._stage, self._work
            if stage is not None:
                done = stage.next()
            else:
                item = None if work is None else work.take()
                done = None if work is None or item is None else work.finish(item)
        except BaseException as e:
            self._position = getattr(e, "_position", self._position)
            raise
        if done is None:
            self.close()
            raise StopIteration
        self.step, self.epoch, self.ids, batch, self._position = done
        return batch

    def state_dict(self) -> dict[str, Any]:
        """The state behind the last batch."""
        state = self._sampler._native.state(self._position)
        return {**state, "fingerprint": self._loader._identity()}

    def close(self) -> None:
        """End the threads; always returns."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:
            return
        if self._stage is not None:
            self._stage.close()
        elif self._threads is not None:
            self._threads.close()
        self._stage = self._threads = self._work = None

    def __enter__(self) -> BatchIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_threads") and hasattr(self, "_stage"):
            self.close()


class _Work:
    """What the threads of an iterator do; it does not hold the iterator, which may go while they wait."""

    def __init__(self, loader: DataLoader, sampler: _native.Sampler, threads: _native.Loader | None) -> None:
        self._table, self._wanted, self._recycle = loader._table, loader._wanted, loader._recycle
        self._paired = loader.labelset is not None
        self.transform = loader.transform
        self._sampler, self._threads = sampler, threads
        self._stopped = False

    def take(self) -> Any:
        """The next step as the native half gives it, or None at the end."""
        if self._threads is not None:
            return self._threads.next()
        step = None if self._stopped else self._sampler.step()
        return None if step is None else (step[0], step[1], step[2], None, step[3])

    def finish(self, item: Any) -> Any:
        """The step with its batch, transformed."""
        step, epoch, ids, fields, position = item
        try:
            if fields is None:
                batch: Any = self._table.gather(ids, self._wanted)
            else:
                batch = {field[0]: self._array(field, len(ids), memory, at) for field, memory, at in fields}
            if self.transform is not None:
                if self._paired:
                    data, label = self.transform((batch["data"], batch["label"]))
                    batch = {"data": data, "label": label}
                else:
                    batch = self.transform(batch)
        except BaseException as e:
            e.add_note(f"step {step}, records {np.array2string(ids, threshold=16)}")
            for name, value in (("step", step), ("record_ids", ids), ("_position", position)):
                try:
                    setattr(e, name, value)
                except AttributeError:
                    break
            raise
        return step, epoch, ids, batch, position

    def _array(self, field: Any, n: int, memory: Any, offsets: Any) -> Any:
        array = self._table.array(field, n, memory, offsets)
        if self._recycle:
            return array
        return Ragged(array.values.copy(), array.offsets) if isinstance(array, Ragged) else array.copy()

    def stop(self) -> None:
        self._stopped = True
        if self._threads is not None:
            self._threads.close()
