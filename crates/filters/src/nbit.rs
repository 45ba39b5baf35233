//! Filter 5, n-bit: only the significant bits of each number are stored, most significant first, elements
//! following each other without gaps.
//!
//! Client values: 0 their count, 1 whether nothing is to be done, 2 the number of elements, then a datatype:
//! class 1, a number: size, byte order (0 little, 1 big), precision, offset; class 2, an array: size, then its
//! base type; class 3, a compound: size, number of members, then per member its offset and type; class 4,
//! anything else: size. Bits that are not significant read as zero.

use crate::bitstream::{BitReader, BitWriter};
use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use tensilo_core::{Error, Result};

/// The n-bit filter.
#[derive(Debug)]
pub struct Nbit;

/// Deepest nesting of arrays and compounds.
const MOST_LEVELS: u32 = 32;

impl Filter for Nbit {
    fn id(&self) -> u16 {
        id::NBIT
    }

    fn name(&self) -> &str {
        "nbit"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw.saturating_add(1)
    }

    fn decode(&self, values: &[u32], _codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let Some(layout) = Layout::new(values)? else { return Ok(Decoded::Prefix(src.len())) };
        let total = layout.total()?;
        let room = dst.len();
        let Some(dst) = dst.get_mut(..total) else {
            return Err(Error::corrupt(format!(
                "n-bit states {total} decoded bytes, at most {room} are possible"
            )));
        };
        let mut bits = BitReader::new(src);
        if let Node::Number { size, big_endian, precision, offset } = layout.node {
            let (precision, offset) = (precision as u32, offset as u32);
            match size {
                1 => return numbers::<1>(&mut bits, dst, big_endian, precision, offset),
                2 => return numbers::<2>(&mut bits, dst, big_endian, precision, offset),
                4 => return numbers::<4>(&mut bits, dst, big_endian, precision, offset),
                8 => return numbers::<8>(&mut bits, dst, big_endian, precision, offset),
                _ => {}
            }
        }
        dst.fill(0);
        for element in dst.chunks_exact_mut(layout.node.size()) {
            unpack(&layout.node, &mut bits, element)?;
        }
        Ok(Decoded::Written(total))
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        _codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let Some(layout) = Layout::new(values).map_err(|e| Error::invalid(e.message()))? else {
            dst.extend_from_slice(src);
            return Ok(Encoded::Written);
        };
        if layout.total()? != src.len() {
            return Err(Error::invalid(format!("n-bit is set up for other chunks than {} bytes", src.len())));
        }
        let mut bits = BitWriter::new(dst);
        for element in src.chunks_exact(layout.node.size()) {
            pack(&layout.node, &mut bits, element);
        }
        if bits.finish() == 0 {
            // libhdf5 begins a byte as soon as the one before is full.
            dst.push(0);
        }
        Ok(Encoded::Written)
    }
}

/// The datatype in the client values, checked: every part lies inside its parent.
enum Node {
    Number { size: usize, big_endian: bool, precision: usize, offset: usize },
    Array { size: usize, base: Box<Node> },
    Compound { size: usize, members: Vec<(usize, Node)> },
    Plain { size: usize },
}

impl Node {
    fn size(&self) -> usize {
        match self {
            Self::Number { size, .. }
            | Self::Array { size, .. }
            | Self::Compound { size, .. }
            | Self::Plain { size } => *size,
        }
    }
}

struct Layout {
    elements: usize,
    node: Node,
}

impl Layout {
    /// `None` when the filter is the identity.
    fn new(values: &[u32]) -> Result<Option<Self>> {
        let &[_, nothing, elements, ref datatype @ ..] = values else {
            return Err(Error::corrupt("n-bit has fewer than 3 client values"));
        };
        if nothing != 0 {
            return Ok(None);
        }
        let mut values = Values(datatype);
        let node = node(&mut values, usize::MAX, 0)?;
        Ok(Some(Self { elements: elements as usize, node }))
    }

    fn total(&self) -> Result<usize> {
        self.elements
            .checked_mul(self.node.size())
            .ok_or_else(|| Error::corrupt("n-bit states a size beyond memory"))
    }
}

struct Values<'a>(&'a [u32]);

impl Values<'_> {
    fn next(&mut self) -> Result<usize> {
        let (first, rest) =
            self.0.split_first().ok_or_else(|| Error::corrupt("n-bit's client values end in a datatype"))?;
        self.0 = rest;
        Ok(*first as usize)
    }
}

/// Reads one datatype of at most `room` bytes.
fn node(values: &mut Values, room: usize, level: u32) -> Result<Node> {
    if level > MOST_LEVELS {
        return Err(Error::unsupported(format!("n-bit datatypes nested deeper than {MOST_LEVELS} levels")));
    }
    let class = values.next()?;
    let size = values.next()?;
    if size == 0 || size > room {
        return Err(Error::corrupt(format!("n-bit states a datatype of {size} bytes inside {room}")));
    }
    Ok(match class {
        1 => {
            let (order, precision, offset) = (values.next()?, values.next()?, values.next()?);
            if order > 1 || precision == 0 || precision + offset > size.saturating_mul(8) {
                return Err(Error::corrupt(format!(
                    "n-bit states {precision} bits at bit {offset} of {size} bytes, byte order {order}"
                )));
            }
            Node::Number { size, big_endian: order == 1, precision, offset }
        }
        2 => {
            let base = node(values, size, level + 1)?;
            // A plain base is the whole array.
            let base = if let Node::Plain { .. } = base { Node::Plain { size } } else { base };
            Node::Array { size, base: Box::new(base) }
        }
        3 => {
            let count = values.next()?;
            let mut members = Vec::new();
            let mut used = 0;
            for _ in 0..count {
                let offset = values.next()?;
                let member = node(values, size, level + 1)?;
                used += member.size();
                if offset > size - member.size() || used > size {
                    return Err(Error::corrupt("an n-bit compound's members do not fit it"));
                }
                members.push((offset, member));
            }
            Node::Compound { size, members }
        }
        4 => Node::Plain { size },
        other => return Err(Error::corrupt(format!("n-bit states a datatype of class {other}"))),
    })
}

/// The significant bytes of a number, most significant first: position, lowest significant bit, bits.
fn significant(
    size: usize,
    big_endian: bool,
    precision: usize,
    offset: usize,
) -> impl Iterator<Item = (usize, u32, u32)> {
    let end = precision + offset;
    (offset / 8..end.div_ceil(8)).rev().map(move |byte| {
        let low = offset.saturating_sub(8 * byte);
        let high = (end - 8 * byte).min(8);
        (if big_endian { size - 1 - byte } else { byte }, low as u32, (high - low) as u32)
    })
}

/// The common case: a chunk of numbers of one usual size.
fn numbers<const N: usize>(
    bits: &mut BitReader,
    dst: &mut [u8],
    big_endian: bool,
    precision: u32,
    offset: u32,
) -> Result<Decoded> {
    for element in dst.as_chunks_mut::<N>().0 {
        let value = bits.read_wide(precision)? << offset;
        element.copy_from_slice(&value.to_le_bytes()[..N]);
        if big_endian {
            element.reverse();
        }
    }
    Ok(Decoded::Written(dst.len()))
}

fn unpack(node: &Node, bits: &mut BitReader, dst: &mut [u8]) -> Result<()> {
    match *node {
        Node::Number { size, big_endian, precision, offset } if size <= 8 => {
            let value = bits.read_wide(precision as u32)? << offset;
            if big_endian {
                dst.copy_from_slice(&value.to_be_bytes()[8 - size..]);
            } else {
                dst.copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
        Node::Number { size, big_endian, precision, offset } => {
            for (at, low, n) in significant(size, big_endian, precision, offset) {
                dst[at] = (bits.read(n)? << low) as u8;
            }
        }
        Node::Array { ref base, .. } => {
            for part in dst.chunks_exact_mut(base.size()) {
                unpack(base, bits, part)?;
            }
        }
        Node::Compound { ref members, .. } => {
            for (offset, member) in members {
                unpack(member, bits, &mut dst[*offset..offset + member.size()])?;
            }
        }
        Node::Plain { .. } => {
            for byte in dst {
                *byte = bits.read(8)? as u8;
            }
        }
    }
    Ok(())
}

fn pack(node: &Node, bits: &mut BitWriter, src: &[u8]) {
    match *node {
        Node::Number { size, big_endian, precision, offset } if size <= 8 => {
            let mut value = [0; 8];
            value[..size].copy_from_slice(src);
            if big_endian {
                value[..size].reverse();
            }
            bits.write_wide(u64::from_le_bytes(value) >> offset, precision as u32);
        }
        Node::Number { size, big_endian, precision, offset } => {
            for (at, low, n) in significant(size, big_endian, precision, offset) {
                bits.write(u64::from(src[at]) >> low, n);
            }
        }
        Node::Array { ref base, .. } => {
            for part in src.chunks_exact(base.size()) {
                pack(base, bits, part);
            }
        }
        Node::Compound { ref members, .. } => {
            for (offset, member) in members {
                pack(member, bits, &src[*offset..offset + member.size()]);
            }
        }
        Node::Plain { .. } => {
            for byte in src {
                bits.write(u64::from(*byte), 8);
            }
        }
    }
}
