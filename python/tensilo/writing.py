"""HDF5 files written without libhdf5: :func:`write` in one call, :class:`File` object by object."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _native
from ._hdf5_values import array_of, bytes_of, is_null, is_text, native_dtype, sequences_of, texts_of

__all__ = ["AttributesWriter", "DatasetWriter", "ExternalLink", "File", "GroupWriter", "SoftLink", "write"]

#: Bytes of a chunk whose extents were not given: at most this many.
_CHUNK = 1 << 20
#: Names of compressions, and the level each has when none is given.
_LEVELS = {"gzip": 4, "zstd": 3, "lz4": None, "lzf": None, "bitshuffle": None, "szip": None}

#: Numbers in files of when elements get the fill value.
_FILL_TIMES = {None: None, "alloc": 0, "never": 1, "ifset": 2}

# In the order of their numbers in files.
_STRATEGIES = ("fsm", "page", "aggregate", "none")


class SoftLink:
    """A link to a path of the same file, which need not exist: ``group["latest"] = SoftLink("/run/7")``."""

    def __init__(self, path: str) -> None:
        self.path = path


class ExternalLink:
    """A link to an object of another file, which need not exist: ``group["x"] = ExternalLink("other.h5", "/x")``."""

    def __init__(self, filename: str | os.PathLike[str], path: str) -> None:
        self.filename = os.fspath(filename)
        self.path = path


def _extents(value: Any, what: str) -> list[int]:
    """Extents from an integer or a sequence of them."""
    dims = [operator.index(n) for n in (value if np.ndim(value) else (value,))]
    if any(n < 0 for n in dims):
        raise ValueError(f"{what} {tuple(dims)} has a negative extent")
    return dims


def _with_sizes(filters: list[tuple[str, list[int]]], itemsize: int, chunk: list[int]) -> list[tuple[str, list[int]]]:
    """Registered filters with the values that their plugins fill in when a dataset is made."""
    out = []
    for name, values in filters:
        if name == "filter" and values[0] == 32001:  # Blosc: two versions, sizes of an element and of a chunk
            values = [32001, 2, 2, itemsize, itemsize * math.prod(chunk), *values[5:]]
        elif name == "filter" and values[0] == 32008:  # bitshuffle: its version, the size of an element
            values = [32008, 0, 4, itemsize, *values[1:]]
        out.append((name, values))
    return out


def _external(files: Any) -> list[tuple[str, int, int | None]] | None:
    """External files with their beginnings and lengths; h5py's word for no end is all bits set."""
    if files is None:
        return None
    if isinstance(files, str | os.PathLike):
        files = [(files, 0, None)]
    pieces = []
    for name, offset, size in files:
        end = None if size is None or size in (-1, 2**64 - 1) else operator.index(size)
        pieces.append((os.fspath(name), operator.index(offset), end))
    return pieces


def _maximum(maxshape: Any, dims: list[int]) -> list[int | None]:
    """Maximum extents; those of the array if not given."""
    if maxshape is None:
        return list(dims)
    if isinstance(maxshape, bool):
        raise ValueError("maxshape is a sequence of extents, None for unlimited ones")
    return [None if m is None else operator.index(m) for m in (maxshape if np.ndim(maxshape) else (maxshape,))]


def _guess(shape: Sequence[int], maximum: Sequence[int | None], itemsize: int) -> list[int]:
    """Extents of a chunk: the array, its longest extent halved until it is small enough."""
    chunk = [n or (1024 if m is None else max(m, 1)) for n, m in zip(shape, maximum, strict=True)]
    while chunk and max(chunk) > 1 and math.prod(chunk) * itemsize > _CHUNK:
        longest = chunk.index(max(chunk))
        chunk[longest] = -(-chunk[longest] // 2)
    return chunk


def _compression(name: str | int | None, options: Any) -> list[tuple[str, list[int]]]:
    if name is None:
        if options is not None:
            raise ValueError("compression_opts is given without compression")
        return []
    if isinstance(name, int) and not isinstance(name, bool):
        if 0 <= name <= 9 and options is None:
            return [("gzip", [name])]
        if name < 256:
            raise ValueError(f"compression {name} is neither a level of gzip from 0 to 9 nor a registered filter")
        return [("filter", [name, *(int(v) for v in options or ())])]
    if isinstance(name, bool) or name not in _LEVELS:
        raise ValueError(f"compression {name!r} is none of {', '.join(_LEVELS)}, and no number of a filter")
    if name == "szip":
        method, pixels = options or ("nn", 8)
        if method not in ("nn", "ec"):
            raise ValueError(f"the method {method!r} of szip is neither 'nn' nor 'ec'")
        return [("szip", [int(pixels), int(method == "nn")])]
    if name == "bitshuffle":
        if options is not None:
            raise ValueError("bitshuffle (with LZ4) has no compression_opts")
        return [("bitshuffle", [2])]
    default = _LEVELS[name]
    if default is None:
        if options is not None:
            raise ValueError(f"{name} has no compression_opts")
        return [(name, [])]
    level = default if options is None else int(options)
    if not 0 <= level <= (9 if name == "gzip" else 22):
        raise ValueError(f"the level {level} of {name} does not exist")
    return [(name, [level])]


class AttributesWriter(MutableMapping[str, Any]):
    """The attributes of an object: assigned once each, read back as they were given."""

    def __init__(self, writer: _native.Hdf5Writer, path: str) -> None:
        self._writer = writer
        self._path = path
        self._values: dict[str, Any] = {}

    def __setitem__(self, name: str, value: Any) -> None:
        if value is None:
            self._writer.null(self._path, name, "<f4")
        elif is_null(value):
            self._writer.null(self._path, name, native_dtype(np.dtype(value.dtype)))
        else:
            array = array_of(value)
            texts = texts_of(array)
            if texts is not None:
                self._writer.text_attribute(self._path, name, list(array.shape), texts)
            else:
                self._writer.attribute(self._path, name, native_dtype(array.dtype), list(array.shape), bytes_of(array))
        self._values[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __delitem__(self, name: str) -> None:
        raise TypeError("an attribute that was written stays")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class DatasetWriter:
    """A dataset that was written. Its elements are in the file; attributes can still be added."""

    def __init__(
        self, writer: _native.Hdf5Writer, name: str, shape: tuple[int, ...], dtype: np.dtype[Any] | None
    ) -> None:
        self.name = name
        self.shape = shape
        #: The type of the elements; `None` for strings of variable length.
        self.dtype = dtype
        #: The attributes.
        self.attrs = AttributesWriter(writer, name)

    def __repr__(self) -> str:
        return f"<tensilo dataset {self.name!r}: shape {self.shape}, dtype {self.dtype}>"


class GroupWriter:
    """A group of a file being written."""

    def __init__(self, writer: _native.Hdf5Writer, name: str) -> None:
        self._writer = writer
        #: The absolute path.
        self.name = name
        #: The attributes.
        self.attrs = AttributesWriter(writer, name)

    def __repr__(self) -> str:
        return f"<tensilo group {self.name!r}>"

    def _join(self, path: str) -> str:
        names = [n for n in path.split("/") if n and n != "."]
        if not names:
            raise ValueError(f"{path!r} names no object")
        top = "" if path.startswith("/") else self.name.rstrip("/")
        return top + "/" + "/".join(names)

    def create_group(self, name: str, track_order: bool | None = None) -> GroupWriter:
        """Make a group, and those above it where they are missing.

        Parameters
        ----------
        name : str
            The path, from this group or from the root.
        track_order : bool, optional
            Number its links and attributes in the order in which they are made; as the file does if not given.

        Returns
        -------
        GroupWriter
            The group.

        Raises
        ------
        AlreadyExistsError
            Something has that name.
        """
        path = self._join(name)
        self._writer.group(path)
        if track_order is not None:
            self._writer.track(path, True, bool(track_order))
        return GroupWriter(self._writer, path)

    def create_dataset(
        self,
        name: str,
        shape: int | Sequence[int] | None = None,
        dtype: Any = None,
        data: Any = None,
        *,
        chunks: bool | int | Sequence[int] | None = None,
        maxshape: int | Sequence[int | None] | None = None,
        compression: str | int | None = None,
        compression_opts: Any = None,
        shuffle: bool = False,
        fletcher32: bool = False,
        scaleoffset: bool | int | None = None,
        fillvalue: Any = None,
        fill_time: str | None = None,
        allow_unknown_filter: bool = False,
        external: str | os.PathLike[str] | Sequence[tuple[str | os.PathLike[str], int, int | None]] | None = None,
        track_order: bool | None = None,
        track_times: bool | None = None,
    ) -> DatasetWriter:
        """Write a dataset, or make one whose elements all read as the fill value.

        Arrays in C order are read where they lie, memory maps among them; chunks are compressed once each, on all
        threads, in a window that does not grow with the array.

        Parameters
        ----------
        name : str
            The path, from this group or from the root; missing groups are made.
        shape : int or sequence of int, optional
            Extents; those of `data` if not given. `data` is reshaped to them.
        dtype : dtype, optional
            Type of the elements; that of `data` if not given. `str` means strings of variable length.
        data : array_like, optional
            The elements. An array of `str` becomes strings of variable length, one of a dtype of ``h5py.vlen_dtype``
            sequences of variable length; ``h5py.Empty`` a dataset without dataspace.
        chunks : bool, int or sequence of int, optional
            Extents of a chunk; True for extents of at most 1 MiB. If not given, there are chunks only where a filter
            or `maxshape` needs them.
        maxshape : int, or sequence of int or None, optional
            Maximum extents, None for unlimited ones.
        compression : str or int, optional
            ``"gzip"``, ``"zstd"``, ``"lz4"``, ``"lzf"``, ``"szip"``, ``"bitshuffle"`` (with LZ4), a level of gzip from
            0 to 9, or the number of a registered filter. ``**hdf5plugin.Zstd()`` works too.
        compression_opts : optional
            The level of gzip (4 if not given) or zstd (3); ``("nn" or "ec", pixels)`` of szip; a registered filter's
            values.
        shuffle : bool, optional
            Sort the bytes of the elements by their place before compressing.
        fletcher32 : bool, optional
            Add a checksum to each chunk.
        scaleoffset : bool or int, optional
            Decimal digits of floats that are kept, or bits of integers; True finds the bits. Lossy for floats.
        fillvalue : optional
            What unwritten elements read as; 0 if not given.
        fill_time : str, optional
            ``"ifset"``, ``"alloc"`` or ``"never"``: when elements without data get the fill value.
        allow_unknown_filter : bool, optional
            Take a registered filter that cannot be applied here; chunks are then stored without it.
        external : str, os.PathLike or sequence of tuple, optional
            The files that hold the elements, each as its name, where they begin and how many bytes there are (None in the
            last for all); or the name of the only one. They are not touched: `data` is not given.
        track_order : bool, optional
            Number the attributes in the order in which they are made; as the file does if not given.
        track_times : bool, optional
            False, or not given: files hold no times, so that the same calls write the same bytes.

        Returns
        -------
        DatasetWriter
            The dataset, whose attributes can be added.

        Raises
        ------
        AlreadyExistsError
            Something has that name.
        InvalidArgumentError, ValueError, TypeError
            The description contradicts itself.
        UnsupportedError
            HDF5 has no type for these elements, or the file's bound cannot hold them.
        """
        path = self._join(name)
        if track_times:
            raise ValueError("track_times: files written here hold no times")
        pieces = _external(external)
        if pieces is not None and data is not None:
            raise ValueError("external files are not written: give shape and dtype, and no data")
        if is_null(data):
            dataset = self._null(path, np.dtype(data.dtype))
            self._track(path, track_order)
            return dataset
        array = None if data is None else array_of(data, dtype)
        if array is None and is_text(dtype) and shape is not None:
            # Strings that were never written read as empty ones.
            array = np.full(_extents(shape, "shape"), "", dtype=object)
        if array is None and (shape is None or dtype is None):
            raise TypeError("shape and dtype, or data, must be given")
        if shape is None:
            dims = list(array.shape)  # type: ignore[union-attr]
        else:
            dims = _extents(shape, "shape")
            array = None if array is None else array.reshape(dims)
        sequences = None if array is None else sequences_of(array)
        texts = None if array is None or sequences is not None else texts_of(array)
        heap = texts is not None or sequences is not None
        kind = None if heap else (array.dtype if array is not None else np.dtype(dtype))
        if kind is not None and kind.subdtype is not None:
            base, inner = kind.subdtype
            kind, dims = base, [*dims, *inner]
        filters: list[tuple[str, list[int]]] = []
        if scaleoffset is not None and scaleoffset is not False:
            if scaleoffset is True and kind is not None and kind.kind not in "iu":
                raise ValueError("scaleoffset of floats is the number of decimal digits to keep")
            filters.append(("scaleoffset", [0 if scaleoffset is True else int(scaleoffset)]))
        if shuffle:
            filters.append(("shuffle", []))
        filters += _compression(compression, compression_opts)
        if fletcher32:
            filters.append(("fletcher32", []))
        maximum = _maximum(maxshape, dims)
        if len(maximum) != len(dims):
            raise ValueError(f"maxshape {tuple(maximum)} for the shape {tuple(dims)}")
        if chunks is None:
            chunks = bool(filters) or maximum != dims
        itemsize = 16 if kind is None else kind.itemsize
        if chunks is True:
            if not dims:
                raise TypeError("scalars have neither chunks nor filters nor maximum extents")
            chunk: list[int] | None = _guess(dims, maximum, itemsize)
        elif chunks is False:
            chunk = None
        else:
            chunk = _extents(chunks, "chunks")
        filters = _with_sizes(filters, itemsize, chunk or [])
        fill = None
        if fillvalue is not None:
            if kind is None:
                raise ValueError("strings of variable length have no fill value here")
            fill = np.asarray(fillvalue, dtype=kind).reshape(()).tobytes()
        if fill_time not in _FILL_TIMES:
            raise ValueError(f"fill_time {fill_time!r} is none of 'ifset', 'alloc', 'never'")
        when = _FILL_TIMES[fill_time]
        maxima = maximum if maxshape is not None else None
        storage = (dims, maxima, chunk, filters, fill, when, allow_unknown_filter)
        if sequences is not None:
            self._writer.sequences(path, native_dtype(sequences[0]), storage, sequences[1])
        elif texts is not None:
            self._writer.texts(path, storage, texts)
        else:
            assert kind is not None
            self._writer.dataset(path, native_dtype(kind), storage, None if array is None else bytes_of(array), pieces)
        self._track(path, track_order)
        return DatasetWriter(self._writer, path, tuple(dims), kind)

    def _track(self, path: str, order: bool | None) -> None:
        if order is not None:
            self._writer.track(path, False, bool(order))

    def _null(self, path: str, dtype: np.dtype[Any]) -> DatasetWriter:
        self._writer.null(path, None, native_dtype(dtype))
        return DatasetWriter(self._writer, path, (), dtype)

    def __setitem__(self, name: str, value: Any) -> None:
        """Write a dataset, make a link to an object of this file, or a soft or external link."""
        if isinstance(value, SoftLink):
            self._writer.soft_link(self._join(name), value.path)
        elif isinstance(value, ExternalLink):
            self._writer.external_link(self._join(name), value.filename, value.path)
        elif isinstance(value, DatasetWriter | GroupWriter):
            self._writer.hard_link(self._join(name), value.name)
        else:
            self.create_dataset(name, data=value)


class File(GroupWriter):
    """An HDF5 file being written; it appears under its name when it is closed, whole.

    Nothing is written with libhdf5, and every libhdf5 from 1.8 on opens it, unless a newer `bound` is given. The same
    calls write the same bytes, whatever the number of threads.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    mode : str, optional
        ``"w"`` replaces a file of that name when this one is closed, ``"x"`` refuses to.
    bound : str, optional
        The oldest libhdf5 that must open the file: ``"earliest"``, ``"v18"``, ``"v110"``, ``"v112"``, ``"v114"`` or
        ``"v200"``.
    track_order : bool, optional
        Number links and attributes in the order in which they are made.
    userblock_size : int, optional
        Bytes in front that are the user's: 0, or 512 and its doublings.
    threads : int, optional
        Threads that compress; 0 means one for each core.
    fs_strategy : str, optional
        How libhdf5 manages the file's space later, as h5py names it: ``"fsm"``, ``"page"`` (pages, each of metadata or of
        raw data), ``"aggregate"`` or ``"none"``.
    fs_persist : bool, optional
        Free space is remembered when the file is closed, from ``fs_threshold`` bytes on.
    fs_threshold : int, optional
        Bytes of the smallest free piece that is remembered.
    fs_page_size : int, optional
        Bytes of a page.
    shared_messages : mapping, optional
        Header messages that objects share where they are equal, and the least number of bytes of one:
        ``{"attribute": 40, "datatype": 20}``; the kinds are ``"dataspace"``, ``"datatype"``, ``"fillvalue"``,
        ``"filters"`` and ``"attribute"``.

    Raises
    ------
    AlreadyExistsError
        With mode ``"x"``, there is such a file.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> import tensilo
    >>> path = os.path.join(tempfile.mkdtemp(), "scan.h5")
    >>> with tensilo.File(path, "w") as f:
    ...     frames = f.create_dataset("entry/frames", data=np.arange(12).reshape(3, 4), compression="zstd", shuffle=True)
    ...     frames.attrs["units"] = "counts"
    ...     f["latest"] = tensilo.SoftLink("/entry/frames")
    >>> tensilo.read(path, "latest", 1)
    array([4, 5, 6, 7])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: str = "w",
        *,
        bound: str = "earliest",
        track_order: bool = False,
        userblock_size: int = 0,
        threads: int = 0,
        fs_strategy: str = "fsm",
        fs_persist: bool = False,
        fs_threshold: int = 1,
        fs_page_size: int = 4096,
        shared_messages: Mapping[str, int] | None = None,
    ) -> None:
        if mode not in ("w", "x", "w-"):
            raise ValueError(f"mode {mode!r} is none of 'w', 'x', 'w-'; tensilo.read reads")
        if fs_strategy not in _STRATEGIES:
            raise ValueError(f"fs_strategy {fs_strategy!r} is none of {', '.join(map(repr, _STRATEGIES))}")
        indexes: dict[int, list[str]] = {}
        for kind, least in (shared_messages or {}).items():
            indexes.setdefault(int(least), []).append(kind)
        writer = _native.Hdf5Writer(
            path,
            bound=bound,
            user_block=userblock_size,
            threads=threads,
            track_order=track_order,
            overwrite=mode == "w",
            space=(_STRATEGIES.index(fs_strategy), fs_persist, fs_threshold, fs_page_size),
            shared=[(kinds, least) for least, kinds in indexes.items()],
        )
        super().__init__(writer, "/")
        self.filename = os.fspath(path)

    def close(self) -> None:
        """Write what is left and give the file its name. Closed again, nothing happens.

        Raises
        ------
        TensiloError
            The file could not be written; there is none, or the old one.
        """
        self._writer.finish()

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; after an exception, leave none."""
        if kind is None:
            self.close()
        else:
            self._writer.abort()


def write(
    path: str | os.PathLike[str],
    content: Mapping[str, Any],
    *,
    attributes: Mapping[str, Mapping[str, Any]] | None = None,
    overwrite: bool = False,
    bound: str = "earliest",
    track_order: bool = False,
    threads: int = 0,
    **options: Any,
) -> None:
    """Write an HDF5 file in one call.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    content : mapping
        For each path, an array (or what NumPy makes one of), a link, or a mapping of the same kind for a group.
    attributes : mapping, optional
        For each path of an object, its attributes.
    overwrite : bool, optional
        Replace a file of that name.
    bound, track_order, threads : optional
        As :class:`File` takes them.
    **options
        As :meth:`File.create_dataset` takes them, for all datasets with dimensions: ``compression="zstd"``.

    Raises
    ------
    AlreadyExistsError
        There is such a file.
    TensiloError, ValueError, TypeError
        As :meth:`File.create_dataset`; there is no file then.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> import tensilo
    >>> path = os.path.join(tempfile.mkdtemp(), "a.h5")
    >>> tensilo.write(path, {"x": np.arange(3), "run": {"name": "first"}}, attributes={"x": {"units": "mm"}})
    >>> tensilo.read(path, "x"), str(tensilo.read(path, "run/name"))
    (array([0, 1, 2]), 'first')
    """
    mode = "w" if overwrite else "x"
    with File(path, mode, bound=bound, track_order=track_order, threads=threads) as file:
        _fill(file, file, content, options)
        for name, values in (attributes or {}).items():
            target = "/" + "/".join(n for n in name.split("/") if n)
            AttributesWriter(file._writer, target).update(values)


def _fill(file: File, group: GroupWriter, content: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    for name, value in content.items():
        if isinstance(value, Mapping):
            _fill(file, group.create_group(name), value, options)
        elif isinstance(value, SoftLink | ExternalLink) or np.ndim(value) == 0:
            group[name] = value
        else:
            group.create_dataset(name, data=value, **options)
