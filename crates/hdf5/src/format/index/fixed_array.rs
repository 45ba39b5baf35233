//! Fixed array (specification VII.C): the index of datasets whose maximum extents are all fixed.
//!
//! Header: signature `FAHD` (4), version (1), client (1: 0 plain, 1 filtered), element size (1), log2 of elements
//! in a page (1), number of elements (size of lengths), address of the data block (size of offsets), checksum (4).
//!
//! Data block: signature `FADB` (4), version (1), client (1), address of the header (size of offsets). With no more
//! elements than a page holds, the elements follow, then a checksum. Otherwise follow one bit for each page that
//! was written and a checksum; then the pages, each with a checksum of its own.

use super::{CHECKSUM, begin, checked};
use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Header of a fixed array, with the geometry that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedArray {
    /// Filtered elements?
    pub filtered: bool,
    /// Bytes of an element.
    pub element: u64,
    /// Number of elements.
    pub elements: u64,
    /// Elements in a page.
    pub page: u64,
    /// The data block.
    pub block: Option<Address>,
    sizes: Sizes,
}

impl FixedArray {
    /// Bytes of a header.
    pub fn header_len(sizes: Sizes) -> u64 {
        u64::from(sizes.offset).saturating_add(u64::from(sizes.length)).saturating_add(12)
    }

    /// Parses a header and verifies its checksum.
    ///
    /// # Errors
    /// `Corrupt`, naming what is wrong.
    pub fn parse(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        const WHAT: &str = "fixed array header";
        let mut r = FieldReader::new(checked(bytes, at, WHAT)?, at, WHAT);
        begin(&mut r, b"FAHD")?;
        let filtered = client(&mut r)?;
        let element = u64::from(r.u8()?);
        let page_bits = r.u8()?;
        if page_bits > 40 || element == 0 {
            return Err(r.corrupt(format_args!("elements of {element} bytes in pages of 2^{page_bits}")));
        }
        let elements = sizes.length(&mut r)?;
        let block = sizes.address(&mut r)?;
        Ok(Self { filtered, element, elements, page: 1 << page_bits, block, sizes })
    }

    /// Is the data block cut into pages?
    pub fn is_paged(&self) -> bool {
        self.elements > self.page
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.elements.div_ceil(self.page.max(1))
    }

    /// Bytes of the data block without its pages, checksum included.
    pub fn block_len(&self) -> u64 {
        let body = if self.is_paged() { self.pages().div_ceil(8) } else { self.bytes(self.elements) };
        self.prefix_len().saturating_add(body).saturating_add(CHECKSUM)
    }

    fn prefix_len(&self) -> u64 {
        u64::from(self.sizes.offset).saturating_add(6)
    }

    fn bytes(&self, elements: u64) -> u64 {
        elements.saturating_mul(self.element)
    }

    /// Verifies the data block and returns its elements, or the bitmap of pages that were written.
    ///
    /// # Errors
    /// `Corrupt`, naming what is wrong.
    pub fn block_body<'a>(&self, bytes: &'a [u8], at: u64) -> Result<(&'a [u8], u64)> {
        const WHAT: &str = "fixed array data block";
        let mut r = FieldReader::new(checked(bytes, at, WHAT)?, at, WHAT);
        begin(&mut r, b"FADB")?;
        same_client(&mut r, self.filtered)?;
        r.skip(usize::from(self.sizes.offset))?;
        let at = r.offset();
        Ok((r.bytes(r.remaining())?, at))
    }

    /// Bytes from the start of the data block to a page, and the page's bytes with its checksum.
    pub fn page_place(&self, page: u64) -> (u64, u64) {
        let whole = self.bytes(self.page).saturating_add(CHECKSUM);
        let elements = self.page.min(self.elements.saturating_sub(page.saturating_mul(self.page)));
        let len = self.bytes(elements).saturating_add(CHECKSUM);
        (self.block_len().saturating_add(page.saturating_mul(whole)), len)
    }

    /// Verifies a page and returns its elements.
    ///
    /// # Errors
    /// `Corrupt` when the checksum does not match.
    pub fn page_body<'a>(&self, bytes: &'a [u8], at: u64) -> Result<&'a [u8]> {
        checked(bytes, at, "fixed array page")
    }
}

/// Reads the client id: false for plain elements, true for filtered ones.
pub(super) fn client(r: &mut FieldReader<'_>) -> Result<bool> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        id => Err(r.corrupt(format_args!("client {id} is not known"))),
    }
}

/// Checks that a block belongs to the same client as its header.
pub(super) fn same_client(r: &mut FieldReader<'_>, filtered: bool) -> Result<()> {
    if client(r)? != filtered {
        return Err(r.corrupt("the client differs from the header's"));
    }
    Ok(())
}
