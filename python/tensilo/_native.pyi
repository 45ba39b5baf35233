"""The native half of the package. Private: what it offers may change at any time."""

import os
from collections.abc import Callable
from typing import Any, final

import numpy as np

__all__ = [
    "__version__",
    "BatchMemory",
    "LaneStore",
    "LaneView",
    "LaneWriter",
    "Loader",
    "PackFile",
    "PackInspection",
    "PackPlan",
    "Sampler",
    "Source",
    "ZrecordStore",
    "pack_inspect",
    "pack_plan",
    "pack_produce",
    "pack_verify",
    "pause_reading",
    "read",
    "resume_reading",
]

__version__: str

def read(
    path: str | os.PathLike[str],
    dataset: str,
    selection: Any = None,
    *,
    threads: int = 0,
    follow_anywhere: bool = False,
    limit: int | None = None,
) -> np.ndarray[Any, np.dtype[Any]]: ...

_Lane = tuple[str, str, str, int, int | None, list[int], list[int], int]

@final
class LaneStore:
    def __new__(cls, path: str | os.PathLike[str], *, lenient: bool = False, verify: bool = False) -> LaneStore: ...
    @property
    def nslabs(self) -> int: ...
    @property
    def format(self) -> int: ...
    @property
    def app(self) -> str: ...
    def names(self) -> list[str]: ...
    def describe(self, name: str) -> tuple[str, int | None, int, list[int], list[int]]: ...
    def is_written(self, name: str, k: int) -> bool: ...
    def view(self, name: str, start: int, end: int, raw: bool) -> LaneView: ...
    def copy(self, name: str, start: int, end: int, out: np.ndarray[Any, np.dtype[np.uint8]]) -> None: ...
    def source(self) -> Source: ...
    def verify(self) -> list[str]: ...

@final
class LaneView:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class LaneWriter:
    @staticmethod
    def create(
        path: str | os.PathLike[str],
        nslabs: int,
        lanes: list[_Lane],
        app: str,
        *,
        format: int,
        overwrite: bool,
        write_behind: bool,
    ) -> LaneWriter: ...
    @staticmethod
    def append(path: str | os.PathLike[str]) -> LaneWriter: ...
    @staticmethod
    def overwrite(path: str | os.PathLike[str]) -> LaneWriter: ...
    def dtype(self, name: str) -> str: ...
    def write(self, name: str, k: int | None, values: np.ndarray[Any, np.dtype[np.uint8]]) -> None: ...
    def append_slabs(self, name: str, slabs: int) -> None: ...
    def add_lane(self, spec: _Lane) -> None: ...
    def finish(self) -> None: ...
    def abort(self) -> None: ...

_Progress = Callable[[str, int, int], object] | None
_ShouldCancel = Callable[[], bool] | None

@final
class PackInspection:
    def json(self) -> str: ...

@final
class PackPlan:
    def json(self) -> str: ...

def pack_inspect(
    source: str | os.PathLike[str],
    *,
    dataset: str | None,
    index_dir: str | os.PathLike[str] | None,
    threads: int,
    progress: _Progress,
    should_cancel: _ShouldCancel,
) -> PackInspection: ...
def pack_plan(
    inspection: PackInspection,
    destination: str | os.PathLike[str],
    *,
    memory: int | None,
    available_disk: int | None,
    profile: str,
    backend: str,
    threads: int,
) -> PackPlan: ...
def pack_produce(
    plan: PackPlan, *, clear_leftovers: bool, progress: _Progress, should_cancel: _ShouldCancel
) -> tuple[str, os.PathLike[str], int, list[os.PathLike[str]]]: ...
def pack_verify(
    path: str | os.PathLike[str],
    *,
    receipt: bool,
    receipt_path: str | os.PathLike[str] | None,
    source: str | os.PathLike[str] | None,
    dataset: str | None,
    threads: int,
    progress: _Progress,
    should_cancel: _ShouldCancel,
) -> str: ...

@final
class PackFile:
    def __new__(cls, path: str | os.PathLike[str], *, threads: int, cached_bytes: int) -> PackFile: ...
    @property
    def shape(self) -> tuple[int, int, int, int]: ...
    @property
    def excluded(self) -> list[int]: ...
    @property
    def has_raw(self) -> bool: ...
    @property
    def is_resident(self) -> bool: ...
    @property
    def manifest(self) -> str: ...
    def gather(
        self,
        scans: np.ndarray[Any, np.dtype[np.uint64]],
        pixels: np.ndarray[Any, np.dtype[np.uint32]],
        raw: bool,
        out: np.ndarray[Any, np.dtype[np.uint16]],
    ) -> None: ...
    def binned(self, start: int, stop: int, factor: int, out: np.ndarray[Any, np.dtype[np.uint32]]) -> None: ...
    def images(
        self,
        only: list[str],
        rings: tuple[tuple[float, float] | None, ...],
        center: tuple[float, float] | None,
        *,
        progress: _Progress,
        should_cancel: _ShouldCancel,
    ) -> dict[str, np.ndarray[Any, np.dtype[Any]]]: ...
    def resident(self, *, progress: _Progress, should_cancel: _ShouldCancel) -> PackFile: ...

_Field = tuple[str, str, list[int], bool]
_Position = tuple[int, int, int, list[int]]

@final
class Source:
    @staticmethod
    def array(name: str, array: np.ndarray[Any, np.dtype[Any]], dtype: str) -> Source: ...
    @staticmethod
    def zip(stores: list[tuple[str | None, Source]]) -> Source: ...
    @staticmethod
    def concat(stores: list[Source]) -> Source: ...
    def __len__(self) -> int: ...
    def fields(self) -> list[_Field]: ...
    @property
    def block(self) -> int: ...
    def fingerprint(self) -> str: ...
    def gather(
        self, ids: np.ndarray[Any, np.dtype[np.uint64]], fields: list[str], limit: int | None = None
    ) -> list[tuple[np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.uint64]] | None]]: ...

@final
class Sampler:
    def __new__(
        cls,
        length: int,
        batch_size: int,
        mode: str,
        seed: int,
        *,
        rank: int = 0,
        world: int = 1,
        epochs: int | None = None,
        drop_last: bool = False,
        shuffle: bool = True,
        blocks: tuple[int, int] | None = None,
        parts: list[tuple[int, int]] = ...,
        worker: tuple[int, int] = ...,
    ) -> Sampler: ...
    def next(self) -> np.ndarray[Any, np.dtype[np.uint64]] | None: ...
    def step(self) -> tuple[int, int, np.ndarray[Any, np.dtype[np.uint64]], _Position] | None: ...
    @property
    def steps_per_epoch(self) -> int | None: ...
    @property
    def total_steps(self) -> int | None: ...
    @property
    def position(self) -> _Position: ...
    def state(self, at: _Position) -> dict[str, Any]: ...
    def resume(self, state: dict[str, Any]) -> None: ...
    def start_epoch(self, epoch: int) -> None: ...
    def copy(self) -> Sampler: ...

@final
class BatchMemory:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class Loader:
    def __new__(
        cls,
        source: Source,
        sampler: Sampler,
        *,
        workers: int,
        prefetch: int,
        fields: list[str],
        limit: int | None = None,
    ) -> Loader: ...
    def next(self) -> tuple[int, int, np.ndarray[Any, np.dtype[np.uint64]], list[Any], _Position] | None: ...
    @property
    def ahead(self) -> int: ...
    def close(self) -> None: ...

def pause_reading() -> None: ...
def resume_reading() -> None: ...

@final
class ZrecordStore:
    def __new__(cls, path: str | os.PathLike[str], *, read_only: bool) -> ZrecordStore: ...
    def count(self) -> int: ...
    def source(self, dtype: str, shape: list[int]) -> Source: ...
    def sync(self) -> None: ...
    def lengths(self, ids: np.ndarray[Any, np.dtype[np.uint64]], out: np.ndarray[Any, np.dtype[np.uint32]]) -> None: ...
    def gather(
        self,
        ids: np.ndarray[Any, np.dtype[np.uint64]],
        out: np.ndarray[Any, np.dtype[np.uint8]],
        stride: int,
    ) -> None: ...
    def gather_var(
        self,
        ids: np.ndarray[Any, np.dtype[np.uint64]],
        out: np.ndarray[Any, np.dtype[np.uint8]],
        offsets: np.ndarray[Any, np.dtype[np.uint64]],
    ) -> None: ...
    def append(self, src: np.ndarray[Any, np.dtype[np.uint8]], n: int, item_len: int, tag: int) -> int: ...
    def append_var(
        self,
        src: np.ndarray[Any, np.dtype[np.uint8]],
        offsets: np.ndarray[Any, np.dtype[np.uint64]],
        lens: np.ndarray[Any, np.dtype[np.uint32]],
        tag: int,
    ) -> int: ...
    def delete(self, ids: np.ndarray[Any, np.dtype[np.uint64]]) -> None: ...
    def compact(self) -> None: ...
    def stats(self) -> tuple[int, int, int]: ...
