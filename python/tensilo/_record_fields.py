"""What every record has, and the ids that NumPy's indices stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import InvalidArgumentError, OutOfBoundsError

Array = np.ndarray[Any, np.dtype[Any]]


class Field:
    """What every record has under a name.

    Attributes
    ----------
    name : str
        Its name.
    dtype : numpy.dtype
        Type of its elements.
    shape : tuple of int
        Shape in one record; of a ragged field, without its first dimension, which differs between records.
    ragged : bool
        Has it a first dimension that differs between records?
    nbytes : int
        Bytes in one record; of a ragged field, of one row.
    """

    __slots__ = ("dtype", "name", "nbytes", "ragged", "shape")

    def __init__(self, name: str, dtype: str, shape: Sequence[int], ragged: bool) -> None:
        self.name = name
        self.dtype = np.dtype(dtype)
        self.shape = tuple(shape)
        self.ragged = ragged
        self.nbytes = math.prod(self.shape, start=self.dtype.itemsize)

    def __repr__(self) -> str:
        shape = ("*", *self.shape) if self.ragged else self.shape
        return f"<Field {self.name!r}: {self.dtype} {'×'.join(map(str, shape)) or 'scalar'}>"


def ids_of(index: Any, length: int) -> tuple[np.ndarray[Any, np.dtype[np.uint64]], tuple[int, ...]]:
    """The ids that an index of NumPy's stands for, and the shape of the index."""
    if isinstance(index, slice):
        ids = np.arange(*index.indices(length), dtype=np.int64)
        return ids.astype(np.uint64), ids.shape
    array = np.asarray(index)
    if array.dtype == np.bool_:
        if array.shape != (length,):
            raise OutOfBoundsError(f"a mask of shape {array.shape} for {length} records")
        array = np.flatnonzero(array)
    elif array.size == 0 and array.dtype == np.float64 and not isinstance(index, np.ndarray):
        array = array.astype(np.int64)
    elif array.dtype.kind not in "iu":
        raise OutOfBoundsError(f"records are indexed by integers, slices, lists and masks, not {array.dtype}")
    if array.size:
        bad = (array >= length) if array.dtype.kind == "u" else (array >= length) | (array < -length)
        if bad.any():
            raise OutOfBoundsError(f"there is no record {array[bad].flat[0]}, there are {length}")
    if array.dtype.kind == "i":
        array = np.where(array < 0, array + length, array)
    return np.ascontiguousarray(array.reshape(-1), dtype=np.uint64), array.shape


def field_of(name: str, values: Any) -> tuple[Any, Any]:
    """Dtype and shape of the field that holds such values."""
    if isinstance(values, np.ndarray):
        if values.ndim == 0:
            raise InvalidArgumentError(f"field {name!r} is a single value")
        return values.dtype, values.shape[1:]
    if all(np.ndim(v) == 0 for v in values):
        array = np.asarray(values)
        return array.dtype, ()
    first = np.asarray(values[0])
    return first.dtype, (None, *first.shape[1:])
