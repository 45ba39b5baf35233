//! A detector family as an exact, much smaller cache, and the proof that it is the same.
//!
//! The steps are values that can be printed, each made from the one before:
//! [`inspect`](source::inspect::inspect) (which files, what shape, which identity) → [`plan`](plan::plan) (what it
//! will take, refused before anything is allocated) → [`produce`](produce::produce) (the pack and its receipt) →
//! [`verify`](verify::verify) (decodes everything and proves it) → [`Pack`](read::Pack) (reads it).
//!
//! The format is the public "Lossless Pack Format v1": an HDF5 file whose user block holds a manifest and an index of
//! absolute offsets. Words used here: a *family* is the files of one acquisition, its *members* the data files, its
//! *master* the file that names them; a *tile* is some consecutive scans of one detector pixel; *excluded* pixels are
//! the nonzero ones of the detector's mask; *raw* values are the source's, *working* values have exclusions cleared.

pub mod digest;
pub mod export;
pub mod format;
pub mod geometry;
pub mod identity;
mod le;
pub mod leftovers;
mod ordered;
pub mod plan;
pub mod produce;
pub mod products;
pub mod profile;
pub mod read;
pub mod receipt;
pub mod sha_pair;
pub mod source;
mod strip;
mod unpack;
pub mod v2;
pub mod verify;
pub mod writer;

pub use digest::Sha256Sum;
pub use geometry::{Cut, Geometry};
pub use profile::{Backend, Flavour, Profile};

use std::path::{Path, PathBuf};

/// Bytes of the user block: prelude, manifest and index lie in it, HDF5 begins behind it.
pub const USER_BLOCK: u64 = 65_536;

/// Where the receipt of a pack is: the pack's path with `.receipt.json` behind it.
pub fn receipt_path(pack: &Path) -> PathBuf {
    let mut name = pack.as_os_str().to_owned();
    name.push(".receipt.json");
    name.into()
}
