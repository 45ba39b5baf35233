"""Writing records, a bounded block at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from . import _native
from ._record_fields import Array, Field, ids_of
from .errors import InvalidArgumentError

#: Bytes of an array that are written at a time.
WRITE_BLOCK_BYTES = 64 << 20


class RecordsWriter:
    """A store open for writing; made by `Records.create` or `Records.open_writer`."""

    def __init__(self, native: _native.RecordWriter) -> None:
        self._native = native
        self.fields = {f[0]: Field(*f) for f in native.fields()}

    def __len__(self) -> int:
        return len(self._native)

    def append(self, data: Any) -> int:
        """Append records, a bounded block at a time; they are durable and visible after `commit`.

        Parameters
        ----------
        data : array, or mapping of arrays
            As for `Records.write`; values are converted to the field's dtype where it can hold them: integers that it has,
            and floats that become no infinity. They may be rounded.

        Returns
        -------
        int
            How many were appended.
        """
        columns = dict(data) if isinstance(data, Mapping) else {next(iter(self.fields)): data}
        if set(columns) != set(self.fields):
            raise InvalidArgumentError(f"fields {sorted(columns)} were given, the store has {sorted(self.fields)}")
        ordered = [(field, columns[name]) for name, field in self.fields.items()]
        counts = {field.name: len(values) for field, values in ordered}
        if len(set(counts.values())) != 1:
            raise InvalidArgumentError(f"the fields have different numbers of records: {counts}")
        total = next(iter(counts.values()))
        row = sum(max(field.nbytes, 1) for field, values in ordered if not field.ragged) or 1
        step = max(1, WRITE_BLOCK_BYTES // row)
        if any(field.ragged for field, _ in ordered):
            step = min(step, 4096)
        for start in range(0, total, step):
            stop = min(start + step, total)
            self._native.append(stop - start, [_column(field, values[start:stop]) for field, values in ordered])
        return total

    def commit(self) -> None:
        """Make everything appended durable and visible."""
        self._native.commit()

    def delete(self, ids: Any) -> None:
        """Delete records, by NumPy's indexing, and commit; the last records take their places."""
        self._native.delete(ids_of(ids if np.ndim(ids) or isinstance(ids, slice) else [ids], len(self))[0])

    def compact(self) -> None:
        """Give the space of deleted records back; readers keep what they opened."""
        self._native.compact()

    def set_metadata(self, metadata: Any) -> None:
        """Replace the metadata with the next commit."""
        self._native.set_metadata(json.dumps(metadata))

    def close(self) -> None:
        """Let other writers in; what was not committed is gone."""
        self._native.close()

    def __enter__(self) -> RecordsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()


def _column(field: Field, values: Any) -> tuple[Any, Any]:
    """Bytes of a block, and rows of each record of a ragged field."""
    if not field.ragged:
        array = np.asarray(values)
        if array.shape[1:] != field.shape:
            raise InvalidArgumentError(f"field {field.name!r} has shape {field.shape}, not {array.shape[1:]}")
        return _bytes(field, array), None
    rows = [np.asarray(v) for v in values]
    for r in rows:
        if r.ndim == 0:
            raise InvalidArgumentError(f"field {field.name!r} is ragged: each record is a sequence of rows")
        if r.shape[1:] != field.shape:
            raise InvalidArgumentError(f"field {field.name!r} has rows of shape {field.shape}, not {r.shape[1:]}")
    lengths = np.array([len(r) for r in rows], dtype=np.uint64)
    joined = np.concatenate([_bytes(field, r) for r in rows]) if rows else np.empty(0, np.uint8)
    return joined, lengths


def _converted(field: Field, array: Array) -> Array:
    """The values in the field's dtype; refused where it cannot hold them."""
    if array.dtype == field.dtype:
        return np.ascontiguousarray(array)
    whole = array.dtype.kind in "iu" and field.dtype.kind in "iu"
    if not whole and not np.can_cast(array.dtype, field.dtype, "same_kind"):
        raise InvalidArgumentError(f"field {field.name!r} has {field.dtype}, {array.dtype} cannot be stored in it")
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(array, dtype=field.dtype)
    if np.can_cast(array.dtype, field.dtype, "safe"):
        return converted
    if whole:
        limits = np.iinfo(field.dtype)
        bad = (array < limits.min) | (array > limits.max)
    else:
        bad = ~np.isfinite(converted) & np.isfinite(array)
    if bad.any():
        value = array[bad].flat[0]
        raise InvalidArgumentError(f"field {field.name!r} has {field.dtype}, which cannot hold {value}")
    return converted


def _bytes(field: Field, array: Array) -> Array:
    contiguous = _converted(field, array).reshape(-1)
    return contiguous.view(np.uint8) if contiguous.size else np.empty(0, np.uint8)
