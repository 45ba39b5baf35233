//! A compressed random-access store of records, for training sets larger than memory.
//!
//! [`Records`] and [`RecordsWriter`] open stores of either format: [`store`], our own and the default for new ones, and
//! [`v1`], Zrecord v1, which loaderx reads and writes.

mod handle;
pub mod store;
pub mod v1;

pub use handle::{Format, Records, RecordsWriter};
