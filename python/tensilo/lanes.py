"""Lane stores: named, typed arrays in slabs along a slow axis, mapped into memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native

__all__ = ["Lane", "LaneStore", "LaneWriter"]

Array = np.ndarray[Any, np.dtype[Any]]


class Lane:
    """A lane as an array that is not loaded: what is indexed is read, and compared with its checksum.

    It has what xarray and dask ask of an array: ``shape``, ``dtype``, ``ndim``, ``chunks`` and indexing.

    Attributes
    ----------
    name : str
        Its name in the store.
    shape : tuple of int
        ``(slabs, …)``, or ``(len,)`` for a flat lane.
    dtype : numpy.dtype
        Type of its elements.
    """

    def __init__(self, store: LaneStore, name: str) -> None:
        dtype, slabs, elems, shape, chunk = store._native.describe(name)
        self._store = store
        self._slabs = slabs
        self._chunked = bool(chunk)
        self.name = name
        self.dtype = np.dtype(dtype)
        self.shape: tuple[int, ...] = (elems,) if slabs is None else (slabs, *(shape or (elems,)))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Extents that are read together: one slab."""
        return self.shape if self._slabs is None else (1, *self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Lane {self.name!r}: shape {self.shape}, {self.dtype}>"

    def window(self, start: int, end: int) -> Array:
        """Slabs `start` to `end` as a read-only array of shape ``(end - start, …)``, checked.

        Parameters
        ----------
        start, end : int
            The first slab, and the one behind the last.

        Returns
        -------
        numpy.ndarray
            A view of the map; a copy where slabs were appended elsewhere or are stored in chunks.

        Raises
        ------
        InvalidArgumentError
            The lane is flat, or has no such slabs.
        CorruptError
            A slab does not match its checksum.
        """
        return self._slab_range(start, end, raw=False)

    def _slab_range(self, start: int, end: int, *, raw: bool) -> Array:
        native = self._store._native
        if self._slabs is None:
            start, end = 0, 1
        shape = self.shape if self._slabs is None else (end - start, *self.shape[1:])
        if not self._chunked:
            try:
                return np.asarray(native.view(self.name, start, end, raw)).reshape(shape)
            except _native_unsupported():
                pass
        copy: Array = np.empty(shape, self.dtype)
        native.copy(self.name, start, end, copy.reshape(-1).view("u1"))
        copy.flags.writeable = False
        return copy

    def __getitem__(self, index: Any) -> Any:
        if self._slabs is None:
            return self._slab_range(0, 1, raw=False)[index]
        parts = index if isinstance(index, tuple) else (index,)
        if not parts or parts[0] is Ellipsis or parts[0] is None:
            return self._slab_range(0, self._slabs, raw=False)[index]
        first, rest = parts[0], parts[1:]
        if isinstance(first, slice):
            ks = range(self._slabs)[first]
            if not ks:
                return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *rest)]
            low, high = min(ks[0], ks[-1]), max(ks[0], ks[-1])
            stop = ks[-1] - low + ks.step
            within = slice(ks[0] - low, stop if stop >= 0 else None, ks.step)
            return self._slab_range(low, high + 1, raw=False)[(within, *rest)]
        if np.ndim(first) == 0 and not isinstance(first, bool):
            k = range(self._slabs)[first]
            return self._slab_range(k, k + 1, raw=False)[(0, *rest)]
        picked = np.arange(self._slabs)[np.asarray(first)]
        out: Array = np.empty((*picked.shape, *self.shape[1:]), self.dtype)
        for at, k in np.ndenumerate(picked):
            out[at] = self._slab_range(int(k), int(k) + 1, raw=False)[0]
        return out[(*(slice(None),) * picked.ndim, *rest)]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        array = self._slab_range(0, self._slabs or 1, raw=False)
        if copy:
            return np.array(array, dtype=dtype, copy=True)
        if copy is False and dtype is not None and np.dtype(dtype) != array.dtype:
            raise ValueError("another dtype needs a copy")
        return np.asarray(array, dtype=dtype)


def _native_unsupported() -> type[Exception]:
    from .errors import UnsupportedError

    return UnsupportedError


class LaneStore(Mapping[str, Array]):
    """An open lane store, a mapping from lane names to read-only arrays that are views of the file.

    Parameters
    ----------
    path : str or os.PathLike
        The store, of format 1 or 2.
    lenient : bool, optional
        Accept what petektools accepts although it is questionable.
    verify : bool, optional
        Compare every slab with its checksum now.

    Raises
    ------
    MissingFileError, LockedError
        There is no such file; a writer is rewriting it.
    CorruptError
        It is damaged, or was never finished.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from tensilo import LaneStore
    >>> path = os.path.join(tempfile.mkdtemp(), "model.pts")
    >>> with LaneStore.create(path, 3, {"PORO": ("f4", 4)}, app={"kind": "demo"}) as w:
    ...     for k in range(3):
    ...         w.write("PORO", k, np.full(4, k))
    >>> store = LaneStore(path)
    >>> store["PORO"].shape, float(store["PORO"][2, 0]), store.app
    ((3, 4), 2.0, {'kind': 'demo'})
    """

    def __init__(self, path: str | os.PathLike[str], *, lenient: bool = False, verify: bool = False) -> None:
        self.path = os.path.abspath(path)
        self._options = {"lenient": lenient, "verify": verify}
        self._native = _native.LaneStore(self.path, lenient=lenient, verify=verify)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (type(self), self.path, self._options)

    def _loader_source(self) -> _native.Source:
        return self._native.source()

    @property
    def nslabs(self) -> int:
        """Steps of the slow axis."""
        return self._native.nslabs

    @property
    def format(self) -> int:
        """On-disk format, 1 or 2."""
        return self._native.format

    @property
    def app(self) -> Any:
        """What the application kept in the store."""
        return json.loads(self._native.app)

    def __iter__(self) -> Iterator[str]:
        return iter(self._native.names())

    def __len__(self) -> int:
        return len(self._native.names())

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self.lane(name))

    def lane(self, name: str) -> Lane:
        """A lane that is read as it is indexed.

        Raises
        ------
        NotFoundError
            There is no such lane.
        """
        return Lane(self, name)

    def raw(self, name: str) -> Array:
        """A lane as an array whose slabs are not compared with their checksums."""
        lane = self.lane(name)
        return lane._slab_range(0, lane._slabs or 1, raw=True)

    def is_written(self, name: str, k: int) -> bool:
        """Was slab `k` ever written? Always true in format 1, which does not know."""
        return self._native.is_written(name, k)

    def verify(self) -> list[str]:
        """Compare every slab with its checksum; one text for each that does not match."""
        return self._native.verify()

    def __enter__(self) -> LaneStore:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"<LaneStore {self.path!r}: format {self.format}, {self.nslabs} slabs, lanes {list(self)}>"

    @staticmethod
    def create(
        path: str | os.PathLike[str],
        nslabs: int,
        lanes: Mapping[str, Any],
        *,
        app: Any = None,
        format: int = 2,
        overwrite: bool = False,
        write_behind: bool = False,
    ) -> LaneWriter:
        """Start a new store, which appears when it is finished.

        Parameters
        ----------
        path : str or os.PathLike
            Where it will be.
        nslabs : int
            Steps of the slow axis.
        lanes : mapping of str
            For every name ``(dtype, elements)`` or ``(dtype, shape)`` of a slab, or a dict with ``dtype`` and
            ``shape`` and any of ``flat`` (bool), ``slabs``, ``chunk`` and ``reserve``.
        app : object, optional
            Anything that JSON can hold.
        format : int, optional
            2, or 1 for what petektools reads.
        overwrite : bool, optional
            Replace an existing file when the store is finished.
        write_behind : bool, optional
            Keep the page cache small while writing.

        Returns
        -------
        LaneWriter
            A context manager: leaving it without an exception finishes the store.
        """
        specs = [_spec(name, lane) for name, lane in lanes.items()]
        return LaneWriter(
            _native.LaneWriter.create(
                os.fspath(path),
                nslabs,
                specs,
                json.dumps(app),
                format=format,
                overwrite=overwrite,
                write_behind=write_behind,
            )
        )

    @staticmethod
    def append(path: str | os.PathLike[str]) -> LaneWriter:
        """Open a finished store of format 2 to append slabs and lanes."""
        return LaneWriter(_native.LaneWriter.append(os.fspath(path)))

    @staticmethod
    def overwrite(path: str | os.PathLike[str]) -> LaneWriter:
        """Open a finished store to overwrite slabs in place; nobody can open it until it is finished."""
        return LaneWriter(_native.LaneWriter.overwrite(os.fspath(path)))


def _open(cls: type[LaneStore], path: str, options: dict[str, bool]) -> LaneStore:
    return cls(path, **options)


def _spec(name: str, lane: Any) -> Any:
    if not isinstance(lane, Mapping):
        dtype, shape = lane
        lane = {"dtype": dtype, "shape": shape}
    shape = lane["shape"]
    shape = (int(shape),) if np.ndim(shape) == 0 else tuple(int(n) for n in shape)
    elems = 1
    for n in shape:
        elems *= n
    inner = list(shape) if len(shape) > 1 or lane.get("chunk") else []
    kind = "flat" if lane.get("flat") else "slab"
    typestr = np.dtype(lane["dtype"]).newbyteorder("<").str
    chunk = [int(n) for n in lane.get("chunk", ())]
    return name, typestr, kind, elems, lane.get("slabs"), inner, chunk, lane.get("reserve", 0)


class LaneWriter:
    """A store being written; made by `LaneStore.create`, `LaneStore.append` or `LaneStore.overwrite`."""

    def __init__(self, native: _native.LaneWriter) -> None:
        self._native = native

    def write(self, name: str, k: int | None, values: npt.ArrayLike) -> None:
        """Write slab `k` of a lane, or a flat lane with `k` None; values are converted to the lane's type.

        Raises
        ------
        InvalidArgumentError
            There is no such slab, or another number of values is needed.
        """
        array = np.ascontiguousarray(values, dtype=self._native.dtype(name)).reshape(-1)
        self._native.write(name, k, array.view("u1"))

    def append_slabs(self, name: str, slabs: int) -> None:
        """Add slabs at the end of a lane; they are zero until they are written."""
        self._native.append_slabs(name, slabs)

    def add_lane(self, name: str, lane: Any) -> None:
        """Add a lane, described as for `LaneStore.create`."""
        self._native.add_lane(_spec(name, lane))

    def finish(self) -> None:
        """Make the store durable and visible."""
        self._native.finish()

    def abort(self) -> None:
        """Give the new store up; nothing of it stays."""
        self._native.abort()

    def __enter__(self) -> LaneWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.abort()
