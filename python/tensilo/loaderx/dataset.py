"""Datasets: stores whose records are arrays of one type and shape, which ``schema.json`` beside them states."""

from __future__ import annotations

import json
import math
import operator
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native
from ._zrecord import CODECS, MAX_RECORD_LEN, Zrecord, ZrecordError

__all__ = ["FORMAT", "SCHEMA", "WRITE_CHUNK_BYTES", "Dataset"]

#: Name of the file that states type and shape.
SCHEMA = "schema.json"
#: What its key ``format`` says.
FORMAT = "loaderx-zrecord"
#: Bytes that `Dataset.write` hands over at once.
WRITE_CHUNK_BYTES = 64 << 20


def _described(dtype: np.dtype[Any]) -> dict[str, Any]:
    """The type as keys of the schema; fields, for which ``dtype.str`` has no room, get one of their own."""
    if dtype.hasobject:
        raise ValueError("an array of Python objects cannot be stored")
    keys: dict[str, Any] = {"dtype": dtype.str}
    if dtype.names is not None:
        keys["descr"] = np.lib.format.dtype_to_descr(dtype)
    return keys


def _tuples(descr: Any) -> Any:
    """JSON's lists as the tuples that NumPy wants."""
    if not isinstance(descr, list):
        return descr
    fields = []
    for field in descr:
        name, kind, *shape = field
        name = tuple(name) if isinstance(name, list) else name
        fields.append((name, _tuples(kind), *(tuple(s) if isinstance(s, list) else s for s in shape)))
    return fields


def _dtype(schema: dict[str, Any]) -> np.dtype[Any]:
    """The type that a schema states."""
    plain: np.dtype[Any] = np.dtype(schema["dtype"])
    if "descr" not in schema:
        return plain
    dtype: np.dtype[Any] = np.lib.format.descr_to_dtype(_tuples(schema["descr"]))
    if dtype.itemsize != plain.itemsize:
        raise ValueError(f"the schema states a type of {dtype.itemsize} bytes and one of {plain.itemsize}")
    return dtype


def _write_whole(path: Path, text: str) -> None:
    """Puts a file there, durable and whole."""
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class Dataset:
    """Arrays of one type and shape, read by index.

    Parameters
    ----------
    path : str or os.PathLike
        The folder that `Dataset.write` wrote. If it is not writable, it is opened to read only.

    Attributes
    ----------
    path : pathlib.Path
        The folder.
    dtype : numpy.dtype
        The type of the elements.
    shape : tuple of int
        The shape of one sample; ``()`` for scalars.
    codec : str
        How samples are stored that are appended.

    Raises
    ------
    FileNotFoundError
        There is no schema.
    ValueError
        The schema is none of loaderx's.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from tensilo.loaderx import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> images = np.arange(60, dtype="u1").reshape(10, 2, 3)
    >>> dataset = Dataset.write(folder.name + "/images", images)
    >>> len(dataset), dataset.shape, dataset[-1].tolist()
    (10, (2, 3), [[54, 55, 56], [57, 58, 59]])
    >>> dataset[[3, 1]].shape, dataset[::-4].shape
    ((2, 2, 3), (3, 2, 3))
    >>> dataset.close()
    >>> folder.cleanup()
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    codec: str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._store: Zrecord | None = None
        self.path = Path(path)
        schema_path = self.path / SCHEMA
        if not schema_path.is_file():
            raise FileNotFoundError(f"{schema_path} not found; {self.path} is not a loaderx dataset")
        schema = json.loads(schema_path.read_text())
        if not isinstance(schema, dict) or schema.get("format") != FORMAT:
            raise ValueError(f"{schema_path} is not a {FORMAT} schema")
        self.dtype = _dtype(schema)
        self.shape = tuple(operator.index(d) for d in schema["shape"])
        self.codec = schema["codec"]
        self._itemsize = math.prod(self.shape) * self.dtype.itemsize
        table = self.path / "meta.zr"
        if not table.is_file():
            raise ZrecordError(-8, f"there is no {table}")
        writable = os.access(self.path, os.W_OK) and os.access(table, os.W_OK)
        self._store = Zrecord(self.path, codec=self.codec, mode="a" if writable else "r")

    @property
    def _open(self) -> Zrecord:
        if self._store is None:
            raise ValueError("the dataset is closed")
        return self._store

    def __len__(self) -> int:
        """The number of samples."""
        return len(self._open)

    def __repr__(self) -> str:
        if self._store is None:
            return f"Dataset({str(self.path)!r}, closed)"
        return f"Dataset({str(self.path)!r}: {len(self)} samples of {self.dtype}{list(self.shape)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its path: whoever unpickles it opens it."""
        return type(self), (self.path,)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Every sample once, in the order of the indices; blocks of them are read at once."""
        block = max(1, min(256, (4 << 20) // max(1, self._itemsize)))
        at = 0
        while at < (end := len(self)):
            for sample in self[at : min(at + block, end)]:
                yield sample
                at += 1

    def __getitem__(self, idx: SupportsIndex | slice | ArrayLike) -> NDArray[Any]:
        """Samples by an integer, a slice, a list or array of integers, or a mask, with NumPy's meaning.

        Parameters
        ----------
        idx : int, slice or array_like
            Negative integers count from the end.

        Returns
        -------
        numpy.ndarray
            One sample for an integer, else the samples stacked; an array of indices of several dimensions puts
            these in front.

        Raises
        ------
        ZrecordError
            An index is out of range; it is an IndexError too.
        IndexError
            The mask has another length, or the indices are no integers.
        """
        if isinstance(idx, slice):
            return self._samples(np.arange(*idx.indices(len(self)), dtype=np.int64))
        if isinstance(idx, (bool, np.bool_)):
            raise IndexError("a single truth value is no index of a dataset")
        if isinstance(idx, SupportsIndex) and not isinstance(idx, np.ndarray):
            position = operator.index(idx)
            if not -len(self) <= position < len(self):
                raise ZrecordError(-3, f"index {position} of {len(self)} samples")
            sample: NDArray[Any] = self._samples(np.array([position], dtype=np.int64))[0]
            return sample
        array = np.asarray(idx)
        if array.size == 0 and array.dtype.kind == "f" and not isinstance(idx, np.ndarray):
            array = array.astype(np.int64)
        if array.dtype == np.bool_:
            if array.shape != (len(self),):
                raise IndexError(f"a mask of shape {array.shape} for {len(self)} samples")
            return self._samples(np.flatnonzero(array))
        if array.dtype.kind not in "iu":
            raise IndexError(f"indices must be integers, slices or masks, not {array.dtype}")
        if array.ndim == 0:
            return self[int(array)]
        return self._samples(array.reshape(-1)).reshape(*array.shape, *self.shape)

    def __getitems__(self, idxs: ArrayLike) -> NDArray[Any]:
        """Samples by a list or array of integers, or a mask: what loaders call.

        Parameters
        ----------
        idxs : array_like of int
            Which.

        Returns
        -------
        numpy.ndarray
            Of shape ``(len(idxs), *self.shape)``.
        """
        return self[np.asarray(idxs)] if np.size(idxs) else self._samples(np.zeros(0, np.int64))

    def _samples(self, ids: NDArray[Any]) -> NDArray[Any]:
        """The samples of a list of indices."""
        if ids.dtype.kind == "i" and ids.size and ids.min() < 0:
            ids = np.where(ids < 0, ids + len(self), ids)
            if ids.min() < 0:
                raise ZrecordError(-3, f"index {ids.min() - len(self)} of {len(self)} samples")
        out: NDArray[Any] = np.empty((ids.size, *self.shape), dtype=self.dtype)
        self._open.gather(ids.astype(np.uint64, copy=False), out, self._itemsize)
        return out

    def _loader_source(self) -> _native.Source:
        """The samples as a loader reads them, without the interpreter; none can be deleted meanwhile."""
        known = self.dtype.kind in "biufc" and self.dtype.str[0] != ">"
        text = self.dtype.str if known else f"|V{self.dtype.itemsize}"
        return self._open._store.source(text, list(self.shape))

    @classmethod
    def write(
        cls,
        path: str | os.PathLike[str],
        array: ArrayLike,
        codec: str = "flate",
        chunk_bytes: int = WRITE_CHUNK_BYTES,
    ) -> Dataset:
        """Write an array as a dataset, one sample for each position along the first axis; append if there is one.

        The array is read in blocks, so one that is mapped need not fit in memory. Each block is there as a whole or,
        after a crash, not at all.

        Parameters
        ----------
        path : str or os.PathLike
            The folder; it and those above are created.
        array : array_like
            The samples. Fields of structured types are kept.
        codec : str, optional
            ``"flate"`` or ``"raw"``. A dataset that is there keeps its own.
        chunk_bytes : int, optional
            Most bytes of a block, but for at least one sample.

        Returns
        -------
        Dataset
            The dataset, open.

        Raises
        ------
        ValueError
            The codec is unknown; a sample has no bytes, or more than `MAX_RECORD_LEN`; the dataset that is there has
            another type or shape.
        """
        if codec not in CODECS:
            raise ValueError(f"unknown codec {codec!r}, expected one of {sorted(CODECS)}")
        samples = np.asanyarray(array)
        if samples.ndim < 1:
            raise ValueError("array must have a sample axis")
        dtype = samples.dtype
        shape = tuple(int(d) for d in samples.shape[1:])
        keys = _described(dtype)
        itemsize = math.prod(shape) * dtype.itemsize
        if itemsize > MAX_RECORD_LEN:
            raise ValueError(f"sample of {itemsize} bytes exceeds the {MAX_RECORD_LEN} byte record limit")
        if itemsize == 0:
            raise ValueError(f"samples of {dtype}{list(shape)} have no bytes; a record needs at least one")

        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        schema = {"format": FORMAT, "version": 1, "dtype": keys["dtype"], "shape": list(shape), "codec": codec}
        if "descr" in keys:
            schema["descr"] = keys["descr"]
        schema_path = path / SCHEMA
        if schema_path.is_file():
            schema = json.loads(schema_path.read_text())
            if not isinstance(schema, dict) or schema.get("format") != FORMAT:
                raise ValueError(f"{schema_path} is not a {FORMAT} schema")
            there = (_dtype(schema), tuple(schema["shape"]))
            if there != (dtype, shape):
                raise ValueError(f"{path} holds {there[0]}{there[1]} records, cannot append {dtype}{shape}")
        else:
            _write_whole(schema_path, json.dumps(schema, indent=2) + "\n")

        step = max(1, chunk_bytes // itemsize)
        with Zrecord(path, codec=schema["codec"]) as store:
            for start in range(0, len(samples), step):
                block = np.ascontiguousarray(samples[start : start + step], dtype=dtype)
                store.append(block, len(block), itemsize)
        return cls(path)

    def delete(self, idxs: ArrayLike) -> None:
        """Remove samples. The last ones get their indices, so that all stay below ``len(self)``.

        Refused (code -2) while other handles use the store.

        Parameters
        ----------
        idxs : array_like of int
            Which; repeated ones count once.
        """
        self._open.delete(idxs)

    def compact(self) -> None:
        """Give the space of deleted samples back; see `Zrecord.compact`."""
        self._open.compact()

    def stats(self) -> dict[str, int]:
        """How much the store holds; see `Zrecord.stats`."""
        return self._open.stats()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the dataset; closing it again does nothing, using it raises ValueError."""
        if self._store is not None:
            self._store.close()
            self._store = None
