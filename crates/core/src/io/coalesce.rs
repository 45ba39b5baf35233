//! Fetching near ranges together: step 5 of a read, between the plan and the decoding.
//!
//! [`coalesce`] decides (a value that tests can compare), [`read_coalesced`] acts.

use super::source::ByteSource;
use crate::error::{Error, Result};
use std::ops::Range;

/// When two ranges are fetched as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalesce {
    /// Most bytes between two ranges, fetched and thrown away.
    pub max_gap: u64,
    /// Most bytes of a fetch that holds more than one range. A longer range is fetched alone.
    pub max_size: u64,
}

impl Default for Coalesce {
    /// Gaps to 8 KiB and fetches to 4 MiB: what a local disk likes.
    fn default() -> Self {
        Self { max_gap: 8 << 10, max_size: 4 << 20 }
    }
}

/// One read that serves some of the wanted ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Bytes to read.
    pub range: Range<u64>,
    /// The wanted ranges inside, by their position in the list, in the order of their offsets.
    pub wanted: Vec<usize>,
}

/// Merges wanted ranges (offset and length, in any order, overlapping or not) into fetches in file order.
///
/// Every wanted range lies inside exactly one fetch; empty ones are in none.
///
/// ```
/// use tensilo_core::io::{Coalesce, coalesce};
/// let rule = Coalesce { max_gap: 10, max_size: 1000 };
/// let fetches = coalesce(&[(500, 50), (0, 100), (105, 20)], rule)?;
/// assert_eq!((fetches[0].range.clone(), &fetches[0].wanted[..]), (0..125, &[1, 2][..]));
/// assert_eq!((fetches[1].range.clone(), &fetches[1].wanted[..]), (500..550, &[0][..]));
/// # Ok::<(), tensilo_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` when a range ends past 2^64.
pub fn coalesce(wanted: &[(u64, u64)], rule: Coalesce) -> Result<Vec<Fetch>> {
    let mut order: Vec<usize> = (0..wanted.len()).filter(|i| wanted[*i].1 > 0).collect();
    order.sort_by_key(|i| wanted[*i]);
    let mut fetches: Vec<Fetch> = Vec::new();
    for i in order {
        let (start, len) = wanted[i];
        let end = start
            .checked_add(len)
            .ok_or_else(|| Error::corrupt(format!("{len} bytes reach past any file's end")).at(start))?;
        if let Some(last) = fetches.last_mut() {
            let joined = last.range.start..last.range.end.max(end);
            let near = start.saturating_sub(last.range.end) <= rule.max_gap;
            if end <= last.range.end || (near && joined.end - joined.start <= rule.max_size) {
                last.range = joined;
                last.wanted.push(i);
                continue;
            }
        }
        fetches.push(Fetch { range: start..end, wanted: vec![i] });
    }
    Ok(fetches)
}

/// Fills several buffers with few reads; takes scratch memory of at most `rule.max_size`, or of the longest buffer.
///
/// # Errors
/// As [`ByteSource::read_ranges`]; `Missing` names the missing ranges of all fetches.
pub fn read_coalesced(
    source: &dyn ByteSource,
    ranges: &mut [(u64, &mut [u8])],
    rule: Coalesce,
) -> Result<()> {
    let wanted: Vec<_> = ranges.iter().map(|(offset, buf)| (*offset, buf.len() as u64)).collect();
    let mut missing = Vec::new();
    let mut scratch = Vec::new();
    let mut note = |result: Result<()>| match result {
        Err(e) if e.kind() == crate::ErrorKind::Missing => {
            missing.extend_from_slice(e.missing_ranges());
            Ok(false)
        }
        other => other.map(|()| true),
    };
    for fetch in coalesce(&wanted, rule)? {
        let start = fetch.range.start;
        if let [only] = fetch.wanted[..] {
            note(source.read_at(start, ranges[only].1))?;
            continue;
        }
        // The range holds the caller's buffers and gaps of bounded size: what it allocates the caller has.
        scratch.clear();
        scratch.resize((fetch.range.end - start) as usize, 0);
        if note(source.read_at(start, &mut scratch))? {
            for i in fetch.wanted {
                let from = (wanted[i].0 - start) as usize;
                let buf = &mut *ranges[i].1;
                buf.copy_from_slice(&scratch[from..from + buf.len()]);
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::missing(missing)) }
}
