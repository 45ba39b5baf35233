//! Sampler and loader: batches of records, endless or by epoch, in order, resumable on any number of ranks.
//!
//! A [`Sampler`] says which records come in which order: a few numbers are its state. A [`Loader`] has threads that
//! read the next batches of any [`Gather`](tensilo_core::gather::Gather) and hand them out in that order.
//!
//! From the bottom: the generator ([`Sfc64`]) and loaderx's endless [`Stream`]s; the stateless [`Permutation`], the
//! [`EpochOrder`] and the [`Mixture`] made of it; the [`Sampler`] that cuts an order into steps and steps into ranks;
//! the [`Batch`] and the memory it uses again; the [`Loader`].

mod batch;
pub mod fork;
mod kept;
mod loader;
mod memory;
mod mixture;
mod permutation;
mod sampler;
mod sfc64;
mod shuffle;
mod stream;
mod zip;

pub use batch::{Batch, FieldBatch};
pub use loader::{Failure, Loader, LoaderOptions};
pub use memory::Memory;
pub use mixture::{Mixture, MixtureOrder};
pub use permutation::{Key, Permutation};
pub use sampler::{Order, Position, Sampler, SamplerOptions, SamplerState, Step, share};
pub use sfc64::Sfc64;
pub use shuffle::{EpochOrder, Shuffle};
pub use stream::Stream;
pub use zip::Zip;
