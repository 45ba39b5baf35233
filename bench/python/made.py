"""What the comparisons of records and loaders read: made up, the same in every run."""

import numpy as np


def noise(count, width):
    """Rows of bytes that rise slowly, with two bits of noise: copies are short and far, the worst case for deflate."""
    rng = np.random.default_rng(1)
    rows = (np.arange(count)[:, None] + np.arange(width)[None, :] // 8).astype("u1")
    rows += rng.integers(0, 4, rows.shape, dtype="u1")
    return rows


def pictures(count, width):
    """Pictures of a noisy disc on an even ground, of which it covers a fifth: 28 x 28, or 224 x 224 x 3."""
    rng = np.random.default_rng(1)
    channels = 3 if width % 3 == 0 and int((width // 3) ** 0.5) ** 2 * 3 == width else 1
    side = int((width // channels) ** 0.5)
    rows = np.zeros((count, side, side, channels), "u1")
    y, x = np.mgrid[:side, :side]
    for first in range(0, count, 1000):
        part = rows[first : first + 1000]
        cy, cx = rng.uniform(0.3 * side, 0.7 * side, (2, len(part), 1, 1))
        inside = (y - cy) ** 2 + (x - cx) ** 2 < side * side * 0.2 / np.pi
        shade = rng.integers(96, 224, (len(part), 1, 1, channels), dtype="u1")
        part[:] = inside[..., None] * (shade + rng.integers(0, 32, part.shape, dtype="u1"))
    return rows.reshape(count, width)
