//! Tests of packing against the ground-truth fixtures and against independent slow code.

mod fixtures;
mod products;
mod reading;
mod verifying;
