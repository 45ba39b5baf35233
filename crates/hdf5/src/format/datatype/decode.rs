//! Decoding of datatype messages, versions 1 to 5 (specification IV.A.2.d).
//!
//! Every message begins with class and version in one byte, 24 class bits and the element size; the properties
//! that follow depend on the class. Versions change how members are padded: 1 knows array members of compounds,
//! from 3 on nothing is padded and offsets are as wide as the size needs, 4 has new references, 5 complex numbers.

use super::{
    BitField, ByteOrder, CharacterSet, Class, Datatype, FloatLayout, Member, Normalization, Padding,
    ReferenceKind, StringPadding,
};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Deepest nesting of datatypes.
const MAX_DEPTH: u8 = 128;

impl Datatype {
    /// Parses a datatype message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible, `Limit` when types are nested deeper than 128 levels.
    pub fn parse(body: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "datatype message");
        decode(&mut r, 0)
    }

    /// Parses a datatype and leaves the reader behind it.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn read(r: &mut FieldReader<'_>) -> Result<Self> {
        decode(r, 0)
    }
}

fn decode(r: &mut FieldReader<'_>, depth: u8) -> Result<Datatype> {
    if depth >= MAX_DEPTH {
        return Err(tensilo_core::Error::limit(format!(
            "{}: datatypes nested deeper than {MAX_DEPTH} levels",
            r.what()
        ))
        .at(r.offset()));
    }
    let depth = depth.saturating_add(1);
    let head = r.u8()?;
    let (version, class) = (head >> 4, head & 0x0f);
    if !(1..=5).contains(&version) {
        return Err(r.corrupt(format_args!("version {version} is not known")));
    }
    let bits = r.u24()?;
    let size = r.u32()?;
    if size == 0 {
        return Err(r.corrupt("an element of 0 bytes"));
    }
    let class = match class {
        0 => {
            let class = (order(bits), bits & 8 != 0, bit_field(r, bits, size)?);
            Class::Integer { order: class.0, signed: class.1, bits: class.2 }
        }
        1 => float(r, bits, size, version)?,
        2 => Class::Time { order: order(bits), precision: r.u16()? },
        3 => Class::String { padding: string_padding(bits & 15), charset: charset((bits >> 4) & 15) },
        4 => Class::Bitfield { order: order(bits), bits: bit_field(r, bits, size)? },
        5 => {
            let tag = r.bytes(low_byte(bits).into())?;
            Class::Opaque { tag: tag.split(|b| *b == 0).next().unwrap_or(tag).to_vec() }
        }
        6 => compound(r, bits & 0xffff, size, version, depth)?,
        7 => Class::Reference(reference(r, bits)?),
        8 => enumeration(r, bits & 0xffff, size, version, depth)?,
        9 => {
            let base = Box::new(decode(r, depth)?);
            match bits & 15 {
                0 => Class::VarLen { base },
                1 => Class::VarString {
                    padding: string_padding((bits >> 4) & 15),
                    charset: charset((bits >> 8) & 15),
                },
                t => return Err(r.corrupt(format_args!("variable-length type {t} is not known"))),
            }
        }
        10 => array(r, size, version, depth)?,
        11 => complex(r, bits, size, version, depth)?,
        c => return Err(r.corrupt(format_args!("class {c} is not known"))),
    };
    Ok(Datatype { size, class })
}

fn low_byte(bits: u32) -> u8 {
    bits.to_le_bytes()[0]
}

fn order(bits: u32) -> ByteOrder {
    if bits & 1 != 0 { ByteOrder::Big } else { ByteOrder::Little }
}

fn padding(one: bool) -> Padding {
    if one { Padding::One } else { Padding::Zero }
}

fn string_padding(n: u32) -> StringPadding {
    match n {
        0 => StringPadding::NullTerminated,
        1 => StringPadding::NullPadded,
        2 => StringPadding::SpacePadded,
        n => StringPadding::Other(low_byte(n)),
    }
}

fn charset(n: u32) -> CharacterSet {
    match n {
        0 => CharacterSet::Ascii,
        1 => CharacterSet::Utf8,
        n => CharacterSet::Other(low_byte(n)),
    }
}

fn bit_field(r: &mut FieldReader<'_>, bits: u32, size: u32) -> Result<BitField> {
    let (offset, precision) = (r.u16()?, r.u16()?);
    let end = u64::from(offset).saturating_add(u64::from(precision));
    if precision == 0 || end > u64::from(size).saturating_mul(8) {
        return Err(
            r.corrupt(format_args!("{precision} significant bits at {offset} do not fit in {size} bytes"))
        );
    }
    Ok(BitField {
        offset,
        precision,
        low_padding: padding(bits & 2 != 0),
        high_padding: padding(bits & 4 != 0),
    })
}

fn float(r: &mut FieldReader<'_>, bits: u32, size: u32, version: u8) -> Result<Class> {
    let order = match (bits & 1 != 0, version >= 3 && bits & 0x40 != 0) {
        (true, true) => ByteOrder::Vax,
        (false, true) => return Err(r.corrupt("byte order is not known")),
        (big, false) => {
            if big {
                ByteOrder::Big
            } else {
                ByteOrder::Little
            }
        }
    };
    let normalization = match (bits >> 4) & 3 {
        0 => Normalization::None,
        1 => Normalization::MsbSet,
        2 => Normalization::Implied,
        n => return Err(r.corrupt(format_args!("normalization {n} is not known"))),
    };
    let sign_position = low_byte(bits >> 8);
    let field = bit_field(r, bits, size)?;
    let (exponent_position, exponent_size) = (r.u8()?, r.u8()?);
    let (mantissa_position, mantissa_size) = (r.u8()?, r.u8()?);
    let exponent_bias = r.u32()?;
    let end = |position: u8, size: u8| u16::from(position).saturating_add(u16::from(size));
    let exponent = (u16::from(exponent_position), end(exponent_position, exponent_size));
    let mantissa = (u16::from(mantissa_position), end(mantissa_position, mantissa_size));
    let sign = (u16::from(sign_position), end(sign_position, 1));
    let apart = |a: (u16, u16), b: (u16, u16)| a.1 <= b.0 || b.1 <= a.0;
    if exponent_size == 0
        || mantissa_size == 0
        || [sign, exponent, mantissa].iter().any(|f| u64::from(f.1) > u64::from(size).saturating_mul(8))
        || !apart(sign, exponent)
        || !apart(sign, mantissa)
        || !apart(exponent, mantissa)
    {
        return Err(r.corrupt(format_args!(
            "sign at {sign_position}, exponent at {exponent_position}+{exponent_size}, mantissa at \
             {mantissa_position}+{mantissa_size} are impossible in {size} bytes"
        )));
    }
    Ok(Class::Float {
        order,
        bits: field,
        layout: FloatLayout {
            internal_padding: padding(bits & 8 != 0),
            normalization,
            sign_position,
            exponent_position,
            exponent_size,
            mantissa_position,
            mantissa_size,
            exponent_bias,
        },
    })
}

/// A name that ends with a NUL, in versions 1 and 2 padded to a multiple of 8 bytes.
fn name(r: &mut FieldReader<'_>, version: u8) -> Result<Vec<u8>> {
    let all = r.clone().rest();
    let Some(len) = all.iter().position(|b| *b == 0) else {
        return Err(r.corrupt("a name without its NUL"));
    };
    let name = r.bytes(len)?.to_vec();
    let stored = len.saturating_add(1);
    let stored = if version < 3 { stored.next_multiple_of(8) } else { stored };
    r.skip(stored.saturating_sub(len))?;
    Ok(name)
}

/// Bytes needed to write `n`.
fn width_of(n: u32) -> usize {
    match n {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

fn compound(r: &mut FieldReader<'_>, count: u32, size: u32, version: u8, depth: u8) -> Result<Class> {
    if count == 0 {
        return Err(r.corrupt("a compound without members"));
    }
    let mut members: Vec<Member> = Vec::new();
    let mut highest = 0;
    for _ in 0..count {
        let name = name(r, version)?;
        let offset = if version >= 3 { r.uint(width_of(size))? } else { u64::from(r.u32()?) };
        let dims = if version == 1 { old_array_dims(r)? } else { Vec::new() };
        let mut datatype = decode(r, depth)?;
        if !dims.is_empty() {
            datatype = array_of(r, dims, datatype)?;
        }
        let end = offset.saturating_add(u64::from(datatype.size));
        if end > u64::from(size) {
            return Err(r.corrupt(format_args!("a member ends at byte {end} of an element of {size}")));
        }
        if offset < highest
            && members
                .iter()
                .any(|m| m.offset <= offset && offset < m.offset.saturating_add(u64::from(m.datatype.size)))
        {
            return Err(r.corrupt("a member overlaps another one"));
        }
        highest = highest.max(end);
        members.push(Member { name, offset, datatype });
    }
    Ok(Class::Compound { members })
}

/// Array extents of a version 1 member: always four are stored, as many as `rank` says are meant.
fn old_array_dims(r: &mut FieldReader<'_>) -> Result<Vec<u64>> {
    let rank = r.u8()?;
    if rank > 4 {
        return Err(r.corrupt(format_args!("a member array of rank {rank}")));
    }
    r.skip(11)?;
    let mut dims = Vec::new();
    for i in 0..4 {
        let dim = u64::from(r.u32()?);
        if i < rank {
            dims.push(dim);
        }
    }
    Ok(dims)
}

/// The array datatype of these extents, whose size must be a size of 32 bits.
fn array_of(r: &FieldReader<'_>, dims: Vec<u64>, base: Datatype) -> Result<Datatype> {
    let size = dims
        .iter()
        .try_fold(u64::from(base.size), |n, d| n.checked_mul(*d))
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n > 0)
        .ok_or_else(|| r.corrupt(format_args!("an array of {dims:?} elements of {} bytes", base.size)))?;
    Ok(Datatype { size, class: Class::Array { dims, base: Box::new(base) } })
}

fn array(r: &mut FieldReader<'_>, size: u32, version: u8, depth: u8) -> Result<Class> {
    let rank = r.u8()?;
    if rank == 0 || rank > 32 {
        return Err(r.corrupt(format_args!("an array of rank {rank}")));
    }
    if version < 3 {
        r.skip(3)?;
    }
    let dims = (0..rank).map(|_| r.u32().map(u64::from)).collect::<Result<Vec<u64>>>()?;
    if version < 3 {
        r.skip(usize::from(rank).saturating_mul(4))?; // permutations, never used
    }
    let base = decode(r, depth)?;
    let array = array_of(r, dims, base)?;
    if array.size != size {
        return Err(r.corrupt(format_args!("an array of {} bytes says it has {size}", array.size)));
    }
    Ok(array.class)
}

fn enumeration(r: &mut FieldReader<'_>, count: u32, size: u32, version: u8, depth: u8) -> Result<Class> {
    let base = decode(r, depth)?;
    if base.size != size {
        return Err(r.corrupt(format_args!("an enumeration of {size} bytes over one of {}", base.size)));
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let name = name(r, version)?;
        if name.is_empty() {
            return Err(r.corrupt("an enumeration member without a name"));
        }
        names.push(name);
    }
    let width = usize::try_from(size).unwrap_or(usize::MAX);
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        members.push((name, r.bytes(width)?.to_vec()));
    }
    Ok(Class::Enum { base: Box::new(base), members })
}

/// The new kinds belong to version 4, but are found in all versions.
fn reference(r: &FieldReader<'_>, bits: u32) -> Result<ReferenceKind> {
    match bits & 15 {
        0 => Ok(ReferenceKind::Object),
        1 => Ok(ReferenceKind::Region),
        2 => Ok(ReferenceKind::Object2),
        3 => Ok(ReferenceKind::Region2),
        4 => Ok(ReferenceKind::Attribute),
        k => Err(r.corrupt(format_args!("reference type {k} is not known"))),
    }
}

fn complex(r: &mut FieldReader<'_>, bits: u32, size: u32, version: u8, depth: u8) -> Result<Class> {
    if version < 5 {
        return Err(r.corrupt(format_args!("a complex number in version {version}")));
    }
    // Bit 0: both parts have the same type; bits 1 and 2: the form, 0 being rectangular.
    if bits & 7 != 1 {
        return Err(r.unsupported(format_args!("a complex number of form {:#x}", bits & 7)));
    }
    let base = decode(r, depth)?;
    if !matches!(base.class, Class::Float { .. }) {
        return Err(r.corrupt("a complex number whose parts are no floating-point numbers"));
    }
    if base.size.checked_mul(2) != Some(size) {
        return Err(r.corrupt(format_args!("a complex number of {size} bytes, its parts {}", base.size)));
    }
    Ok(Class::Complex { base: Box::new(base) })
}
