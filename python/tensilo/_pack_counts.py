"""Packs of format 2, as arrays of any dimensions, and virtual detectors over them."""

from __future__ import annotations

import math
import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _native
from ._pack_array import Array, PackArray, Path, Progress, Ring, ShouldCancel, flat_mask, radii, scan_range


#: Sums: ``uint64`` of unsigned counts, ``int64`` of signed ones.
Sums: TypeAlias = npt.NDArray[np.uint64] | npt.NDArray[np.int64]


class Counts(PackArray):
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
        self.shape = self.scan_shape + self.detector_shape
        self.dtype = np.dtype(native.dtype)

    def __getitem__(self, index: Any) -> Any:
        # A bare None adds an axis; only inside a tuple does the native half read it so.
        out = self._native.read((None,) if index is None else index, self._raw)
        return out[()] if out.ndim == 0 else out

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

    def __init__(self, path: Path, *, threads: int = 0) -> None:
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
            Sums as ``uint64``, bands as ``uint32`` where their sums fit, sums of signed counts as ``int64``, the rest as
            ``float64``.

        Raises
        ------
        InvalidArgumentError
            There is no such product, or a band has no ring.
        LimitError
            A sum could overflow.
        """
        rings = (radii(bf), radii(abf), radii(adf))
        return self._native.images(list(names), rings, center, progress=progress, should_cancel=should_cancel)

    def virtual_image(
        self,
        mask: npt.ArrayLike,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> Sums:
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
            Of the scan's shape: ``uint64``, or ``int64`` where counts are signed.
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
            flat_mask(mask, self.detector_shape), progress=progress, should_cancel=should_cancel
        )
        return VirtualDetector(native, self.scan_shape, self.detector_shape)

    def planes(self, *, progress: Progress | None = None, should_cancel: ShouldCancel | None = None) -> Planes:
        """Load all counts, as few bits each as they need, for virtual images at the speed of memory.

        Parameters
        ----------
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        Planes

        Examples
        --------
        >>> import tempfile, pathlib, numpy as np, tensilo
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> counts = np.arange(2 * 3 * 8 * 8, dtype="i2").reshape(2, 3, 8, 8) % 5 - 1
        >>> np.save(folder / "scan.npy", counts)
        >>> found = tensilo.pack.inspect(folder / "scan.npy", format=2)
        >>> made = tensilo.pack.produce(tensilo.pack.plan(found, folder / "scan.h5"))
        >>> planes = tensilo.pack.open(folder / "scan.h5").planes()
        >>> disk = np.hypot(*np.mgrid[-3.5:4, -3.5:4]) <= 2
        >>> bool((planes.virtual_image(disk) == counts[..., disk].sum(axis=-1)).all())
        True
        """
        native = self._native.planes(progress=progress, should_cancel=should_cancel)
        return Planes(native, self.scan_shape, self.detector_shape)

    def binned(
        self,
        factor: int,
        start: int = 0,
        stop: int | None = None,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> Array:
        """Sums of blocks of `factor` by `factor` pixels along the detector's last two axes; excluded pixels are cleared
        first, and partial blocks at the edges stay.

        Parameters
        ----------
        factor : int
            Pixels on a side of a block.
        start, stop : int, optional
            Scans, counted row by row; all if not given.
        progress, should_cancel : callable, optional
            As for `inspect`.

        Returns
        -------
        numpy.ndarray
            Scans, then the detector's axes: ``uint32``, ``uint64`` where a block of such counts could pass 32 bits, or
            ``int64`` where counts are signed.
        """
        start, stop = scan_range(start, stop, math.prod(self.scan_shape), factor)
        return self._native.binned(start, stop, factor, progress=progress, should_cancel=should_cancel)

    def to_hdf5(
        self,
        path: Path,
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


class Planes:
    """All counts of a pack of format 2 in memory, excluded pixels 0. Made by `CountPack.planes`."""

    def __init__(
        self, native: _native.Pack2Planes, scan_shape: tuple[int, ...], detector_shape: tuple[int, ...]
    ) -> None:
        self._native = native
        self.scan_shape = scan_shape
        self.detector_shape = detector_shape

    @property
    def nbytes(self) -> int:
        """Bytes of memory that hold counts."""
        return self._native.nbytes

    def virtual_image(
        self,
        mask: npt.ArrayLike,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> Sums:
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
            As of `CountPack.virtual_image`.
        """
        image = self._native.virtual_image(
            flat_mask(mask, self.detector_shape), progress=progress, should_cancel=should_cancel
        )
        return image.reshape(self.scan_shape)

    def __repr__(self) -> str:
        return f"<Planes: {self.scan_shape} scans of {self.detector_shape} pixels in {self.nbytes} bytes>"


class VirtualDetector:
    """A virtual detector of a pack of format 2. Made by `CountPack.virtual_detector`."""

    def __init__(
        self, native: _native.Pack2Detector, scan_shape: tuple[int, ...], detector_shape: tuple[int, ...]
    ) -> None:
        self._native = native
        self._scan_shape = scan_shape
        self._detector_shape = detector_shape

    @property
    def image(self) -> Sums:
        """Sums of every scan over the mask."""
        return self._native.image().reshape(self._scan_shape)

    def move_to(
        self,
        mask: npt.ArrayLike,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> Sums:
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
            flat_mask(mask, self._detector_shape), progress=progress, should_cancel=should_cancel
        )
        return self.image


def _reopen_counts(path: str, threads: int) -> CountPack:
    return CountPack(path, threads=threads)
