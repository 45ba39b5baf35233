//! What a store's records are made of.

use crate::dtype::DType;
use crate::error::{Error, Result};

/// Shape of a field in one record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FieldShape {
    /// The same in every record; no dimensions for a single element.
    Fixed(Vec<u64>),
    /// The first dimension differs between records, these follow.
    Ragged(Vec<u64>),
}

/// A named part of every record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldSchema {
    /// Its name, unique in the store.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Its shape in one record.
    pub shape: FieldShape,
}

impl FieldSchema {
    /// A field of the same shape in every record.
    pub fn fixed(name: impl Into<String>, dtype: DType, shape: impl Into<Vec<u64>>) -> Self {
        Self { name: name.into(), dtype, shape: FieldShape::Fixed(shape.into()) }
    }

    /// A field whose first dimension differs between records; `inner` are the others.
    pub fn ragged(name: impl Into<String>, dtype: DType, inner: impl Into<Vec<u64>>) -> Self {
        Self { name: name.into(), dtype, shape: FieldShape::Ragged(inner.into()) }
    }

    /// Does its length differ between records?
    pub fn is_ragged(&self) -> bool {
        matches!(self.shape, FieldShape::Ragged(_))
    }

    /// Bytes of one step: of a whole record where the shape is fixed, of one row of a ragged field.
    ///
    /// # Errors
    /// `Limit` when the product passes 2^63.
    pub fn step_bytes(&self) -> Result<u64> {
        let (FieldShape::Fixed(dims) | FieldShape::Ragged(dims)) = &self.shape;
        dims.iter()
            .try_fold(self.dtype.size(), |n, d| n.checked_mul(*d))
            .filter(|n| *n <= i64::MAX as u64)
            .ok_or_else(|| Error::limit(format!("field {:?}: a shape of {dims:?} is too large", self.name)))
    }

    /// Steps of a record of a fixed shape: 1; `None` for a ragged field, whose lengths tell.
    pub fn fixed_steps(&self) -> Option<u64> {
        (!self.is_ragged()).then_some(1)
    }
}

/// The fields of a store's records, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schema {
    fields: Vec<FieldSchema>,
}

impl Schema {
    /// Takes the fields.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none, or two of one name, or one without a name; `Limit` when one is too
    /// large.
    pub fn new(fields: Vec<FieldSchema>) -> Result<Self> {
        if fields.is_empty() {
            return Err(Error::invalid("a record needs at least one field"));
        }
        let mut names: Vec<_> = fields.iter().map(|f| f.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::invalid(format!("two fields are named {:?}", pair[0])));
        }
        if names[0].is_empty() {
            return Err(Error::invalid("a field needs a name"));
        }
        for field in &fields {
            field.step_bytes()?;
        }
        Ok(Self { fields })
    }

    /// The fields.
    pub fn fields(&self) -> &[FieldSchema] {
        &self.fields
    }

    /// Position of a field.
    ///
    /// # Errors
    /// `NotFound`, naming the fields there are.
    pub fn position(&self, name: &str) -> Result<usize> {
        self.fields.iter().position(|f| f.name == name).ok_or_else(|| {
            let names: Vec<_> = self.fields.iter().map(|f| f.name.as_str()).collect();
            Error::not_found(format!("no field {name:?}; there are: {}", names.join(", ")))
        })
    }

    /// The field at a position.
    ///
    /// # Errors
    /// `InvalidArgument` when there are fewer.
    pub fn field(&self, position: usize) -> Result<&FieldSchema> {
        self.fields
            .get(position)
            .ok_or_else(|| Error::invalid(format!("field {position} of {}", self.fields.len())))
    }
}
