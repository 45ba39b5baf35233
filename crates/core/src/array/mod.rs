//! Shapes, selections, the chunk grid, and placing decoded chunks into a destination.
