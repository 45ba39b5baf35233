//! Attributes.

use super::convert::Conversion;
use super::element::Element;
use super::{File, strings};
use crate::format::datatype::Datatype;
use crate::format::message::dataspace::Dataspace;
use crate::object::{self, AttributeData, DamagedAttribute, ObjectHeader};
use std::borrow::Cow;
use std::sync::Arc;
use tensilo_core::{Error, Result};

/// A small named value of a group, dataset or committed datatype. Cheap to clone; it holds its value.
#[derive(Debug, Clone)]
pub struct Attribute {
    file: File,
    data: Arc<AttributeData>,
    owner: Arc<[u8]>,
}

/// All attributes of an object.
pub(super) fn all(
    file: &File,
    header: &ObjectHeader,
    owner: &Arc<[u8]>,
) -> Result<Vec<Result<Attribute, DamagedAttribute>>> {
    let list = located(file, owner, object::attributes(&file.0.space, header))?;
    let attribute = |data| Attribute { file: file.clone(), data: Arc::new(data), owner: owner.clone() };
    let damaged = |d: DamagedAttribute| {
        let error = d.error.in_object(String::from_utf8_lossy(owner));
        DamagedAttribute { error: file.0.space.locate(error), ..d }
    };
    Ok(list.into_iter().map(|a| a.map(attribute).map_err(damaged)).collect())
}

/// One attribute of an object.
pub(super) fn one(file: &File, header: &ObjectHeader, owner: &Arc<[u8]>, name: &[u8]) -> Result<Attribute> {
    let found = object::attribute(&file.0.space, header, name).and_then(|a| {
        a.ok_or_else(|| Error::not_found(format!("no attribute {:?}", String::from_utf8_lossy(name))))
    });
    let data = located(file, owner, found)?;
    Ok(Attribute { file: file.clone(), data: Arc::new(data), owner: owner.clone() })
}

/// Adds object and file to an error.
fn located<T>(file: &File, owner: &[u8], result: Result<T>) -> Result<T> {
    file.whole(result.map_err(|e| e.in_object(String::from_utf8_lossy(owner))))
}

impl Attribute {
    /// The name as stored.
    pub fn name(&self) -> &[u8] {
        &self.data.name
    }

    /// The name as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.data.name)
    }

    /// The type of its elements.
    pub fn datatype(&self) -> &Datatype {
        &self.data.datatype
    }

    /// Its dataspace.
    pub fn dataspace(&self) -> &Dataspace {
        &self.data.dataspace
    }

    /// Its extents, slowest first; empty for scalar and null dataspaces.
    pub fn shape(&self) -> &[u64] {
        self.data.dataspace.dims()
    }

    /// All that the file says about it.
    pub fn data(&self) -> &AttributeData {
        &self.data
    }

    /// The file it is in.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its elements as stored.
    pub fn read_bytes(&self) -> &[u8] {
        &self.data.data
    }

    /// Its elements, converted to `T`.
    ///
    /// # Errors
    /// `InvalidArgument` when the type does not convert or a value does not fit.
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        self.located(|| {
            let conversion = Conversion::new(&self.data.datatype, T::KIND)?;
            let n = self.data.data.len() / conversion.stored;
            let bytes = (n as u64).saturating_mul(conversion.width() as u64);
            let _charge = self.file.0.space.budget().bytes(bytes, "an attribute's value")?;
            let mut values: Vec<T> = tensilo_core::buffer::zeroed_vec(n * conversion.items)?;
            conversion
                .convert(&self.data.data[..n * conversion.stored], bytemuck::cast_slice_mut(&mut values))?;
            Ok(values)
        })
    }

    /// Its only element, converted to `T`.
    ///
    /// # Errors
    /// As [`read`](Self::read), and `InvalidArgument` when it has more or fewer than one.
    pub fn read_one<T: Element>(&self) -> Result<T> {
        let values = self.read()?;
        match values.as_slice() {
            [one] => Ok(*one),
            more => {
                self.located(|| Err(Error::invalid(format!("{} values where one is wanted", more.len()))))
            }
        }
    }

    /// Its strings, without their padding; one that is no UTF-8 has its wrong bytes replaced.
    ///
    /// # Errors
    /// `InvalidArgument` when it holds no strings; `Corrupt` when a heap is damaged.
    pub fn read_strings(&self) -> Result<Vec<String>> {
        Ok(self.read_string_bytes()?.into_iter().map(strings::to_text).collect())
    }

    /// Its strings as bytes, without their padding.
    ///
    /// # Errors
    /// As [`read_strings`](Self::read_strings).
    pub fn read_string_bytes(&self) -> Result<Vec<Vec<u8>>> {
        self.located(|| {
            strings::check(&self.data.datatype)?;
            strings::decode(&self.file, &self.data.datatype, &self.data.data)
        })
    }

    /// Its only string.
    ///
    /// # Errors
    /// As [`read_strings`](Self::read_strings), and `InvalidArgument` when it has more or fewer than one.
    pub fn read_string(&self) -> Result<String> {
        let mut strings = self.read_strings()?;
        match strings.len() {
            1 => Ok(strings.remove(0)),
            n => self.located(|| Err(Error::invalid(format!("{n} strings where one is wanted")))),
        }
    }

    fn located<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = work().map_err(|e| e.context(format_args!("attribute {:?}", self.text())));
        located(&self.file, &self.owner, result)
    }
}
