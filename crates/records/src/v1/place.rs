//! Where records lie: one behind the other in numbered data files (*chunks*), none across two of them.

/// Sizes of a store; anything but the default is for tests, loaderx does not open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes that a data file may hold, at most 2^32.
    pub chunk_bytes: u64,
    /// Data files that a store may have, at most 2^12.
    pub chunks: u16,
    /// Records that a store may have, at most 2^24.
    pub records: u32,
}

impl Default for Geometry {
    fn default() -> Self {
        Self { chunk_bytes: 1 << 32, chunks: 1 << 12, records: 1 << 24 }
    }
}

impl Geometry {
    /// Bytes of `meta.zr`, which is as long as it may ever need to be.
    pub(super) fn meta_bytes(&self) -> u64 {
        super::format::entry_at(u64::from(self.records))
    }

    /// A copy whose numbers fit the format.
    pub(super) fn clamped(self) -> Self {
        Self {
            chunk_bytes: self.chunk_bytes.clamp(2, 1 << 32),
            chunks: self.chunks.clamp(1, 1 << 12),
            records: self.records.clamp(1, 1 << 24),
        }
    }

    /// Position in all data files together.
    pub(super) fn linear(&self, place: Place) -> u64 {
        u64::from(place.chunk) * self.chunk_bytes + u64::from(place.offset)
    }

    /// Finds the place of the next record and moves the frontier behind it; `None` when the store is full.
    ///
    /// A record that would end on the last byte of a data file goes to the next one: so does loaderx.
    pub(super) fn take(&self, frontier: &mut Frontier, bytes: u32) -> Option<Place> {
        let end = u64::from(frontier.offset) + u64::from(bytes);
        if end < self.chunk_bytes {
            let place = Place { chunk: frontier.chunk, offset: frontier.offset };
            frontier.offset = end as u32;
            return Some(place);
        }
        let chunk = frontier.chunk.checked_add(1).filter(|c| *c < self.chunks)?;
        if u64::from(bytes) >= self.chunk_bytes {
            return None;
        }
        *frontier = Frontier { chunk, offset: bytes };
        Some(Place { chunk, offset: 0 })
    }
}

/// The first byte of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub chunk: u16,
    pub offset: u32,
}

/// Where the next record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Frontier {
    pub chunk: u16,
    pub offset: u32,
}

impl Frontier {
    /// The start of a store.
    pub const START: Self = Self { chunk: 0, offset: 0 };

    pub fn word(self) -> u64 {
        u64::from(self.chunk) << 32 | u64::from(self.offset)
    }

    pub fn from_word(word: u64) -> Self {
        Self { chunk: (word >> 32) as u16, offset: word as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_would_fill_its_chunk_goes_to_the_next() {
        let geometry = Geometry { chunk_bytes: 100, chunks: 2, records: 10 };
        let mut frontier = Frontier { chunk: 0, offset: 40 };
        assert_eq!(geometry.take(&mut frontier, 59), Some(Place { chunk: 0, offset: 40 }));
        assert_eq!(frontier, Frontier { chunk: 0, offset: 99 });
        assert_eq!(geometry.take(&mut frontier, 1), Some(Place { chunk: 1, offset: 0 }));
        assert_eq!(geometry.take(&mut frontier, 99), None, "there is no third chunk");
        assert_eq!(frontier, Frontier { chunk: 1, offset: 1 }, "a refusal changes nothing");
    }
}
