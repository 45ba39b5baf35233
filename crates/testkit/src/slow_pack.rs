//! A decoder of detector packs that goes bit by bit, written from the format's description alone.
//!
//! It shares no code with `tensilo-pack` and is slow on purpose: every value is gathered one bit at a time, the CRC is
//! computed one bit at a time, and a tile's place is found by adding up every width before it.

use serde_json::Value;

/// Everything in a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowPack {
    /// Scan rows, scan columns, detector rows, detector columns.
    pub shape: [usize; 4],
    /// Excluded flat pixels.
    pub excluded: Vec<usize>,
    /// Values with excluded pixels cleared, in C order.
    pub working: Vec<u16>,
    /// The source's values; `None` when constants of excluded pixels are not stated.
    pub raw: Option<Vec<u16>>,
    /// The manifest.
    pub manifest: Value,
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&self, at: usize, bytes: usize) -> Result<u64, String> {
        let mut value = 0;
        for k in 0..bytes {
            let byte = self.0.get(at + k).ok_or_else(|| format!("byte {} is past the end", at + k))?;
            value += u64::from(*byte) * 256_u64.pow(k as u32);
        }
        Ok(value)
    }

    fn u32(&self, at: usize) -> Result<usize, String> {
        self.number(at, 4).map(|v| v as usize)
    }

    fn u64(&self, at: usize) -> Result<usize, String> {
        self.number(at, 8).map(|v| v as usize)
    }

    fn slice(&self, at: usize, bytes: usize) -> Result<&[u8], String> {
        at.checked_add(bytes)
            .and_then(|end| self.0.get(at..end))
            .ok_or_else(|| format!("{bytes} bytes at {at} are not in the file"))
    }
}

fn ensure(right: bool, what: &str) -> Result<(), String> {
    if right { Ok(()) } else { Err(what.to_owned()) }
}

/// CRC-32 of IEEE 802.3, reflected.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc % 2 == 1 { (crc / 2) ^ 0xedb8_8320 } else { crc / 2 };
        }
    }
    !crc
}

/// One raw LZ4 block.
fn lz4(block: &[u8]) -> Result<Vec<u8>, String> {
    let mut out: Vec<u8> = Vec::new();
    let mut bytes = block.iter().map(|b| usize::from(*b));
    let mut next = || bytes.next();
    fn more(mut n: usize, next: &mut dyn FnMut() -> Option<usize>) -> Result<usize, String> {
        if n == 15 {
            loop {
                let byte = next().ok_or("LZ4 length is cut off")?;
                n += byte;
                if byte != 255 {
                    break;
                }
            }
        }
        Ok(n)
    }
    while let Some(token) = next() {
        for _ in 0..more(token / 16, &mut next)? {
            out.push(next().ok_or("LZ4 literals are cut off")? as u8);
        }
        let Some(low) = next() else { return Ok(out) };
        let offset = low + 256 * next().ok_or("LZ4 offset is cut off")?;
        let length = more(token % 16, &mut next)? + 4;
        for _ in 0..length {
            ensure(offset > 0 && offset <= out.len(), "LZ4 offset")?;
            out.push(out[out.len() - offset]);
        }
    }
    Ok(out)
}

/// Value of `width` bits that begins at a bit of the payload, least significant bit first.
fn bits(payload: &[u8], from: usize, width: usize) -> u16 {
    let mut value = 0;
    for k in 0..width {
        let at = from + k;
        let bit = payload[at / 8] >> (at % 8) & 1;
        value += u16::from(bit) << k;
    }
    value
}

/// Payload bytes and the width of every (pixel, tile) of one shard.
type Unpacked = (Vec<u8>, Vec<usize>);

struct Layout {
    lz4: bool,
    encoding: usize,
    pixels: usize,
    tiles: usize,
}

fn lz4_shard(r: &Reader<'_>, at: usize, l: &Layout) -> Result<Unpacked, String> {
    let (payload, lengths) =
        (r.slice(r.u64(at)?, r.u64(at + 8)?)?, r.slice(r.u64(at + 16)?, r.u64(at + 24)?)?);
    let widths = r.slice(r.u64(at + 32)?, r.u64(at + 40)?)?;
    ensure(widths.len() == l.pixels * l.tiles, "width bytes")?;
    let mut decoded = Vec::new();
    let mut from = 0;
    for length in lengths {
        let end = from + usize::from(*length) + 1;
        decoded.extend(lz4(payload.get(from..end).ok_or("LZ4 block past the payload")?)?);
        from = end;
    }
    ensure(from == payload.len(), "bytes behind the LZ4 blocks")?;
    ensure(decoded.len() == r.u64(at + 48)?, "decoded bytes")?;
    Ok((decoded, widths.iter().map(|w| usize::from(*w)).collect()))
}

fn packed_shard(r: &Reader<'_>, at: usize, l: &Layout, excluded: &[usize]) -> Result<Unpacked, String> {
    let payload = r.slice(r.u64(at)?, r.u64(at + 8)?)?;
    let header = r.u64(at + 32)?;
    let (checkpoints, width_words) = (l.tiles.div_ceil(32), l.tiles.div_ceil(8));
    let per_pixel = checkpoints + width_words;
    ensure(r.u64(at + 40)? == 4 * l.pixels * per_pixel, "header bytes")?;
    let mut widths = Vec::new();
    let mut base = 0;
    for pixel in 0..l.pixels {
        let word = |k: usize| r.u32(header + 4 * (pixel * per_pixel + k));
        ensure(word(0)? == base, "base")?;
        let mut sum = 0;
        for tile in 0..8 * width_words {
            let nibble = word(checkpoints + tile / 8)? >> (4 * (tile % 8)) & 15;
            if tile >= l.tiles {
                ensure(nibble == 0, "tail nibble")?;
                continue;
            }
            if tile > 0 && tile.is_multiple_of(32) {
                ensure(word(tile / 32)? == sum, "checkpoint")?;
            }
            let width = if l.encoding == 2 && nibble == 15 { 16 } else { nibble };
            ensure(l.encoding == 2 || width <= 8, "width")?;
            ensure(width == 0 || !excluded.contains(&pixel), "an excluded pixel has bits")?;
            widths.push(width);
            sum += width;
        }
        base += sum;
    }
    ensure(payload.len() == 4 * base.max(1), "the payload is not covered exactly")?;
    Ok((payload.to_vec(), widths))
}

/// Decodes a whole pack.
///
/// # Errors
/// What is wrong, in a few words.
pub fn decode(file: &[u8]) -> Result<SlowPack, String> {
    let r = Reader(file);
    ensure(r.slice(0, 8)? == b"QGPUH5\0\x01", "magic")?;
    let (json_bytes, crc) = (r.u32(8)?, r.u32(12)?);
    let json = r.slice(24, json_bytes)?;
    ensure(crc32(json) as usize == crc, "CRC-32 of the manifest")?;
    let manifest: Value = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    let index = r.u32(16)?;
    ensure(r.slice(index, 7)? == b"QGIX\0\0\0", "index magic")?;
    let lz4 = match r.slice(index + 7, 1)?[0] {
        1 => true,
        3 => false,
        _ => return Err("index revision".to_owned()),
    };
    let shards = r.u32(index + 8)?;
    let mut shape = [0; 4];
    for (k, side) in shape.iter_mut().enumerate() {
        *side = r.u32(index + 16 + 4 * k)?;
    }
    let per_shard = r.u32(index + 32)?;
    let encoding = if lz4 { 0 } else { r.u32(index + 40)? };
    ensure(lz4 || encoding == 1 || encoding == 2, "header encoding")?;
    let count_at = index + if lz4 { 36 } else { 44 };
    let excluded: Vec<usize> =
        (0..r.u32(count_at)?).map(|k| r.u32(count_at + 4 + 4 * k)).collect::<Result<_, _>>()?;
    let records = count_at + 4 + 4 * excluded.len() + 32;
    ensure(r.u32(20)? == records + 96 * shards - index, "index length")?;
    let (scans, pixels) = (shape[0] * shape[1], shape[2] * shape[3]);
    ensure(scans == shards * per_shard, "shards do not make the scans")?;
    let tile = if lz4 { 128 } else { 32 };
    let layout = Layout { lz4, encoding, pixels, tiles: per_shard / tile };
    let mut stored = vec![0; scans * pixels];
    for shard in 0..shards {
        let at = records + 96 * shard;
        let (payload, widths) =
            if layout.lz4 { lz4_shard(&r, at, &layout)? } else { packed_shard(&r, at, &layout, &excluded)? };
        let mut bit = 0;
        for (item, width) in widths.iter().enumerate() {
            let (pixel, t) = (item / layout.tiles, item % layout.tiles);
            ensure(8 * payload.len() >= bit + tile * width, "a tile past the payload")?;
            for i in 0..tile {
                let scan = shard * per_shard + t * tile + i;
                stored[scan * pixels + pixel] = bits(&payload, bit + i * width, *width);
            }
            bit += tile * width;
        }
    }
    let raw = restore(&stored, pixels, &excluded, &manifest, lz4);
    let mut working = stored;
    for frame in working.chunks_mut(pixels) {
        excluded.iter().for_each(|e| frame[*e] = 0);
    }
    Ok(SlowPack { shape, excluded, working, raw, manifest })
}

/// Raw values: an LZ4 pack has them, others state one constant for each excluded pixel.
fn restore(
    stored: &[u16],
    pixels: usize,
    excluded: &[usize],
    manifest: &Value,
    lz4: bool,
) -> Option<Vec<u16>> {
    let mut raw = stored.to_vec();
    if !lz4 && !excluded.is_empty() {
        let constants = manifest.get("masked_detector_raw_values")?.as_array()?;
        for frame in raw.chunks_mut(pixels) {
            for (e, v) in excluded.iter().zip(constants) {
                frame[*e] = v.as_u64()? as u16;
            }
        }
    }
    Some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_follow_their_definitions() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
        // Four literals, a match of 8 one byte back, then the last literals.
        let block = [0x44, b'a', b'b', b'c', b'd', 1, 0, 0x10, b'!'];
        assert_eq!(lz4(&block).unwrap(), b"abcddddddddd!");
        assert!(lz4(&[0x10]).is_err() && lz4(&[0x14, 1, 9, 0]).is_err());
        // 3-bit values 5, 2, 7 from bit 0: 101, 010, 111 least significant first.
        assert_eq!([0, 3, 6].map(|at| bits(&[0b1101_0101, 0b1], at, 3)), [5, 2, 7]);
    }
}
