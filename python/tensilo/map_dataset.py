"""Records by their numbers: what PyTorch calls a map-style dataset, and Grain a random-access data source."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .sources import Ragged, Table, arrived, portable

__all__ = ["MapDataset"]


class MapDataset:
    """Records of arrays and stores by their numbers, each a dictionary of its fields.

    PyTorch's ``DataLoader`` takes it as a map-style dataset and asks for whole batches through ``__getitems__``; Grain
    takes it as a ``RandomAccessDataSource``. It is pickled without its data: stores and mapped files are opened again.

    Parameters
    ----------
    dataset, labelset : optional
        As `DataLoader` takes them.
    fields : sequence of str, optional
        Fields to read; all if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from tensilo import MapDataset
    >>> records = MapDataset(np.arange(10) * 2, np.arange(10))
    >>> int(records[-1]["data"]), len(records), [int(r["label"]) for r in records.__getitems__([3, 1])]
    (18, 10, [3, 1])
    """

    def __init__(self, dataset: Any, labelset: Any = None, *, fields: Sequence[str] | None = None) -> None:
        self.dataset, self.labelset, self.fields = dataset, labelset, fields
        self._table = Table(dataset, labelset)
        if self._table.native is not None:
            self._table.fields(fields)

    def __len__(self) -> int:
        return self._table.length

    def _id(self, index: Any) -> int:
        i = operator.index(index)
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"record {i} of {n}")
        return i % n

    def __getitem__(self, index: Any) -> dict[str, Any]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[Any]) -> list[dict[str, Any]]:
        """The records of a list of numbers, read together."""
        ids = np.array([self._id(i) for i in indices], np.uint64)
        batch = self._table.gather(ids, self.fields)
        rows = {name: (a.record if isinstance(a, Ragged) else a.__getitem__) for name, a in batch.items()}
        return [{name: row(i) for name, row in rows.items()} for i in range(len(ids))]

    def __getstate__(self) -> dict[str, Any]:
        return {"sets": (portable(self.dataset), portable(self.labelset)), "fields": self.fields}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        dataset, labelset = (arrived(part) for part in pickled["sets"])
        self.__init__(dataset, labelset, fields=pickled["fields"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"<MapDataset: {len(self)} records, {self._table.fingerprint()}>"
