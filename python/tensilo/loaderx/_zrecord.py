"""Zrecord stores: collections of byte records, read by index."""

from __future__ import annotations

import operator
import os
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native

__all__ = ["CODECS", "MAX_RECORD_LEN", "Zrecord", "ZrecordError"]

#: How records may be stored, and the numbers that stand for it in the file.
CODECS = {"raw": 0, "flate": 1}

#: Longest record, in bytes; the shortest has one.
MAX_RECORD_LEN = 1 << 20

_ERRORS = {
    -1: "out of memory",
    -2: "file I/O failed",
    -3: "index out of range",
    -4: f"record exceeds the {MAX_RECORD_LEN} byte limit",
    -5: "store is full",
    -6: "buffer too small",
    -7: "stored record failed to decode",
    -8: "not a zrecord store, or written by a newer version",
}


class ZrecordError(RuntimeError):
    """An error of a store.

    An index out of range is an `IndexError` too.

    Attributes
    ----------
    code : int
        -1 out of memory, -2 the system refused or another handle is in the way, -3 index out of range, -4 record
        too long, or empty, -5 store is full, -6 buffer too small, -7 stored record failed to decode, -8 no store.
    """

    code: int

    def __new__(cls, code: int = -2, detail: str | None = None) -> ZrecordError:
        chosen = _OutOfRange if code == -3 and cls is ZrecordError else cls
        return super().__new__(chosen, code, detail)

    def __init__(self, code: int = -2, detail: str | None = None) -> None:
        text = _ERRORS.get(code, f"unknown zrecord error {code}")
        super().__init__(text if detail is None else f"{text}: {detail}")
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _raised, (self.code, str(self))


class _OutOfRange(ZrecordError, IndexError):
    """Code -3."""


def _raised(code: int, text: str) -> ZrecordError:
    """An error again, from its code and text."""
    e = ZrecordError(code)
    e.args = (text,)
    return e


def _error(code: int, detail: str, hint: str | None) -> ZrecordError:
    """The exception for an error of the native half."""
    e = ZrecordError(code, detail)
    if hint is not None:
        e.add_note(hint)
    return e


def _ids(idxs: ArrayLike, what: str = "indices") -> NDArray[np.uint64]:
    """Indices as the native half wants them; negative ones are out of range."""
    array = np.asarray(idxs)
    if array.size == 0:
        return np.zeros(0, np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} must be integers, not {array.dtype}")
    if array.ndim > 1:
        raise ValueError(f"{what} must have one dimension, not {array.ndim}")
    if array.dtype.kind == "i" and (array < 0).any():
        raise ZrecordError(-3, f"{what} must not be negative")
    return np.ascontiguousarray(array.reshape(-1), dtype=np.uint64)


def _bytes(array: NDArray[Any], name: str, *, write: bool = False) -> NDArray[np.uint8]:
    """The bytes of an array, without a copy."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous")
    if array.dtype.hasobject:
        raise ValueError(f"{name} must not hold Python objects")
    if write and not array.flags.writeable:
        raise ValueError(f"{name} is read-only")
    if array.size == 0 or array.dtype.itemsize == 0:
        return np.zeros(0, np.uint8)
    return array.reshape(-1).view(np.uint8)


class Zrecord:
    """A store of byte records.

    An index means the same record until something is deleted. Any number of threads may read while others append;
    every append waits for its turn, also among processes, and is durable when it returns.

    Parameters
    ----------
    path : str or os.PathLike
        The store's folder. It is created when there is none, if the folder above exists.
    codec : str, optional
        How `append` stores records: ``"flate"``, where that makes them smaller, or ``"raw"``.
    mode : str, optional
        ``"a"`` to read and change, ``"r"`` to read only, for which the folder need not be writable.

    Raises
    ------
    ValueError
        The codec or the mode is unknown.
    ZrecordError
        There is no store (code -8), or the system refused (code -2).
    """

    codec: str

    def __init__(self, path: str | os.PathLike[str], codec: str = "flate", *, mode: str = "a") -> None:
        if codec not in CODECS:
            raise ValueError(f"unknown codec {codec!r}, expected one of {sorted(CODECS)}")
        if mode not in ("a", "r"):
            raise ValueError(f"unknown mode {mode!r}, expected 'a' or 'r'")
        self.codec = codec
        self._zr: _native.ZrecordStore | None = _native.ZrecordStore(os.fspath(path), read_only=mode == "r")

    @property
    def _store(self) -> _native.ZrecordStore:
        if self._zr is None:
            raise ValueError("the store is closed")
        return self._zr

    def __len__(self) -> int:
        """The number of records, those included that other processes have appended."""
        return self._store.count()

    def sync(self) -> None:
        """Make everything durable that anyone has written; what this class appends is so already."""
        self._store.sync()

    def lengths(self, idxs: ArrayLike) -> NDArray[np.uint32]:
        """The sizes of records.

        Parameters
        ----------
        idxs : array_like of int
            Which records.

        Returns
        -------
        numpy.ndarray
            Bytes of each, as uint32.
        """
        ids = _ids(idxs)
        out = np.empty(ids.size, dtype=np.uint32)
        self._store.lengths(ids, out)
        return out

    def gather(self, idxs: ArrayLike, dst: NDArray[Any], stride: int) -> None:
        """Decode records into an array.

        Parameters
        ----------
        idxs : array_like of int
            Which records.
        dst : numpy.ndarray
            Where to: C-contiguous and writable. What no record covers stays as it is.
        stride : int
            Bytes from the start of one record to the start of the next.
        """
        self._store.gather(_ids(idxs), _bytes(dst, "dst", write=True), operator.index(stride))

    def gather_var(self, idxs: ArrayLike, dst: NDArray[Any], offsets: ArrayLike) -> None:
        """Decode records of any lengths into an array.

        Parameters
        ----------
        idxs : array_like of int
            Which records.
        dst : numpy.ndarray
            Where to: C-contiguous and writable.
        offsets : array_like of int
            The byte in `dst` where each record begins; they must not overlap.
        """
        self._store.gather_var(_ids(idxs), _bytes(dst, "dst", write=True), _ids(offsets, "offsets"))

    def append(self, src: NDArray[Any], n: int, item_len: int, codec: str | None = None) -> int:
        """Append records of one length: all of them or, after an error or a crash, none.

        Parameters
        ----------
        src : numpy.ndarray
            Their bytes, C-contiguous: at least ``n * item_len``.
        n : int
            How many.
        item_len : int
            Bytes of each.
        codec : str, optional
            ``"flate"`` or ``"raw"``, instead of the store's.

        Returns
        -------
        int
            The index of the first.
        """
        tag = CODECS[codec or self.codec]
        count, length = operator.index(n), operator.index(item_len)
        return self._store.append(_bytes(src, "src"), count, length, tag)

    def append_var(
        self, src: NDArray[Any], offsets: ArrayLike, lens: ArrayLike, codec: str | None = None
    ) -> int:
        """Append records of any lengths: all of them or, after an error or a crash, none.

        Parameters
        ----------
        src : numpy.ndarray
            Where their bytes lie, C-contiguous.
        offsets, lens : array_like of int
            The byte in `src` where each begins, and its bytes.
        codec : str, optional
            ``"flate"`` or ``"raw"``, instead of the store's.

        Returns
        -------
        int
            The index of the first.
        """
        tag = CODECS[codec or self.codec]
        sizes = _ids(lens, "lens")
        if sizes.size and int(sizes.max()) > MAX_RECORD_LEN:
            raise ZrecordError(-4)
        return self._store.append_var(
            _bytes(src, "src"), _ids(offsets, "offsets"), sizes.astype(np.uint32), tag
        )

    def delete(self, idxs: ArrayLike) -> None:
        """Remove records. The last ones get their indices, so that all stay below ``len(self)``.

        The bytes stay until `compact`. Refused (code -2) while other handles use the store.

        Parameters
        ----------
        idxs : array_like of int
            Which; repeated ones count once.
        """
        self._store.delete(_ids(idxs))

    def compact(self) -> None:
        """Give the space of deleted records back to the system.

        Safe to interrupt at any point; a second run finishes. Refused (code -2) while other handles use the store.
        """
        self._store.compact()

    def stats(self) -> dict[str, int]:
        """How much the store holds.

        Returns
        -------
        dict
            ``records``; ``live_bytes`` that they take; ``chunk_bytes`` up to the end of the store; ``reclaimable``,
            the difference, of which `compact` gives back all but less than one record for each data file.
        """
        records, live, chunk = self._store.stats()
        return {"records": records, "live_bytes": live, "chunk_bytes": chunk, "reclaimable": chunk - live}

    def __enter__(self) -> Zrecord:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; closing it again does nothing, using it raises ValueError."""
        self._zr = None
