//! Record stores from and to arrays and folders: everything that can be gathered is imported alike.
//!
//! [`DatasetRows`] shows an HDF5 dataset along its first axis as records, [`PackFrames`] the frames of a pack,
//! [`NpyRows`] the rows of an `.npy` file, [`NpyRagged`] runs of them, and [`Files`] the files of a folder.

mod export;
mod files;
mod import;
mod ragged;
mod rows;

pub use export::{field_to_npy, lengths_to_npy};
pub use files::Files;
pub use import::{import, joined_schema};
pub use ragged::NpyRagged;
pub use rows::{DatasetRows, NpyRows, PackFrames};

use crate::BLOCK;
use tensilo_core::Result;
use tensilo_core::gather::Gather;

/// The next records that make about a block.
fn block(sources: &[&dyn Gather], first: u64) -> Result<Vec<u64>> {
    let Some(len) = sources.first().map(|s| s.len()) else { return Ok(Vec::new()) };
    let ids: Vec<u64> = (first..len.min(first + 65_536)).collect();
    let mut sizes = vec![0_u64; ids.len()];
    let mut steps = vec![0; ids.len()];
    for source in sources {
        for (field, schema) in source.schema().fields().iter().enumerate() {
            source.lengths(field, &ids, &mut steps)?;
            let bytes = schema.step_bytes()?;
            sizes
                .iter_mut()
                .zip(&steps)
                .for_each(|(size, n)| *size = size.saturating_add(n.saturating_mul(bytes)));
        }
    }
    let mut sum = 0_u64;
    let fit = sizes.iter().take_while(|size| {
        let fits = sum < BLOCK;
        sum = sum.saturating_add(**size);
        fits
    });
    let n = fit.count().max(1).min(ids.len());
    Ok(ids[..n].to_vec())
}
