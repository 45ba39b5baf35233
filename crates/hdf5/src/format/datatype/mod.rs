//! Datatype message (specification IV.A.2.d): the on-disk type of an element.

mod decode;
#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic fails the test")]
mod tests;
mod text;

pub use text::text_of;

pub(crate) mod encode;
mod standard;

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// VAX order (floats only).
    Vax,
}

/// How the bits outside a number's precision are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Zeros.
    Zero,
    /// Ones.
    One,
    /// Left as they were (internal padding of floats: "background").
    Background,
}

/// How a fixed or variable string is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringPadding {
    /// Ends at the first NUL.
    NullTerminated,
    /// Filled up with NULs.
    NullPadded,
    /// Filled up with spaces.
    SpacePadded,
    /// A reserved number.
    Other(u8),
}

/// Character set of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharacterSet {
    /// ASCII.
    Ascii,
    /// UTF-8.
    Utf8,
    /// A reserved number.
    Other(u8),
}

/// Bits of a number inside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitField {
    /// First significant bit.
    pub offset: u16,
    /// Number of significant bits.
    pub precision: u16,
    /// Filling below.
    pub low_padding: Padding,
    /// Filling above.
    pub high_padding: Padding,
}

/// How a float's mantissa is normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalization {
    /// No normalisation.
    None,
    /// The highest mantissa bit is set and stored.
    MsbSet,
    /// The highest mantissa bit is 1 and not stored (IEEE).
    Implied,
}

/// The layout of a floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatLayout {
    /// Filling of unused bits inside.
    pub internal_padding: Padding,
    /// Mantissa normalisation.
    pub normalization: Normalization,
    /// Bit position of the sign.
    pub sign_position: u8,
    /// Bit position of the exponent.
    pub exponent_position: u8,
    /// Bits of the exponent.
    pub exponent_size: u8,
    /// Bit position of the mantissa.
    pub mantissa_position: u8,
    /// Bits of the mantissa.
    pub mantissa_size: u8,
    /// Exponent bias.
    pub exponent_bias: u32,
}

/// A member of a compound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Name, raw bytes without the terminator.
    pub name: Vec<u8>,
    /// Byte offset inside the element.
    pub offset: u64,
    /// Type of the member.
    pub datatype: Datatype,
}

/// Kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// Object reference (HDF5 1.0 to 1.10).
    Object,
    /// Dataset region reference (HDF5 1.0 to 1.10).
    Region,
    /// Object reference of 1.12 and later (`H5R_OBJECT2`).
    Object2,
    /// Region reference of 1.12 and later.
    Region2,
    /// Attribute reference of 1.12 and later.
    Attribute,
}

/// The on-disk type of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datatype {
    /// Size of one element in the file, in bytes.
    pub size: u32,
    /// Class and properties.
    pub class: Class,
}

/// Class of a datatype, with its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// Integer (class 0).
    Integer {
        /// Byte order.
        order: ByteOrder,
        /// Two's complement?
        signed: bool,
        /// Significant bits.
        bits: BitField,
    },
    /// Floating-point number (class 1).
    Float {
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        bits: BitField,
        /// Sign, exponent and mantissa.
        layout: FloatLayout,
    },
    /// Time (class 2).
    Time {
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        precision: u16,
    },
    /// String of fixed size (class 3).
    String {
        /// Padding.
        padding: StringPadding,
        /// Character set.
        charset: CharacterSet,
    },
    /// Bit field (class 4).
    Bitfield {
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        bits: BitField,
    },
    /// Opaque bytes (class 5).
    Opaque {
        /// Tag, raw bytes without padding.
        tag: Vec<u8>,
    },
    /// Compound (class 6), members in stored order.
    Compound {
        /// The members.
        members: Vec<Member>,
    },
    /// Reference (class 7).
    Reference(ReferenceKind),
    /// Enumeration (class 8), members in stored order.
    Enum {
        /// The integer type beneath.
        base: Box<Datatype>,
        /// Names (raw bytes) and values as stored (`base.size` bytes each).
        members: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// Variable-length sequence (class 9, type 0).
    VarLen {
        /// Type of the elements.
        base: Box<Datatype>,
    },
    /// Variable-length string (class 9, type 1).
    VarString {
        /// Padding.
        padding: StringPadding,
        /// Character set.
        charset: CharacterSet,
    },
    /// Array (class 10).
    Array {
        /// Extents, slowest first.
        dims: Vec<u64>,
        /// Type of the elements.
        base: Box<Datatype>,
    },
    /// Complex number (class 11, HDF5 2.0).
    Complex {
        /// The floating-point type of both parts.
        base: Box<Datatype>,
    },
}
