"""The native half of the package. Private: what it offers may change at any time."""

import os
from typing import Any

import numpy as np

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
