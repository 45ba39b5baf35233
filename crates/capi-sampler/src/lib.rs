//! `libsampler`: endless batches of record indices for C, with the functions of loaderx 0.5.0's library of that name,
//! which it can replace; `include/sampler.h` says what each does.
//!
//! This file is the safe part. [`ffi`] turns pointers into it.

pub mod ffi;

use tensilo_core::{Error, Result};
use tensilo_loader::Sfc64;

/// An endless order of indices below a length.
#[derive(Debug, Clone)]
pub struct Sampler {
    len: u64,
    /// How far the sequential order goes in a step.
    batch: u64,
    order: Order,
}

#[derive(Debug, Clone)]
enum Order {
    Sequential { cursor: u64 },
    Iid(Sfc64),
}

impl Sampler {
    /// Mode 0 is sequential, 1 draws each index by itself.
    ///
    /// # Errors
    /// `InvalidArgument` for another mode, and for no records.
    pub fn new(len: u64, batch: u64, mode: u8, seed: u64) -> Result<Self> {
        if len == 0 {
            return Err(Error::invalid("there are no records to sample"));
        }
        let order = match mode {
            0 => Order::Sequential { cursor: 0 },
            1 => Order::Iid(Sfc64::new(seed)),
            _ => return Err(Error::invalid(format!("no mode has the number {mode}"))),
        };
        Ok(Self { len, batch, order })
    }

    /// Fills the next batch.
    pub fn next_into(&mut self, indices: &mut [u64]) {
        match &mut self.order {
            Order::Iid(generator) => indices.iter_mut().for_each(|i| *i = generator.below(self.len)),
            Order::Sequential { cursor } => {
                let mut at = *cursor;
                for i in indices {
                    *i = at;
                    at = if at + 1 == self.len { 0 } else { at + 1 };
                }
                *cursor = ((u128::from(*cursor) + u128::from(self.batch)) % u128::from(self.len)) as u64;
            }
        }
    }
}
