//! The types of object header messages (specification IV.A.2).

use std::fmt;

/// What an object header message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// Nothing; space to be used again (0).
    Nil,
    /// Rank and extents (1).
    Dataspace,
    /// Where a group's links are (2).
    LinkInfo,
    /// Type of an element (3).
    Datatype,
    /// Fill value, old form (4).
    FillValueOld,
    /// Fill value (5).
    FillValue,
    /// One link (6).
    Link,
    /// External raw data files (7).
    ExternalFiles,
    /// Where raw data is (8).
    DataLayout,
    /// Group constants (10).
    GroupInfo,
    /// Filters (11).
    FilterPipeline,
    /// One attribute (12).
    Attribute,
    /// A comment (13).
    Comment,
    /// Modification time, old form (14).
    ModificationTimeOld,
    /// Where shared messages are (15).
    SharedMessageTable,
    /// Where more messages are (16).
    Continuation,
    /// An old-style group's B-tree and heap (17).
    SymbolTable,
    /// Modification time (18).
    ModificationTime,
    /// B-tree ranks (19).
    BtreeK,
    /// Driver information (20).
    DriverInfo,
    /// Where dense attributes are (21).
    AttributeInfo,
    /// Number of hard links (22).
    ReferenceCount,
    /// File space management (23).
    FileSpaceInfo,
    /// Metadata cache image (24).
    CacheImage,
    /// Any other.
    Unknown(u16),
}

const KNOWN: [(u16, MessageKind, &str); 24] = [
    (0, MessageKind::Nil, "nil"),
    (1, MessageKind::Dataspace, "dataspace"),
    (2, MessageKind::LinkInfo, "link info"),
    (3, MessageKind::Datatype, "datatype"),
    (4, MessageKind::FillValueOld, "old fill value"),
    (5, MessageKind::FillValue, "fill value"),
    (6, MessageKind::Link, "link"),
    (7, MessageKind::ExternalFiles, "external files"),
    (8, MessageKind::DataLayout, "data layout"),
    (10, MessageKind::GroupInfo, "group info"),
    (11, MessageKind::FilterPipeline, "filter pipeline"),
    (12, MessageKind::Attribute, "attribute"),
    (13, MessageKind::Comment, "comment"),
    (14, MessageKind::ModificationTimeOld, "old modification time"),
    (15, MessageKind::SharedMessageTable, "shared message table"),
    (16, MessageKind::Continuation, "continuation"),
    (17, MessageKind::SymbolTable, "symbol table"),
    (18, MessageKind::ModificationTime, "modification time"),
    (19, MessageKind::BtreeK, "B-tree K values"),
    (20, MessageKind::DriverInfo, "driver info"),
    (21, MessageKind::AttributeInfo, "attribute info"),
    (22, MessageKind::ReferenceCount, "reference count"),
    (23, MessageKind::FileSpaceInfo, "file space info"),
    (24, MessageKind::CacheImage, "cache image"),
];

impl MessageKind {
    /// The kind with this number; type 9 ("bogus") is for tests of unknown messages and is unknown.
    pub fn from_id(id: u16) -> Self {
        KNOWN.iter().find(|k| k.0 == id).map_or(Self::Unknown(id), |k| k.1)
    }

    /// The number of this kind.
    pub fn id(self) -> u16 {
        match self {
            Self::Unknown(id) => id,
            kind => KNOWN.iter().find(|k| k.1 == kind).map_or(u16::MAX, |k| k.0),
        }
    }

    /// Can messages of this kind be shared between objects?
    pub fn shareable(self) -> bool {
        matches!(
            self,
            Self::Dataspace
                | Self::Datatype
                | Self::FillValueOld
                | Self::FillValue
                | Self::FilterPipeline
                | Self::Attribute
        )
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "unknown (type {id})"),
            kind => f.write_str(KNOWN.iter().find(|k| k.1 == *kind).map_or("unknown", |k| k.2)),
        }
    }
}
