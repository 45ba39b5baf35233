//! What a file says of itself before any lane is read: its format, its lanes and where they lie.

use crate::place::Placement;
use crate::schema::FormatVersion;
use crate::v1;
use crate::v2::commit_record::{self, CommitRecord, State};
use crate::v2::header;
use tensilo_core::io::ByteSource;
use tensilo_core::{Error, Result};

/// What is known of a store; for format 2 also its commit record and the slot that holds it.
pub(crate) type Examined = (Placement, FormatVersion, Option<(CommitRecord, usize)>);

/// Bytes read in one go at the front and at the end: the fixed parts and most headers.
const AHEAD: u64 = 4096;

/// Reads and checks everything but the lanes.
pub(crate) fn examine(source: &dyn ByteSource, lenient: bool) -> Result<Examined> {
    let mut front = vec![0; source.len().min(AHEAD) as usize];
    source.read_at(0, &mut front)?;
    if front.starts_with(&commit_record::MAGIC)
        // A torn commit record may have lost its magic; the other one still says what this is.
        || (!front.starts_with(&v1::header::MAGIC) && slot(&front, 1).starts_with(&commit_record::MAGIC))
    {
        let (placement, record, slot) = examine_v2(source, &front)?;
        return Ok((placement, FormatVersion::V2, Some((record, slot))));
    }
    Ok((examine_v1(source, &front, lenient)?, FormatVersion::V1, None))
}

fn examine_v1(source: &dyn ByteSource, front: &[u8], lenient: bool) -> Result<Placement> {
    let len = v1::header::fixed(&front[..front.len().min(8)], lenient)?;
    if len > v1::header::HEADER_MAX || len > source.len() - v1::header::FIXED {
        return Err(
            Error::corrupt(format!("header length {len} passes the file of {} bytes", source.len())).at(4)
        );
    }
    let mut longer = Vec::new();
    let json = match front.get(8..8 + len as usize) {
        Some(json) => json,
        None => {
            longer.resize(len as usize, 0);
            source.read_at(v1::header::FIXED, &mut longer)?;
            &longer
        }
    };
    let placement = v1::header::parse(json, lenient)?;
    let at = v1::seal::offset(placement.data_end)?;
    let end = at.checked_add(v1::seal::LEN);
    if end.is_none_or(|end| end > source.len()) {
        return Err(Error::corrupt(format!("seal: the file of {} bytes ends before it", source.len()))
            .at(at)
            .hint("the store was never finished, or it was cut"));
    }
    let mut seal = [0; v1::seal::LEN as usize];
    source.read_at(at, &mut seal)?;
    v1::seal::check(&seal, at, &placement)?;
    if end != Some(source.len()) && !lenient {
        return Err(Error::corrupt(format!(
            "seal: {} bytes stand behind it",
            source.len() - at - v1::seal::LEN
        ))
        .at(at + v1::seal::LEN)
        .hint("open it leniently if this file is trusted"));
    }
    Ok(placement)
}

/// The bytes of a commit record, or none where the file ends before it.
fn slot(front: &[u8], slot: usize) -> &[u8] {
    let at = commit_record::SLOTS[slot] as usize;
    front.get(at..at + commit_record::LEN).unwrap_or(&[])
}

fn examine_v2(source: &dyn ByteSource, front: &[u8]) -> Result<(Placement, CommitRecord, usize)> {
    let (record, slot) = CommitRecord::newest(slot(front, 0), slot(front, 1))?;
    if record.state == State::Rewriting {
        return Err(Error::corrupt("the store was being rewritten in place and was not finished")
            .at(commit_record::SLOTS[slot]));
    }
    let (placement, record) = load_v2(source, record)?;
    Ok((placement, record, slot))
}

/// Loads the header and table that a commit record names.
fn load_v2(source: &dyn ByteSource, record: CommitRecord) -> Result<(Placement, CommitRecord)> {
    let end = record.header_offset.checked_add(record.header_bytes);
    if end.is_none_or(|e| e > record.file_bytes)
        || record.file_bytes > source.len()
        || record.header_bytes > v1::header::HEADER_MAX
    {
        return Err(Error::corrupt(format!(
            "header of {} bytes does not lie inside the file of {} bytes",
            record.header_bytes,
            source.len()
        ))
        .at(record.header_offset));
    }
    // The slab table stands right before the header: a short one is read with it.
    let before = record.header_offset.min(AHEAD);
    let mut tail = vec![0; (before + record.header_bytes) as usize];
    source.read_at(record.header_offset - before, &mut tail)?;
    let (ahead, json) = tail.split_at(before as usize);
    if crc32c::crc32c(json) != record.header_crc {
        return Err(Error::corrupt("header: checksum does not match").at(record.header_offset));
    }
    let parsed = header::parse(json, record.header_offset, record.file_bytes)?;
    let placement = match before.checked_sub(parsed.table_bytes) {
        Some(at) => parsed.with_table(&ahead[at as usize..])?,
        None => {
            // Inside the file, so no number of the header makes this larger than what is there.
            let mut table = vec![0; parsed.table_bytes as usize];
            source.read_at(parsed.table_offset, &mut table)?;
            parsed.with_table(&table)?
        }
    };
    Ok((placement, record))
}
