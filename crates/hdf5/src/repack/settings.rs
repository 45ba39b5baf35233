//! What a whole file says of itself, kept in the copy: user block, management of its space, shared messages.

use crate::format::message::MessageKind;
use crate::read::File;
use crate::write::{FileSpaceOptions, SharedIndexOptions, SharedKind, SpaceStrategy, WriteOptions};
use tensilo_core::Result;

impl SharedKind {
    fn kind(self) -> MessageKind {
        match self {
            Self::Dataspace => MessageKind::Dataspace,
            Self::Datatype => MessageKind::Datatype,
            Self::FillValue => MessageKind::FillValue,
            Self::Filters => MessageKind::FilterPipeline,
            Self::Attribute => MessageKind::Attribute,
        }
    }
}

/// The options with the user block, the management of space and the shared messages of `source`.
///
/// The bytes of the user block are not copied by [`repack`](super::repack).
///
/// # Errors
/// `Corrupt` when the source's tables of shared messages are damaged.
pub fn like(source: &File, mut options: WriteOptions) -> Result<WriteOptions> {
    let space = source.space();
    options.user_block = space.user_block();
    if let Some(info) = &space.extension().file_space {
        // Numbers of version 0 mean other things; libhdf5 takes such files for unmanaged ones, too.
        let strategy = SpaceStrategy::from_number(info.strategy).filter(|_| info.version == 1);
        if let Some(strategy) = strategy {
            let (persist, threshold, page_size) = (info.persist, info.threshold, info.page_size);
            options.file_space = FileSpaceOptions { strategy, persist, threshold, page_size };
        }
    }
    for index in space.shared_indexes()? {
        let kinds: Vec<SharedKind> = SharedKind::ALL.into_iter().filter(|k| index.holds(k.kind())).collect();
        if !kinds.is_empty() {
            options.shared.push(SharedIndexOptions { kinds, min_size: index.min_size });
        }
    }
    Ok(options)
}
