//! How a file says that its space is managed, and which header messages its objects share.
//!
//! Both stand in the superblock extension, which needs a superblock of version 2 (libhdf5 1.8 and newer) under every
//! bound. libhdf5 reads the space of the file from 1.10.1 on; older ones ignore it.

use crate::format::encode::object_header::kind;
use tensilo_core::{Error, Result};

/// How the space of a file is managed by who changes it later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpaceStrategy {
    /// Free-space managers and aggregation: what files without a statement have.
    #[default]
    Managers,
    /// Pages, each of metadata or of raw data.
    Pages,
    /// Aggregation only.
    Aggregation,
    /// Neither.
    Nothing,
}

impl SpaceStrategy {
    /// Its number in files.
    pub fn number(self) -> u8 {
        match self {
            Self::Managers => 0,
            Self::Pages => 1,
            Self::Aggregation => 2,
            Self::Nothing => 3,
        }
    }

    /// The strategy of this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Managers, Self::Pages, Self::Aggregation, Self::Nothing]
            .into_iter()
            .find(|s| s.number() == number)
    }
}

/// How the space of a file is managed. The default is not stated in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSpaceOptions {
    /// Who finds room for what is added later.
    pub strategy: SpaceStrategy,
    /// Is free space remembered when the file is closed? A new file has none to remember.
    pub persist: bool,
    /// Bytes of the smallest free piece that is remembered.
    pub threshold: u64,
    /// Bytes of a page: 512 to 1 GiB.
    pub page_size: u64,
}

impl Default for FileSpaceOptions {
    fn default() -> Self {
        Self { strategy: SpaceStrategy::Managers, persist: false, threshold: 1, page_size: 4096 }
    }
}

impl FileSpaceOptions {
    /// In pages of this many bytes.
    pub fn paged(page_size: u64) -> Self {
        Self { strategy: SpaceStrategy::Pages, page_size, ..Self::default() }
    }

    pub(crate) fn is_stated(&self) -> bool {
        *self != Self::default()
    }

    /// Bytes of a page, where the file has pages.
    pub(crate) fn page(&self) -> Option<u64> {
        (self.strategy == SpaceStrategy::Pages).then_some(self.page_size)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !(512..=1 << 30).contains(&self.page_size) {
            return Err(Error::invalid(format!(
                "pages of {} bytes; 512 to 1 GiB are possible",
                self.page_size
            )));
        }
        let managed = matches!(self.strategy, SpaceStrategy::Managers | SpaceStrategy::Pages);
        if self.persist && !managed {
            return Err(Error::invalid("only free-space managers and pages can remember free space"));
        }
        Ok(())
    }
}

/// A kind of header message that objects can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedKind {
    /// Dataspaces.
    Dataspace,
    /// Datatypes.
    Datatype,
    /// Fill values.
    FillValue,
    /// Filter pipelines.
    Filters,
    /// Attributes.
    Attribute,
}

impl SharedKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Dataspace, Self::Datatype, Self::FillValue, Self::Filters, Self::Attribute];

    /// The type of the messages.
    pub(crate) fn message(self) -> u16 {
        match self {
            Self::Dataspace => kind::DATASPACE,
            Self::Datatype => kind::DATATYPE,
            Self::FillValue => kind::FILL,
            Self::Filters => kind::FILTERS,
            Self::Attribute => kind::ATTRIBUTE,
        }
    }
}

/// An index of shared messages: equal messages of these kinds are stored once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedIndexOptions {
    /// The kinds.
    pub kinds: Vec<SharedKind>,
    /// Bytes of the smallest message that is shared.
    pub min_size: u32,
}

/// Most indexes of shared messages.
const MOST_INDEXES: usize = 8;

/// Checks that the indexes can stand in one file.
pub(crate) fn check_shared(indexes: &[SharedIndexOptions]) -> Result<()> {
    if indexes.len() > MOST_INDEXES {
        return Err(Error::invalid(format!(
            "{} indexes of shared messages; {MOST_INDEXES} are possible",
            indexes.len()
        )));
    }
    let mut seen = Vec::new();
    for kind in indexes.iter().flat_map(|i| &i.kinds) {
        if seen.contains(kind) {
            return Err(Error::invalid(format!("{kind:?} messages are to be shared twice")));
        }
        seen.push(*kind);
    }
    match indexes.iter().any(|i| i.kinds.is_empty()) {
        true => Err(Error::invalid("an index of shared messages without a kind of messages")),
        false => Ok(()),
    }
}
