//! One tile of all pixels: checked, cleared of exclusions, measured, packed.

use super::decode::Frames;
use crate::format::tile;
use crate::profile::Profile;
use crate::strip::{self, STRIP, TILE};
use tensilo_core::{Error, Result};

/// What turns decoded tiles into working values, widths and packed words.
pub(crate) struct Kernel<'a> {
    pub profile: Profile,
    pub frames: &'a Frames,
    pub pixels: usize,
    /// Detector columns, for messages.
    pub columns: usize,
    /// Excluded flat pixels, ascending, and the values they have in the first scan.
    pub excluded: &'a [u32],
    pub constants: &'a [u16],
}

/// A decoded tile and its working values; in a second pass the packed words lie where the working values were.
pub(crate) struct TileBuffers {
    pub raw: Vec<u16>,
    pub working: Vec<u8>,
}

/// Takes the packed words of one piece.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(usize, &[u8]);

impl Kernel<'_> {
    /// Scans of a tile.
    pub fn tile(&self) -> usize {
        self.profile.tile() as usize
    }

    /// Words of a tile per bit of width.
    pub fn unit(&self) -> usize {
        self.tile() / TILE
    }

    /// Pixels that are packed and gathered together.
    pub fn piece(&self) -> usize {
        strip::piece(self.profile)
    }

    /// Pieces of the detector.
    pub fn pieces(&self) -> usize {
        self.pixels.div_ceil(self.piece())
    }

    /// Most bytes of the packed tiles of a piece.
    pub fn piece_bytes(&self) -> usize {
        let most_bits = if self.profile == Profile::ExactUint8BitPacked { 8 } else { 16 };
        self.piece() * most_bits * self.unit() * 4
    }

    pub fn buffers(&self) -> TileBuffers {
        let values = self.tile() * self.pixels;
        let bytes = if self.profile == Profile::ExactUint8BitPacked { 1 } else { 2 };
        TileBuffers { raw: vec![0; values], working: vec![0; bytes * values] }
    }

    /// Decodes the frames of a tile.
    ///
    /// # Errors
    /// Those of the first frame that fails.
    pub fn decode(&self, reader: &mut super::decode::Reader, item: usize, raw: &mut [u16]) -> Result<()> {
        let first = (item * self.tile()) as u64;
        for (frame, values) in (first..).zip(raw.chunks_exact_mut(self.pixels)) {
            self.frames.decode(reader, frame, values)?;
        }
        Ok(())
    }

    /// Decodes the frames of a tile and makes their working values and widths, each frame while it is in the cache.
    ///
    /// # Errors
    /// Those of the first frame that fails; `Unsupported` for the first pixel, and its first scan, that the profile
    /// cannot hold.
    pub fn decode_and_narrow(
        &self,
        reader: &mut super::decode::Reader,
        item: usize,
        buffers: &mut TileBuffers,
        widths: &mut [u8],
    ) -> Result<()> {
        let TileBuffers { raw, working } = buffers;
        if self.profile != Profile::ExactUint8BitPacked {
            self.decode(reader, item, raw)?;
            return self.process(item, raw, Some(working), widths, None);
        }
        let mut narrowing = Narrowing::new(self, widths);
        let first = (item * self.tile()) as u64;
        let frames = raw.chunks_exact_mut(self.pixels).zip(working.chunks_exact_mut(self.pixels));
        for (frame, (values, narrow)) in (first..).zip(frames) {
            self.frames.decode(reader, frame, values)?;
            narrowing.frame(values, narrow);
        }
        narrowing.finish().map_err(|()| self.first_failure(item, raw))
    }

    /// As [`Self::decode_and_narrow`], of frames that are decoded already and of the uint8 profile.
    ///
    /// # Errors
    /// `Unsupported` for the first pixel, and its first scan, that the profile cannot hold.
    pub fn narrow(&self, item: usize, raw: &[u16], working: &mut [u8], widths: &mut [u8]) -> Result<()> {
        let mut narrowing = Narrowing::new(self, widths);
        for (values, narrow) in raw.chunks_exact(self.pixels).zip(working.chunks_exact_mut(self.pixels)) {
            narrowing.frame(values, narrow);
        }
        narrowing.finish().map_err(|()| self.first_failure(item, raw))
    }

    /// Packs a tile of working values of the uint8 profile and hands the pieces to a sink.
    pub fn pack(&self, working: &[u8], widths: &[u8], sink: Sink<'_>) {
        let mut scratch = [0; 8 * STRIP * 32 + 8];
        for piece in 0..self.pieces() {
            let mut packed = 0;
            let end = self.pixels.min((piece + 1) * self.piece());
            for at in (piece * self.piece()..end).step_by(STRIP) {
                let n = STRIP.min(end - at);
                let rows = strip::rows(working, self.pixels, at, n);
                packed += strip::pack(&rows, &widths[at..at + n], &mut scratch[packed..]);
            }
            sink(piece, &scratch[..packed]);
        }
    }

    /// Checks a decoded tile; fills the working values where wanted, the widths, and hands packed pieces to a sink.
    ///
    /// # Errors
    /// `Unsupported` for the first pixel, and its first scan, that the profile cannot hold.
    pub fn process(
        &self,
        item: usize,
        raw: &[u16],
        working: Option<&mut [u8]>,
        widths: &mut [u8],
        sink: Option<Sink<'_>>,
    ) -> Result<()> {
        match self.profile {
            Profile::ExactUint8BitPacked => self.process_u8(item, raw, working, widths, sink),
            Profile::ExactUint16Lz4 => {
                self.process_u16(raw, working, widths, sink);
                Ok(())
            }
        }
    }

    fn process_u8(
        &self,
        item: usize,
        raw: &[u16],
        working: Option<&mut [u8]>,
        widths: &mut [u8],
        sink: Option<Sink<'_>>,
    ) -> Result<()> {
        match (working, sink) {
            (Some(working), sink) => {
                self.narrow(item, raw, working, widths)?;
                if let Some(sink) = sink {
                    self.pack(working, widths, sink);
                }
                Ok(())
            }
            (None, sink) => self.pack_again(item, raw, widths, sink),
        }
    }

    /// Widths and packed pieces without room for working values.
    fn pack_again(
        &self,
        item: usize,
        raw: &[u16],
        widths: &mut [u8],
        mut sink: Option<Sink<'_>>,
    ) -> Result<()> {
        let pixels = self.pixels;
        let mut scratch = [0; 8 * STRIP * 32 + 8];
        let mut excluded = self.excluded.iter().zip(self.constants).peekable();
        for piece in 0..self.pieces() {
            let mut packed = 0;
            let end = pixels.min((piece + 1) * self.piece());
            for at in (piece * self.piece()..end).step_by(STRIP) {
                let n = STRIP.min(end - at);
                let (mut rows, mut bits) = strip::narrow(raw, pixels, at, n);
                let mut constant = true;
                while let Some((pixel, value)) = excluded.next_if(|(p, _)| (**p as usize) < at + n) {
                    let pixel = *pixel as usize;
                    constant &= raw.iter().skip(pixel).step_by(pixels).all(|v| v == value);
                    bits[pixel - at] = 0;
                    rows.iter_mut().for_each(|row| row[pixel - at] = 0);
                }
                if !constant || bits.iter().any(|b| *b > 255) {
                    return Err(self.first_failure(item, raw));
                }
                let widths = &mut widths[at..at + n];
                for (w, b) in widths.iter_mut().zip(bits) {
                    *w = 16 - b.leading_zeros() as u8;
                }
                if sink.is_some() {
                    packed += strip::pack(&rows, widths, &mut scratch[packed..]);
                }
            }
            if let Some(sink) = &mut sink {
                sink(piece, &scratch[..packed]);
            }
        }
        Ok(())
    }

    /// The first pixel of a tile that the profile cannot hold, and there the first scan.
    #[cold]
    fn first_failure(&self, item: usize, raw: &[u16]) -> Error {
        let first_scan = (item * self.tile()) as u64;
        for pixel in 0..self.pixels {
            let excluded = self.excluded.binary_search(&(pixel as u32)).ok().map(|i| self.constants[i]);
            for (scan, frame) in (first_scan..).zip(raw.chunks_exact(self.pixels)) {
                let value = frame[pixel];
                let (row, column) = (pixel / self.columns, pixel % self.columns);
                let place = format!("detector pixel {pixel} (row {row}, column {column}), scan {scan}");
                let found = self.frames.member_of(scan);
                let local = found.map_or(scan, |(_, local)| local);
                let e = match excluded {
                    Some(constant) if value != constant => Error::unsupported(format!(
                        "excluded {place}, is not constant: value {value} in frame {local}, {constant} in scan 0"
                    ))
                    .hint("the profile exact-uint16-lz4 keeps excluded pixels as they are"),
                    None if value > 255 => Error::unsupported(format!(
                        "{place}, has value {value} in frame {local}, which does not fit uint8"
                    ))
                    .hint("use the profile exact-uint16-lz4"),
                    _ => continue,
                };
                return match found {
                    Some((path, _)) => e.in_file(path),
                    None => e,
                };
            }
        }
        Error::invalid("a tile failed and no value in it is at fault")
    }

    fn process_u16(
        &self,
        raw: &[u16],
        working: Option<&mut [u8]>,
        widths: &mut [u8],
        mut sink: Option<Sink<'_>>,
    ) {
        let (pixels, tile) = (self.pixels, self.tile());
        if let Some(working) = working {
            for (to, v) in working.chunks_exact_mut(2).zip(raw) {
                to.copy_from_slice(&v.to_le_bytes());
            }
            for frame in working.chunks_exact_mut(2 * pixels) {
                for p in self.excluded {
                    frame[2 * *p as usize..2 * *p as usize + 2].fill(0);
                }
            }
        }
        let mut values = vec![0; tile];
        let mut words = Vec::new();
        let mut bytes = Vec::new();
        for piece in 0..self.pieces() {
            let end = pixels.min((piece + 1) * self.piece());
            words.clear();
            for pixel in piece * self.piece()..end {
                for (v, frame) in values.iter_mut().zip(raw.chunks_exact(pixels)) {
                    *v = frame[pixel];
                }
                let width = tile::width_of(&values);
                widths[pixel] = width as u8;
                if sink.is_some() {
                    tile::append(&values, width, &mut words);
                }
            }
            if let Some(sink) = &mut sink {
                bytes.clear();
                bytes.extend_from_slice(&crate::le::bytes_of_u32(&words));
                sink(piece, &bytes);
            }
        }
    }
}

/// Frames of a tile of the uint8 profile becoming working values, one after another.
struct Narrowing<'a> {
    excluded: &'a [u32],
    constants: &'a [u16],
    /// The bits that any value of a pixel has so far.
    bits: &'a mut [u8],
    fits: bool,
}

impl<'a> Narrowing<'a> {
    fn new(kernel: &Kernel<'a>, widths: &'a mut [u8]) -> Self {
        widths.fill(0);
        Self { excluded: kernel.excluded, constants: kernel.constants, bits: widths, fits: true }
    }

    fn frame(&mut self, values: &[u16], narrow: &mut [u8]) {
        if strip::narrow_frame(values, narrow, self.bits) > 255 {
            // Only excluded pixels may have such values.
            let mut from = 0;
            for p in self.excluded.iter().map(|p| *p as usize).chain([values.len()]) {
                self.fits &= values[from..p].iter().fold(0, |all, v| all | v) < 256;
                from = p + 1;
            }
        }
        for (p, constant) in self.excluded.iter().zip(self.constants) {
            let p = *p as usize;
            self.fits &= values[p] == *constant;
            narrow[p] = 0;
        }
    }

    /// Turns bits into widths; fails when a value did not fit.
    fn finish(self) -> std::result::Result<(), ()> {
        for p in self.excluded {
            self.bits[*p as usize] = 0;
        }
        for w in self.bits {
            *w = 8 - w.leading_zeros() as u8;
        }
        if self.fits { Ok(()) } else { Err(()) }
    }
}
