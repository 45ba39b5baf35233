//! Bytes of the file in memory: lent by the source, or read and charged.

use super::Block;
use std::ops::Deref;
use tensilo_core::limits::Charge;
use tensilo_core::{Budget, Result};

/// A run of bytes and its place in the file.
#[derive(Debug)]
pub struct Bytes<'a> {
    data: Data<'a>,
    offset: u64,
}

#[derive(Debug)]
enum Data<'a> {
    Lent(&'a [u8]),
    Owned(Vec<u8>, Charge),
}

impl<'a> Bytes<'a> {
    pub(super) fn lent(bytes: &'a [u8], offset: u64) -> Self {
        Self { data: Data::Lent(bytes), offset }
    }

    pub(crate) fn owned(bytes: Vec<u8>, charge: Charge, offset: u64) -> Self {
        Self { data: Data::Owned(bytes, charge), offset }
    }

    /// Absolute offset of the first byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes as a block of their own: moved where they are owned, copied and charged where they are lent.
    pub(crate) fn into_block(self, budget: &Budget, what: &str) -> Result<Block> {
        match self.data {
            Data::Owned(bytes, charge) => Ok(Block::new(bytes, charge, self.offset)),
            Data::Lent(bytes) => {
                let charge = budget.bytes(bytes.len() as u64, what)?;
                Ok(Block::new(bytes.to_vec(), charge, self.offset))
            }
        }
    }

    /// Were the bytes lent by the source, without a copy?
    pub fn is_lent(&self) -> bool {
        matches!(self.data, Data::Lent(_))
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.data {
            Data::Lent(b) => b,
            Data::Owned(b, _) => b,
        }
    }
}
