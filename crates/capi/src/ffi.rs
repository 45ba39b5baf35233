//! The functions that C calls: pointers in, the safe functions of the crate behind them.

#![expect(unsafe_code, reason = "functions for C take pointers and have names of their own")]

use crate::{append, fitting, guarded, open, status};
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tensilo_core::{Error, Result};
use tensilo_pack::writer::PackWriter;

/// Answers a call, and tells why it failed where the caller left room.
///
/// # Safety
/// `message` is null or points to `capacity` bytes that may be written.
unsafe fn answer(result: Result<()>, message: *mut c_char, capacity: usize) -> i32 {
    let code = status(&result);
    if !message.is_null() && capacity > 0 {
        let text = result.err().map(|e| e.to_string()).unwrap_or_default();
        let text = fitting(&text, capacity);
        // SAFETY: the duty is room for the text and its zero. `fitting` leaves at least one byte of `capacity`, and the
        // caller promises `capacity` bytes; the text is ours and apart from them.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), message.cast::<u8>(), text.len());
            message.cast::<u8>().add(text.len()).write(0);
        }
    }
    code
}

/// Words that C lends; null is allowed for none.
///
/// # Safety
/// `words` is null or points to `count` words that nobody changes while the slice lives.
unsafe fn lent<'a>(words: *const u32, count: usize) -> Result<&'a [u32]> {
    match (words.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Error::invalid(format!("a null pointer to {count} words"))),
        _ if !words.is_aligned() || count > isize::MAX as usize / 4 => {
            Err(Error::invalid(format!("a pointer to {count} words that are not aligned or too many")))
        }
        // SAFETY: the duty is a valid, aligned, unchanged array of `count` words. Alignment and size were looked at;
        // the caller promises the rest.
        _ => Ok(unsafe { std::slice::from_raw_parts(words, count) }),
    }
}

/// Begins a pack body; see `tensilo_pack.h`.
///
/// # Safety
/// `path` is null or a zero-terminated string, `writer` null or a pointer that may be written, `message` null or room
/// for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qh5_lossless_pack_v1_writer_open(
    path: *const c_char,
    user_block_bytes: u64,
    writer: *mut *mut PackWriter,
    message: *mut c_char,
    capacity: usize,
) -> i32 {
    let result = if path.is_null() || writer.is_null() {
        Err(Error::invalid("a null path or writer"))
    } else {
        // SAFETY: the duty is a zero-terminated string that is not changed meanwhile; it is not null, and the caller
        // promises the rest.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        open(path, user_block_bytes).map(|made| {
            // SAFETY: the duty is a pointer that may be written; it is not null, and the caller promises the rest.
            unsafe { writer.write(Box::into_raw(Box::new(made))) }
        })
    };
    // SAFETY: the caller promises what `answer` asks of `message`.
    unsafe { answer(result, message, capacity) }
}

/// Appends the next shard; see `tensilo_pack.h`.
///
/// # Safety
/// `writer` came from `open` and was neither closed nor aborted, no other thread uses it now; `payload` and `header` are
/// null or that many words; the offsets are null or may be written; `message` is null or room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qh5_lossless_pack_v1_writer_append_shard(
    writer: *mut PackWriter,
    ordinal: u64,
    payload: *const u32,
    payload_words: usize,
    header: *const u32,
    header_words: usize,
    payload_offset: *mut u64,
    header_offset: *mut u64,
    message: *mut c_char,
    capacity: usize,
) -> i32 {
    let work = || -> Result<()> {
        // SAFETY: the duty is an exclusive, live writer or null; the caller promises it.
        let writer = unsafe { writer.as_mut() }.ok_or_else(|| Error::invalid("a null writer"))?;
        // SAFETY: the caller promises what `lent` asks of both.
        let (payload, header) = unsafe { (lent(payload, payload_words)?, lent(header, header_words)?) };
        let placed = append(writer, ordinal, payload, header)?;
        for (to, extent) in [(payload_offset, placed.payload), (header_offset, placed.header)] {
            if !to.is_null() {
                // SAFETY: the duty is a pointer that may be written; it is not null, and the caller promises the rest.
                unsafe { to.write(extent.offset) };
            }
        }
        Ok(())
    };
    let result = work();
    // SAFETY: the caller promises what `answer` asks of `message`.
    unsafe { answer(result, message, capacity) }
}

/// Takes a writer back from C.
///
/// # Safety
/// `writer` is null, or came from `open` and was neither closed nor aborted, and no other thread uses it.
unsafe fn taken(writer: *mut PackWriter) -> Result<Box<PackWriter>> {
    if writer.is_null() {
        return Err(Error::invalid("a null writer"));
    }
    // SAFETY: the duty is a pointer from `Box::into_raw` that is taken once; it is not null, and the caller promises the
    // rest.
    Ok(unsafe { Box::from_raw(writer) })
}

/// Finishes the file and ends the writer; see `tensilo_pack.h`.
///
/// # Safety
/// `writer` came from `open` and was neither closed nor aborted, and no other thread uses it; `message` is null or room
/// for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qh5_lossless_pack_v1_writer_close(
    writer: *mut PackWriter,
    message: *mut c_char,
    capacity: usize,
) -> i32 {
    // SAFETY: the caller promises what `taken` asks of `writer`.
    let writer = unsafe { taken(writer) };
    let result = writer.and_then(|w| guarded(|| w.close()));
    // SAFETY: the caller promises what `answer` asks of `message`.
    unsafe { answer(result, message, capacity) }
}

/// Gives up and ends the writer; see `tensilo_pack.h`.
///
/// # Safety
/// `writer` is null, or came from `open` and was neither closed nor aborted, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qh5_lossless_pack_v1_writer_abort(writer: *mut PackWriter) {
    // SAFETY: the caller promises what `taken` asks of `writer`.
    if let Ok(writer) = unsafe { taken(writer) } {
        // Nothing can be told any more; a fault is kept inside all the same.
        let _ = guarded(|| {
            writer.abort();
            Ok(())
        });
    }
}
