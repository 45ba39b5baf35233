//! Which elements of an array are wanted, and how they get from decoded chunks to where the caller wants them.
//!
//! In order of the data's way: a [`Selection`] is checked against a shape and becomes a list of axes or runs;
//! [`Split`] cuts it along a [`ChunkGrid`] into one part per touched chunk; a [`Canvas`] is the destination
//! that hands every part to at most one worker, so that all of them may write at once.

mod chunk_grid;
mod hyperslab;
pub mod npy;
mod npy_literal;
mod numpy;
mod numpy_text;
mod place;
mod selection;
mod shape;
mod split;
mod zipped;

pub use chunk_grid::ChunkGrid;
pub use hyperslab::Hyperslab;
pub use numpy::{IndexItem, NumpyIndex, Resolved};
pub use place::{Canvas, Tile};
pub use selection::{Axis, Points, Selection};
pub use shape::{elements, strides};
pub use split::Split;
pub use zipped::Zipped;
