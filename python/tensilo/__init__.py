"""Arrays that outgrow memory: HDF5 files read and written without libhdf5, straight into and from NumPy's memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from . import _native, errors, lanes, pack, records
from .errors import (
    AlreadyExistsError,
    Cancelled,
    CorruptError,
    InputOutputError,
    InsufficientDiskError,
    InsufficientMemoryError,
    InvalidArgumentError,
    LimitError,
    LockedError,
    MissingFileError,
    NotFoundError,
    OutOfBoundsError,
    SourceChangedError,
    TensiloError,
    UnsupportedError,
)
from .lanes import Lane, LaneStore, LaneWriter
from .loader import BatchIterator, DataLoader
from .map_dataset import MapDataset
from .records import Records, RecordsView, RecordsWriter
from .sampler import Mode, Sampler
from .sources import Mix, Ragged
from .writing import ExternalLink, File, SoftLink, write

__all__ = [
    "AlreadyExistsError",
    "BatchIterator",
    "Cancelled",
    "CorruptError",
    "DataLoader",
    "ExternalLink",
    "File",
    "Index",
    "InputOutputError",
    "InsufficientDiskError",
    "InsufficientMemoryError",
    "InvalidArgumentError",
    "Lane",
    "LaneStore",
    "LaneWriter",
    "LimitError",
    "LockedError",
    "MapDataset",
    "MissingFileError",
    "Mix",
    "Mode",
    "NotFoundError",
    "OutOfBoundsError",
    "Ragged",
    "Records",
    "RecordsView",
    "RecordsWriter",
    "Sampler",
    "SoftLink",
    "SourceChangedError",
    "TensiloError",
    "UnsupportedError",
    "__version__",
    "errors",
    "lanes",
    "pack",
    "read",
    "records",
    "write",
]

__version__ = _native.__version__

_Part: TypeAlias = SupportsIndex | slice | EllipsisType | None | Sequence[Any] | np.ndarray[Any, Any]
#: What selects elements, as NumPy has it: an integer, a slice, ``...``, ``None``, a list or array of integers or of
#: truth values, or a tuple of these.
Index: TypeAlias = _Part | tuple[_Part, ...]


def read(
    path: str | os.PathLike[str],
    dataset: str,
    selection: Index | None = None,
    *,
    threads: int = 0,
    follow_anywhere: bool = False,
    limit: int | None = None,
) -> np.ndarray[Any, np.dtype[Any]]:
    """Read a dataset of an HDF5 file, or a selection of it.

    Other threads of the interpreter run meanwhile, and Ctrl-C stops the read.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    dataset : str
        The path of the dataset in it, such as ``"/entry/data/data"``. Soft and external links are followed.
    selection : index, optional
        What to read, as NumPy indexes: integers (which drop their dimension), slices with any step, ``...``,
        arrays or lists of integers, masks, or a tuple of these, in which ``None`` adds a dimension. Everything if
        not given. ``numpy.s_[0:10, ..., ::2]`` writes one. Every chunk is decoded once, whatever the order.
    threads : int, optional
        Threads that may decode; 0 means one for each core.
    follow_anywhere : bool, optional
        Open files outside the folder of `path` when it names them. Only for files that are trusted.
    limit : int, optional
        Most bytes that the file may make Tensilo allocate, the result included. 16 GiB if not given.

    Returns
    -------
    numpy.ndarray
        The elements in C order, in the file's byte order. Strings of variable length become an array of `str`
        objects; an array datatype adds its dimensions at the end.

    Raises
    ------
    MissingFileError, NotFoundError
        There is no such file, or no such dataset in it.
    OutOfBoundsError, TypeError
        The selection does not fit the dataset, or is none.
    CorruptError, UnsupportedError
        The file is damaged, or needs what this version does not know.
    LimitError
        The result, or the way to it, would pass `limit`.

    Examples
    --------
    >>> import numpy as np
    >>> import tensilo
    >>> frames = tensilo.read("examples/family/demo_data_000001.h5", "/entry/data/data", np.s_[:3, 20:24, 30])
    >>> frames.shape, frames.dtype
    ((3, 4), dtype('uint16'))
    """
    return _native.read(
        path, dataset, selection, threads=threads, follow_anywhere=follow_anywhere, limit=limit
    )
