"""What the packs of both formats are in Python: arrays that are not loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import InvalidArgumentError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: Told of the stage, what is done of it, and what there is in all (0 when that is not known).
Progress: TypeAlias = Callable[[str, int, int], object]
#: Asked whether to stop.
ShouldCancel: TypeAlias = Callable[[], bool]
#: A disk of some radius, or a ring: inner and outer radius, in pixels; both edges belong to it.
Ring: TypeAlias = float | tuple[float, float]
Path: TypeAlias = str | os.PathLike[str]


class PackArray:
    """An array that is not loaded: what is indexed is read. `shape` and `dtype` are its subclass's to set."""

    shape: tuple[int, ...]
    scan_shape: tuple[int, ...]
    detector_shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
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
        raise NotImplementedError

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a pack is unpacked into a new array")
        return np.asarray(self[...], dtype=dtype)


def radii(ring: Ring | None) -> tuple[float, float] | None:
    """Inner and outer radius of a disk or ring."""
    return ring if ring is None or isinstance(ring, tuple) else (0.0, float(ring))


def flat_mask(mask: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """A detector's mask as flat bytes."""
    given = np.asarray(mask)
    if given.shape != shape:
        raise InvalidArgumentError(f"a mask of shape {given.shape} for a detector of {shape}")
    return np.ascontiguousarray(given.astype(bool)).view("u1").reshape(-1)


def scan_range(start: int, stop: int | None, scans: int, factor: int) -> tuple[int, int]:
    """The scans that are binned."""
    stop = scans if stop is None else stop
    if factor < 1 or not 0 <= start <= stop <= scans:
        raise InvalidArgumentError(f"blocks of {factor} of scans {start} to {stop} of {scans}")
    return start, stop
