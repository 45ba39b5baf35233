//! A compressed random-access store of records, for training sets larger than memory.

pub mod store;
pub mod v1;
