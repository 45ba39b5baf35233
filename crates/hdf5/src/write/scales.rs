//! Dimension scales: datasets that say what the positions along a dimension of other datasets mean, in the
//! attributes that the HDF5 dimension scale specification names.

use super::tree::NodeId;
use super::value::{Data, Value, simple};
use super::writer::FileWriter;
use crate::format::datatype::{ByteOrder, CharacterSet, Class, Datatype, Member, StringPadding};
use std::collections::BTreeMap;
use tensilo_core::{Error, Result};

/// Scales and labels to be written at the end.
#[derive(Debug, Default)]
pub(crate) struct Scales {
    /// For each dataset and dimension, its scales in the order they were attached.
    attached: BTreeMap<(NodeId, u32), Vec<NodeId>>,
    labels: BTreeMap<NodeId, BTreeMap<u32, String>>,
}

/// A NUL-terminated ASCII string of the size it needs.
fn c_string(text: &str) -> Value {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    let class = Class::String { padding: StringPadding::NullTerminated, charset: CharacterSet::Ascii };
    Value {
        datatype: Datatype { size: bytes.len() as u32, class },
        dataspace: crate::format::message::dataspace::Dataspace::Scalar,
        data: Data::Stored(bytes),
    }
}

impl FileWriter<'_> {
    /// Makes a dataset a dimension scale of this name (which may be empty).
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists`, `InvalidArgument` when it is no dataset.
    pub fn make_scale(&mut self, dataset: impl AsRef<[u8]>, name: &str) -> Result<()> {
        let (id, _) = self.dataset_rank(dataset.as_ref())?;
        self.add_attribute(id, b"CLASS", c_string("DIMENSION_SCALE"))?;
        if name.is_empty() { Ok(()) } else { self.add_attribute(id, b"NAME", c_string(name)) }
    }

    /// Attaches a scale to a dimension of a dataset. The attributes are written by `finish`.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` when the dataset has no such dimension.
    pub fn attach_scale(
        &mut self,
        dataset: impl AsRef<[u8]>,
        dimension: u32,
        scale: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (id, rank) = self.dataset_rank(dataset.as_ref())?;
        let (scale, _) = self.dataset_rank(scale.as_ref())?;
        if dimension as usize >= rank || id == scale {
            return Err(Error::invalid(format!("no scale for dimension {dimension} of {rank}"))
                .in_object(String::from_utf8_lossy(dataset.as_ref())));
        }
        self.scales.attached.entry((id, dimension)).or_default().push(scale);
        Ok(())
    }

    /// Names a dimension of a dataset.
    ///
    /// # Errors
    /// As [`attach_scale`](Self::attach_scale).
    pub fn label_dimension(&mut self, dataset: impl AsRef<[u8]>, dimension: u32, label: &str) -> Result<()> {
        let (id, rank) = self.dataset_rank(dataset.as_ref())?;
        if dimension as usize >= rank {
            return Err(Error::invalid(format!("no dimension {dimension} of {rank}"))
                .in_object(String::from_utf8_lossy(dataset.as_ref())));
        }
        self.scales.labels.entry(id).or_default().insert(dimension, label.to_owned());
        Ok(())
    }

    pub(super) fn dataset_rank(&self, path: &[u8]) -> Result<(NodeId, usize)> {
        let id = self.tree.find(path)?;
        match &self.tree.node(id).kind {
            super::tree::Kind::Dataset(d) => Ok((id, d.dataspace.dims().len())),
            _ => Err(Error::invalid("this is no dataset").in_object(String::from_utf8_lossy(path))),
        }
    }

    /// Writes the attributes of all attachments.
    pub(crate) fn write_scales(&mut self) -> Result<()> {
        let Scales { attached, labels } = std::mem::take(&mut self.scales);
        let mut lists: BTreeMap<NodeId, Vec<Vec<u8>>> = BTreeMap::new();
        let mut uses: BTreeMap<NodeId, Vec<(NodeId, u32)>> = BTreeMap::new();
        for ((dataset, dimension), scales) in &attached {
            let rank = self.rank(*dataset);
            let list = lists.entry(*dataset).or_insert_with(|| vec![Vec::new(); rank]);
            for scale in scales {
                let address = self.pin(*scale)?;
                if let Some(references) = list.get_mut(*dimension as usize) {
                    references.extend_from_slice(&address.0.to_le_bytes());
                }
                uses.entry(*scale).or_default().push((*dataset, *dimension));
            }
        }
        for (dataset, list) in lists {
            let space = simple(&[list.len() as u64]);
            let value = Value::heap(Datatype::sequence(Datatype::object_reference()), space, list)?;
            self.add_attribute(dataset, b"DIMENSION_LIST", value)?;
        }
        for (scale, used) in uses {
            let mut bytes = Vec::with_capacity(16 * used.len());
            for (dataset, dimension) in &used {
                bytes.extend_from_slice(&self.pin(*dataset)?.0.to_le_bytes());
                bytes.extend_from_slice(&dimension.to_le_bytes());
                bytes.extend_from_slice(&[0; 4]);
            }
            let value = Value::stored(use_type(), simple(&[used.len() as u64]), bytes)?;
            self.add_attribute(scale, b"REFERENCE_LIST", value)?;
        }
        for (dataset, labels) in labels {
            let rank = self.rank(dataset);
            let all: Vec<&str> =
                (0..rank as u32).map(|d| labels.get(&d).map_or("", String::as_str)).collect();
            let value = Value::texts(&all, &[rank as u64])?;
            self.add_attribute(dataset, b"DIMENSION_LABELS", value)?;
        }
        Ok(())
    }

    fn rank(&self, id: NodeId) -> usize {
        match &self.tree.node(id).kind {
            super::tree::Kind::Dataset(d) => d.dataspace.dims().len(),
            _ => 0,
        }
    }
}

/// A dataset and the dimension of it that a scale belongs to: 16 bytes.
fn use_type() -> Datatype {
    let members = vec![
        Member { name: b"dataset".to_vec(), offset: 0, datatype: Datatype::object_reference() },
        Member {
            name: b"dimension".to_vec(),
            offset: 8,
            datatype: Datatype::integer(4, true, ByteOrder::Little),
        },
    ];
    Datatype { size: 16, class: Class::Compound { members } }
}
