"""Packs: a detector family as an exact, much smaller cache with a receipt, read like an array of four dimensions.

The steps are values that can be looked at, each made from the one before: `inspect`, `plan`, `produce`, `verify`,
`open`.

Examples
--------
>>> import tempfile, pathlib, tensilo
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> found = tensilo.pack.inspect("examples/family/demo_master.h5", index_dir=folder)
>>> found.shape
(16, 32, 64, 64)
>>> made = tensilo.pack.produce(tensilo.pack.plan(found, folder / "scan.h5"))
>>> bool(tensilo.pack.verify(folder / "scan.h5"))
True
>>> scan = tensilo.pack.open(folder / "scan.h5")
>>> scan[3, ::8, 20:24, 30].shape
(4, 4)
>>> sorted(scan.products("total_per_scan", "bf", bf=10))
['bf', 'total_per_scan']
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import InvalidArgumentError, OutOfBoundsError

__all__ = [
    "Frames",
    "Inspection",
    "Pack",
    "Plan",
    "Produced",
    "Verification",
    "inspect",
    "open",
    "plan",
    "produce",
    "verify",
]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: Told of the stage, what is done of it, and what there is in all (0 when that is not known).
Progress: TypeAlias = Callable[[str, int, int], object]
#: Asked whether to stop.
ShouldCancel: TypeAlias = Callable[[], bool]
#: A disk of some radius, or a ring: inner and outer radius, in pixels; both edges belong to it.
Ring: TypeAlias = float | tuple[float, float]
_Path: TypeAlias = str | os.PathLike[str]


class _Facts:
    """Facts with the contract's names, as a mapping of JSON values."""

    def __init__(self, text: str) -> None:
        self.facts: dict[str, Any] = json.loads(text)

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]


class Inspection(_Facts):
    """Which files a family has, what shape, which identity. Made by `inspect`.

    Attributes
    ----------
    facts : dict
        Everything that was found, with the contract's names; ``inspection["sourceMembers"]`` is short for it.
    """

    def __init__(self, native: _native.PackInspection) -> None:
        super().__init__(native.json())
        self._native = native

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Scan rows, scan columns, detector rows, detector columns."""
        a, b, c, d = self.facts["sourceShape"]
        return a, b, c, d

    def __repr__(self) -> str:
        return f"<Inspection of {self.facts['dataset']!r}: shape {self.shape}>"


class Plan(_Facts):
    """What a pack will take. Made by `plan`.

    Attributes
    ----------
    facts : dict
        The plan, with the contract's names.
    """

    def __init__(self, native: _native.PackPlan) -> None:
        super().__init__(native.json())
        self._native = native

    def __repr__(self) -> str:
        facts = self.facts
        return f"<Plan of {facts['destination']!r}: {facts['shardCount']} shards of {facts['scansPerShard']} scans>"


class Produced:
    """A pack that was published. Made by `produce`.

    Attributes
    ----------
    receipt : dict
        The receipt, with the contract's names.
    receipt_path : str
        Where it is.
    peak_bytes : int
        Most bytes that were held at one time, as counted.
    cleared : list of str
        What was removed of runs that died.
    """

    def __init__(self, receipt: str, receipt_path: str, peak_bytes: int, cleared: list[str]) -> None:
        self.receipt: dict[str, Any] = json.loads(receipt)
        self.receipt_path = receipt_path
        self.peak_bytes = peak_bytes
        self.cleared = cleared

    def __repr__(self) -> str:
        return f"<Produced {self.receipt['destination']!r}: {self.receipt['outputBytes']} bytes>"


class Verification(_Facts):
    """What verifying found; true when the pack is proven. Made by `verify`.

    Attributes
    ----------
    facts : dict
        What was found, with the contract's names.
    """

    @property
    def proven(self) -> bool:
        """Is everything that was asked for proven?"""
        return bool(self.facts["proven"])

    @property
    def findings(self) -> list[str]:
        """What is not as it must be."""
        return [f"{f['subject']}: {f['message']}" for f in self.facts["findings"]]

    def __bool__(self) -> bool:
        return self.proven

    def __repr__(self) -> str:
        return "<Verification: proven>" if self.proven else f"<Verification: {'; '.join(self.findings)}>"


def inspect(
    source: _Path,
    *,
    dataset: str | None = None,
    index_dir: _Path | None = None,
    threads: int = 0,
    progress: Progress | None = None,
    should_cancel: ShouldCancel | None = None,
) -> Inspection:
    """Find the files of a family, hash them, and say what they hold.

    Parameters
    ----------
    source : str or os.PathLike
        A ``*_master.h5``, a data file, or a folder with one dataset.
    dataset : str, optional
        Which dataset, where the folder has several.
    index_dir : str or os.PathLike, optional
        Where prepared indexes are kept; the user's cache folder if not given.
    threads : int, optional
        Threads to use; 0 means one for each core.
    progress : callable, optional
        Called now and then with the stage, what is done of it and what there is in all (0 when not known).
    should_cancel : callable, optional
        Called now and then; the work stops when it returns true.

    Returns
    -------
    Inspection

    Raises
    ------
    MissingFileError, NotFoundError
        A file, or a dataset in it, is not there.
    UnsupportedError, CorruptError
        The frames are stored as packing does not take them, or are damaged.
    Cancelled
        `should_cancel` returned true.
    """
    return Inspection(
        _native.pack_inspect(
            source,
            dataset=dataset,
            index_dir=index_dir,
            threads=threads,
            progress=progress,
            should_cancel=should_cancel,
        )
    )


def plan(
    inspection: Inspection,
    destination: _Path,
    *,
    memory: int | None = None,
    available_disk: int | None = None,
    profile: str = "exact-uint8-bitpacked",
    backend: str = "cpu-reference",
    threads: int = 0,
) -> Plan:
    """Say what a pack will take; refuse what cannot work, before anything is allocated.

    Parameters
    ----------
    inspection : Inspection
        What `inspect` found.
    destination : str or os.PathLike
        Where the pack would be.
    memory : int, optional
        Bytes that may be used; 1 GiB or a quarter of the machine's if not given.
    available_disk : int, optional
        Bytes of disk that may be used; the measured free space if not given.
    profile : str, optional
        How values are stored: ``"exact-uint8-bitpacked"`` or ``"exact-uint16-lz4"``.
    backend : str, optional
        Who does the work; only ``"cpu-reference"`` is there, others are refused.
    threads : int, optional
        Threads to use; 0 means one for each core.

    Returns
    -------
    Plan

    Raises
    ------
    InsufficientMemoryError, InsufficientDiskError
        The budget is too small.
    UnsupportedError, InvalidArgumentError, LimitError
        The backend is not there, the shape cannot be packed, or the index would not fit its place.
    """
    return Plan(
        _native.pack_plan(
            inspection._native,
            destination,
            memory=memory,
            available_disk=available_disk,
            profile=profile,
            backend=backend,
            threads=threads,
        )
    )


def produce(
    plan: Plan,
    *,
    clear_leftovers: bool = False,
    progress: Progress | None = None,
    should_cancel: ShouldCancel | None = None,
) -> Produced:
    """Make a pack and its receipt. Nothing is overwritten, and nothing is left behind by a failure.

    Parameters
    ----------
    plan : Plan
        What `plan` returned.
    clear_leftovers : bool, optional
        First remove what dead runs left of this destination.
    progress, should_cancel : callable, optional
        As for `inspect`.

    Returns
    -------
    Produced

    Raises
    ------
    AlreadyExistsError
        The pack or its receipt is there.
    SourceChangedError
        A file is not what was inspected.
    UnsupportedError
        A value does not fit the profile; file, pixel, scan and value are named.
    Cancelled
        `should_cancel` returned true.
    """
    receipt, path, peak, cleared = _native.pack_produce(
        plan._native, clear_leftovers=clear_leftovers, progress=progress, should_cancel=should_cancel
    )
    return Produced(receipt, os.fspath(path), peak, [os.fspath(c) for c in cleared])


def verify(
    path: _Path,
    *,
    receipt: bool = True,
    receipt_path: _Path | None = None,
    source: _Path | None = None,
    dataset: str | None = None,
    threads: int = 0,
    progress: Progress | None = None,
    should_cancel: ShouldCancel | None = None,
) -> Verification:
    """Prove a pack by decoding all of it.

    Parameters
    ----------
    path : str or os.PathLike
        The pack.
    receipt : bool, optional
        Check the receipt too. Without it the contents alone are proven.
    receipt_path : str or os.PathLike, optional
        The receipt, if it is not beside the pack.
    source : str or os.PathLike, optional
        Also hash this source again and compare.
    dataset : str, optional
        Which dataset of the source, where it has several.
    threads : int, optional
        Threads to use; 0 means one for each core.
    progress, should_cancel : callable, optional
        As for `inspect`.

    Returns
    -------
    Verification
        True when the pack is proven; damage is no exception.

    Raises
    ------
    MissingFileError, InputOutputError
        The pack or the source cannot be examined.
    """
    return Verification(
        _native.pack_verify(
            path,
            receipt=receipt,
            receipt_path=receipt_path,
            source=source,
            dataset=dataset,
            threads=threads,
            progress=progress,
            should_cancel=should_cancel,
        )
    )


def open(path: _Path, *, threads: int = 0, cached_bytes: int = 512 << 20) -> Pack:
    """Open a pack; only its first 64 KiB are read.

    Parameters
    ----------
    path : str or os.PathLike
        The pack.
    threads : int, optional
        Threads to use; 0 means one for each core.
    cached_bytes : int, optional
        Bytes of packed shards that are kept for the next read.

    Returns
    -------
    Pack

    Raises
    ------
    MissingFileError
        There is no such file.
    CorruptError, UnsupportedError
        It is no pack that agrees with itself, or one of another revision.
    """
    return Pack(path, threads=threads, cached_bytes=cached_bytes)


def _positions(part: Any, side: int, axis: int) -> tuple[npt.NDArray[np.int64], str]:
    """Positions on an axis, and the kind of index: "integer", "slice" or "list"."""
    if isinstance(part, slice):
        return np.arange(side)[part], "slice"
    if isinstance(part, (bool, np.bool_, str, bytes)) or part is None:
        raise TypeError(f"an index is an integer, a slice, ... or a list of integers, not {type(part).__name__}")
    if hasattr(part, "__index__") and getattr(part, "ndim", 0) == 0:
        k = operator.index(part)
        if not -side <= k < side:
            raise OutOfBoundsError(f"index {k} is out of bounds for axis {axis} with size {side}")
        return np.array([k % side]), "integer"
    given = np.asarray(part)
    if given.ndim == 1 and given.dtype == bool:
        if given.size != side:
            raise OutOfBoundsError(f"a mask of {given.size} for axis {axis} with size {side}")
        return np.flatnonzero(given), "list"
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise TypeError("an index is an integer, a slice, ... or a list of integers")
    given = given.astype(np.int64)
    if given.size and not (-side <= given.min() and given.max() < side):
        raise OutOfBoundsError(f"an index of the list is out of bounds for axis {axis} with size {side}")
    return np.where(given < 0, given + side, given), "list"


class Frames:
    """The counts of a pack as an array of four dimensions that is not loaded: what is indexed is read.

    It has what xarray and dask ask of an array. Indexing is NumPy's: integers, slices with any step, ``...``, and one
    list or mask.

    Attributes
    ----------
    shape : tuple of int
        Scan rows, scan columns, detector rows, detector columns.
    dtype : numpy.dtype
        ``uint16``.
    """

    def __init__(self, native: _native.PackFile, raw: bool) -> None:
        self._native = native
        self._raw = raw
        self.shape: tuple[int, int, int, int] = native.shape
        self.dtype = np.dtype("u2")

    @property
    def ndim(self) -> int:
        """4."""
        return 4

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of all values, unpacked."""
        return 2 * self.size

    @property
    def chunks(self) -> tuple[int, int, int, int]:
        """Extents that are read well together: one line of the scan."""
        return (1, *self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        parts = list(index) if isinstance(index, tuple) else [index]
        dots = [k for k, part in enumerate(parts) if part is Ellipsis]
        if len(dots) > 1:
            raise OutOfBoundsError("an index can only have one ...")
        given = len(parts) - len(dots)
        if given > 4:
            raise OutOfBoundsError(f"{given} indices for 4 dimensions")
        at = dots[0] if dots else len(parts)
        parts[at : at + len(dots)] = [slice(None)] * (4 - given)
        found = [_positions(part, side, axis) for axis, (part, side) in enumerate(zip(parts, self.shape))]
        kinds = [kind for _, kind in found]
        if kinds.count("list") > 1:
            raise TypeError("only one index may be a list")
        rows, columns, y, x = (positions for positions, _ in found)
        scans = (rows[:, None] * self.shape[1] + columns).astype("u8").reshape(-1)
        pixels = (y[:, None] * self.shape[3] + x).astype("u4").reshape(-1)
        out: Array = np.empty((len(rows), len(columns), len(y), len(x)), self.dtype)
        self._native.gather(scans, pixels, self._raw, out.reshape(-1))
        dropped = tuple(k for k, kind in enumerate(kinds) if kind == "integer")
        if "list" in kinds:
            # NumPy counts integers beside a list as lists: unless all are neighbours, the list's dimension comes first.
            advanced = [k for k, kind in enumerate(kinds) if kind != "slice"]
            if advanced[-1] - advanced[0] >= len(advanced):
                out = np.moveaxis(out, kinds.index("list"), 0)
                dropped = tuple(k + 1 if k < kinds.index("list") else k for k in dropped)
        out = np.squeeze(out, dropped)
        return out[()] if out.ndim == 0 else out

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a pack is unpacked into a new array")
        return np.asarray(self[...], dtype=dtype)

    def __repr__(self) -> str:
        return f"<Frames: shape {self.shape}, {'raw' if self._raw else 'masked'} {self.dtype}>"


class Pack(Frames):
    """An open pack: an array of four dimensions, excluded pixels 0. `raw` is the same with the source's values.

    Parameters
    ----------
    path : str or os.PathLike
        The pack.
    threads : int, optional
        Threads to use; 0 means one for each core.
    cached_bytes : int, optional
        Bytes of packed shards that are kept for the next read.

    Attributes
    ----------
    path : str
        The pack.
    manifest : dict
        What it says about itself.
    excluded : numpy.ndarray
        Flat indices of the excluded pixels, ascending.
    """

    def __init__(self, path: _Path, *, threads: int = 0, cached_bytes: int = 512 << 20) -> None:
        super().__init__(_native.PackFile(path, threads=threads, cached_bytes=cached_bytes), False)
        self.path = os.fspath(path)
        self._options = (threads, cached_bytes)
        self.manifest: dict[str, Any] = json.loads(self._native.manifest)
        self.excluded: npt.NDArray[np.uint32] = np.array(self._native.excluded, "u4")

    @property
    def raw(self) -> Frames:
        """The source's values: excluded pixels restored.

        Raises
        ------
        UnsupportedError
            On reading, when the pack does not know them.
        """
        return Frames(self._native, True)

    @property
    def is_resident(self) -> bool:
        """Are all shards in memory?"""
        return self._native.is_resident

    def resident(self, *, progress: Progress | None = None, should_cancel: ShouldCancel | None = None) -> Pack:
        """Load all shards, packed, into memory; all or none.

        Parameters
        ----------
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        Pack
            The same pack, which reads the file no more.
        """
        loaded = Pack.__new__(Pack)
        loaded.__dict__.update(self.__dict__)
        loaded._native = self._native.resident(progress=progress, should_cancel=should_cancel)
        return loaded

    def products(
        self,
        *names: str,
        bf: Ring | None = None,
        abf: Ring | None = None,
        adf: Ring | None = None,
        center: tuple[float, float] | None = None,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> dict[str, Array]:
        """Exact images by name, in one pass over the packed tiles; excluded pixels are cleared first.

        Parameters
        ----------
        *names : str
            ``diffraction_sum``, ``diffraction_max``, ``diffraction_mean`` of the detector's shape; ``total_per_scan``,
            ``detector_row_moment_per_scan``, ``detector_column_moment_per_scan``, ``com_row``, ``com_column``,
            ``dpc_row``, ``dpc_column``, ``idpc``, ``bf``, ``abf``, ``adf`` of the scan's shape. All that can be
            made if none is given.
        bf, abf, adf : float or (float, float), optional
            Bright field, annular bright field and annular dark field: outer radius, or inner and outer, in pixels.
        center : (float, float), optional
            Row and column of the rings' centre; what the pack states, or the detector's middle, if not given.
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        dict of str to numpy.ndarray
            Sums as ``uint64``, bands as ``uint32`` where their bound allows it, the rest as ``float64``.

        Raises
        ------
        InvalidArgumentError
            There is no such product, or a band has no ring.
        LimitError
            A sum could overflow.
        """
        rings = tuple(
            ring if ring is None or isinstance(ring, tuple) else (0.0, float(ring)) for ring in (bf, abf, adf)
        )
        return self._native.images(list(names), rings, center, progress=progress, should_cancel=should_cancel)

    def binned(self, factor: int, start: int = 0, stop: int | None = None) -> npt.NDArray[np.uint32]:
        """Sums of blocks of `factor` by `factor` pixels, excluded pixels cleared; partial blocks at the edges stay.

        Parameters
        ----------
        factor : int
            Pixels on a side of a block.
        start, stop : int, optional
            Scans, counted row by row; all if not given.

        Returns
        -------
        numpy.ndarray
            Scans by block rows by block columns.
        """
        rows, columns, y, x = self.shape
        stop = rows * columns if stop is None else stop
        if factor < 1 or not 0 <= start <= stop <= rows * columns:
            raise InvalidArgumentError(f"blocks of {factor} of scans {start} to {stop} of {rows * columns}")
        shape = (stop - start, -(-y // factor), -(-x // factor))
        out = np.empty((shape[0], shape[1] * shape[2]), "u4")
        self._native.binned(start, stop, factor, out)
        return out.reshape(shape)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (os.path.abspath(self.path), *self._options)

    def __repr__(self) -> str:
        return f"<Pack {self.path!r}: shape {self.shape}>"


def _reopen(path: str, threads: int, cached_bytes: int) -> Pack:
    return Pack(path, threads=threads, cached_bytes=cached_bytes)
