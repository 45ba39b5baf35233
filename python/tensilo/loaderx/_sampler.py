"""`loaderx._sampler`: endless batches of record numbers."""

from __future__ import annotations

from .. import sampler

__all__ = ["Sampler"]


class Sampler(sampler.Sampler):
    """Batches of record numbers for ever: loaderx's streams, bit for bit.

    Parameters
    ----------
    length : int
        Number of records.
    batch_size : int
        Records of a batch.
    mode : int
        `Mode.SEQUENTIAL` (0) or `Mode.IID` (1).
    seed : int, optional
        Chooses the stream.
    """

    def __init__(self, length: int, batch_size: int, mode: int, seed: int = 42) -> None:
        super().__init__(length, batch_size, mode, seed)
        self._arguments = ((length, batch_size, mode, seed), {})
