//! Bit strings, the lowest bit of each byte first, and counts in nibbles.

use tensilo_core::{Error, Result};

/// Appends bits.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    word: u64,
    filled: u32,
}

impl BitWriter {
    /// Appends the low `n` bits, at most 32.
    fn bits(&mut self, value: u64, n: u32) {
        self.word |= value << self.filled;
        self.filled += n;
        while self.filled >= 8 {
            self.bytes.push(self.word as u8);
            self.word >>= 8;
            self.filled -= 8;
        }
    }

    /// Elias gamma: as many zeros as `value` has bits after its first, a one, then those bits.
    pub fn gamma(&mut self, value: u64) {
        debug_assert!(value >= 1);
        let n = value.ilog2();
        self.bits(0, n / 2);
        self.bits(0, n - n / 2);
        self.bits(1, 1);
        let low = value & ((1 << n) - 1);
        let half = n.min(32);
        self.bits(low & ((1 << half) - 1), half);
        self.bits(low >> half, n - half);
    }

    /// A signed number as the gamma code of 1, 2, 3 … for 0, -1, 1 …
    pub fn signed(&mut self, value: i64) {
        self.gamma(((value << 1) ^ (value >> 63)) as u64 + 1);
    }

    /// Appends the bytes, the last filled up with zeros, and begins anew.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.filled > 0 {
            self.bytes.push(self.word as u8);
        }
        out.append(&mut self.bytes);
        (self.word, self.filled) = (0, 0);
    }
}

/// Reads what [`BitWriter`] wrote.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// 57 bits or more from here; zeros behind the end.
    fn peek(&self) -> u64 {
        let byte = self.at / 8;
        let word = match self.bytes.get(byte..byte + 8) {
            Some(b) => u64::from_le_bytes(b.try_into().expect("eight bytes")),
            None => {
                let rest = self.bytes.get(byte..).unwrap_or_default();
                rest.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b))
            }
        };
        word >> (self.at % 8)
    }

    fn advance(&mut self, n: u32) -> Result<()> {
        self.at += n as usize;
        if self.at > self.bytes.len() * 8 {
            return Err(Error::corrupt("a bit string of a block ends too early"));
        }
        Ok(())
    }

    /// See [`BitWriter::gamma`]; at most 40 bits after the first.
    pub fn gamma(&mut self) -> Result<u64> {
        let word = self.peek();
        let n = word.trailing_zeros();
        if n > 40 {
            return Err(Error::corrupt("a number in the bit string of a block is too large"));
        }
        if n <= 28 {
            self.advance(2 * n + 1)?;
            return Ok(1 << n | (word >> (n + 1)) & ((1 << n) - 1));
        }
        self.advance(n + 1)?;
        let low = self.peek() & ((1 << n) - 1);
        self.advance(n)?;
        Ok(1 << n | low)
    }

    /// Skips ones, `most` at most; tells how many.
    pub fn ones(&mut self, most: usize) -> Result<usize> {
        let mut n = 0;
        while n < most {
            let now = (self.peek().trailing_ones() as usize).min(most - n).min(57);
            self.advance(now as u32)?;
            n += now;
            if now < 57 {
                break;
            }
        }
        Ok(n)
    }

    /// See [`BitWriter::signed`].
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.gamma()? - 1;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Refuses bytes behind the last one that was read from, and bits other than zeros in that one.
    pub fn finish(self) -> Result<()> {
        if self.at.div_ceil(8) != self.bytes.len() || self.peek() != 0 {
            return Err(Error::corrupt("a bit string of a block goes on behind its end"));
        }
        Ok(())
    }
}

/// Appends numbers as nibbles, the low one of each byte first: 0 to 12 as they are, 13, 14 and 15 before 2, 4 and 8
/// nibbles, the lowest first.
#[derive(Debug, Default)]
pub(super) struct NibbleWriter {
    bytes: Vec<u8>,
    half: Option<u8>,
}

impl NibbleWriter {
    fn nibble(&mut self, n: u32) {
        match self.half.take() {
            None => self.half = Some(n as u8),
            Some(low) => self.bytes.push(low | (n as u8) << 4),
        }
    }

    pub fn number(&mut self, value: u32) {
        let (mark, n) = match value {
            0..=12 => return self.nibble(value),
            13..=0xff => (13, 2),
            0x100..=0xffff => (14, 4),
            _ => (15, 8),
        };
        self.nibble(mark);
        (0..n).for_each(|i| self.nibble(value >> (4 * i) & 15));
    }

    /// Two nibbles, the low one first.
    pub fn byte(&mut self, value: u8) {
        self.nibble(u32::from(value & 15));
        self.nibble(u32::from(value >> 4));
    }

    /// The bytes, the last filled up with zeros.
    pub fn finish(&mut self) -> &[u8] {
        if let Some(low) = self.half.take() {
            self.bytes.push(low);
        }
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.half = None;
    }
}

/// Reads what [`NibbleWriter`] wrote.
#[derive(Debug)]
pub(super) struct NibbleReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> NibbleReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn nibble(&mut self) -> Result<u32> {
        let byte = self
            .bytes
            .get(self.at / 2)
            .ok_or_else(|| Error::corrupt("the escapes of a block end too early"))?;
        self.at += 1;
        Ok(u32::from(byte >> (4 * ((self.at - 1) % 2)) & 15))
    }

    pub fn number(&mut self) -> Result<u32> {
        let mark = self.nibble()?;
        let n = match mark {
            13 => 2,
            14 => 4,
            15 => 8,
            _ => return Ok(mark),
        };
        (0..n).try_fold(0, |v, i| Ok(v | self.nibble()? << (4 * i)))
    }

    /// See [`NibbleWriter::byte`].
    pub fn byte(&mut self) -> Result<u8> {
        Ok((self.nibble()? | self.nibble()? << 4) as u8)
    }

    /// Refuses bytes behind the last number.
    pub fn finish(mut self) -> Result<()> {
        let padded = self.at.is_multiple_of(2) || self.nibble()? == 0;
        if !padded || self.at / 2 != self.bytes.len() {
            return Err(Error::corrupt("the escapes of a block go on behind their end"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let mut numbers = vec![1_u64, 2, 3, 7, 8];
        numbers.extend((0..39).flat_map(|n| [1 << n, (2 << n) - 1]));
        let mut bits = BitWriter::default();
        numbers.iter().for_each(|n| bits.gamma(*n));
        numbers.iter().for_each(|n| bits.signed(*n as i64 >> 2));
        numbers.iter().for_each(|n| bits.signed(-(*n as i64 >> 2)));
        let mut bytes = Vec::new();
        bits.finish(&mut bytes);
        let mut reader = BitReader::new(&bytes);
        numbers.iter().for_each(|n| assert_eq!(reader.gamma().unwrap(), *n));
        numbers.iter().for_each(|n| assert_eq!(reader.signed().unwrap(), *n as i64 >> 2));
        numbers.iter().for_each(|n| assert_eq!(reader.signed().unwrap(), -(*n as i64 >> 2)));
        reader.finish().unwrap();

        let ones: Vec<usize> = vec![0, 1, 5, 56, 57, 58, 200, 3];
        ones.iter().for_each(|n| {
            (0..*n).for_each(|_| bits.gamma(1));
            bits.gamma(6);
        });
        let mut bytes = Vec::new();
        bits.finish(&mut bytes);
        let mut reader = BitReader::new(&bytes);
        for n in ones {
            assert_eq!(reader.ones(n / 2).unwrap(), n / 2);
            assert_eq!(reader.ones(1000).unwrap(), n - n / 2);
            assert_eq!(reader.gamma().unwrap(), 6);
        }
        reader.finish().unwrap();
        assert_eq!(BitReader::new(&[255; 9]).ones(100).unwrap(), 72);

        let mut nibbles = NibbleWriter::default();
        numbers.iter().for_each(|n| nibbles.number(*n as u32));
        let bytes = nibbles.finish();
        let mut reader = NibbleReader::new(bytes);
        numbers.iter().for_each(|n| assert_eq!(reader.number().unwrap(), *n as u32));
        reader.finish().unwrap();
    }
}
