//! Filter 6, scale-offset: integers less their minimum, floats times a power of ten less theirs, in as few bits
//! as the chunk needs.
//!
//! Client values: 0 the method (0 decimal scaling of floats, 2 integers), 1 the scale (decimal digits, or bits
//! per integer, 0 to find them), 2 the number of elements, 3 the class (0 integer, 1 float), 4 the size, 5 whether
//! signed, 6 the byte order (0 little, 1 big), 7 whether there is a fill value, 8 to 19 that value.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | bits per element |
//! | 1 | 8, the size of the next field |
//! | 8 | the minimum, in the bits of its own type, signed ones sign-extended |
//! | 8 | zero |
//! | … | the elements, most significant bit first; all ones stands for the fill value |

use crate::bitstream::{BitReader, BitWriter};
use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, cut, id};
use tensilo_core::{Error, Result};

const HEADER: usize = 21;

/// The scale-offset filter.
#[derive(Debug)]
pub struct ScaleOffset;

/// Client values, read.
struct Setup {
    kind: Kind,
    elements: usize,
    size: usize,
    big_endian: bool,
    fill: Option<u64>,
}

enum Kind {
    /// Fixed bits per element, 0 to find them; signed or not.
    Integer { bits: u32, signed: bool },
    /// Decimal digits behind the point.
    Float { digits: i32 },
}

impl Setup {
    fn new(values: &[u32]) -> Result<Self> {
        let &[method, scale, elements, class, size, sign, order, has_fill, ref fill @ ..] = values else {
            return Err(Error::corrupt(format!("scale-offset has {} client values, not 20", values.len())));
        };
        let size_ok = match class {
            0 => matches!(size, 1 | 2 | 4 | 8),
            1 => matches!(size, 4 | 8),
            _ => return Err(Error::corrupt(format!("scale-offset states datatype class {class}"))),
        };
        if !size_ok {
            return Err(Error::unsupported(format!("scale-offset of class {class} numbers of {size} bytes")));
        }
        let kind = match (class, method) {
            (0, 2) => Kind::Integer { bits: (scale as i32).max(0) as u32, signed: sign == 1 },
            (1, 0) => Kind::Float { digits: scale as i32 },
            (1, 1) => return Err(Error::unsupported("scale-offset with the exponent method")),
            _ => return Err(Error::corrupt(format!("scale-offset method {method} for class {class}"))),
        };
        if matches!(kind, Kind::Integer { bits, .. } if bits > size * 8) {
            return Err(Error::corrupt(format!("scale-offset states {scale} bits for {size} bytes")));
        }
        let word = |i: usize| u64::from(fill.get(i).copied().unwrap_or(0));
        let fill = (has_fill == 1).then(|| (word(0) | word(1) << 32) & ones(size * 8));
        Ok(Self { kind, elements: elements as usize, size: size as usize, big_endian: order == 1, fill })
    }

    /// Whether elements keep all their bits, so that the filter is the identity.
    fn is_identity(&self) -> bool {
        matches!(self.kind, Kind::Integer { bits, .. } if bits as usize == self.size * 8)
    }

    fn full(&self) -> u32 {
        self.size as u32 * 8
    }

    fn total(&self) -> Result<usize> {
        self.elements
            .checked_mul(self.size)
            .ok_or_else(|| Error::corrupt("scale-offset states a size beyond memory"))
    }

    /// The bits of all elements.
    fn load(&self, src: &[u8]) -> Vec<u64> {
        fn all<const N: usize>(src: &[u8], big_endian: bool) -> Vec<u64> {
            let load = |element: &[u8; N]| {
                let mut value = [0; 8];
                value[..N].copy_from_slice(element);
                if big_endian {
                    value[..N].reverse();
                }
                u64::from_le_bytes(value)
            };
            src.as_chunks::<N>().0.iter().map(load).collect()
        }
        match self.size {
            1 => all::<1>(src, self.big_endian),
            2 => all::<2>(src, self.big_endian),
            4 => all::<4>(src, self.big_endian),
            _ => all::<8>(src, self.big_endian),
        }
    }
}

/// The lowest `bits` bits set.
fn ones(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The least number of bits that tells `values` different values apart.
fn bits_for(values: u64) -> u32 {
    64 - values.saturating_sub(1).leading_zeros()
}

impl Filter for ScaleOffset {
    fn id(&self) -> u16 {
        id::SCALE_OFFSET
    }

    fn name(&self) -> &str {
        "scaleoffset"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw.saturating_add(HEADER + 1)
    }

    fn decode(&self, values: &[u32], _codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let setup = Setup::new(values)?;
        if setup.is_identity() {
            return Ok(Decoded::Prefix(src.len()));
        }
        let total = setup.total()?;
        let room = dst.len();
        let Some(dst) = dst.get_mut(..total) else {
            return Err(Error::corrupt(format!(
                "scale-offset states {total} bytes, at most {room} are possible"
            )));
        };
        let mut rest = src;
        let bits = u32::from_le_bytes(cut::array(&mut rest, "the scale-offset header")?);
        let [minimum_size] = cut::array(&mut rest, "the scale-offset header")?;
        let mut minimum = [0; 8];
        let n = usize::from(minimum_size).min(8);
        minimum[..n].copy_from_slice(cut::bytes(&mut rest, n, "the scale-offset minimum")?);
        let minimum = u64::from_le_bytes(minimum);
        let packed = src.get(HEADER..).ok_or_else(|| Error::corrupt("the scale-offset header is cut off"))?;
        if bits > setup.full() {
            return Err(Error::corrupt(format!("scale-offset states {bits} bits for {} bytes", setup.size)));
        }
        if bits == setup.full() {
            let whole =
                packed.get(..total).ok_or_else(|| Error::corrupt("scale-offset elements are cut off"))?;
            // They are stored in little-endian order, as the machine had them.
            for (to, from) in dst.chunks_exact_mut(setup.size).zip(whole.chunks_exact(setup.size)) {
                to.copy_from_slice(from);
                if setup.big_endian {
                    to.reverse();
                }
            }
            return Ok(Decoded::Written(total));
        }
        let restore = Restore::new(&setup, bits, minimum);
        let mut packed = BitReader::new(packed);
        match setup.size {
            1 => restore.all::<1>(&mut packed, bits, dst),
            2 => restore.all::<2>(&mut packed, bits, dst),
            4 => restore.all::<4>(&mut packed, bits, dst),
            _ => restore.all::<8>(&mut packed, bits, dst),
        }?;
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
        let setup = Setup::new(values).map_err(|e| Error::invalid(e.message()))?;
        if setup.is_identity() {
            dst.extend_from_slice(src);
            return Ok(Encoded::Written);
        }
        if setup.total()? != src.len() {
            return Err(Error::invalid(format!(
                "scale-offset is set up for other chunks than {} bytes",
                src.len()
            )));
        }
        dst.reserve(src.len() + HEADER + 8);
        let bits = match setup.kind {
            Kind::Integer { bits, signed } => match setup.size {
                1 => write_integers::<1>(&setup, bits, signed, src, dst),
                2 => write_integers::<2>(&setup, bits, signed, src, dst),
                4 => write_integers::<4>(&setup, bits, signed, src, dst),
                _ => write_integers::<8>(&setup, bits, signed, src, dst),
            },
            Kind::Float { digits } if setup.size == 4 => write_floats::<f32>(&setup, digits, src, dst),
            Kind::Float { digits } => write_floats::<f64>(&setup, digits, src, dst),
        };
        if bits < setup.full() {
            // libhdf5 counts whole bytes and adds one.
            dst.resize(HEADER + (setup.elements as u64 * u64::from(bits) / 8) as usize + 1, 0);
        }
        Ok(Encoded::Written)
    }
}

/// Turns codes back into the bits of numbers.
struct Restore {
    /// The code that stands for the fill value, `u64::MAX` for none, and that value.
    fill_code: u64,
    fill: u64,
    minimum: u64,
    float: Option<(usize, f64, f32)>,
    big_endian: bool,
}

impl Restore {
    fn new(setup: &Setup, bits: u32, minimum: u64) -> Self {
        let float = match setup.kind {
            Kind::Float { digits } => {
                Some((setup.size, 10_f64.powf(f64::from(digits)), 10_f32.powf(digits as f32)))
            }
            Kind::Integer { .. } => None,
        };
        Self {
            fill_code: if setup.fill.is_some() { ones(bits) } else { u64::MAX },
            fill: setup.fill.unwrap_or(0),
            minimum,
            float,
            big_endian: setup.big_endian,
        }
    }

    fn all<const N: usize>(&self, packed: &mut BitReader, bits: u32, dst: &mut [u8]) -> Result<()> {
        let store = |value: u64, element: &mut [u8; N]| {
            element.copy_from_slice(&value.to_le_bytes()[..N]);
            if self.big_endian {
                element.reverse();
            }
        };
        let elements = dst.as_chunks_mut::<N>().0;
        match self.float {
            None if bits <= 56 => {
                for element in elements {
                    let code = packed.read(bits)?;
                    let value = code.wrapping_add(self.minimum);
                    store(if code == self.fill_code { self.fill } else { value }, element);
                }
            }
            _ => {
                for element in elements {
                    store(self.value(packed.read_wide(bits)?), element);
                }
            }
        }
        Ok(())
    }

    fn value(&self, code: u64) -> u64 {
        if code == self.fill_code {
            return self.fill;
        }
        match self.float {
            None => code.wrapping_add(self.minimum),
            Some((4, _, scale)) => {
                let minimum = f32::from_bits(self.minimum as u32);
                u64::from((code as u32 as i32 as f32 / scale + minimum).to_bits())
            }
            Some((_, scale, _)) => (code as i64 as f64 / scale + f64::from_bits(self.minimum)).to_bits(),
        }
    }
}

fn write_header(bits: u32, minimum: u64, dst: &mut Vec<u8>) {
    dst.extend_from_slice(&bits.to_le_bytes());
    dst.push(8);
    dst.extend_from_slice(&minimum.to_le_bytes());
    dst.resize(HEADER, 0);
}

/// Writes elements whole: in the machine's order, little-endian.
fn write_whole(setup: &Setup, src: &[u8], dst: &mut Vec<u8>) {
    write_header(setup.full(), 0, dst);
    let at = dst.len();
    dst.extend_from_slice(src);
    if setup.big_endian {
        dst[at..].chunks_exact_mut(setup.size).for_each(<[u8]>::reverse);
    }
}

/// Writes header and elements, and returns the bits per element.
fn write_integers<const N: usize>(
    setup: &Setup,
    bits: u32,
    signed: bool,
    src: &[u8],
    dst: &mut Vec<u8>,
) -> u32 {
    let load = |element: &[u8; N]| {
        let mut value = [0; 8];
        value[..N].copy_from_slice(element);
        if setup.big_endian {
            value[..N].reverse();
        }
        u64::from_le_bytes(value)
    };
    // A key orders numbers as their signs do.
    let shift = 64 - setup.full();
    let bias = if signed { 1 << 63 } else { 0 };
    let key = |v: u64| if signed { ((v << shift) as i64 >> shift) as u64 ^ bias } else { v };
    let (has_fill, fill) = (setup.fill.is_some(), setup.fill.unwrap_or(0));
    let is_fill = |v: u64| has_fill && v == fill;
    let elements = src.as_chunks::<N>().0;
    let (mut least, mut most) = (u64::MAX, 0);
    for element in elements {
        let v = load(element);
        least = least.min(if is_fill(v) { u64::MAX } else { key(v) });
        most = most.max(if is_fill(v) { 0 } else { key(v) });
    }
    if least > most {
        (least, most) = (bias, bias);
    }
    let span = most - least;
    let bits = if bits != 0 {
        bits
    } else if span > ones(setup.full()) - 2 {
        setup.full()
    } else {
        bits_for(span + 1 + u64::from(has_fill))
    };
    if bits == setup.full() {
        write_whole(setup, src, dst);
        return bits;
    }
    write_header(bits, least ^ bias, dst);
    let code = |v: u64| if is_fill(v) { ones(bits) } else { key(v) - least };
    let mut packed = BitWriter::new(dst);
    if bits <= 32 {
        elements.iter().for_each(|e| packed.write(code(load(e)), bits));
    } else {
        elements.iter().for_each(|e| packed.write_wide(code(load(e)), bits));
    }
    packed.finish();
    bits
}

/// What decimal scaling needs of a float, computed in the float's own precision as libhdf5 does.
trait Scaled: Copy + PartialOrd {
    fn from_u64(bits: u64) -> Self;
    fn bits(self) -> u64;
    fn scale(digits: i32) -> Self;
    /// `(self * scale - minimum * scale)`, rounded; `None` when it is no number.
    fn code(self, minimum: Self, scale: Self) -> Option<u64>;
    fn near(self, other: Self, digits: i32) -> bool;
}

macro_rules! scaled {
    ($float:ty, $uint:ty) => {
        impl Scaled for $float {
            fn from_u64(bits: u64) -> Self {
                Self::from_bits(bits as $uint)
            }
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn scale(digits: i32) -> Self {
                (10.0 as $float).powf(digits as $float)
            }
            fn code(self, minimum: Self, scale: Self) -> Option<u64> {
                let code = (self * scale - minimum * scale).round();
                let most = (2.0 as $float).powf((<$uint>::BITS - 1) as $float);
                (code >= 0.0 && code < most).then_some(code as u64)
            }
            fn near(self, other: Self, digits: i32) -> bool {
                (self - other).abs() < (10.0 as $float).powf(-digits as $float)
            }
        }
    };
}
scaled!(f32, u32);
scaled!(f64, u64);

/// Writes header and elements, and returns the bits per element; numbers that cannot be scaled are kept whole.
fn write_floats<F: Scaled>(setup: &Setup, digits: i32, src: &[u8], dst: &mut Vec<u8>) -> u32 {
    let Some((bits, minimum, codes)) = float_codes::<F>(setup, digits, &setup.load(src)) else {
        write_whole(setup, src, dst);
        return setup.full();
    };
    write_header(bits, minimum, dst);
    let mut packed = BitWriter::new(dst);
    codes.iter().for_each(|code| packed.write_wide(*code, bits));
    packed.finish();
    bits
}

/// Bits per element, the minimum and the codes of floats, if all of them can be scaled.
fn float_codes<F: Scaled>(setup: &Setup, digits: i32, numbers: &[u64]) -> Option<(u32, u64, Vec<u64>)> {
    let fill = setup.fill.map(F::from_u64);
    let is_fill = |v: F| fill.is_some_and(|f| v.near(f, digits));
    let floats = || numbers.iter().map(|v| F::from_u64(*v));
    let mut range: Option<(F, F)> = None;
    for v in floats().filter(|v| !is_fill(*v)) {
        let (least, most) = range.unwrap_or((v, v));
        range = Some((if v < least { v } else { least }, if v > most { v } else { most }));
    }
    let (least, most) = range.unwrap_or((F::from_u64(0), F::from_u64(0)));
    let scale = F::scale(digits);
    let bits = bits_for((most.code(least, scale)? + 1).saturating_add(u64::from(fill.is_some())));
    if bits >= setup.full() {
        return None;
    }
    let codes: Option<Vec<u64>> =
        floats().map(|v| if is_fill(v) { Some(ones(bits)) } else { v.code(least, scale) }).collect();
    let codes = codes.filter(|codes| codes.iter().all(|c| *c <= ones(bits)))?;
    Some((bits, least.bits(), codes))
}
