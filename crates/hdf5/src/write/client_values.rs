//! Client values that follow from the datatype, the chunk and the fill value, as libhdf5 computes them when a
//! dataset is made.

use crate::format::datatype::{BitField, ByteOrder, Class, Datatype};
use crate::format::message::fill_value::FillValue;
use tensilo_core::{Error, Result};

/// Most blocks in a scanline of szip.
const SZIP_BLOCKS: u64 = 128;
/// Longest scanline of szip.
const SZIP_LINE: u64 = 4096;
/// Client values of scale-offset.
const SCALE_OFFSET_VALUES: usize = 20;

/// What client values are computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elements<'a> {
    pub(crate) datatype: &'a Datatype,
    pub(crate) chunk: &'a [u64],
    pub(crate) fill: &'a FillValue,
}

impl Elements<'_> {
    pub(crate) fn chunk_bytes(&self) -> u64 {
        let size = u64::from(self.datatype.size);
        self.chunk.iter().fold(size, |n, d| n.saturating_mul(*d))
    }

    fn count(&self) -> Result<u32> {
        self.chunk
            .iter()
            .try_fold(1_u64, |n, d| n.checked_mul(*d))
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| Error::unsupported("a filter over chunks of 4 Gi elements or more"))
    }
}

fn big(order: ByteOrder, filter: &str) -> Result<u32> {
    match order {
        ByteOrder::Little => Ok(0),
        ByteOrder::Big => Ok(1),
        ByteOrder::Vax => Err(Error::unsupported(format!("{filter} of numbers in VAX byte order"))),
    }
}

fn number(datatype: &Datatype) -> Option<(ByteOrder, BitField)> {
    match &datatype.class {
        Class::Integer { order, bits, .. }
        | Class::Float { order, bits, .. }
        | Class::Bitfield { order, bits } => Some((*order, *bits)),
        Class::Enum { base, .. } => number(base),
        _ => None,
    }
}

/// Are these numbers, as szip codes them?
pub(crate) fn is_number(datatype: &Datatype) -> bool {
    number(datatype).is_some()
}

/// Values of szip with `pixels` per block, of the nearest-neighbour method or not.
pub(crate) fn szip(of: Elements<'_>, pixels: u32, nearest: bool) -> Result<Vec<u32>> {
    if !(2..=32).contains(&pixels) || !pixels.is_multiple_of(2) {
        return Err(Error::invalid(format!("{pixels} pixels per block for szip; an even number up to 32")));
    }
    let (order, bits) =
        number(of.datatype).ok_or_else(|| Error::invalid("szip codes numbers, nothing else"))?;
    let full = 8 * of.datatype.size;
    let precision = if bits.offset == 0 { u32::from(bits.precision).min(full) } else { full };
    let depth = match precision {
        0..=24 => precision,
        25..=32 => 32,
        33..=64 => 64,
        _ => return Err(Error::unsupported(format!("szip of numbers of {precision} bits"))),
    };
    let (block, points) = (u64::from(pixels), u64::from(of.count()?));
    let fastest = of.chunk.last().copied().unwrap_or(1);
    let line = if fastest < block {
        if points < block {
            return Err(Error::invalid(format!("szip blocks of {pixels} pixels in a chunk of {points}")));
        }
        (block * SZIP_BLOCKS).min(points)
    } else if fastest <= SZIP_LINE {
        (block * SZIP_BLOCKS).min(fastest)
    } else {
        block * SZIP_BLOCKS
    };
    // 1: k of 13 bits allowed, 128: no header of its own; then byte order and method.
    let endian = if big(order, "szip")? == 1 { 16 } else { 8 };
    let method = if nearest { 32 } else { 4 };
    Ok(vec![1 | 128 | endian | method, pixels, depth, line as u32])
}

/// Values of n-bit.
pub(crate) fn nbit(of: Elements<'_>) -> Result<Vec<u32>> {
    let mut values = vec![0, 0, of.count()?];
    let mut narrow = false;
    nbit_type(of.datatype, &mut values, &mut narrow, 0)?;
    values[0] = values.len() as u32;
    values[1] = u32::from(!narrow);
    Ok(values)
}

fn nbit_type(t: &Datatype, values: &mut Vec<u32>, narrow: &mut bool, depth: u32) -> Result<()> {
    if depth > 30 {
        return Err(Error::unsupported("n-bit of a datatype nested deeper than 30 levels"));
    }
    match &t.class {
        Class::Integer { order, bits, .. } | Class::Float { order, bits, .. } => {
            *narrow |= bits.offset != 0 || u32::from(bits.precision) != 8 * t.size;
            let order = big(*order, "n-bit")?;
            values.extend([1, t.size, order, u32::from(bits.precision), u32::from(bits.offset)]);
        }
        Class::Array { base, .. } => {
            values.extend([2, t.size]);
            nbit_type(base, values, narrow, depth + 1)?;
        }
        Class::Compound { members } => {
            values.extend([3, t.size, members.len() as u32]);
            for m in members {
                values.push(m.offset as u32);
                nbit_type(&m.datatype, values, narrow, depth + 1)?;
            }
        }
        _ => values.extend([4, t.size]),
    }
    Ok(())
}

/// Values of scale-offset: decimal digits for floats, bits for integers (0 to find them).
pub(crate) fn scale_offset(of: Elements<'_>, scale: i32) -> Result<Vec<u32>> {
    let (method, class, signed, order) = match &of.datatype.class {
        Class::Integer { order, signed, .. } => (2, 0, u32::from(*signed), *order),
        Class::Float { order, .. } => (0, 1, 0, *order),
        _ => return Err(Error::invalid("scale-offset codes integers and floats, nothing else")),
    };
    if method == 2 && scale < 0 {
        return Err(Error::invalid(format!("scale-offset of integers in {scale} bits")));
    }
    let size = of.datatype.size;
    let order = big(order, "scale-offset")?;
    let mut values = vec![0; SCALE_OFFSET_VALUES];
    values[..8].copy_from_slice(&[method, scale as u32, of.count()?, class, size, signed, order, 0]);
    let zero = vec![0; size as usize];
    let fill = match of.fill {
        FillValue::Undefined => return Ok(values),
        FillValue::Default => &zero,
        FillValue::Value(v) => v,
    };
    values[7] = 1;
    let mut little = fill.clone();
    if order == 1 {
        little.reverse();
    }
    for (slot, word) in values[8..].iter_mut().zip(little.chunks(4)) {
        let mut bytes = [0; 4];
        bytes[..word.len()].copy_from_slice(word);
        *slot = u32::from_le_bytes(bytes);
    }
    Ok(values)
}
