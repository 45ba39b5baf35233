"""Record stores: training data of any size in one file, compressed, checked, and gathered in any order."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native
from ._record_fields import Array, Field, field_of, ids_of
from ._record_writer import RecordsWriter
from .errors import InvalidArgumentError, MissingFileError, OutOfBoundsError, SourceChangedError

__all__ = ["Field", "Records", "RecordsView", "RecordsWriter", "salvage", "train_dictionary"]

#: Records that iteration reads at a time.
_ITERATED = 256


class _Indexed:
    """Indexing as NumPy has it, over a native store."""

    _native: _native.RecordStore
    fields: Mapping[str, Field]
    threads: int
    #: Are ids the store's own?
    _direct = False

    def __len__(self) -> int:
        raise NotImplementedError

    def _resolve(self, ids: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return ids

    def _position(self, name: str) -> int:
        try:
            return list(self.fields).index(name)
        except ValueError:
            raise KeyError(f"no field {name!r}; there are: {', '.join(self.fields)}") from None

    def _one_field(self, name: str, index: Any, out: Array | None) -> Any:
        position, field = self._position(name), self.fields[name]
        if out is not None and self._direct and self._native.fill(position, index, out, self.threads):
            return out
        if np.ndim(index) == 0 and not isinstance(index, slice):
            ids, shape = ids_of(np.asarray(index).reshape(1), len(self))
            shape = ()
        else:
            ids, shape = ids_of(index, len(self))
        ids = self._resolve(ids)
        if field.ragged:
            if out is not None:
                raise InvalidArgumentError(f"field {name!r} is ragged: it has no array to fill")
            rows = self._rows(position, field, ids)
            return rows[0] if shape == () else rows
        wanted = (*shape, *field.shape)
        if out is None:
            out = np.empty(wanted, field.dtype)
        elif not isinstance(out, np.ndarray):
            raise InvalidArgumentError(f"out is an array, not {type(out).__name__}")
        elif out.shape != wanted or out.dtype != field.dtype or not out.flags.c_contiguous or not out.flags.writeable:
            raise InvalidArgumentError(
                f"out must be a writeable C-contiguous array of {field.dtype} of shape {wanted}, "
                f"not of {out.dtype} of shape {out.shape}"
            )
        if field.nbytes and ids.size:
            flat = out.reshape(-1).view(np.uint8)
            self._native.gather(position, ids, flat, field.nbytes, None, self.threads)
        return out[()] if wanted == () else out

    def _rows(self, position: int, field: Field, ids: np.ndarray[Any, np.dtype[np.uint64]]) -> list[Array]:
        lengths = self._native.lengths(position, ids)
        ends = np.cumsum(lengths, dtype=np.uint64)
        starts = (ends - lengths) * np.uint64(field.nbytes)
        total = int(ends[-1]) if ids.size else 0
        rows: Array = np.empty((total, *field.shape), field.dtype)
        if total:
            self._native.gather(position, ids, rows.reshape(-1).view(np.uint8), 0, starts, self.threads)
        return np.split(rows, ends[:-1].astype(np.int64)) if ids.size else []

    def gather(
        self,
        index: Any,
        *,
        fields: str | Sequence[str] | None = None,
        out: Array | Mapping[str, Array] | None = None,
    ) -> Any:
        """Gather records.

        Parameters
        ----------
        index : int, slice, sequence of int, or mask
            Which records, in this order; negative ids count from the end, and ids may repeat.
        fields : str or sequence of str, optional
            Which fields; a single name gives its array alone. All if not given.
        out : numpy.ndarray, or mapping of them by field, optional
            Where they go: C-contiguous arrays of the field's dtype and of shape ``(n, *shape)``.

        Returns
        -------
        numpy.ndarray, list of numpy.ndarray, or dict of them
            An array of a fixed field, a list of arrays of a ragged one; by name where there are several fields.

        Raises
        ------
        OutOfBoundsError
            There is no such record.
        CorruptError
            A record does not match its checksum; the message names it.
        """
        if isinstance(fields, str) or (fields is None and len(self.fields) == 1):
            # As loaders call it, and many times a second.
            if fields is None and out is not None and self._direct and self._native.fill(0, index, out, self.threads):
                return out
            name = fields if isinstance(fields, str) else next(iter(self.fields))
            if out is not None and type(out) is not np.ndarray and isinstance(out, Mapping):
                out = out.get(name)
            return self._one_field(name, index, out)
        if out is not None and not isinstance(out, Mapping):
            raise InvalidArgumentError("several fields need a mapping of arrays as out")
        given = out or {}
        names = list(self.fields) if fields is None else list(fields)
        return {name: self._one_field(name, index, given.get(name)) for name in names}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            raise OutOfBoundsError("records have one dimension here; several of them are named by a list")
        return self.gather(index)

    def __getitems__(self, ids: Any) -> list[Any]:
        batch = self.gather(ids if isinstance(ids, np.ndarray) else list(ids))
        if isinstance(batch, dict):
            return [{name: values[i] for name, values in batch.items()} for i in range(len(ids))]
        return list(batch)

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), _ITERATED):
            yield from self.__getitems__(range(start, min(start + _ITERATED, len(self))))

    def lengths(self, field: str, index: Any = slice(None)) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Rows that records have in a field; 1 in a fixed one."""
        ids, shape = ids_of(index, len(self))
        return self._native.lengths(self._position(field), self._resolve(ids)).reshape(shape)


class Records(_Indexed):
    """An open record store: a sequence that shows what was committed when it was opened.

    Others may append, delete and compact meanwhile; `refresh` shows their commits. It pickles as its path, and may be used
    in forked and spawned processes and by several threads.

    Parameters
    ----------
    path : str or os.PathLike
        A store of Tensilo's format (one file), or of Zrecord v1 (a folder).
    threads : int, optional
        Threads that may read a batch; 0 means one for each core. With 1 no thread stands by while small batches follow
        each other closely.
    map : bool, optional
        Map the file into memory; where that is not safe it is read by position.
    limit : int, optional
        Most bytes that the file may make Tensilo allocate, arrays that are returned not counted.

    Raises
    ------
    MissingFileError
        There is no such store.
    CorruptError, UnsupportedError
        It is damaged, or needs what this version does not know.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from tensilo import Records
    >>> path = os.path.join(tempfile.mkdtemp(), "train.trec")
    >>> images = np.arange(60, dtype="u1").reshape(5, 3, 4)
    >>> Records.write(path, {"image": images, "label": np.arange(5)}, codec="lz4")
    5
    >>> train = Records(path)
    >>> len(train), train[-1]["label"], train[[4, 0]]["image"].shape
    (5, np.int64(4), (2, 3, 4))
    """

    _direct = True

    def __init__(
        self, path: str | os.PathLike[str], *, threads: int = 0, map: bool = True, limit: int | None = None
    ) -> None:
        self.path = os.path.abspath(path)
        self.threads = threads
        self._options = {"threads": threads, "map": map, "limit": limit}
        self._native = _native.RecordStore(self.path, map=map, limit=limit)
        self.fields = {f[0]: Field(*f) for f in self._native.fields()}

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (type(self), self.path, self._options)

    def __len__(self) -> int:
        return len(self._native)

    @property
    def format(self) -> str:
        """On-disk format: ``"tensilo"`` or ``"zrecord"``."""
        return self._native.format

    @property
    def generation(self) -> int:
        """Number of commits; 0 in a Zrecord store, which does not count them."""
        return self._native.generation

    @property
    def metadata(self) -> Any:
        """What was given as metadata, or None."""
        text = self._native.metadata()
        return None if text is None else json.loads(text)

    @property
    def fingerprint(self) -> str:
        """Tells the records and their order apart from others', the same on every machine."""
        return self._native.fingerprint()

    @property
    def stats(self) -> dict[str, int]:
        """Bytes: ``live`` of the records (cells of up to 8 bytes, which are in the table, not counted), ``file``, and
        ``reclaimable`` by compaction."""
        return dict(zip(("live", "file", "reclaimable"), self._native.stats(), strict=True))

    def refresh(self) -> bool:
        """Show what is committed now; says whether that is more recent."""
        newer = self._native.refreshed()
        if newer is not None:
            self._native = newer
            self.fields = {f[0]: Field(*f) for f in newer.fields()}
        return newer is not None

    def _loader_source(self) -> _native.Source:
        return self._native.source(None)

    def view(self, ids: Any) -> RecordsView:
        """Some records in another order, by NumPy's indexing: ids of the view are positions in the list."""
        return RecordsView(self, ids_of(ids, len(self))[0])

    def verify(self) -> list[str]:
        """Read and decode everything; one text for each problem (of more than 1000, the first)."""
        return self._native.verify(self.threads)[3]

    def __repr__(self) -> str:
        return f"<Records {self.path!r}: {len(self)} records of {', '.join(map(repr, self.fields.values()))}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(f.name)}</td><td>{html.escape(str(f.dtype))}</td>"
            f"<td>{'×'.join(map(str, ('any', *f.shape) if f.ragged else f.shape)) or 'scalar'}</td></tr>"
            for f in self.fields.values()
        )
        stats = self.stats
        return (
            f"<div><b>Records</b> <code>{html.escape(self.path)}</code><br>{len(self)} records, "
            f"{stats['live']} bytes, {stats['reclaimable']} reclaimable"
            f"<table><tr><th>field</th><th>dtype</th><th>shape</th></tr>{rows}</table></div>"
        )

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @staticmethod
    def create(
        path: str | os.PathLike[str],
        fields: Mapping[str, Any],
        *,
        codec: str | Mapping[str, str] | None = "lz4",
        metadata: Any = None,
        dictionary: bytes | None = None,
        overwrite: bool = False,
        whole: bool = False,
        wait: float = 0.0,
        threads: int = 0,
    ) -> RecordsWriter:
        """Make an empty store and open it for writing.

        Parameters
        ----------
        path : str or os.PathLike
            The file to make, usually with the suffix ``.trec``.
        fields : mapping of str
            For every name ``(dtype, shape)``; a shape that begins with None is ragged.
        codec : str, or mapping of str by field, optional
            ``"raw"``, ``"deflate"``, ``"zstd"`` or ``"lz4"``, with ``":level"`` behind, and ``"shuffle+"`` or
            ``"bitshuffle+"`` ahead.
        metadata : object, optional
            Anything that JSON can hold.
        dictionary : bytes, optional
            For Zstandard, from `train_dictionary`.
        overwrite : bool, optional
            Replace an existing file.
        whole : bool, optional
            Let the store take its name only with the first commit; until then, and if there is none, the folder stays as it
            was.
        wait : float, optional
            Seconds to wait for another writer.
        threads : int, optional
            Threads that compress; 0 means one for each core.

        Returns
        -------
        RecordsWriter
            A context manager: leaving it without an exception commits.

        Raises
        ------
        AlreadyExistsError
            There is such a file.
        LockedError
            Another writer has the file that would be replaced.
        """
        single, by_field = (None, dict(codec)) if isinstance(codec, Mapping) else (codec, {})
        tuples = []
        for name, (dtype, shape) in fields.items():
            dims = (shape,) if shape is None or np.ndim(shape) == 0 else tuple(shape)
            ragged = bool(dims) and dims[0] is None
            inner = [int(n) for n in (dims[1:] if ragged else dims)]
            tuples.append((name, np.dtype(dtype).newbyteorder("<").str, inner, ragged))
        native = _native.RecordWriter.create(
            os.fspath(path),
            tuples,
            codec=single,
            field_codecs=list(by_field.items()),
            metadata=None if metadata is None else json.dumps(metadata),
            dictionary=dictionary,
            replace=overwrite,
            whole=whole,
            wait=wait,
            threads=threads,
        )
        return RecordsWriter(native)

    @staticmethod
    def open_writer(
        path: str | os.PathLike[str], *, codec: str | None = None, wait: float = 0.0, threads: int = 0
    ) -> RecordsWriter:
        """Open a store of either format to append, delete and compact; other writers are locked out.

        Raises
        ------
        LockedError
            Another writer did not end within `wait` seconds.
        """
        return RecordsWriter(
            _native.RecordWriter.open(os.fspath(path), codec=codec, wait=wait, threads=threads)
        )

    @staticmethod
    def write(
        path: str | os.PathLike[str],
        data: Any,
        *,
        codec: str | Mapping[str, str] | None = None,
        metadata: Any = None,
        mode: str = "x",
        wait: float = 0.0,
        threads: int = 0,
    ) -> int:
        """Write arrays as records, a bounded block at a time; mapped arrays need not fit in memory.

        Parameters
        ----------
        path : str or os.PathLike
            The store.
        data : array, or mapping of arrays
            One row for each record: one field named ``"data"``, or a field for each name. A list of arrays is a ragged
            field.
        codec : str, or mapping of str by field, optional
            As for `create`; ``"lz4"`` in a new store, and in an existing one what it was made with.
        metadata : object, optional
            For a new store.
        mode : {"x", "a", "w"}, optional
            Make a new store; append, to a new store when there is none; or replace what is there. A new store takes its
            name when all is written: what was there stays when something is wrong.
        wait, threads
            As for `create`.

        Returns
        -------
        int
            How many records were written.

        Raises
        ------
        AlreadyExistsError
            There is such a file, with mode ``"x"``.
        InvalidArgumentError
            The arrays do not fit each other or the store.
        """
        if mode not in ("x", "a", "w"):
            raise InvalidArgumentError(f'mode is "x", "a" or "w", not {mode!r}')
        columns = dict(data) if isinstance(data, Mapping) else {"data": data}
        columns = {k: v if isinstance(v, (np.ndarray, list, tuple)) else np.asarray(v) for k, v in columns.items()}
        writer = None
        if mode == "a":
            single = codec if isinstance(codec, str) else None
            try:
                writer = Records.open_writer(path, codec=single, wait=wait, threads=threads)
            except MissingFileError:
                pass
        if writer is None:
            fields = {name: field_of(name, values) for name, values in columns.items()}
            writer = Records.create(
                path,
                fields,
                codec=codec or "lz4",
                metadata=metadata,
                overwrite=mode == "w",
                whole=True,
                wait=wait,
                threads=threads,
            )
        with writer:
            return writer.append(columns)


def _open(cls: type[Records], path: str, options: dict[str, Any]) -> Records:
    return cls(path, **options)


class RecordsView(_Indexed):
    """Some records of a store in another order; made by `Records.view`.

    It pickles as the store's path and the ids, and is refused where the store holds other records by then.
    """

    def __init__(self, store: Records, ids: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        self.store = store
        self.ids = ids
        self.fields = store.fields
        self.threads = store.threads
        # The snapshot of now: refreshing the store does not change what the ids mean.
        self._native = store._native

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_view, (self.store, self.ids, self._native.fingerprint())

    def _resolve(self, ids: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        resolved: np.ndarray[Any, np.dtype[np.uint64]] = self.ids[ids]
        return resolved

    def _loader_source(self) -> _native.Source:
        return self._native.source(self.ids)

    def __repr__(self) -> str:
        return f"<RecordsView of {len(self)} records of {self.store!r}>"


def _open_view(store: Records, ids: np.ndarray[Any, np.dtype[np.uint64]], fingerprint: str) -> RecordsView:
    if store.fingerprint != fingerprint:
        raise SourceChangedError(f"{store.path} was changed after the view was made: its ids mean other records now")
    return RecordsView(store, ids)


def salvage(path: str | os.PathLike[str], destination: str | os.PathLike[str]) -> tuple[int, list[str]]:
    """Copy every record that is whole from a damaged store of Tensilo's format to a new one.

    Returns
    -------
    saved : int
        How many.
    lost : list of str
        What was not, and why.
    """
    saved, _, lost = _native.records_salvage(os.fspath(path), os.fspath(destination))
    return saved, lost


def train_dictionary(samples: Sequence[bytes], size: int = 1 << 16) -> bytes:
    """Make a Zstandard dictionary of at most `size` bytes from samples of the records to come."""
    return bytes(_native.records_dictionary(list(samples), size))
