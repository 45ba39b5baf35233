"""The native half of the package. Private: what it offers may change at any time."""

import os
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

__all__ = [
    "__version__",
    "BatchMemory",
    "Hdf5Writer",
    "LaneStore",
    "LaneView",
    "LaneWriter",
    "Loader",
    "PackFile",
    "PackInspection",
    "PackPlan",
    "RecordStore",
    "RecordWriter",
    "Sampler",
    "Source",
    "ZrecordStore",
    "Pack2Detector",
    "Pack2File",
    "Pack2Inspection",
    "Pack2Plan",
    "Pack2Planes",
    "pack2_inspect",
    "pack2_is",
    "pack2_plan",
    "pack2_produce",
    "pack2_verify",
    "pack_inspect",
    "pack_plan",
    "pack_produce",
    "pack_verify",
    "pause_reading",
    "read",
    "records_dictionary",
    "records_salvage",
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

_Dtype = Any
_Storage = tuple[
    list[int],
    list[int | None] | None,
    list[int] | None,
    list[tuple[str, list[int]]],
    bytes | None,
    int | None,
    bool,
]

@final
class Hdf5Writer:
    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        bound: str,
        user_block: int,
        threads: int,
        track_order: bool,
        overwrite: bool,
        space: tuple[int, bool, int, int],
        shared: list[tuple[list[str], int]],
    ) -> Hdf5Writer: ...
    def group(self, path: str) -> None: ...
    def track(self, path: str, is_group: bool, order: bool) -> None: ...
    def hard_link(self, path: str, object: str) -> None: ...
    def soft_link(self, path: str, target: str) -> None: ...
    def external_link(self, path: str, file: str, object: str) -> None: ...
    def dataset(
        self,
        path: str,
        dtype: _Dtype,
        storage: _Storage,
        bytes: np.ndarray[Any, np.dtype[np.uint8]] | None,
        external: list[tuple[str, int, int | None]] | None,
    ) -> None: ...
    def texts(self, path: str, storage: _Storage, texts: list[str]) -> None: ...
    def sequences(
        self, path: str, dtype: _Dtype, storage: _Storage, items: list[np.ndarray[Any, np.dtype[np.uint8]]]
    ) -> None: ...
    def null(self, path: str, name: str | None, dtype: _Dtype) -> None: ...
    def attribute(
        self, path: str, name: str, dtype: _Dtype, shape: list[int], bytes: np.ndarray[Any, np.dtype[np.uint8]]
    ) -> None: ...
    def text_attribute(self, path: str, name: str, shape: list[int], texts: list[str]) -> None: ...
    def finish(self) -> int: ...
    def abort(self) -> None: ...

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
    def virtual_image(
        self, mask: np.ndarray[Any, np.dtype[np.uint8]], *, progress: _Progress, should_cancel: _ShouldCancel
    ) -> np.ndarray[Any, np.dtype[np.uint64]]: ...
    def to_hdf5(
        self,
        path: str | os.PathLike[str],
        *,
        raw: bool,
        overwrite: bool,
        progress: _Progress,
        should_cancel: _ShouldCancel,
    ) -> str: ...
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

@final
class Pack2Inspection:
    def json(self) -> str: ...

@final
class Pack2Plan:
    def json(self) -> str: ...

def pack2_is(path: str | os.PathLike[str]) -> bool: ...
def pack2_inspect(
    source: str | os.PathLike[str],
    *,
    dataset: str | None,
    object: str | None,
    scan_shape: Sequence[int] | None,
    detector_axes: int,
    threads: int,
    progress: _Progress,
    should_cancel: _ShouldCancel,
) -> Pack2Inspection: ...
def pack2_plan(
    inspection: Pack2Inspection,
    destination: str | os.PathLike[str],
    *,
    memory: int | None,
    available_disk: int | None,
    threads: int,
) -> Pack2Plan: ...
def pack2_produce(
    plan: Pack2Plan, *, clear_leftovers: bool, progress: _Progress, should_cancel: _ShouldCancel
) -> tuple[str, os.PathLike[str], int, list[os.PathLike[str]]]: ...
def pack2_verify(
    path: str | os.PathLike[str],
    *,
    receipt: bool,
    receipt_path: str | os.PathLike[str] | None,
    shard: int | None,
    deep: bool,
    source: str | os.PathLike[str] | None,
    dataset: str | None,
    threads: int,
    progress: _Progress,
    should_cancel: _ShouldCancel,
) -> str: ...

@final
class Pack2File:
    def __new__(cls, path: str | os.PathLike[str], *, threads: int) -> Pack2File: ...
    @property
    def scan_shape(self) -> tuple[int, ...]: ...
    @property
    def detector_shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def excluded(self) -> list[int]: ...
    @property
    def identities(self) -> tuple[str, str]: ...
    def read(self, index: Any, raw: bool) -> np.ndarray[Any, np.dtype[Any]]: ...
    def images(
        self,
        only: list[str],
        rings: tuple[tuple[float, float] | None, ...],
        center: tuple[float, float] | None,
        *,
        progress: _Progress,
        should_cancel: _ShouldCancel,
    ) -> dict[str, np.ndarray[Any, np.dtype[Any]]]: ...
    def detector(
        self, mask: np.ndarray[Any, np.dtype[np.uint8]], *, progress: _Progress, should_cancel: _ShouldCancel
    ) -> Pack2Detector: ...
    def to_hdf5(
        self,
        path: str | os.PathLike[str],
        *,
        raw: bool,
        overwrite: bool,
        progress: _Progress,
        should_cancel: _ShouldCancel,
    ) -> str: ...
    def planes(self, *, progress: _Progress, should_cancel: _ShouldCancel) -> Pack2Planes: ...
    def binned(
        self, start: int, stop: int, factor: int, *, progress: _Progress, should_cancel: _ShouldCancel
    ) -> np.ndarray[Any, np.dtype[Any]]: ...
    def resident(self, *, progress: _Progress, should_cancel: _ShouldCancel) -> Pack2File: ...

@final
class Pack2Detector:
    def image(self) -> np.ndarray[Any, np.dtype[Any]]: ...
    def move_to(
        self, mask: np.ndarray[Any, np.dtype[np.uint8]], *, progress: _Progress, should_cancel: _ShouldCancel
    ) -> None: ...

@final
class Pack2Planes:
    @property
    def nbytes(self) -> int: ...
    def virtual_image(
        self, mask: np.ndarray[Any, np.dtype[np.uint8]], *, progress: _Progress, should_cancel: _ShouldCancel
    ) -> np.ndarray[Any, np.dtype[Any]]: ...

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

_RecordField = tuple[str, str, list[int], bool]
_Ids = np.ndarray[Any, np.dtype[np.uint64]]
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]

@final
class RecordStore:
    def __new__(cls, path: str | os.PathLike[str], *, map: bool = True, limit: int | None = None) -> RecordStore: ...
    def __len__(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def generation(self) -> int: ...
    def fields(self) -> list[_RecordField]: ...
    def encodings(self) -> list[str]: ...
    def metadata(self) -> str | None: ...
    def stats(self) -> tuple[int, int, int]: ...
    def fingerprint(self) -> str: ...
    def refreshed(self) -> RecordStore | None: ...
    def source(self, ids: _Ids | None) -> Source: ...
    def lengths(self, field: int, ids: _Ids) -> _Ids: ...
    def gather(
        self, field: int, ids: _Ids, out: _Bytes, stride: int, starts: _Ids | None, threads: int
    ) -> None: ...
    def fill(self, field: int, ids: Any, out: Any, threads: int) -> bool: ...
    def verify(self, threads: int) -> tuple[int, int, int, list[str]]: ...

@final
class RecordWriter:
    @staticmethod
    def create(
        path: str | os.PathLike[str],
        fields: list[_RecordField],
        *,
        codec: str | None,
        field_codecs: list[tuple[str, str]],
        metadata: str | None,
        dictionary: bytes | None,
        replace: bool,
        whole: bool,
        wait: float,
        threads: int,
    ) -> RecordWriter: ...
    @staticmethod
    def open(path: str | os.PathLike[str], *, codec: str | None, wait: float, threads: int) -> RecordWriter: ...
    def __len__(self) -> int: ...
    def fields(self) -> list[_RecordField]: ...
    def append(self, records: int, columns: list[tuple[_Bytes, _Ids | None]]) -> int: ...
    def commit(self) -> None: ...
    def delete(self, ids: _Ids) -> None: ...
    def compact(self) -> None: ...
    def set_metadata(self, text: str) -> None: ...
    def close(self) -> None: ...

def records_salvage(
    path: str | os.PathLike[str], to: str | os.PathLike[str]
) -> tuple[int, int, list[str]]: ...
def records_dictionary(samples: list[bytes], most: int) -> bytes: ...
