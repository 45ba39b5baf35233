//! Bits in a row, the most significant bit of each byte first: what n-bit, scale-offset and szip pack into.

use tensilo_core::{Error, Result};

/// Reads bits off the front of a slice.
pub(crate) struct BitReader<'a> {
    src: &'a [u8],
    at: usize,
    /// Bits not yet read, left-aligned; below the lowest of `have` bits lies what may be read again.
    bits: u64,
    have: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(src: &'a [u8]) -> Self {
        Self { src, at: 0, bits: 0, have: 0 }
    }

    /// Makes at least 56 bits available, or all that are left.
    #[inline]
    fn refill(&mut self) {
        if let Some(word) = self.src.get(self.at..).and_then(|s| s.first_chunk::<8>()) {
            self.bits |= u64::from_be_bytes(*word) >> self.have;
            let bytes = (63 - self.have) >> 3;
            self.at += bytes as usize;
            self.have += bytes * 8;
            return;
        }
        while self.have <= 56 {
            let Some(&byte) = self.src.get(self.at) else { return };
            self.bits |= u64::from(byte) << (56 - self.have);
            self.at += 1;
            self.have += 8;
        }
    }

    /// Reads `n` bits, at most 56.
    #[inline]
    pub(crate) fn read(&mut self, n: u32) -> Result<u64> {
        debug_assert!(n <= 56);
        if self.have < n {
            self.refill();
            if self.have < n {
                return Err(cut_off());
            }
        }
        if n == 0 {
            return Ok(0);
        }
        let value = self.bits >> (64 - n);
        self.bits <<= n;
        self.have -= n;
        Ok(value)
    }

    /// Reads `n` bits, at most 64.
    #[inline]
    pub(crate) fn read_wide(&mut self, n: u32) -> Result<u64> {
        if n <= 56 {
            return self.read(n);
        }
        let high = self.read(n - 32)?;
        Ok(high << 32 | self.read(32)?)
    }

    /// Counts zero bits up to the next one bit, and takes both away.
    #[inline]
    pub(crate) fn unary(&mut self) -> Result<u32> {
        if self.have < 32 {
            self.refill();
        }
        let run = self.bits.leading_zeros();
        if run < self.have {
            self.bits = self.bits << run << 1;
            self.have -= run + 1;
            return Ok(run);
        }
        self.long_unary()
    }

    /// A run of zeros longer than what is held.
    #[cold]
    fn long_unary(&mut self) -> Result<u32> {
        let mut zeros = 0_u32;
        loop {
            let run = self.bits.leading_zeros();
            if run < self.have {
                self.bits = self.bits << run << 1;
                self.have -= run + 1;
                return Ok(zeros.saturating_add(run));
            }
            zeros = zeros.saturating_add(self.have);
            (self.bits, self.have) = (0, 0);
            self.refill();
            if self.have == 0 {
                return Err(cut_off());
            }
        }
    }
}

#[cold]
fn cut_off() -> Error {
    Error::corrupt("the packed bits end early")
}

/// Appends bits to a vector.
pub(crate) struct BitWriter<'a> {
    dst: &'a mut Vec<u8>,
    /// Its lowest `have` bits, fewer than 32 between calls, are still to be written.
    bits: u64,
    have: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(dst: &'a mut Vec<u8>) -> Self {
        Self { dst, bits: 0, have: 0 }
    }

    /// Writes the low `n` bits of `value`, at most 32.
    #[inline]
    pub(crate) fn write(&mut self, value: u64, n: u32) {
        debug_assert!(n <= 32);
        self.bits = self.bits << n | value & ((1 << n) - 1);
        self.have += n;
        if self.have >= 32 {
            self.have -= 32;
            self.dst.extend_from_slice(&((self.bits >> self.have) as u32).to_be_bytes());
        }
    }

    /// Writes the low `n` bits of `value`, at most 64.
    #[inline]
    pub(crate) fn write_wide(&mut self, value: u64, n: u32) {
        if n > 32 {
            self.write(value >> 32, n - 32);
            self.write(value, 32);
        } else {
            self.write(value, n);
        }
    }

    /// Writes `zeros` zero bits and a one bit.
    #[inline]
    pub(crate) fn unary(&mut self, mut zeros: u32) {
        while zeros >= 32 {
            self.write(0, 32);
            zeros -= 32;
        }
        self.write(1, zeros + 1);
    }

    /// Fills the last byte with zero bits and says how many of its bits were used before, 0 for none.
    pub(crate) fn finish(self) -> u32 {
        let bytes = self.have.div_ceil(8) as usize;
        let left = ((self.bits << (32 - self.have)) as u32).to_be_bytes();
        self.dst.extend_from_slice(&left[..bytes]);
        self.have % 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut x = 3_u64;
        let mut next = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            x >> 20
        };
        let items: Vec<(u64, u32)> =
            (0..5000).map(|_| (next() << 20 | next(), (next() % 66) as u32)).collect();
        let mut dst = vec![];
        let mut w = BitWriter::new(&mut dst);
        for &(value, n) in &items {
            if n == 65 { w.unary((value % 200) as u32) } else { w.write_wide(value, n) }
        }
        w.finish();
        let mut r = BitReader::new(&dst);
        for &(value, n) in &items {
            if n == 65 {
                assert_eq!(u64::from(r.unary().unwrap()), value % 200);
            } else {
                let want = if n == 64 { value } else { value & ((1 << n) - 1) };
                assert_eq!(r.read_wide(n).unwrap(), want, "{n} bits");
            }
        }
        assert!(r.read(8).is_err() && BitReader::new(&[0, 0]).unary().is_err());
    }
}
