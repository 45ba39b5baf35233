//! What encoding workers keep from one write to the next: codec states and buffers.
//!
//! Making them anew costs more page faults than a chunk of 128 KiB costs to compress. A few are kept for the whole
//! process: files of one image each are written by many writers, one after the other.

use std::sync::Mutex;
use tensilo_filters::Scratch;

/// Workers that are kept while nobody uses them.
const KEPT: usize = 4;
/// One that holds more bytes is not kept: then what is saved is little beside what it encodes.
const LARGEST: usize = 4 << 20;

static IDLE: Mutex<Vec<Box<Kept>>> = Mutex::new(Vec::new());

#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) scratch: Scratch,
    /// Where the rows of a chunk are gathered.
    pub(crate) gathered: Vec<u8>,
    /// A buffer for an encoded chunk.
    pub(crate) spare: Vec<u8>,
}

/// The memory of one worker; dropped, it is kept for the next.
#[derive(Default)]
pub(crate) struct Worker(Box<Kept>);

impl Worker {
    /// A kept worker, or a new one.
    pub(crate) fn take() -> Self {
        // Never waits: a process may have been forked while another thread held the lock.
        let kept = IDLE.try_lock().ok().and_then(|mut idle| idle.pop());
        Self(kept.unwrap_or_default())
    }
}

impl std::ops::Deref for Worker {
    type Target = Kept;

    fn deref(&self) -> &Kept {
        &self.0
    }
}

impl std::ops::DerefMut for Worker {
    fn deref_mut(&mut self) -> &mut Kept {
        &mut self.0
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let held = self.scratch.held_bytes() + self.gathered.capacity() + self.spare.capacity();
        if held == 0 || held > LARGEST || std::thread::panicking() {
            return;
        }
        if let Ok(mut idle) = IDLE.try_lock()
            && idle.len() < KEPT
        {
            idle.push(std::mem::take(&mut self.0));
        }
    }
}
