"""What NumPy makes of values, and how the native half takes it to write it into HDF5 files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def native_dtype(dtype: np.dtype[Any]) -> Any:
    """A dtype as the native half takes it; one with names for its values, as h5py.enum_dtype makes it, too."""
    if dtype.names is None:
        plain = "bfloat16" if dtype.name == "bfloat16" else dtype.str
        metadata: Mapping[str, Any] = dtype.metadata or {}
        names: Mapping[str, int] = metadata.get("enum", {})
        if not names:
            return plain
        return plain, [(name, np.asarray(value, dtype).tobytes()) for name, value in names.items()]
    fields = []
    for name in dtype.names:
        field = dtype.fields[name]  # type: ignore[index]
        base, shape = field[0].subdtype or (field[0], ())
        fields.append((name, native_dtype(base), list(shape), field[1]))
    return fields, dtype.itemsize


def bytes_of(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of an array in C order; a copy only where they do not lie so."""
    if array.dtype.hasobject:
        raise TypeError(f"elements of {array.dtype} hold Python objects")
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)


def texts_of(array: Array) -> list[str] | None:
    """The strings of an array of them; `None` for an array of something else."""
    if array.dtype.kind == "U" or array.dtype.kind == "T":
        return [str(s) for s in array.reshape(-1)]
    if array.dtype.kind != "O":
        return None
    items = array.reshape(-1).tolist()
    for item in items:
        if not isinstance(item, str):
            raise TypeError(
                f"an array of objects is written when all are str, or sequences of a dtype as h5py.vlen_dtype makes it, "
                f"not {type(item).__name__}"
            )
    return items


def sequences_of(array: Array) -> tuple[np.dtype[Any], list[Array]] | None:
    """Items of an array whose dtype h5py made for sequences of variable length; `None` for another."""
    metadata: Mapping[str, Any] = array.dtype.metadata or {}
    item = metadata.get("vlen") if array.dtype.kind == "O" else None
    if item is None or item in (str, bytes):
        return None
    item = np.dtype(item)
    if item.kind == "O" or item.subdtype is not None:
        raise TypeError("sequences of variable length hold plain or structured elements")
    # Elements that were never set are empty.
    rows = [np.empty(0, item) if v is None or (np.ndim(v) == 0 and v == 0) else np.asarray(v, dtype=item) for v in array.reshape(-1).tolist()]
    if any(r.ndim != 1 for r in rows):
        raise TypeError("an element of variable length is a sequence of one dimension")
    return item, [bytes_of(r) for r in rows]


def is_text(dtype: Any) -> bool:
    """Does this mean strings of variable length, as h5py says it?"""
    return dtype is str or ((getattr(dtype, "metadata", None) or {}).get("vlen") is str)


def is_null(value: Any) -> bool:
    """Is this what h5py calls Empty: a dtype without elements?"""
    return not isinstance(value, np.ndarray) and hasattr(value, "dtype") and getattr(value, "shape", ()) is None


def array_of(value: Any, dtype: Any = None) -> Array:
    """What NumPy makes of a value; an empty string of bytes takes one byte."""
    array = np.asarray(value, dtype=None if is_text(dtype) else dtype)
    return array.astype("S1") if array.dtype == np.dtype("S0") else array
