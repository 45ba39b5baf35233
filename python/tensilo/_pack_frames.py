"""Packs of format 1, as arrays of four dimensions."""

from __future__ import annotations

import json
import operator
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._pack_array import Array, PackArray, Path, Progress, Ring, ShouldCancel, flat_mask, radii, scan_range
from .errors import OutOfBoundsError


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


def _is_special(part: Any) -> bool:
    """Is it a new axis, or an index that takes or makes several axes?"""
    return part is None or isinstance(part, (bool, np.bool_)) or (_is_list(part) and np.asarray(part).ndim > 1)


def _is_list(part: Any) -> bool:
    return isinstance(part, (list, np.ndarray)) and np.ndim(part) > 0


class Frames(PackArray):
    """The counts of a pack as an array of four dimensions that is not loaded: what is indexed is read.

    It has what xarray and dask ask of an array. Indexing is NumPy's, with every kind of index.

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
        self.shape = native.shape
        self.scan_shape = self.shape[:2]
        self.detector_shape = self.shape[2:]
        self.dtype = np.dtype("u2")

    @property
    def chunks(self) -> tuple[int, ...]:
        """Extents that are read well together: one line of the scan."""
        return (1, *self.shape[1:])

    def __getitem__(self, index: Any) -> Any:
        parts = list(index) if isinstance(index, tuple) else [index]
        if sum(_is_special(part) for part in parts) or sum(_is_list(part) for part in parts) > 1:
            return self._each(index)
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

    def _each(self, index: Any) -> Any:
        """What several lists, masks of several axes and new axes select, scan by scan."""
        for part in index if isinstance(index, tuple) else (index,):
            if not isinstance(part, (slice, type(None), type(Ellipsis))) and np.asarray(part).dtype.kind not in "iub":
                raise TypeError("an index is an integer, a slice, ..., None, or a list or mask")
        rows, columns, y, x = self.shape
        try:
            scans = np.broadcast_to(np.arange(rows * columns).reshape(rows, columns, 1, 1), self.shape)[index]
            pixels = np.broadcast_to(np.arange(y * x, dtype="u4").reshape(y, x), self.shape)[index]
        except IndexError as e:
            raise OutOfBoundsError(str(e)) from None
        flat_scans, flat_pixels = np.ravel(scans), np.ravel(pixels)
        out: Array = np.empty(flat_scans.size, self.dtype)
        order = np.argsort(flat_scans, kind="stable")
        found, begins = np.unique(flat_scans[order], return_index=True)
        for scan, of_scan in zip(found, np.split(order, begins[1:])):
            wanted, places = np.unique(flat_pixels[of_scan], return_inverse=True)
            values: Array = np.empty(wanted.size, self.dtype)
            self._native.gather(np.array([scan], "u8"), wanted, self._raw, values)
            out[of_scan] = values[places]
        shaped = out.reshape(np.shape(scans))
        return shaped[()] if shaped.ndim == 0 else shaped

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

    def __init__(self, path: Path, *, threads: int = 0, cached_bytes: int = 512 << 20) -> None:
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
        rings = (radii(bf), radii(abf), radii(adf))
        return self._native.images(list(names), rings, center, progress=progress, should_cancel=should_cancel)

    def virtual_image(
        self,
        mask: npt.ArrayLike,
        *,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> npt.NDArray[np.uint64]:
        """Sums of every scan over the detector pixels where `mask` is true; excluded pixels are cleared first.

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
        image = self._native.virtual_image(
            flat_mask(mask, self.detector_shape), progress=progress, should_cancel=should_cancel
        )
        return image.reshape(self.scan_shape)

    def to_hdf5(
        self,
        path: Path,
        *,
        raw: bool = True,
        overwrite: bool = False,
        progress: Progress | None = None,
        should_cancel: ShouldCancel | None = None,
    ) -> str:
        """Write an HDF5 file of the source's layout: bitshuffle/LZ4 frames, scan shape and mask.

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
        UnsupportedError
            The pack does not know the values of its excluded pixels.
        """
        return self._native.to_hdf5(
            path, raw=raw, overwrite=overwrite, progress=progress, should_cancel=should_cancel
        )

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
        start, stop = scan_range(start, stop, rows * columns, factor)
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
