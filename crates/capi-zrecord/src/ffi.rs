//! The functions that C calls: pointers in, the safe functions of the crate behind them.

#![expect(unsafe_code, reason = "functions for C take pointers and have names of their own")]

use crate::{answered, append, count, gather, look_again};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tensilo_core::gather::Places;
use tensilo_core::{Error, Quiet, Result};
use tensilo_records::v1::{Items, MAX_RECORD_LEN, Zrecord, ZrecordOptions};

/// Values that C lends; null is allowed for none.
///
/// # Safety
/// `values` is null or points to `count` values that nobody changes while the slice lives.
unsafe fn lent<'a, T>(values: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(values, count)?;
    // SAFETY: the duty is a valid, aligned, unchanged array of `count` values. Null, alignment and size were looked at;
    // the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(values, count) })
}

/// Values that C lets us fill; null is allowed for none.
///
/// # Safety
/// `values` is null or points to `count` values that nobody else uses while the slice lives.
unsafe fn filled<'a, T>(values: *mut T, count: usize) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(values, count)?;
    // SAFETY: as in `lent`, and nobody else uses it, which the caller promises.
    Ok(unsafe { std::slice::from_raw_parts_mut(values, count) })
}

fn check<T>(values: *const T, count: usize) -> Result<()> {
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|n| n <= isize::MAX as usize);
    if values.is_null() || !values.is_aligned() || !fits {
        return Err(Error::invalid(format!("no aligned pointer to {count} values")));
    }
    Ok(())
}

/// The store behind a handle.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed.
unsafe fn opened<'a>(store: *const Zrecord) -> Result<&'a Zrecord> {
    // SAFETY: the duty is a live store or null; the caller promises it.
    unsafe { store.as_ref() }.ok_or_else(|| Error::invalid("the store is closed"))
}

/// Opens or creates a store; see `zrecord.h`.
///
/// # Safety
/// `path` is null or points to `path_len` bytes, `code` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_open(path: *const u8, path_len: usize, code: *mut i32) -> *mut Zrecord {
    let mut store = std::ptr::null_mut();
    let answer = answered(|| {
        // SAFETY: the caller promises what `lent` asks.
        let path = Path::new(OsStr::from_bytes(unsafe { lent(path, path_len) }?));
        store = Box::into_raw(Box::new(Zrecord::open_or_create(path, ZrecordOptions::default())?));
        Ok(0)
    });
    if !code.is_null() {
        // SAFETY: the duty is a pointer that may be written; it is not null, and the caller promises the rest.
        unsafe { code.write(answer as i32) };
    }
    store
}

/// Closes a store; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open`, was not closed, and nobody uses it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_close(store: *mut Zrecord) {
    if !store.is_null() {
        answered(|| {
            // SAFETY: the duty is a pointer from `Box::into_raw` that is taken once; it is not null, and the caller
            // promises the rest.
            drop(unsafe { Box::from_raw(store) });
            Ok(0)
        });
    }
}

/// Number of records; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_len(store: *mut Zrecord) -> u32 {
    // SAFETY: the caller promises what `opened` asks.
    answered(|| count(unsafe { opened(store) }?)).try_into().unwrap_or(0)
}

/// Makes the store durable; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_sync(store: *mut Zrecord) -> i32 {
    // SAFETY: the caller promises what `opened` asks.
    answered(|| unsafe { opened(store) }?.sync().map(|()| 0)) as i32
}

/// Longest record; see `zrecord.h`.
#[unsafe(no_mangle)]
pub extern "C" fn zr_max_record_len() -> u32 {
    MAX_RECORD_LEN as u32
}

/// Lengths of records; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed; `ids` and `out` are null or have `n` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_lengths(store: *mut Zrecord, ids: *const u64, n: usize, out: *mut u32) -> i32 {
    answered(|| {
        // SAFETY: the caller promises what the three ask.
        let (store, ids, out) = unsafe { (opened(store)?, lent(ids, n)?, filled(out, n)?) };
        look_again(store, ids)?;
        store.lengths(ids, out).map(|()| 0)
    }) as i32
}

/// Decodes records, one every `stride` bytes; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed; `ids` is null or has `n` values, `dst` is null or has
/// `dst_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_gather(
    store: *mut Zrecord,
    ids: *const u64,
    n: usize,
    dst: *mut u8,
    dst_len: usize,
    stride: usize,
) -> i32 {
    answered(|| {
        // SAFETY: the caller promises what the three ask.
        let (store, ids, dst) = unsafe { (opened(store)?, lent(ids, n)?, filled(dst, dst_len)?) };
        gather(store, ids, dst, Places::Stride(stride as u64))
    }) as i32
}

/// Decodes records to the given positions; see `zrecord.h`.
///
/// # Safety
/// As `zr_gather`; `offsets` is null or has `n` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_gather_var(
    store: *mut Zrecord,
    ids: *const u64,
    n: usize,
    dst: *mut u8,
    dst_len: usize,
    offsets: *const u64,
) -> i32 {
    answered(|| {
        // SAFETY: the caller promises what the four ask.
        let (store, ids, dst, starts) =
            unsafe { (opened(store)?, lent(ids, n)?, filled(dst, dst_len)?, lent(offsets, n)?) };
        gather(store, ids, dst, Places::Starts(starts))
    }) as i32
}

/// Appends records of one length; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed; `src` is null or has `src_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_append(
    store: *mut Zrecord,
    src: *const u8,
    src_len: usize,
    n: usize,
    stride: usize,
    item_len: usize,
    codec: u8,
) -> i64 {
    answered(|| {
        // SAFETY: the caller promises what both ask.
        let (store, bytes) = unsafe { (opened(store)?, lent(src, src_len)?) };
        append(store, Items::Fixed { bytes, stride, len: item_len, count: n }, codec)
    })
}

/// Appends records of differing lengths; see `zrecord.h`.
///
/// # Safety
/// As `zr_append`; `offsets` and `lens` are null or have `n` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_append_var(
    store: *mut Zrecord,
    src: *const u8,
    src_len: usize,
    n: usize,
    offsets: *const u64,
    lens: *const u32,
    codec: u8,
) -> i64 {
    answered(|| {
        // SAFETY: the caller promises what the four ask.
        let (store, bytes, starts, lens) =
            unsafe { (opened(store)?, lent(src, src_len)?, lent(offsets, n)?, lent(lens, n)?) };
        append(store, Items::Ragged { bytes, starts, lens }, codec)
    })
}

/// Removes records; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed; `ids` is null or has `n` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_delete(store: *mut Zrecord, ids: *const u64, n: usize) -> i32 {
    answered(|| {
        // SAFETY: the caller promises what both ask.
        let (store, ids) = unsafe { (opened(store)?, lent(ids, n)?) };
        look_again(store, ids)?;
        store.delete(ids).map(|()| 0)
    }) as i32
}

/// Gives back the space of deleted records; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_compact(store: *mut Zrecord) -> i32 {
    // SAFETY: the caller promises what `opened` asks.
    answered(|| unsafe { opened(store) }?.compact(&Quiet).map(|()| 0)) as i32
}

/// How much the store holds; see `zrecord.h`.
///
/// # Safety
/// `store` is null, or came from `zr_open` and was not closed; the others are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zr_stats(
    store: *mut Zrecord,
    records: *mut u32,
    live_bytes: *mut u64,
    chunk_bytes: *mut u64,
) {
    answered(|| {
        // SAFETY: the caller promises what `opened` asks.
        let stats = unsafe { opened(store) }?.stats()?;
        if !records.is_null() {
            // SAFETY: the duty is a pointer that may be written; it is not null, and the caller promises the rest.
            unsafe { records.write(stats.records as u32) };
        }
        for (to, value) in [(live_bytes, stats.live_bytes), (chunk_bytes, stats.chunk_bytes)] {
            if !to.is_null() {
                // SAFETY: as for `records`.
                unsafe { to.write(value) };
            }
        }
        Ok(0)
    });
}
