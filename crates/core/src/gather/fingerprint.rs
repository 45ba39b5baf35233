//! The identity of a store's contents, the same on every machine.

use std::fmt;

/// 128 bits that say which records a store shows, in which order.
///
/// Made by feeding it whatever pins the contents down: counts, checksums, a generation number, hashes. It is
/// FNV-1a (128 bits) over the length-prefixed parts: it tells accidents, not attacks.
///
/// ```
/// use tensilo_core::gather::StoreFingerprint;
/// let f = StoreFingerprint::new("records").with(b"generation 7").with_number(1000);
/// assert_eq!(f.to_string().parse(), Ok(f));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreFingerprint(u128);

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = (1 << 88) + 0x13b;

fn fnv(state: u128, bytes: &[u8]) -> u128 {
    bytes.iter().fold(state, |h, b| (h ^ u128::from(*b)).wrapping_mul(PRIME))
}

impl StoreFingerprint {
    /// Starts one for a kind of store.
    pub fn new(kind: &str) -> Self {
        Self(OFFSET).with(kind.as_bytes())
    }

    /// Adds bytes.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self(fnv(fnv(self.0, &(bytes.len() as u64).to_le_bytes()), bytes))
    }

    /// Adds a number.
    #[must_use]
    pub fn with_number(self, number: u64) -> Self {
        self.with(&number.to_le_bytes())
    }

    /// Adds another fingerprint.
    #[must_use]
    pub fn with_store(self, other: Self) -> Self {
        self.with(&other.0.to_le_bytes())
    }

    /// The number itself.
    pub fn number(self) -> u128 {
        self.0
    }
}

impl fmt::Display for StoreFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::str::FromStr for StoreFingerprint {
    type Err = std::num::ParseIntError;

    /// Reads the 32 hexadecimal digits that it is shown as.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Draft-eastlake-fnv, test vectors for 128 bits.
        assert_eq!(fnv(OFFSET, b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv(OFFSET, b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
    }

    #[test]
    fn parts_do_not_run_together() {
        let new = || StoreFingerprint::new("k");
        assert_ne!(new().with(b"ab").with(b"c"), new().with(b"a").with(b"bc"));
        assert_ne!(new().with(b""), new());
        assert_ne!(new().with_number(1), new().with_number(2));
    }
}
