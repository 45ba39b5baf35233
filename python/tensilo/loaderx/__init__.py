"""loaderx's own names: a program that used loaderx changes one import."""

from ._sampler import Sampler
from .dataloader import DataLoader

__all__ = ["DataLoader", "Sampler"]
