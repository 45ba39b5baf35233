//! What a worker keeps between chunks: intermediate buffers and codec states.

/// Buffers and codec states of one worker, re-used from chunk to chunk.
#[derive(Default)]
pub struct Scratch {
    pub(crate) stages: [Vec<u8>; 2],
    pub(crate) codecs: Codecs,
}

/// The part of [`Scratch`] that filters may use while they run.
pub struct Codecs {
    pub(crate) inflate: Option<crate::deflate::Inflate>,
    pub(crate) block: Vec<u8>,
    pub(crate) second: Vec<u8>,
    pub(crate) positions: Vec<u32>,
    pub(crate) zstd: Option<crate::zstandard::Encoder>,
    pub(crate) unzstd: Option<zstd::bulk::Decompressor<'static>>,
    pub(crate) lz4: Option<crate::lz4_small::Encoder>,
    pub(crate) deflate: Option<crate::deflate::Deflater>,
    /// Planes of bytes that the filter which encodes next is given: more than one right behind a shuffle.
    pub(crate) planes: usize,
}

impl Default for Codecs {
    fn default() -> Self {
        Self {
            inflate: None,
            block: Vec::new(),
            second: Vec::new(),
            positions: Vec::new(),
            zstd: None,
            unzstd: None,
            lz4: None,
            deflate: None,
            planes: 1,
        }
    }
}

impl Scratch {
    /// Bytes held in buffers and by Zstandard's encoder; the other codecs' own states, some 100 KiB, are not counted.
    pub fn held_bytes(&self) -> usize {
        let [a, b] = &self.stages;
        a.capacity()
            + b.capacity()
            + self.codecs.block.capacity()
            + self.codecs.second.capacity()
            + 4 * self.codecs.positions.capacity()
            + self.codecs.zstd.as_ref().map_or(0, crate::zstandard::Encoder::held_bytes)
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Codecs").finish_non_exhaustive()
    }
}

/// The first `len` bytes of a buffer that only ever grows.
pub(crate) fn sized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}
