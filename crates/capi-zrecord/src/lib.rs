//! `libzrecord`: Zrecord v1 stores for C, with the functions of loaderx 0.5.0's library of that name, which it can
//! replace; `include/zrecord.h` says what each does.
//!
//! This file is the safe part: what a call means and which number it answers. [`ffi`] turns pointers into it.

pub mod ffi;

use tensilo_core::gather::Places;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Quiet, Result};
use tensilo_records::v1::{Codec, Items, Zrecord, code_of};

/// Does the work, answers its number or the code of its error, and keeps a panic from crossing into C.
fn answered(work: impl FnOnce() -> Result<i64>) -> i64 {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::unsupported("a fault inside the library")));
    result.unwrap_or_else(|e| i64::from(code_of(&e)))
}

/// The number of records, those included that other processes have appended.
fn count(store: &Zrecord) -> Result<i64> {
    // A store that cannot be looked at afresh still has the records that are known.
    Ok(store.refresh().unwrap_or_else(|_| store.len()) as i64)
}

fn gather(store: &Zrecord, ids: &[u64], dst: &mut [u8], places: Places<'_>) -> Result<i64> {
    look_again(store, ids)?;
    store.gather(ids, dst, places, Threads::default(), &Quiet).map(|()| 0)
}

/// Looks for records of other processes when an id is not known.
fn look_again(store: &Zrecord, ids: &[u64]) -> Result<()> {
    let len = store.len();
    if ids.iter().any(|id| *id >= len) {
        store.refresh()?;
    }
    Ok(())
}

fn append(store: &Zrecord, items: Items<'_>, codec: u8) -> Result<i64> {
    let codec = Codec::from_number(codec)
        .ok_or_else(|| Error::new(ErrorKind::InvalidArgument, format!("no codec has the number {codec}")))?;
    store.append(items, Some(codec)).map(|first| first as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code() {
        assert_eq!(answered(|| panic!("a fault")), -2);
        assert_eq!(answered(|| Ok(7)), 7);
    }
}
