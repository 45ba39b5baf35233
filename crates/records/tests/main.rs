//! Tests of the record stores as their users see them.
#![expect(clippy::print_stdout, reason = "crash tables print how many states they show")]

use tensilo_testkit::allocations::CountingAllocator;

mod handle;
mod store;
mod v1;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
