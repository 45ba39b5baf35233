//! An allocator that counts, for tests that promise how often memory is asked for, and how much.
//!
//! A test binary declares it once: `#[global_allocator] static ALLOCATOR: CountingAllocator = CountingAllocator;`

#![expect(unsafe_code, reason = "an allocator has no safe form")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    /// Bytes asked for less those given back, now and at most.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
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

/// The most bytes that `work` holds at one time on this thread beyond what was held before; 0 without a
/// [`CountingAllocator`].
pub fn most_held(work: impl FnOnce()) -> u64 {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    work();
    u64::try_from(HELD.get().1 - before).unwrap_or(0)
}

fn count() {
    // A thread that ends may have no counter any more.
    let _ = CALLS.try_with(|c| c.set(c.get() + 1));
}

fn hold(bytes: i64) {
    let _ = HELD.try_with(|h| {
        let (now, most) = h.get();
        h.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: the duty is that of an allocator; every call is passed on to the system's with the same arguments.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size() as i64);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size() as i64);
        // SAFETY: passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // The old block is held until the new one is there.
        hold(new_size as i64);
        hold(-(layout.size() as i64));
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
