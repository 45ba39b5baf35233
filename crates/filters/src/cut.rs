//! Taking fields off the front of a filter's stream.

use tensilo_core::{Error, Result};

/// Takes `N` bytes off the front.
pub(crate) fn array<const N: usize>(src: &mut &[u8], what: &str) -> Result<[u8; N]> {
    let (head, rest) = src.split_first_chunk::<N>().ok_or_else(|| short(what, N, src.len()))?;
    *src = rest;
    Ok(*head)
}

/// Takes `n` bytes off the front.
pub(crate) fn bytes<'a>(src: &mut &'a [u8], n: usize, what: &str) -> Result<&'a [u8]> {
    let (head, rest) = src.split_at_checked(n).ok_or_else(|| short(what, n, src.len()))?;
    *src = rest;
    Ok(head)
}

#[cold]
fn short(what: &str, need: usize, have: usize) -> Error {
    Error::corrupt(format!("{what} needs {need} bytes, {have} are left"))
}
