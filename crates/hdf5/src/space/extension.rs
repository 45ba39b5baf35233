//! What the superblock extension adds: B-tree ranks, file space info, shared messages, driver, cache image.

use super::FileSpace;
use super::header::StoredHeader;
use crate::format::message::MessageKind;
use crate::format::message::file::{BtreeK, CacheImageMessage, DriverInfo, FileSpaceInfo};
use crate::format::message::shared::SharedTableMessage;
use crate::format::superblock::Superblock;
use tensilo_core::{Error, Result};

/// Facts about the whole file beyond the superblock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Ranks of version 1 B-trees.
    pub ranks: BtreeK,
    /// How file space is managed, if stated.
    pub file_space: Option<FileSpaceInfo>,
    /// Where shared messages are, if any are shared.
    pub shared_messages: Option<SharedTableMessage>,
    /// The driver that wrote the file, if stated.
    pub driver: Option<DriverInfo>,
    /// Where the metadata cache image is, if stated.
    pub cache_image: Option<CacheImageMessage>,
}

impl Extension {
    pub(super) fn of_superblock(s: &Superblock) -> Self {
        Self {
            ranks: BtreeK {
                chunk_internal: s.chunk_internal_k.unwrap_or(32),
                group_internal: s.group_internal_k.unwrap_or(16),
                group_leaf: s.group_leaf_k.unwrap_or(4),
            },
            file_space: None,
            shared_messages: None,
            driver: None,
            cache_image: None,
        }
    }

    /// Reads the extension's object header, where there is one.
    pub(super) fn load(space: &FileSpace) -> Result<Self> {
        let mut found = Self::of_superblock(space.superblock());
        if let Some(address) = space.superblock().driver_info {
            let head = space.read(address, 16, "driver information block")?;
            let len = head.get(4..8).map_or(0, |b| b.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)));
            let block = space.read(address, 16 + len, "driver information block")?;
            found.driver =
                Some(DriverInfo::parse_block(&block, block.offset()).map_err(|e| space.locate(e))?);
        }
        let Some(address) = space.superblock().extension else { return Ok(found) };
        let header = StoredHeader::load(space, address).map_err(|e| e.context("superblock extension"))?;
        let sizes = space.sizes();
        for m in &header.messages {
            let (body, at) = (header.body(m), m.offset);
            let done = match m.kind {
                MessageKind::BtreeK => BtreeK::parse(body, at).map(|v| found.ranks = v),
                MessageKind::FileSpaceInfo => {
                    FileSpaceInfo::parse(body, at, sizes).map(|v| found.file_space = Some(v))
                }
                MessageKind::SharedMessageTable => {
                    SharedTableMessage::parse(body, at, sizes).map(|v| found.shared_messages = Some(v))
                }
                MessageKind::DriverInfo => DriverInfo::parse(body, at).map(|v| found.driver = Some(v)),
                MessageKind::CacheImage => {
                    CacheImageMessage::parse(body, at, sizes).map(|v| found.cache_image = Some(v))
                }
                _ => Ok(()),
            };
            done.map_err(|e| space.locate(e))?;
        }
        Ok(found)
    }

    /// Refuses files of which this is only one member.
    pub(super) fn check_driver(&self) -> Result<()> {
        let Some(driver) = &self.driver else { return Ok(()) };
        let name = match &driver.name {
            b"NCSAfami" => "a member of a family of files",
            b"NCSAmult" => "a member of a split or multi file",
            _ => return Ok(()),
        };
        Err(Error::unsupported(format!("this is {name}; its members must be opened together")))
    }
}
