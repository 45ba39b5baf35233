//! Tests of packing against the ground-truth fixtures and against independent slow code.

mod agreeing;
mod bounds;
mod exporting;
mod fixtures;
mod pack_v2_blocks;
mod producing;
mod products;
mod publishing;
mod reading;
mod v2;
mod verifying;
mod writer;

#[global_allocator]
static ALLOCATOR: tensilo_testkit::allocations::CountingAllocator =
    tensilo_testkit::allocations::CountingAllocator;
