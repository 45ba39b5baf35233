//! The integration tests of HDF5 reading and writing, one binary.

mod checking;
mod reading;
mod structure;
mod writing;

#[global_allocator]
static ALLOCATOR: tensilo_testkit::allocations::CountingAllocator =
    tensilo_testkit::allocations::CountingAllocator;
