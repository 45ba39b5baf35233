//! The functions that C calls: pointers in, the safe functions of the crate behind them.

#![expect(unsafe_code, reason = "functions for C take pointers and have names of their own")]

use crate::Sampler;

/// Makes a sampler; see `sampler.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cinit(length: u64, batch_size: u64, mode: u8, seed: u64) -> *mut Sampler {
    Sampler::new(length, batch_size, mode, seed).map_or(std::ptr::null_mut(), |s| Box::into_raw(Box::new(s)))
}

/// Ends a sampler; see `sampler.h`.
///
/// # Safety
/// `sampler` is null, or came from `cinit`, was not ended, and nobody uses it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cdeinit(sampler: *mut Sampler) {
    if !sampler.is_null() {
        // SAFETY: the duty is a pointer from `Box::into_raw` that is taken once; it is not null, and the caller promises
        // the rest.
        drop(unsafe { Box::from_raw(sampler) });
    }
}

/// Fills the next batch; see `sampler.h`.
///
/// # Safety
/// `sampler` is null, or came from `cinit`, was not ended, and nobody else uses it now; `indices` is null or points to
/// `indices_len` numbers that nobody else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnext(sampler: *mut Sampler, indices: *mut u64, indices_len: usize) {
    // SAFETY: the duty is an exclusive, live sampler or null; the caller promises it.
    let Some(sampler) = (unsafe { sampler.as_mut() }) else { return };
    if indices.is_null() || !indices.is_aligned() || indices_len > isize::MAX as usize / 8 {
        return;
    }
    // SAFETY: the duty is a valid, aligned array that nobody else uses. Null, alignment and size were looked at; the
    // caller promises the rest.
    sampler.next_into(unsafe { std::slice::from_raw_parts_mut(indices, indices_len) });
}
