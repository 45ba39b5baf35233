//! The low-level pack writer for C: `include/tensilo_pack.h` says what each function does.
//!
//! This file is the safe part: what a call means and which number it answers. [`ffi`] turns pointers into it.

pub mod ffi;

use std::path::Path;
use tensilo_core::io::SystemDisk;
use tensilo_core::{Error, ErrorKind, Result};
use tensilo_pack::writer::{Appended, PackWriter};

/// The answer to a call: 0, or who must act.
pub fn status(result: &Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(e) => match e.kind() {
            ErrorKind::InvalidArgument => 1,
            ErrorKind::AlreadyExists => 2,
            ErrorKind::NotFound => 3,
            ErrorKind::InsufficientDisk => 4,
            ErrorKind::Io => 5,
            _ => 6,
        },
    }
}

/// Does the work and keeps a panic from crossing into C.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::unsupported("a fault inside the library")))
}

/// Cuts a message to a buffer of `capacity` bytes, the ending zero included, between characters.
fn fitting(message: &str, capacity: usize) -> &[u8] {
    let message = message.split('\0').next().unwrap_or("");
    &message.as_bytes()[..message.floor_char_boundary(capacity.saturating_sub(1).min(message.len()))]
}

fn open(path: &Path, user_block: u64) -> Result<PackWriter> {
    guarded(|| PackWriter::create(SystemDisk::shared(), path, user_block))
}

fn append(writer: &mut PackWriter, ordinal: u64, payload: &[u32], header: &[u32]) -> Result<Appended> {
    let ordinal = usize::try_from(ordinal).map_err(|_| Error::invalid(format!("no shard {ordinal}")))?;
    guarded(|| writer.append_shard(ordinal, payload, header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_between_characters() {
        assert_eq!(fitting("abc", 4), b"abc");
        assert_eq!(fitting("abc", 3), b"ab");
        assert_eq!(fitting("aé", 3), b"a");
        assert_eq!(fitting("a\0b", 9), b"a");
        assert_eq!((fitting("abc", 0), fitting("abc", 1)), (&b""[..], &b""[..]));
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let e = guarded(|| -> Result<()> { panic!("a fault") }).unwrap_err();
        assert_eq!(status(&Err(e)), 6);
    }
}
