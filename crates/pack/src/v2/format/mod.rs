//! The bytes of format 2: preamble, index and shard tables (docs/formats/pack-v2.md).
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used
    )
)]

pub mod index;
pub mod preamble;
pub mod shard_table;
