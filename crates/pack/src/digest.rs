//! A SHA-256 value: how every identity of a pack is stated.

use crate::sha_pair::Sha256Stream;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use tensilo_core::Error;

/// The SHA-256 of something; shown as 64 lower-case hexadecimal digits.
///
/// ```
/// use tensilo_pack::Sha256Sum;
/// let empty = Sha256Sum::of(b"");
/// assert_eq!(empty.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
/// assert_eq!(empty.to_string().parse::<Sha256Sum>()?, empty);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Sum(pub [u8; 32]);

impl Sha256Sum {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut stream = Sha256Stream::new();
        stream.update(bytes);
        stream.finish()
    }

    /// The hash of numbers in little-endian order, four bytes each.
    pub fn of_u32(values: &[u32]) -> Self {
        let mut stream = Sha256Stream::new();
        let mut bytes = [0; 4096];
        for part in values.chunks(bytes.len() / 4) {
            for (to, v) in bytes.chunks_exact_mut(4).zip(part) {
                to.copy_from_slice(&v.to_le_bytes());
            }
            stream.update(&bytes[..part.len() * 4]);
        }
        stream.finish()
    }
}

impl fmt::Display for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256Sum {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digit = |b: u8| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        };
        let parse = || {
            let mut sum = [0; 32];
            if text.len() != 64 {
                return None;
            }
            for (to, pair) in sum.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
                *to = digit(pair[0])? << 4 | digit(pair[1])?;
            }
            Some(Self(sum))
        };
        parse().ok_or_else(|| {
            Error::corrupt(format!("{text:?} is not a SHA-256 of 64 lower-case hexadecimal digits"))
        })
    }
}

impl Serialize for Sha256Sum {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256Sum {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(|e: Error| serde::de::Error::custom(e.message()))
    }
}
