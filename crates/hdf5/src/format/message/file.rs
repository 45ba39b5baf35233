//! The messages of the superblock extension: B-tree K values (IV.A.2.t), driver info (IV.A.2.u), file space info
//! (IV.A.2.x) and metadata cache image; and the small messages of any object: comment, times, reference count.

use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Ranks of the version 1 B-trees of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BtreeK {
    /// Half the most children of a chunk B-tree node.
    pub chunk_internal: u16,
    /// Half the most children of a group B-tree node.
    pub group_internal: u16,
    /// Half the most symbols of a group leaf.
    pub group_leaf: u16,
}

impl BtreeK {
    /// Parses the message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "B-tree K values message");
        if r.u8()? != 0 {
            return Err(r.corrupt("version is not known"));
        }
        Ok(Self { chunk_internal: r.u16()?, group_internal: r.u16()?, group_leaf: r.u16()? })
    }
}

/// Which file driver wrote the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverInfo {
    /// Eight characters that identify the driver.
    pub name: [u8; 8],
    /// What the driver stored.
    pub data: Vec<u8>,
}

impl DriverInfo {
    /// Parses the message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "driver info message");
        if r.u8()? != 0 {
            return Err(r.corrupt("version is not known"));
        }
        let name = r.array()?;
        let len = usize::from(r.u16()?);
        if len == 0 {
            return Err(r.corrupt("no driver information"));
        }
        Ok(Self { name, data: r.bytes(len)?.to_vec() })
    }

    /// Parses the driver information block of superblock versions 0 and 1 (specification II.B).
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse_block(bytes: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "driver information block");
        if r.u8()? != 0 {
            return Err(r.corrupt("version is not known"));
        }
        r.skip(3)?;
        let len = usize::try_from(r.u32()?).unwrap_or(usize::MAX);
        let name = r.array()?;
        Ok(Self { name, data: r.bytes(len)?.to_vec() })
    }
}

/// How the file's space is managed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpaceInfo {
    /// Version, 0 (before 1.10.1) or 1.
    pub version: u8,
    /// Strategy number: 0 free space managers with paging off, 1 paging, 2 aggregation, 3 none (version 1).
    pub strategy: u8,
    /// Is free space kept when the file is closed?
    pub persist: bool,
    /// Smallest section that is tracked.
    pub threshold: u64,
    /// Page size in bytes (version 1).
    pub page_size: u64,
    /// End of file before the free space managers were written (version 1).
    pub end_before_managers: Option<u64>,
    /// Addresses of the free space managers that exist.
    pub managers: Vec<Address>,
}

impl FileSpaceInfo {
    /// Parses the message, versions 0 and 1.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "file space info message");
        let version = r.u8()?;
        match version {
            0 => Self::parse_v0(&mut r, sizes),
            1 => Self::parse_v1(&mut r, sizes),
            v => Err(r.corrupt(format_args!("version {v} is not known"))),
        }
    }

    fn parse_v0(r: &mut FieldReader<'_>, sizes: Sizes) -> Result<Self> {
        let strategy = r.u8()?;
        let threshold = sizes.length(r)?;
        if !(1..=4).contains(&strategy) {
            return Err(r.corrupt(format_args!("strategy {strategy} is not known")));
        }
        let persist = strategy == 1;
        let mut managers = Vec::new();
        if persist {
            for _ in 1..7 {
                managers.extend(sizes.address(r)?);
            }
        }
        Ok(Self {
            version: 0,
            strategy,
            persist,
            threshold,
            page_size: 4096,
            end_before_managers: None,
            managers,
        })
    }

    fn parse_v1(r: &mut FieldReader<'_>, sizes: Sizes) -> Result<Self> {
        let strategy = r.u8()?;
        if strategy > 3 {
            return Err(r.corrupt(format_args!("strategy {strategy} is not known")));
        }
        let persist = r.u8()? != 0;
        let threshold = sizes.length(r)?;
        let page_size = sizes.length(r)?;
        if !(512..=1 << 30).contains(&page_size) {
            return Err(r.corrupt(format_args!("page size {page_size} is impossible")));
        }
        r.skip(2)?;
        let end_before_managers = sizes.address(r)?.map(|a| a.0);
        let mut managers = Vec::new();
        if persist {
            for _ in 1..13 {
                managers.extend(sizes.address(r)?);
            }
        }
        Ok(Self { version: 1, strategy, persist, threshold, page_size, end_before_managers, managers })
    }
}

/// Where the metadata cache image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheImageMessage {
    /// Its address; `None` when there is none.
    pub address: Option<Address>,
    /// Its length in bytes.
    pub size: u64,
}

impl CacheImageMessage {
    /// Parses the message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "cache image message");
        if r.u8()? != 0 {
            return Err(r.corrupt("version is not known"));
        }
        let address = sizes.address(&mut r)?;
        let size = sizes.length(&mut r)?;
        if address.is_some_and(|a| a.0.checked_add(size).is_none()) {
            return Err(r.corrupt("address plus size overflows"));
        }
        Ok(Self { address, size })
    }
}

/// Seconds since 1970 of a modification time message.
///
/// # Errors
/// `Corrupt` when the version is not known.
pub fn modification_time(body: &[u8], at: u64) -> Result<u32> {
    let mut r = FieldReader::new(body, at, "modification time message");
    if r.u8()? != 1 {
        return Err(r.corrupt("version is not known"));
    }
    r.skip(3)?;
    r.u32()
}

/// Seconds since 1970 of an old modification time message: 14 digits of year, month, day, hour, minute, second (UTC).
///
/// # Errors
/// `Corrupt` when it holds no digits, or no date.
pub fn modification_time_old(body: &[u8], at: u64) -> Result<i64> {
    let mut r = FieldReader::new(body, at, "old modification time message");
    let digits = r.bytes(14)?;
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        digits.get(range)?.iter().try_fold(0_i64, |n, b| {
            b.is_ascii_digit().then(|| n.saturating_mul(10).saturating_add(i64::from(b.wrapping_sub(b'0'))))
        })
    };
    let fields = [0..4, 4..6, 6..8, 8..10, 10..12, 12..14].map(number);
    let [Some(y), Some(mo), Some(d), Some(h), Some(mi), Some(s)] = fields else {
        return Err(r.corrupt("badly formatted"));
    };
    if !(1..=12).contains(&mo) || !(1..=31).contains(&d) || h > 23 || mi > 59 || s > 60 {
        return Err(r.corrupt("no date"));
    }
    Ok(days_from_civil(y, mo, d)
        .saturating_mul(86400)
        .saturating_add(h.saturating_mul(3600).saturating_add(mi.saturating_mul(60)).saturating_add(s)))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; all arguments are in range, so nothing overflows.
#[expect(clippy::arithmetic_side_effects, reason = "year below 10000, month and day checked")]
fn days_from_civil(y: i64, m: i64, d: i64) -> i64 {
    let y = if m <= 2 { y - 1 } else { y };
    let era = y.div_euclid(400);
    let year_of_era = y - era * 400;
    let day_of_year = (153 * (if m > 2 { m - 3 } else { m + 9 }) + 2) / 5 + d - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The text of a comment message, raw bytes.
///
/// # Errors
/// `Corrupt` when it does not end.
pub fn comment(body: &[u8], at: u64) -> Result<&[u8]> {
    let end = body
        .iter()
        .position(|b| *b == 0)
        .ok_or_else(|| FieldReader::new(body, at, "comment message").corrupt("no end"))?;
    Ok(body.get(..end).unwrap_or(body))
}

/// Number of hard links of a reference count message.
///
/// # Errors
/// `Corrupt` when the version is not known.
pub fn reference_count(body: &[u8], at: u64) -> Result<u32> {
    let mut r = FieldReader::new(body, at, "reference count message");
    if r.u8()? != 0 {
        return Err(r.corrupt("version is not known"));
    }
    r.u32()
}

/// Address and length of a continuation message.
///
/// # Errors
/// `Corrupt` when there is no address, or no length.
pub fn continuation(body: &[u8], at: u64, sizes: Sizes) -> Result<(Address, u64)> {
    let mut r = FieldReader::new(body, at, "continuation message");
    let address = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("no address"))?;
    let len = sizes.length(&mut r)?;
    if len == 0 {
        return Err(r.corrupt("a chunk of 0 bytes"));
    }
    Ok((address, len))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a panic fails the test")]
mod tests {
    use super::*;

    #[test]
    fn old_modification_times_are_seconds_since_1970() {
        // Expected values: `date -u -d … +%s`.
        for (text, seconds) in [
            ("19700101000000", 0),
            ("20001121190222", 974_833_342),
            ("20000229235959", 951_868_799),
            ("19991231000000", 946_598_400),
        ] {
            assert_eq!(modification_time_old(text.as_bytes(), 0).unwrap(), seconds, "{text}");
        }
        for text in ["2000112119022", "20001321190222", "2000112119022x", "20001100190222"] {
            assert!(modification_time_old(text.as_bytes(), 0).is_err(), "{text}");
        }
    }

    #[test]
    fn impossible_file_messages_are_corrupt() {
        assert!(continuation(&[0; 16], 0, Sizes::EIGHT).is_err());
        assert!(comment(b"no end", 0).is_err());
        assert!(reference_count(&[1, 0, 0, 0, 0], 0).is_err());
        let mut image = vec![0];
        image.extend((u64::MAX - 9).to_le_bytes());
        image.extend(10_u64.to_le_bytes());
        assert!(CacheImageMessage::parse(&image, 0, Sizes::EIGHT).is_err());
        let mut space = vec![1, 1, 0];
        space.extend(1_u64.to_le_bytes());
        space.extend(511_u64.to_le_bytes());
        space.extend([0; 10]);
        assert!(FileSpaceInfo::parse(&space, 0, Sizes::EIGHT).is_err());
    }
}
