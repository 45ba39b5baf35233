"""Packs: a detector family as an exact, much smaller cache with a receipt, read like an array of four dimensions.

The steps are values that can be looked at, each made from the one before: `inspect`, `plan`, `produce`, `verify`,
`open`. Format 2 (``inspect(..., format=2)``) takes any integer counts of any scan and detector shape, from detector
families, any HDF5 dataset or ``.npy``; ``format="auto"`` takes format 1 where it can, and says why it does not; `open`
tells which format a file has.

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

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from . import _native
from ._pack_array import Path, Progress, ShouldCancel
from ._pack_counts import CountPack, Counts, Planes, VirtualDetector
from ._pack_format import ASKED, TAKES, Format, Origin, refusal, wanted_format
from ._pack_frames import Frames, Pack
from .errors import InvalidArgumentError, TensiloError

__all__ = [
    "CountPack",
    "Counts",
    "Frames",
    "Inspection",
    "Pack",
    "Plan",
    "Planes",
    "Produced",
    "Verification",
    "VirtualDetector",
    "inspect",
    "open",
    "plan",
    "produce",
    "verify",
]


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

    def __init__(self, native: _native.PackInspection | _native.Pack2Inspection, origin: Origin) -> None:
        super().__init__(native.json())
        self._native = native
        self._origin = origin

    @property
    def why(self) -> str:
        """Why it has its format."""
        return self._origin.why

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

    def __init__(
        self, native: _native.PackPlan | _native.Pack2Plan, origin: Origin, again: Callable[[str], Plan]
    ) -> None:
        super().__init__(native.json())
        self._native = native
        self._origin = origin
        self._again = again

    @property
    def format(self) -> int:
        """The format that the pack will have."""
        return 2 if isinstance(self._native, _native.Pack2Plan) else 1

    @property
    def why(self) -> str:
        """Why it has that format."""
        return self._origin.why

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
    format : int
        The format of the pack.
    why : str
        Why it has that format.
    """

    def __init__(self, receipt: str, receipt_path: str, peak_bytes: int, cleared: list[str], plan: Plan) -> None:
        self.receipt: dict[str, Any] = json.loads(receipt)
        self.format = plan.format
        self.why = plan.why
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
    source: Path,
    *,
    dataset: str | None = None,
    index_dir: Path | None = None,
    format: Format = 1,
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
    format : 1, 2 or "auto", optional
        1, which other programs read; 2, which takes any counts and any shape; or ``"auto"``: 1 where it takes the source,
        else 2. What format 1 refuses later, in `plan` or `produce`, becomes format 2 there. ``why`` says why.
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
    by_hand = object is not None or scan_shape is not None or detector_axes != 2

    def look(format: int, why: str, auto: bool) -> Inspection:
        origin = Origin(look, why, auto)
        if format == 1:
            if by_hand:
                raise InvalidArgumentError("object, scan_shape and detector_axes are for format=2")
            one = _native.pack_inspect(
                source,
                dataset=dataset,
                index_dir=index_dir,
                threads=threads,
                progress=progress,
                should_cancel=should_cancel,
            )
            return Inspection(one, origin)
        two = _native.pack2_inspect(
            source,
            dataset=dataset,
            object=object,
            scan_shape=None if scan_shape is None else list(scan_shape),
            detector_axes=detector_axes,
            threads=threads,
            progress=progress,
            should_cancel=should_cancel,
        )
        return Inspection(two, origin)

    wanted = wanted_format(format)
    if wanted != "auto":
        return look(wanted, ASKED, False)
    if by_hand:
        return look(2, "the source is described by hand", False)
    try:
        return look(1, TAKES, True)
    except TensiloError as e:
        return look(2, refusal(e), False)


def plan(
    inspection: Inspection,
    destination: Path,
    *,
    memory: int | None = None,
    available_disk: int | None = None,
    profile: str = "exact-uint8-bitpacked",
    backend: str = "cpu-reference",
    threads: int = 0,
    format: Format | None = None,
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
    format : 1, 2 or "auto", optional
        Another format than it was inspected for: the source is inspected again.

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
    origin = inspection._origin
    wanted = None if format is None else wanted_format(format)
    if wanted == "auto":
        if inspection.format == 1:
            origin = dataclasses.replace(origin, why=TAKES, auto=True)
        else:
            try:
                inspection = origin.look(1, TAKES, True)
            except TensiloError as e:
                inspection = origin.look(2, refusal(e), False)
            origin = inspection._origin
    elif wanted is not None and wanted != inspection.format:
        inspection = origin.look(wanted, ASKED, False)
        origin = inspection._origin

    def again(why: str) -> Plan:
        two = origin.look(2, why, False)
        return planned(two, two._origin)

    def planned(inspection: Inspection, origin: Origin) -> Plan:
        native = inspection._native
        if isinstance(native, _native.Pack2Inspection):
            if profile != "exact-uint8-bitpacked" or backend != "cpu-reference":
                raise InvalidArgumentError("profile and backend are for format 1")
            two = _native.pack2_plan(
                native, destination, memory=memory, available_disk=available_disk, threads=threads
            )
            return Plan(two, origin, again)
        one = _native.pack_plan(
            native,
            destination,
            memory=memory,
            available_disk=available_disk,
            profile=profile,
            backend=backend,
            threads=threads,
        )
        return Plan(one, origin, again)

    try:
        return planned(inspection, origin)
    except TensiloError as e:
        if not origin.auto:
            raise
        return again(refusal(e))


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
        try:
            made = _native.pack_produce(
                native, clear_leftovers=clear_leftovers, progress=progress, should_cancel=should_cancel
            )
        except TensiloError as e:
            if not plan._origin.auto:
                raise
            return produce(
                plan._again(refusal(e)),
                clear_leftovers=clear_leftovers,
                progress=progress,
                should_cancel=should_cancel,
            )
    receipt, path, peak, cleared = made
    return Produced(receipt, os.fspath(path), peak, [os.fspath(c) for c in cleared], plan)


def verify(
    path: Path,
    *,
    receipt: bool = True,
    receipt_path: Path | None = None,
    shard: int | None = None,
    deep: bool = False,
    source: Path | None = None,
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
def open(
    path: Path, *, threads: int = 0, cached_bytes: int = 512 << 20, format: Literal[1] | None = None
) -> Pack: ...
@overload
def open(path: Path, *, threads: int = 0, cached_bytes: int = 512 << 20, format: Literal[2]) -> CountPack: ...
def open(
    path: Path, *, threads: int = 0, cached_bytes: int = 512 << 20, format: int | None = None
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
