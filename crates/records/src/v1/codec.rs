//! Raw deflate, one stream per record, without a wrapper; and the states that are kept for re-use.

use super::fault::Fault;
use std::sync::{Mutex, PoisonError};
use tensilo_core::{Error, Result};
use tensilo_filters::deflate::{Deflater, Inflate};

/// Records of at most so many bytes are stored raw.
const NEVER_COMPRESSED: usize = 16;
/// Speed goes before size, as in loaderx, whose level this is too.
const LEVEL: u32 = 2;

/// How records are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Codec {
    /// As they are.
    Raw,
    /// As a raw deflate stream, where that is shorter.
    #[default]
    Flate,
}

impl Codec {
    /// The number in the file and in the C interface.
    pub fn number(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Flate => 1,
        }
    }

    /// The codec of a number.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Raw),
            1 => Some(Self::Flate),
            _ => None,
        }
    }
}

/// What a worker re-uses from record to record.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    inflate: Inflate,
    deflate: Option<Deflater>,
    /// Stored bytes that were read, not mapped.
    pub stored: Vec<u8>,
}

/// What decoding came to that should have filled `len` bytes.
fn filled(decoded: Result<usize>, len: usize) -> Result<()> {
    match decoded {
        Ok(n) if n == len => Ok(()),
        Ok(n) => {
            let message = format!("the deflate stream holds {n} bytes, {len} are expected");
            Err(Error::corrupt(message).with_source(Fault::Decode))
        }
        Err(e) => Err(Error::corrupt(e.message().to_owned()).with_source(Fault::Decode)),
    }
}

impl Scratch {
    /// Decodes one stream, which must fill `dst` exactly.
    pub fn inflate(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        filled(self.inflate.raw(src, dst), dst.len())
    }

    /// Decodes two streams, each as [`inflate`](Self::inflate) does.
    pub fn inflate_two(&mut self, a: (&[u8], &mut [u8]), b: (&[u8], &mut [u8])) -> [Result<()>; 2] {
        let (room_a, room_b) = (a.1.len(), b.1.len());
        let [of_a, of_b] = self.inflate.raw_pair(a, b);
        [filled(of_a, room_a), filled(of_b, room_b)]
    }

    /// Appends the stored form of a record and says which it is.
    pub fn encode(&mut self, src: &[u8], codec: Codec, out: &mut Vec<u8>) -> Result<(u32, Codec)> {
        let start = out.len();
        if codec == Codec::Flate && src.len() > NEVER_COMPRESSED {
            self.deflate.get_or_insert_default().raw(LEVEL, src, out)?;
            let stored = out.len() - start;
            if stored < src.len() {
                return Ok((stored as u32, Codec::Flate));
            }
            out.truncate(start);
        }
        out.extend_from_slice(src);
        Ok((src.len() as u32, Codec::Raw))
    }
}

/// Scratches that no worker uses now.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Scratch>>);

impl Pool {
    /// Lends a scratch.
    pub fn take(&self) -> Lent<'_> {
        Lent { pool: self, kept: self.0.lock().unwrap_or_else(PoisonError::into_inner).pop() }
    }
}

/// A scratch that goes back to its pool.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    pool: &'a Pool,
    kept: Option<Scratch>,
}

impl Lent<'_> {
    pub fn scratch(&mut self) -> &mut Scratch {
        self.kept.get_or_insert_default()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(scratch) = self.kept.take() {
            self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        }
    }
}
