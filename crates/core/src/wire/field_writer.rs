//! Writes little-endian fields into a growing buffer; the other half of [`FieldReader`](super::FieldReader).

/// A buffer that fields are appended to.
///
/// ```
/// use tensilo_core::wire::FieldWriter;
/// let mut w = FieldWriter::new();
/// w.u16(1).u8(2).uint(3, 3);
/// assert_eq!(w.finish(), [1, 0, 2, 3, 0, 0]);
/// ```
#[derive(Debug, Clone)]
pub struct FieldWriter(Vec<u8>);

impl Default for FieldWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl FieldWriter {
    /// An empty buffer, with room for what most structures have.
    pub fn new() -> Self {
        Self::with_capacity(64)
    }

    /// An empty buffer with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Bytes written so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is nothing written yet?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes written so far.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The bytes written.
    #[inline]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Appends bytes.
    #[inline]
    pub fn bytes(&mut self, b: &[u8]) -> &mut Self {
        self.0.extend_from_slice(b);
        self
    }

    /// Appends zero bytes.
    #[inline]
    pub fn zeros(&mut self, n: usize) -> &mut Self {
        self.0.resize(self.0.len() + n, 0);
        self
    }

    /// Appends zero bytes up to a multiple of `to`.
    pub fn align(&mut self, to: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
        self
    }

    /// Appends one byte.
    #[inline]
    pub fn u8(&mut self, v: u8) -> &mut Self {
        self.bytes(&[v])
    }

    /// Appends two bytes.
    #[inline]
    pub fn u16(&mut self, v: u16) -> &mut Self {
        self.bytes(&v.to_le_bytes())
    }

    /// Appends the low three bytes.
    #[inline]
    pub fn u24(&mut self, v: u32) -> &mut Self {
        self.bytes(&v.to_le_bytes()[..3])
    }

    /// Appends four bytes.
    #[inline]
    pub fn u32(&mut self, v: u32) -> &mut Self {
        self.bytes(&v.to_le_bytes())
    }

    /// Appends eight bytes.
    #[inline]
    pub fn u64(&mut self, v: u64) -> &mut Self {
        self.bytes(&v.to_le_bytes())
    }

    /// Appends the low `width` bytes of `v`; wider fields are padded with zeros.
    ///
    /// # Panics
    /// When `v` does not fit: the caller chose a width too small.
    pub fn uint(&mut self, v: u64, width: usize) -> &mut Self {
        assert!(width >= 8 || v >> (8 * width) == 0, "{v} does not fit in {width} bytes");
        let b = v.to_le_bytes();
        self.bytes(&b[..width.min(8)]);
        self.zeros(width.saturating_sub(8))
    }

    /// Overwrites four bytes at `at`, written earlier as a placeholder.
    ///
    /// # Panics
    /// When nothing was written there.
    pub fn patch_u32(&mut self, at: usize, v: u32) -> &mut Self {
        self.0[at..at + 4].copy_from_slice(&v.to_le_bytes());
        self
    }
}
