//! Fractal heaps (specification III.G), encoded: the storage behind dense links and attributes.
