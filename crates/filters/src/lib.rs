//! HDF5 filters, decode and encode, and the raw codecs behind them.
//!
//! One file per filter; [`Pipeline`] runs the filters of one dataset over its chunks, [`Registry`] knows which
//! filters there are and takes users' own. Nothing here knows files: bytes go in, bytes come out, and what
//! comes out is bounded by the chunk's geometry whatever the bytes claim.
//!
//! ```
//! use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch};
//! let specs = [FilterSpec::new(2, vec![2]), FilterSpec::new(1, vec![4])]; // shuffle, deflate level 4
//! let pipeline = Pipeline::new(&specs, &Registry::default())?;
//! let mut scratch = Scratch::default();
//! let raw: Vec<u8> = (0..1000u16).flat_map(u16::to_le_bytes).collect();
//! let info = ChunkInfo { element_size: 2, chunk_dims: vec![10, 100] };
//! let (stored, mask) = pipeline.encode(&mut scratch, &raw, &info)?;
//! assert!(stored.len() < raw.len());
//! let mut back = vec![0; raw.len()];
//! pipeline.decode(&mut scratch, &stored, mask, &mut back)?;
//! assert_eq!(back, raw);
//! # Ok::<(), tensilo_core::Error>(())
//! ```

pub mod bitshuffle;
mod bitstream;
mod blosc;
mod bzip2;
mod cut;
pub mod deflate;
#[cfg(test)]
mod draw;
mod filter;
mod fletcher32;
mod known;
pub mod lz4;
mod lz4_small;
mod lz77;
mod lzf;
mod nbit;
mod noise;
mod pipeline;
mod quantised;
mod registry;
mod scaleoffset;
mod scratch;
pub mod shuffle;
mod simd;
mod spec;
mod szip;
mod vbz;
#[cfg(feature = "zfp")]
mod zfp;
mod zstandard;
mod zstandard_splice;

pub use filter::{Decoded, Encoded, Filter};
pub use known::provider_of;
pub use pipeline::Pipeline;
pub use registry::Registry;
pub use scratch::{Codecs, Scratch};
pub use spec::{ChunkInfo, FilterSpec, id};
