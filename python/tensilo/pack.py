"""Packs: a detector family as an exact, much smaller cache with a receipt, read like an array of four dimensions.

The steps are values that can be looked at, each made from the one before: `inspect`, `plan`, `produce`, `verify`,
`open`. Format 2 (``inspect(..., format=2)``) takes any integer counts of any scan and detector shape, from detector
families, any HDF5 dataset or ``.npy``; `open` tells which format a file has.

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
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import InvalidArgumentError, OutOfBoundsError

__all__ = [
    "CountPack",
    "Counts",
    "Frames",
    "Inspection",
    "Pack",
    "Plan",
    "Produced",
    "Verification",
    "VirtualDetector",
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

    def __init__(self, native: _native.PackInspection | _native.Pack2Inspection) -> None:
        super().__init__(native.json())
        self._native = native

    @property
    def shape(self) -> tuple[int, ...]:
        """Scan axes, then detector axes."""
        return tuple(self.facts["sourceShape"])

    @property
    def format(self) -> int:
        """The format it was inspected for."""
        return int(self.facts.get("format", 1))

    def __repr__(self) -> str:
        return f"<Inspection of {self.facts['dataset']!r}: shape {self.shape}>"


class Plan(_Facts):
    """What a pack will take. Made by `plan`.

    Attributes
    ----------
    facts : dict
        The plan, with the contract's names.
    """

    def __init__(self, native: _native.PackPlan | _native.Pack2Plan) -> None:
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
    format: int = 1,
    object: str | None = None,
    scan_shape: Sequence[int] | None = None,
    detector_axes: int = 2,
    threads: int = 0,
    progress: Progress | None = None,
    should_cancel: ShouldCancel | None = None,
) -> Inspection:
    """Find the files of a family, hash them, and say what they hold.

    Parameters
    ----------
    source : str or os.PathLike
        A ``*_master.h5``, a data file, or a folder with one dataset; for format 2 also any HDF5 or ``.npy`` file of
        integer counts, or a pack of format 1.
    dataset : str, optional
        Which dataset, where the folder has several.
    index_dir : str or os.PathLike, optional
        Where prepared indexes are kept; the user's cache folder if not given.
    format : int, optional
        1, which other programs read, or 2, which takes any counts and any shape.
    object : str, optional
        Path of the dataset in an HDF5 file, for format 2.
    scan_shape : sequence of int, optional
        Shape of the scan, for format 2; what the source says if not given.
    detector_axes : int, optional
        How many of the last axes are the detector's, for format 2.
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
    if format == 2:
        return Inspection(
            _native.pack2_inspect(
                source,
                dataset=dataset,
                object=object,
                scan_shape=None if scan_shape is None else list(scan_shape),
                detector_axes=detector_axes,
                threads=threads,
                progress=progress,
                should_cancel=should_cancel,
            )
        )
    if format != 1:
        raise InvalidArgumentError(f"format {format}; there are 1 and 2")
    if object is not None or scan_shape is not None or detector_axes != 2:
        raise InvalidArgumentError("object, scan_shape and detector_axes are for format=2")
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
    native = inspection._native
    if isinstance(native, _native.Pack2Inspection):
        if profile != "exact-uint8-bitpacked" or backend != "cpu-reference":
            raise InvalidArgumentError("profile and backend are for format 1")
        return Plan(
            _native.pack2_plan(
                native, destination, memory=memory, available_disk=available_disk, threads=threads
            )
        )
    return Plan(
        _native.pack_plan(
            native,
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
    native = plan._native
    if isinstance(native, _native.Pack2Plan):
        made = _native.pack2_produce(
            native, clear_leftovers=clear_leftovers, progress=progress, should_cancel=should_cancel
        )
    else:
        made = _native.pack_produce(
            native, clear_leftovers=clear_leftovers, progress=progress, should_cancel=should_cancel
        )
    receipt, path, peak, cleared = made
    return Produced(receipt, os.fspath(path), peak, [os.fspath(c) for c in cleared])


def verify(
    path: _Path,
    *,
    receipt: bool = True,
    receipt_path: _Path | None = None,
    shard: int | None = None,
    deep: bool = False,
    source: _Path | None = None,
    dataset: str | None = None,
    threads: int = 0,
    progress: Progress | None = None,
    should_cancel: ShouldCancel | None = None,
) -> Verification:
    """Prove a pack: format 1 by decoding all of it, format 2 by its checksums, which cover every byte.

    Parameters
    ----------
    path : str or os.PathLike
        The pack.
    receipt : bool, optional
        Check the receipt too. Without it the contents alone are proven.
    receipt_path : str or os.PathLike, optional
        The receipt, if it is not beside the pack.
    shard : int, optional
        Only this shard of a pack of format 2; the others are not read.
    deep : bool, optional
        Decode a pack of format 2 and compare the hash of its counts with the source's, too.
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
    if _native.pack2_is(path):
        return Verification(
            _native.pack2_verify(
                path,
                receipt=receipt,
                receipt_path=receipt_path,
                shard=shard,
                deep=deep,
                source=source,
                dataset=dataset,
                threads=threads,
                progress=progress,
                should_cancel=should_cancel,
            )
        )
    if shard is not None:
        raise InvalidArgumentError("a pack of format 1 is proven whole")
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


@overload
def open(path: _Path, *, threads: int = 0, cached_bytes: int = 512 << 20) -> Pack: ...
@overload
def open(path: _Path, *, threads: int = 0, cached_bytes: int = 512 << 20, format: Literal[2]) -> CountPack: ...
def open(
    path: _Path, *, threads: int = 0, cached_bytes: int = 512 << 20, format: int | None = None
) -> Pack | CountPack:
    """Open a pack of either format; only its index is read.

    Parameters
    ----------
    path : str or os.PathLike
        The pack.
    threads : int, optional
        Threads to use; 0 means one for each core.
    cached_bytes : int, optional
        Bytes of packed shards that are kept for the next read, for format 1.
    format : int, optional
        The format it must have; what it has if not given.

    Returns
    -------
    Pack or CountPack
        A `CountPack` for a file of format 2.

    Raises
    ------
    MissingFileError
        There is no such file.
    CorruptError, UnsupportedError
        It is no pack that agrees with itself, or one of another revision.
    """
    found = 2 if _native.pack2_is(path) else 1
    if format is not None and format != found:
        raise InvalidArgumentError(f"{os.fspath(path)!r} has format {found}, not {format}")
    if found == 2:
        return CountPack(path, threads=threads)
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


class Counts:
    """The counts of a pack of format 2 as an array that is not loaded: what is indexed is read.

    Indexing is NumPy's, with every kind of index over scan and detector axes.

    Attributes
    ----------
    shape : tuple of int
        Scan axes, then detector axes.
    dtype : numpy.dtype
        The source's.
    """

    def __init__(self, native: _native.Pack2File, raw: bool) -> None:
        self._native = native
        self._raw = raw
        self.scan_shape: tuple[int, ...] = native.scan_shape
        self.detector_shape: tuple[int, ...] = native.detector_shape
        self.shape: tuple[int, ...] = self.scan_shape + self.detector_shape
        self.dtype = np.dtype(native.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of all values, unpacked."""
        return self.dtype.itemsize * self.size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        # A bare None adds an axis; only inside a tuple does the native half read it so.
        out = self._native.read((None,) if index is None else index, self._raw)
        return out[()] if out.ndim == 0 else out

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a pack is unpacked into a new array")
        return np.asarray(self[...], dtype=dtype)

    def __repr__(self) -> str:
        return f"<Counts: shape {self.shape}, {'raw' if self._raw else 'masked'} {self.dtype}>"


class CountPack(Counts):
    """An open pack of format 2: an array, excluded pixels 0. `raw` is the same with the source's values.

    Parameters
    ----------
    path : str or os.PathLike
        The pack.
    threads : int, optional
        Threads to use; 0 means one for each core.

    Attributes
    ----------
    path : str
        The pack.
    excluded : numpy.ndarray
        Flat indices of the excluded pixels, ascending.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, tensilo
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> counts = np.arange(3 * 4 * 5 * 6, dtype="u4").reshape(3, 4, 5, 6)
    >>> np.save(folder / "scan.npy", counts)
    >>> found = tensilo.pack.inspect(folder / "scan.npy", format=2)
    >>> made = tensilo.pack.produce(tensilo.pack.plan(found, folder / "scan.h5"))
    >>> scan = tensilo.pack.open(folder / "scan.h5")
    >>> scan.shape, scan.dtype
    ((3, 4, 5, 6), dtype('uint32'))
    >>> bool((scan[1, ::2, [0, 3], -1] == counts[1, ::2, [0, 3], -1]).all())
    True
    >>> int(scan.virtual_image(np.ones((5, 6), bool)).sum()) == int(counts.sum())
    True
    """

    def __init__(self, path: _Path, *, threads: int = 0) -> None:
        super().__init__(_native.Pack2File(path, threads=threads), False)
        self.path = os.fspath(path)
        self._threads = threads
        self.excluded: npt.NDArray[np.uint32] = np.array(self._native.excluded, "u4")

    @property
    def raw(self) -> Counts:
        """The source's values: excluded pixels restored."""
        return Counts(self._native, True)

    @property
    def block(self) -> tuple[int, int, int]:
        """Detector rows, detector columns and scans that are coded together."""
        return self._native.block

    @property
    def counts_sha256(self) -> str:
        """SHA-256 of the source's counts."""
        return self._native.identities[0]

    @property
    def source_identity(self) -> str:
        """Identity of the source."""
        return self._native.identities[1]

    def resident(
        self, *, progress: Progress | None = None, should_cancel: ShouldCancel | None = None
    ) -> CountPack:
        """Load the file, packed, into memory.

        Parameters
        ----------
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        CountPack
            The same pack, which reads the file no more.
        """
        loaded = CountPack.__new__(CountPack)
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
        """Exact images by name, in one pass over the blocks; excluded pixels are cleared first.

        Parameters
        ----------
        *names, bf, abf, adf, center, progress, should_cancel
            As for `Pack.products`. DPC needs a scan of two axes.

        Returns
        -------
        dict of str to numpy.ndarray
            Sums as ``uint64``, bands as ``uint32`` where their sums fit, the rest as ``float64``.

        Raises
        ------
        InvalidArgumentError
            There is no such product, or a band has no ring.
        UnsupportedError
            The counts are signed.
        """
        rings = tuple(
            ring if ring is None or isinstance(ring, tuple) else (0.0, float(ring)) for ring in (bf, abf, adf)
        )
        return self._native.images(list(names), rings, center, progress=progress, should_cancel=should_cancel)

    def virtual_image(
        self,
        mask: npt.ArrayLike,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> npt.NDArray[np.uint64]:
        """Sums of every scan over the detector pixels where `mask` is true.

        Parameters
        ----------
        mask : array_like of bool
            Of the detector's shape.
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        numpy.ndarray
            Of the scan's shape.
        """
        return self.virtual_detector(mask, progress=progress, should_cancel=should_cancel).image

    def virtual_detector(
        self,
        mask: npt.ArrayLike,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> VirtualDetector:
        """A virtual detector that can be moved: its image follows from the pixels that come and go.

        Parameters
        ----------
        mask : array_like of bool
            Of the detector's shape.
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        VirtualDetector
        """
        native = self._native.detector(
            _mask(mask, self.detector_shape), progress=progress, should_cancel=should_cancel
        )
        return VirtualDetector(native, self.scan_shape, self.detector_shape)

    def to_hdf5(
        self,
        path: _Path,
        *,
        raw: bool = True,
        overwrite: bool = False,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> str:
        """Write an HDF5 file of a detector's layout: bitshuffle/LZ4 frames, scan shape and mask.

        Parameters
        ----------
        path : str or os.PathLike
            The file to write.
        raw : bool, optional
            Restore excluded pixels; otherwise they are 0.
        overwrite : bool, optional
            Replace a file of that name.
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        str
            SHA-256 of the counts that were written.

        Raises
        ------
        AlreadyExistsError
            The file exists.
        """
        return self._native.to_hdf5(
            path, raw=raw, overwrite=overwrite, progress=progress, should_cancel=should_cancel
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen_counts, (os.path.abspath(self.path), self._threads)

    def __repr__(self) -> str:
        return f"<CountPack {self.path!r}: shape {self.shape}, {self.dtype}>"


class VirtualDetector:
    """A virtual detector of a pack of format 2. Made by `CountPack.virtual_detector`."""

    def __init__(
        self, native: _native.Pack2Detector, scan_shape: tuple[int, ...], detector_shape: tuple[int, ...]
    ) -> None:
        self._native = native
        self._scan_shape = scan_shape
        self._detector_shape = detector_shape

    @property
    def image(self) -> npt.NDArray[np.uint64]:
        """Sums of every scan over the mask."""
        return self._native.image().reshape(self._scan_shape)

    def move_to(
        self,
        mask: npt.ArrayLike,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> npt.NDArray[np.uint64]:
        """Move to another mask; only blocks with pixels that come or go are read.

        Parameters
        ----------
        mask : array_like of bool
            Of the detector's shape.
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        numpy.ndarray
            The new image.
        """
        self._native.move_to(
            _mask(mask, self._detector_shape), progress=progress, should_cancel=should_cancel
        )
        return self.image


def _mask(mask: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """A mask as flat bytes."""
    given = np.asarray(mask)
    if given.shape != shape:
        raise InvalidArgumentError(f"a mask of shape {given.shape} for a detector of {shape}")
    return np.ascontiguousarray(given.astype(bool)).view("u1").reshape(-1)


def _reopen_counts(path: str, threads: int) -> CountPack:
    return CountPack(path, threads=threads)
