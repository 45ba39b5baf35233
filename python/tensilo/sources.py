"""What a loader can read from, and how a gathered field becomes an array."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from . import _native

__all__ = ["Mix", "Ragged", "Table"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Most that weights given as fractions are multiplied by.
_FINEST = 1000


class Ragged(NamedTuple):
    """A field whose records differ in length.

    Attributes
    ----------
    values : numpy.ndarray
        The rows of all records, one record after the other.
    offsets : numpy.ndarray
        Where each record starts in them, and at the end their number.
    """

    values: Array
    offsets: Array

    def record(self, i: int) -> Array:
        """The rows of the `i`-th record of the batch."""
        return self.values[int(self.offsets[i]) : int(self.offsets[i + 1])]


class Mix:
    """Several sources of the same fields, to be mixed by weight.

    Parameters
    ----------
    sources : sequence
        Sources, as `DataLoader` takes them.
    weights : sequence of int or float
        How often a record of each source comes, relative to the others. Of every ``sum(weights)`` records, reduced to
        the smallest whole numbers, each source gives exactly its weight.

    Examples
    --------
    >>> import numpy as np
    >>> from tensilo import DataLoader, Mix
    >>> mix = Mix([np.zeros(100), np.ones(10)], [3, 1])
    >>> with DataLoader(mix, batch_size=8) as loader:
    ...     print(float(next(loader)["data"].sum()))
    2.0
    """

    def __init__(self, sources: Sequence[Any], weights: Sequence[int | float]) -> None:
        self.sources = list(sources)
        fractions = [Fraction(w).limit_denominator(_FINEST) for w in weights]
        if len(fractions) != len(self.sources) or any(f <= 0 for f in fractions):
            raise ValueError("every source needs a weight above 0")
        common = 1
        for f in fractions:
            common *= f.denominator // np.gcd(common, f.denominator)
        self.weights = [int(f * common) for f in fractions]


def _dtype_text(name: str, dtype: np.dtype[Any]) -> str:
    """The dtype as the native half knows it: numbers by their type, all else as so many bytes."""
    if dtype.hasobject:
        raise TypeError(f"{name!r} holds Python objects, which have no bytes to be read")
    if dtype.itemsize == 0:
        raise ValueError(f"the elements of {name!r} have no bytes")
    plain = dtype.kind in "biufc" and dtype.byteorder != ">" and dtype.itemsize <= 16 and dtype.str != "<f16"
    return dtype.str if plain else f"|V{dtype.itemsize}"


class Table:
    """Records with named fields, from whatever a user calls a dataset.

    Attributes
    ----------
    native : _native.Source or None
        What the native half reads from; None when only Python can.
    length : int
        Number of records.
    weights : list or None
        ``(length, weight)`` of each source of a mixture.
    """

    def __init__(self, dataset: Any, labelset: Any = None) -> None:
        self.weights: list[tuple[int, int]] | None = None
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._parts: list[tuple[str | None, Any]] = []
        if labelset is None:
            self._parts.append(("data" if _nameless(dataset) else None, dataset))
        else:
            self._parts += [("data", dataset), ("label", labelset)]
            if len(dataset) != len(labelset):
                raise ValueError(f"{len(dataset)} records of data and {len(labelset)} labels")
        sources = [self._source(part, name) for name, part in self._parts]
        self.native: _native.Source | None = None
        if all(s is not None for s in sources):
            named = [(n, s) for (n, _), s in zip(self._parts, sources, strict=True) if s is not None]
            self.native = named[0][1] if len(named) == 1 else _native.Source.zip(named)
        self.length = len(dataset) if self.native is None else len(self.native)

    def _source(self, part: Any, name: str | None) -> _native.Source | None:
        """The native source of a part, whose only field gets this name if it is not None; None for a foreign part."""
        if isinstance(part, Mix):
            tables = [Table(s) for s in part.sources]
            natives = [t.native for t in tables if t.native is not None]
            if len(natives) < len(tables):
                raise TypeError("only arrays and stores can be mixed")
            self.weights = [(t.length, w) for t, w in zip(tables, part.weights, strict=True)]
            for table in tables:
                self._dtypes.update(table._dtypes)
            return _native.Source.concat(natives)
        if isinstance(part, np.ndarray):
            field = name or "data"
            self._dtypes[field] = part.dtype
            return _native.Source.array(field, part, _dtype_text(field, part.dtype))
        if hasattr(part, "_loader_source"):
            source: _native.Source = part._loader_source()
            fields = source.fields()
            if len(fields) > 1:
                self._dtypes.update({own: np.dtype(text) for own, text, _, _ in fields})
            else:
                own, text, _, _ = fields[0]
                declared = getattr(part, "dtype", None)
                known = np.dtype(text) if declared is None else np.dtype(declared)
                self._dtypes[name or own] = known if known.itemsize == np.dtype(text).itemsize else np.dtype(text)
                if name is not None and name != own:
                    return _native.Source.zip([(name, source)])
            return source
        if isinstance(part, Mapping) and part:
            columns = {key: self._source(column, key) for key, column in part.items()}
            if all(c is not None for c in columns.values()):
                return _native.Source.zip([(k, c) for k, c in columns.items() if c is not None])
            raise TypeError("the columns of a mapping must be arrays or stores")
        if not hasattr(part, "__getitem__") and not hasattr(part, "__getitems__"):
            raise TypeError(f"records cannot be read from a {type(part).__name__}")
        return None

    def fields(self, wanted: Sequence[str] | None) -> list[str]:
        """Names of the native fields that are wanted; all if not said."""
        assert self.native is not None
        known = [name for name, *_ in self.native.fields()]
        for name in wanted or ():
            if name not in known:
                raise KeyError(f"no field {name!r}; there are: {', '.join(known)}")
        return known if wanted is None else list(wanted)

    def array(self, field: Any, n: int, memory: Any, offsets: Array | None) -> Array | Ragged:
        """A gathered field of `n` records as an array over its memory, of the dtype that the source has."""
        name, _, shape, _ = field
        values: Array = np.asarray(memory).view(self._dtypes[name])
        if offsets is None:
            return values.reshape((n, *shape))
        return Ragged(values.reshape((int(offsets[-1]), *shape)), offsets)

    def gather(self, ids: Array, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        """The fields of records, read now."""
        if self.native is not None:
            names = self.fields(wanted)
            known = {f[0]: f for f in self.native.fields()}
            values = self.native.gather(np.ascontiguousarray(ids, dtype=np.uint64), names)
            return {n: self.array(known[n], len(ids), *v) for n, v in zip(names, values, strict=True)}
        batch: dict[str, Any] = {}
        for name, part in self._parts:
            got = _take(part, ids)
            batch.update(got if isinstance(got, dict) else {name or "data": got})
        return batch if wanted is None else {name: batch[name] for name in wanted}

    def fingerprint(self) -> str:
        """Identifies the records; of a foreign dataset the kind and the number alone."""
        if self.native is not None:
            return self.native.fingerprint()
        kinds = "+".join(type(part).__name__ for _, part in self._parts)
        return f"{kinds}:{self.length}"


def _nameless(dataset: Any) -> bool:
    """Has it one field without a name?"""
    single = hasattr(dataset, "dtype") and hasattr(dataset, "shape")
    foreign = not hasattr(dataset, "_loader_source") and not isinstance(dataset, (Mapping, Mix))
    return single or foreign


def _take(part: Any, ids: Array) -> Any:
    """Records of a foreign dataset, stacked."""
    if hasattr(part, "__getitems__"):
        got = part.__getitems__(ids)
    else:
        got = [part[int(i)] for i in ids]
    if isinstance(got, list):
        if got and isinstance(got[0], dict):
            return {key: np.stack([np.asarray(record[key]) for record in got]) for key in got[0]}
        return np.stack([np.asarray(record) for record in got])
    return got


class _MappedFile(NamedTuple):
    """A file mapped by NumPy, for another process to map again."""

    filename: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


def portable(dataset: Any) -> Any:
    """The dataset as it is pickled: a mapped file by its name, all else as it is."""
    if isinstance(dataset, np.memmap) and isinstance(dataset.base, mmap.mmap) and dataset.filename is not None:
        if dataset.flags.c_contiguous:
            return _MappedFile(dataset.filename, dataset.dtype, dataset.shape, dataset.offset)
    if isinstance(dataset, dict):
        return {key: portable(value) for key, value in dataset.items()}
    return dataset


def arrived(dataset: Any) -> Any:
    """What `portable` was made of."""
    if isinstance(dataset, _MappedFile):
        name, dtype, shape, offset = dataset
        return np.memmap(name, dtype=dtype, mode="r", shape=shape, offset=offset)
    if isinstance(dataset, dict):
        return {key: arrived(value) for key, value in dataset.items()}
    return dataset
