//! An allocator that counts, for tests that promise how often memory is asked for.
//!
//! A test binary declares it once: `#[global_allocator] static ALLOCATOR: CountingAllocator = CountingAllocator;`

#![expect(unsafe_code, reason = "an allocator has no safe form")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator; counts the requests of each thread.
#[derive(Debug)]
pub struct CountingAllocator;

/// How often `work` asks for memory on this thread; 0 without a [`CountingAllocator`].
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    work();
    CALLS.get() - before
}

fn count() {
    // A thread that ends may have no counter any more.
    let _ = CALLS.try_with(|c| c.set(c.get() + 1));
}

// SAFETY: the duty is that of an allocator; every call is passed on to the system's with the same arguments.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
