//! An object: its header with typed access to what the messages say.

use super::local_heap::LocalHeap;
use super::shared::{Resolved, resolve};
use crate::format::Address;
use crate::format::datatype::Datatype;
use crate::format::message::MessageKind;
use crate::format::message::data_layout::DataLayout;
use crate::format::message::dataspace::Dataspace;
use crate::format::message::external_files::ExternalFiles;
use crate::format::message::fill_value::FillMessage;
use crate::format::message::group::{DenseInfo, GroupInfo, SymbolTable};
use crate::format::message::{file, filter_pipeline};
use crate::format::object_header::Times;
use crate::space::{FileSpace, Message, StoredHeader};
use tensilo_core::{Error, Result};
use tensilo_filters::FilterSpec;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A group.
    Group,
    /// A dataset.
    Dataset,
    /// A committed datatype.
    Datatype,
}

/// A piece of raw data in another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalFile {
    /// Name of the file, raw bytes.
    pub name: Vec<u8>,
    /// Where the data begins in it, in bytes.
    pub offset: u64,
    /// Bytes reserved there; `None` for unlimited.
    pub size: Option<u64>,
}

/// An object header with all its messages.
///
/// Messages are interpreted when asked for; a damaged one harms only whoever needs it.
#[derive(Debug, Clone)]
pub struct ObjectHeader {
    /// Address of the header; the identity of the object.
    pub address: Address,
    /// Version of the header, 1 or 2.
    pub version: u8,
    /// Number of hard links to the object.
    pub link_count: u32,
    /// Times, where they are stored in the header itself.
    pub times: Option<Times>,
    /// The messages in stored order.
    pub messages: Vec<Message>,
    stored: StoredHeader,
    space: FileSpace,
}

impl ObjectHeader {
    /// Reads the header at `address` with all continuations, and verifies its checksums.
    ///
    /// # Errors
    /// `Corrupt` when it is no object header or a damaged one; `Unsupported` when it holds a message that must be
    /// understood and is not known.
    pub fn load(space: &FileSpace, address: Address) -> Result<Self> {
        let mut stored = StoredHeader::load(space, address)?;
        Ok(Self {
            address,
            version: stored.prefix.version,
            link_count: stored.prefix.link_count,
            times: stored.prefix.times,
            messages: std::mem::take(&mut stored.messages),
            stored,
            space: space.clone(),
        })
    }

    /// The file this object is in.
    pub fn space(&self) -> &FileSpace {
        &self.space
    }

    /// Header flags (version 2; 0 in version 1).
    pub fn flags(&self) -> u8 {
        self.stored.prefix.flags
    }

    /// Most compact and least dense attributes, if not the default.
    pub fn attribute_phase(&self) -> Option<(u16, u16)> {
        self.stored.prefix.attribute_phase
    }

    /// The first message of a kind.
    pub fn find(&self, kind: MessageKind) -> Option<&Message> {
        self.messages.iter().find(|m| m.kind == kind)
    }

    /// The body of a message as stored; of a shared one, the reference.
    pub fn body(&self, message: &Message) -> &[u8] {
        self.stored.body(message)
    }

    /// The body of a message; of a shared one, what it refers to.
    ///
    /// # Errors
    /// `Corrupt` when the reference leads nowhere.
    pub fn resolve(&self, message: &Message) -> Result<Resolved<'_>> {
        resolve(&self.space, message.kind, message.is_shared(), self.body(message), message.offset)
    }

    fn parse<T>(&self, kind: MessageKind, parse: impl FnOnce(&[u8], u64) -> Result<T>) -> Result<Option<T>> {
        let Some(message) = self.find(kind) else { return Ok(None) };
        let found = self.resolve(message)?;
        parse(&found.bytes, found.at).map(Some).map_err(|e| self.space.locate(e))
    }

    /// What the object is.
    ///
    /// # Errors
    /// `Corrupt` when its messages make it nothing.
    pub fn kind(&self) -> Result<ObjectKind> {
        let has = |kind| self.find(kind).is_some();
        if has(MessageKind::SymbolTable) || has(MessageKind::LinkInfo) {
            Ok(ObjectKind::Group)
        } else if has(MessageKind::Datatype) {
            Ok(if has(MessageKind::Dataspace) { ObjectKind::Dataset } else { ObjectKind::Datatype })
        } else {
            let at = self.space.absolute(self.address)?;
            Err(self.space.corrupt("the object is neither group nor dataset nor datatype", at))
        }
    }

    /// The dataspace.
    ///
    /// # Errors
    /// `Corrupt` when the message is damaged; so for every method below.
    pub fn dataspace(&self) -> Result<Option<Dataspace>> {
        let sizes = self.space.sizes();
        self.parse(MessageKind::Dataspace, |b, at| Dataspace::parse(b, at, sizes))
    }

    /// The datatype.
    pub fn datatype(&self) -> Result<Option<Datatype>> {
        self.parse(MessageKind::Datatype, Datatype::parse)
    }

    /// Address of the committed datatype that is the datatype of this object, if it is one.
    pub fn committed_datatype(&self) -> Result<Option<Address>> {
        match self.find(MessageKind::Datatype) {
            Some(message) => Ok(self.resolve(message)?.committed),
            None => Ok(None),
        }
    }

    /// The data layout.
    pub fn layout(&self) -> Result<Option<DataLayout>> {
        let sizes = self.space.sizes();
        self.parse(MessageKind::DataLayout, |b, at| DataLayout::parse(b, at, sizes))
    }

    /// The fill value, of the new message or else the old one; [`FillMessage::ABSENT`] where there is none.
    pub fn fill(&self) -> Result<FillMessage> {
        if let Some(fill) = self.parse(MessageKind::FillValue, FillMessage::parse)? {
            return Ok(fill);
        }
        let old = self.parse(MessageKind::FillValueOld, FillMessage::parse_old)?;
        Ok(old.unwrap_or(FillMessage::ABSENT))
    }

    /// The filters; none without the message.
    pub fn filters(&self) -> Result<Vec<FilterSpec>> {
        Ok(self.parse(MessageKind::FilterPipeline, filter_pipeline::parse)?.unwrap_or_default())
    }

    /// The pieces of raw data in other files; none without the message.
    pub fn external_files(&self) -> Result<Vec<ExternalFile>> {
        let sizes = self.space.sizes();
        let files = self.parse(MessageKind::ExternalFiles, |b, at| ExternalFiles::parse(b, at, sizes))?;
        let Some(files) = files else { return Ok(Vec::new()) };
        let heap = LocalHeap::load(&self.space, files.heap)?;
        files
            .slots
            .iter()
            .map(|s| Ok(ExternalFile { name: heap.text(s.name)?.to_vec(), offset: s.offset, size: s.size }))
            .collect()
    }

    /// The symbol table of an old-style group.
    pub fn symbol_table(&self) -> Result<Option<SymbolTable>> {
        let sizes = self.space.sizes();
        self.parse(MessageKind::SymbolTable, |b, at| SymbolTable::parse(b, at, sizes))
    }

    /// Where the links of a new-style group are.
    pub fn link_info(&self) -> Result<Option<DenseInfo>> {
        let sizes = self.space.sizes();
        self.parse(MessageKind::LinkInfo, |b, at| DenseInfo::parse_links(b, at, sizes))
    }

    /// Constants of a new-style group.
    pub fn group_info(&self) -> Result<Option<GroupInfo>> {
        self.parse(MessageKind::GroupInfo, GroupInfo::parse)
    }

    /// Where dense attributes are.
    pub fn attribute_info(&self) -> Result<Option<DenseInfo>> {
        let sizes = self.space.sizes();
        if self.version == 1 {
            return Ok(None); // such headers never have dense attributes
        }
        self.parse(MessageKind::AttributeInfo, |b, at| DenseInfo::parse_attributes(b, at, sizes))
    }

    /// The comment, raw bytes.
    pub fn comment(&self) -> Result<Option<Vec<u8>>> {
        self.parse(MessageKind::Comment, |b, at| file::comment(b, at).map(<[u8]>::to_vec))
    }

    /// Time of last modification in seconds since 1970, from header or message, whichever there is.
    pub fn modification_time(&self) -> Result<Option<i64>> {
        if let Some(times) = self.times {
            return Ok(Some(i64::from(times.modification)));
        }
        if let Some(time) = self.parse(MessageKind::ModificationTime, file::modification_time)? {
            return Ok(Some(i64::from(time)));
        }
        self.parse(MessageKind::ModificationTimeOld, file::modification_time_old)
    }

    /// A `Corrupt` error at this object's header.
    #[must_use]
    pub fn corrupt(&self, message: impl Into<String>) -> Error {
        let e = Error::corrupt(message);
        self.space.locate(match self.space.absolute(self.address) {
            Ok(at) => e.at(at),
            Err(_) => e,
        })
    }
}
