//! Numbers as the little-endian bytes that are hashed and stored.

use std::borrow::Cow;

/// Little-endian bytes of 16-bit values; borrowed where the machine stores them so.
pub(crate) fn bytes_of_u16(values: &[u16]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(values))
    } else {
        Cow::Owned(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }
}

/// Little-endian bytes of 32-bit words.
pub(crate) fn bytes_of_u32(words: &[u32]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(words))
    } else {
        Cow::Owned(words.iter().flat_map(|w| w.to_le_bytes()).collect())
    }
}
