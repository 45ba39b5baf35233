//! The value of an attribute: datatype, dataspace and elements.

use super::element::Element;
use crate::format::datatype::{CharacterSet, Class, Datatype};
use crate::format::message::dataspace::Dataspace;
use tensilo_core::{Error, Result};

/// The value of an attribute.
///
/// ```
/// use tensilo_hdf5::write::Value;
/// let text = Value::from("counts");            // variable-length UTF-8
/// let number = Value::from(0.25_f64);          // scalar
/// let vector = Value::from(&[1_i32, 2, 3][..]); // one dimension
/// let matrix = Value::array(&[1_u16, 2, 3, 4], &[2, 2])?;
/// # let _ = (text, number, vector, matrix);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Value {
    pub(crate) datatype: Datatype,
    pub(crate) dataspace: Dataspace,
    pub(crate) data: Data,
}

/// Elements, or what a global heap will hold for them.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// As they will stand in the file.
    Stored(Vec<u8>),
    /// For each element, the bytes of its items.
    Heap(Vec<Vec<u8>>),
}

/// An array's dataspace, its maximum extents being the current ones.
pub(crate) fn simple(shape: &[u64]) -> Dataspace {
    Dataspace::Simple { dims: shape.to_vec(), max: shape.iter().map(|d| Some(*d)).collect() }
}

impl Value {
    /// One number.
    pub fn scalar<T: Element>(value: T) -> Self {
        let bytes = bytemuck::bytes_of(&value).to_vec();
        Self { datatype: T::datatype(), dataspace: Dataspace::Scalar, data: Data::Stored(bytes) }
    }

    /// An array of numbers, row by row.
    ///
    /// # Errors
    /// `InvalidArgument` when the shape has another number of elements.
    pub fn array<T: Element>(values: &[T], shape: &[u64]) -> Result<Self> {
        Self::stored(T::datatype(), simple(shape), bytemuck::cast_slice(values).to_vec())
    }

    /// Elements as they will stand in the file.
    ///
    /// # Errors
    /// `InvalidArgument` when the number of bytes is not that of the dataspace.
    pub fn stored(datatype: Datatype, dataspace: Dataspace, data: Vec<u8>) -> Result<Self> {
        let expected = dataspace.elements().and_then(|n| n.checked_mul(u64::from(datatype.size)));
        if expected != Some(data.len() as u64) {
            return Err(Error::invalid(format!(
                "{} bytes for a dataspace {:?} of elements of {} bytes",
                data.len(),
                dataspace.dims(),
                datatype.size
            )));
        }
        Ok(Self { datatype, dataspace, data: Data::Stored(data) })
    }

    /// A value without elements: type and null dataspace only.
    pub fn null(datatype: Datatype) -> Self {
        Self { datatype, dataspace: Dataspace::Null, data: Data::Stored(Vec::new()) }
    }

    /// One string of a fixed size, padded with NULs; ASCII where it suffices, else UTF-8.
    pub fn fixed_text(text: &str) -> Self {
        let charset = if text.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(bytes.len().max(1), 0);
        let datatype = Datatype::fixed_string(bytes.len() as u32, charset);
        Self { datatype, dataspace: Dataspace::Scalar, data: Data::Stored(bytes) }
    }

    /// An array of variable-length UTF-8 strings, row by row.
    ///
    /// # Errors
    /// `InvalidArgument` when the shape has another number of elements.
    pub fn texts<S: AsRef<str>>(texts: &[S], shape: &[u64]) -> Result<Self> {
        let items = texts.iter().map(|t| t.as_ref().as_bytes().to_vec()).collect();
        Self::heap(Datatype::text(), simple(shape), items)
    }

    /// Elements of a variable-length type: for each, the bytes of its items.
    ///
    /// # Errors
    /// `InvalidArgument` when the type is not of variable length, the number of elements is not that of the
    /// dataspace, or an element is no whole number of items.
    pub fn heap(datatype: Datatype, dataspace: Dataspace, elements: Vec<Vec<u8>>) -> Result<Self> {
        let item = item_size(&datatype)?;
        if dataspace.elements() != Some(elements.len() as u64) {
            return Err(Error::invalid(format!(
                "{} elements for a dataspace {:?}",
                elements.len(),
                dataspace.dims()
            )));
        }
        if let Some(e) = elements.iter().find(|e| !e.len().is_multiple_of(item)) {
            return Err(Error::invalid(format!(
                "{} bytes are no whole number of items of {item} bytes",
                e.len()
            )));
        }
        Ok(Self { datatype, dataspace, data: Data::Heap(elements) })
    }

    /// The datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// The dataspace.
    pub fn dataspace(&self) -> &Dataspace {
        &self.dataspace
    }
}

/// Refuses a text with a NUL: libhdf5 ends it there, and what follows would be gone.
pub(crate) fn check_ends(datatype: &Datatype, text: &[u8]) -> Result<()> {
    if !matches!(datatype.class, Class::VarString { .. }) || !text.contains(&0) {
        return Ok(());
    }
    Err(Error::invalid("a string of variable length contains a NUL, where libhdf5 would end it")
        .hint("bytes that may be NUL belong in an array of u8 or an opaque type"))
}

/// Bytes of an item of a variable-length type.
pub(crate) fn item_size(datatype: &Datatype) -> Result<usize> {
    match &datatype.class {
        Class::VarString { .. } => Ok(1),
        Class::VarLen { base } if base.size > 0 => Ok(base.size as usize),
        _ => Err(Error::invalid("the datatype is not of variable length")),
    }
}

impl<T: Element> From<T> for Value {
    fn from(value: T) -> Self {
        Self::scalar(value)
    }
}

impl<T: Element> From<&[T]> for Value {
    fn from(values: &[T]) -> Self {
        Self {
            datatype: T::datatype(),
            dataspace: simple(&[values.len() as u64]),
            data: Data::Stored(bytemuck::cast_slice(values).to_vec()),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self {
            datatype: Datatype::text(),
            dataspace: Dataspace::Scalar,
            data: Data::Heap(vec![text.as_bytes().to_vec()]),
        }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}
