"""loaderx 0.5.0's names over Tensilo: its stores, signatures, defaults and error codes, without its defects.

``import tensilo.loaderx as loaderx`` is what a program needs to change. docs/formats/zrecord-v1.md lists what behaves
otherwise, and why. The program's stores stay as they are: both read and write the same files.
"""

from ._sampler import Sampler
from ._zrecord import Zrecord, ZrecordError
from .dataloader import DataLoader
from .dataset import Dataset

__all__ = ["DataLoader", "Dataset", "Sampler", "Zrecord", "ZrecordError", "__version__"]

#: The version of loaderx whose interface this is.
__version__ = "0.5.0"
