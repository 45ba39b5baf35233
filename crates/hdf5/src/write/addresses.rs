//! Addresses given out at the end of a file: one behind the other, or in pages.
//!
//! In a paged file, pages of metadata and of raw data alternate as they are needed; what is smaller than a page lies
//! in one, and what is not begins a page of its own. Readers that buffer pages rely on it.

use crate::format::Address;
use tensilo_core::{Error, Result};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Elements, and what lies in global heaps.
    Raw,
    /// All else.
    Metadata,
}

/// The free part of the page that was begun last for one kind of content.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    next: u64,
    end: u64,
}

#[derive(Debug, Clone, Copy)]
struct Pages {
    size: u64,
    raw: Open,
    metadata: Open,
}

/// Gives out addresses.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    /// End of what was given out, or of its last page.
    next: u64,
    pages: Option<Pages>,
    /// End of the run begun last.
    run: u64,
}

pub(crate) fn too_long(len: u64) -> Error {
    Error::invalid(format!("{len} more bytes pass the largest possible file"))
}

impl Addresses {
    /// From `reserved` on, which the superblock takes.
    pub(crate) fn new(reserved: u64, page: Option<u64>) -> Self {
        match page {
            None => Self { next: reserved, pages: None, run: 0 },
            Some(size) => {
                let metadata = Open { next: reserved, end: size };
                Self { next: size, pages: Some(Pages { size, raw: Open::default(), metadata }), run: 0 }
            }
        }
    }

    /// End of what was given out, whole pages in a paged file.
    pub(crate) fn end(&self) -> u64 {
        self.next
    }

    /// Gives out `len` bytes at a multiple of eight.
    pub(crate) fn allocate(&mut self, len: u64, of: Of) -> Result<Address> {
        let found = match &mut self.pages {
            None => advance(&mut self.next, len, 8),
            Some(pages) if len >= pages.size => {
                let whole = len.checked_next_multiple_of(pages.size);
                whole.and_then(|whole| advance(&mut self.next, whole, pages.size))
            }
            Some(pages) => in_page(&mut self.next, pages, len, of),
        };
        found.map(Address).ok_or_else(|| too_long(len))
    }

    /// Begins a run of raw data that [`extend`](Self::extend) makes longer, with nothing else given out meanwhile:
    /// in a paged file on a page of its own, as it may not stay smaller than one.
    pub(crate) fn begin_run(&mut self) -> Result<Address> {
        let align = self.pages.map_or(8, |p| p.size);
        self.run = advance(&mut self.next, 0, align).ok_or_else(|| too_long(0))?;
        Ok(Address(self.run))
    }

    /// Makes the run longer; returns its end.
    pub(crate) fn extend(&mut self, len: u64) -> Result<u64> {
        let align = self.pages.map_or(1, |p| p.size);
        let end = self.run.checked_add(len).filter(|end| *end <= i64::MAX as u64);
        let next = end.and_then(|end| end.checked_next_multiple_of(align));
        let (Some(end), Some(next)) = (end, next) else { return Err(too_long(len)) };
        (self.run, self.next) = (end, next);
        Ok(end)
    }
}

/// Moves `next` behind `len` bytes at a multiple of `align`; returns where they begin.
fn advance(next: &mut u64, len: u64, align: u64) -> Option<u64> {
    let start = next.checked_next_multiple_of(align)?;
    let end = start.checked_add(len).filter(|end| *end <= i64::MAX as u64)?;
    *next = end;
    Some(start)
}

/// Takes less than a page out of the open page, or out of a new one.
fn in_page(next: &mut u64, pages: &mut Pages, len: u64, of: Of) -> Option<u64> {
    let open = match of {
        Of::Raw => &mut pages.raw,
        Of::Metadata => &mut pages.metadata,
    };
    let start = open.next.next_multiple_of(8);
    if start + len <= open.end {
        open.next = start + len;
        return Some(start);
    }
    let start = advance(next, pages.size, pages.size)?;
    *open = Open { next: start + len, end: start + pages.size };
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_one_kind_of_content_and_nothing_small_crosses_them() {
        let mut a = Addresses::new(48, Some(512));
        let mut at = |len, of| a.allocate(len, of).expect("room").0;
        assert_eq!(at(100, Of::Metadata), 48);
        assert_eq!(at(10, Of::Raw), 512);
        assert_eq!(at(10, Of::Raw), 528);
        assert_eq!(at(512, Of::Raw), 1024, "a page of its own");
        assert_eq!(at(513, Of::Metadata), 1536, "two pages");
        assert_eq!(at(360, Of::Metadata), 152, "the rest of the first page");
        assert_eq!(at(8, Of::Metadata), 2560);
        assert_eq!(at(0, Of::Raw), 544);
        assert_eq!(a.end(), 3072);
        assert_eq!(a.begin_run().expect("room").0, 3072, "a run of unknown length has pages of its own");
        assert_eq!(a.end(), 3072);
        assert_eq!(a.extend(500).expect("room"), 3572);
        assert_eq!(a.extend(100).expect("room"), 3672);
        assert_eq!(a.end(), 4096);
        assert_eq!(a.allocate(8, Of::Raw).expect("room").0, 544);
        assert!(a.extend(u64::MAX).is_err());
    }

    #[test]
    fn without_pages_addresses_are_multiples_of_eight() {
        let mut a = Addresses::new(96, None);
        assert_eq!(a.allocate(3, Of::Raw).expect("room").0, 96);
        assert_eq!(a.allocate(3, Of::Metadata).expect("room").0, 104);
        assert_eq!(a.end(), 107);
        assert_eq!(a.begin_run().expect("room").0, 112);
        assert_eq!(a.extend(3).expect("room"), 115);
        assert_eq!(a.end(), 115);
        assert!(a.allocate(i64::MAX as u64, Of::Raw).is_err());
        assert!(Addresses::new(48, Some(512)).allocate(u64::MAX, Of::Raw).is_err());
    }
}
