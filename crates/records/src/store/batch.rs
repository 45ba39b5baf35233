//! A batch with as many threads as pay: one, the one that stands by for small batches, or several for large ones.

use super::entry::Stored;
use super::gather::held;
use super::reading::Lent;
use super::snapshot::Snapshot;
use std::sync::{Mutex, PoisonError};
use tensilo_core::gather::{FieldBuffer, Places};
use tensilo_core::threads::{Beside, Threads};
use tensilo_core::{Error, Monitor, Progress, Quiet, Result};

/// Work, in bytes that are copied, from which on further threads are worth their start.
const WORTH_THREADS: u64 = 2 << 20;
/// The most and the least of a thread's share.
const SHARE: u64 = 1 << 20;
const LEAST_SHARE: u64 = 16 << 10;
/// Work from which on a thread that stands by is worth its share, and up to which two threads are enough.
const WORTH_SHARING: u64 = 48 << 10;
const LONG: u64 = 8 << 20;
/// Shares of such a batch: a large one at either end, which each thread begins with, and small ones between them for
/// who is done first. Taking one costs a few hundred nanoseconds, as the processors must agree.
const SHARES: usize = 4;
/// Of so many parts of the records each of the large ones has 7.
const PARTS: usize = 16;

/// Work of a decoded byte, in bytes that are copied.
fn work(codec: Stored) -> u64 {
    match codec {
        Stored::Raw | Stored::Inline => 1,
        Stored::Lz4 => 4,
        Stored::Zstd | Stored::Deflate => 16,
    }
}

/// Records of one field for one thread: position in the list, and where it goes.
struct Share<'a> {
    field: usize,
    cells: Vec<(usize, &'a mut [u8])>,
}

/// A part of a list and the places of its records.
type Part<'a> = (&'a [u64], &'a mut [u8]);

/// What one thread uses while the other uses its neighbour: on lines of its own, for which they need not contend.
#[repr(align(128))]
struct Own<T>(Mutex<T>);

/// Cuts a list and its places, one every `stride` bytes, into shares; how many there are.
fn cut<'a>(ids: &'a [u64], bytes: &'a mut [u8], stride: usize) -> (usize, [Own<Option<Part<'a>>>; SHARES]) {
    let large = (7 * ids.len() / PARTS).max(1);
    let small = ids.len().saturating_sub(2 * large).div_ceil(SHARES - 2).max(1);
    let mut shares = [const { Own(Mutex::new(None)) }; SHARES];
    let (mut ids, mut bytes, mut count) = (ids, bytes, 0);
    while !ids.is_empty() && count < SHARES {
        let n = match count {
            0 => large,
            _ if count == SHARES - 1 || ids.len() <= large => ids.len(),
            _ => small.min(ids.len() - large),
        };
        let (now, later) = ids.split_at(n.min(ids.len()));
        let (place, behind) = bytes.split_at_mut(now.len().saturating_mul(stride).min(bytes.len()));
        shares[count] = Own(Mutex::new(Some((now, place))));
        (ids, bytes, count) = (later, behind, count + 1);
    }
    (count, shares)
}

impl Snapshot {
    /// Reads a batch with as many threads as pay.
    pub(super) fn batch(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let work = if threads.get() > 1 { self.work(ids, into)? } else { 0 };
        // Two threads that are there are as fast as more that must be started.
        let short = if threads.get() > 2 { WORTH_THREADS } else { LONG };
        let beside = if (WORTH_SHARING..short).contains(&work) { threads.beside() } else { Beside::ALONE };
        match into {
            [buffer] if beside.stands_by() && !self.forms[buffer.field].ragged => match buffer.places {
                Places::Stride(stride) => self.shared(ids, buffer, stride, beside, monitor),
                Places::Starts(_) => self.serial(ids, into, monitor),
            },
            _ if work >= WORTH_THREADS => self.parallel(ids, into, threads, monitor),
            _ => self.serial(ids, into, monitor),
        }
    }

    /// What reading a batch takes, in bytes that are copied. The first record stands for all.
    fn work(&self, ids: &[u64], into: &[FieldBuffer<'_>]) -> Result<u64> {
        let Some(id) = ids.first().filter(|_| ids.len() > 1) else { return Ok(0) };
        let mut all = 0;
        for buffer in into {
            let form = self.forms[buffer.field];
            if form.ragged {
                let codec = self.cell(&self.bytes(), *id, buffer.field)?.entry.codec;
                all += buffer.bytes.len() as u64 * work(codec);
            } else {
                let raw = self.runs.find(*id, buffer.field, form.step).is_some();
                let codec = match raw {
                    true => Stored::Raw,
                    false => self.cell(&self.bytes(), *id, buffer.field)?.entry.codec,
                };
                all += form.step * ids.len() as u64 * work(codec);
            }
        }
        Ok(all)
    }

    /// Reads one field of a batch, all of one length, together with the thread that stands by.
    fn shared(
        &self,
        ids: &[u64],
        buffer: &mut FieldBuffer<'_>,
        stride: u64,
        beside: Beside,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        monitor.poll(&Progress { stage: "gathering", done: 0, total: ids.len() as u64 })?;
        let field = buffer.field;
        let (count, shares) = cut(ids, buffer.bytes, stride as usize);
        // Of either thread its own; the owner's goes back last, and is the next one's again.
        let lent = [Lent::new(self), Lent::new(self)].map(|lent| Own(Mutex::new(lent)));
        // The first in the list, whoever came first.
        let failed: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        beside.run(count, &|thread, k| {
            let share = shares.get(k).and_then(|s| held(&s.0).take());
            let (Some((ids, bytes)), Some(lent)) = (share, lent.get(1 - thread.min(1))) else { return };
            let mut into = [FieldBuffer { field, bytes, places: Places::Stride(stride) }];
            if let Err(e) = self.serial_with(&mut held(&lent.0), ids, &mut into, &Quiet) {
                let mut failed = held(&failed);
                if failed.as_ref().is_none_or(|(at, _)| k < *at) {
                    *failed = Some((k, e));
                }
            }
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), |(_, e)| Err(e))
    }

    fn parallel(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut shares = Vec::new();
        let bytes: u64 = into.iter().map(|buffer| buffer.bytes.len() as u64).sum();
        let size = (bytes / (4 * threads.get() as u64)).clamp(LEAST_SHARE, SHARE);
        for buffer in into {
            self.share_out(ids, buffer, size, &mut shares)?;
        }
        let shares: Vec<_> = shares.into_iter().map(Mutex::new).collect();
        let (known, total) = (self.bytes(), ids.len() as u64);
        let take = || Lent::new(self);
        threads.for_each(shares.len(), monitor, "gathering", total, take, |lent, k, done| {
            let Some(share) = shares.get(k) else { return Ok(()) };
            let mut share = held(share);
            let Share { field, cells } = &mut *share;
            for two in cells.chunks_mut(2) {
                if let [(i, a), (j, b)] = two
                    && self.read_two(&known, lent, [ids[*i], ids[*j]], *field, [a, b])?
                {
                    continue;
                }
                for (i, out) in two {
                    self.read_cell_of(&known, lent, ids[*i], *field, out, bytes as usize)?;
                }
            }
            done.add(cells.len() as u64);
            Ok(())
        })
    }

    /// Cuts a buffer, whose places are known not to overlap, into the places of its records, in shares.
    fn share_out<'a>(
        &self,
        ids: &[u64],
        buffer: &'a mut FieldBuffer<'_>,
        size: u64,
        shares: &mut Vec<Share<'a>>,
    ) -> Result<()> {
        let form = self.forms[buffer.field];
        let known = self.bytes();
        let mut places = Vec::with_capacity(ids.len());
        for (i, id) in ids.iter().enumerate() {
            let bytes = if form.ragged { self.cell(&known, *id, buffer.field)?.entry.raw } else { form.step };
            places.push((buffer.range(i, bytes)?, i));
        }
        if matches!(buffer.places, Places::Starts(_)) {
            places.sort_unstable_by_key(|(range, i)| (range.start, range.end, *i));
        }
        let (mut rest, mut at) = (&mut *buffer.bytes, 0);
        let mut share = Share { field: buffer.field, cells: Vec::new() };
        let mut bytes = 0;
        for (range, i) in places {
            let overlap = || Error::invalid(format!("record {i} of the list overlaps another"));
            // An empty record may stand inside another's place, and needs none.
            let cell = if range.is_empty() {
                &mut []
            } else {
                let skip = range.start.checked_sub(at).ok_or_else(overlap)?;
                let (_, behind) = rest.split_at_mut_checked(skip).ok_or_else(overlap)?;
                let (cell, behind) = behind.split_at_mut_checked(range.len()).ok_or_else(overlap)?;
                rest = behind;
                at = range.end;
                cell
            };
            bytes += cell.len() as u64 + 64;
            share.cells.push((i, cell));
            // Two are read at a time; large ones not at any price.
            if bytes >= size && (share.cells.len().is_multiple_of(2) || bytes >= 2 * size) {
                bytes = 0;
                let full = std::mem::replace(&mut share, Share { field: buffer.field, cells: Vec::new() });
                shares.push(full);
            }
        }
        shares.push(share);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_into_parts_that_join_to_it_with_their_places() {
        for n in (0_usize..70).chain([255, 256, 1000]) {
            for (stride, last) in [(3, 3), (3, 1), (1, 1)] {
                let ids: Vec<u64> = (0..n as u64).collect();
                let len = (n * stride).saturating_sub(stride - last);
                let mut bytes: Vec<u8> = (0..len).map(|i| (i / stride) as u8).collect();
                let (count, shares) = cut(&ids, &mut bytes, stride);
                let mut joined = Vec::new();
                for (k, share) in shares.iter().enumerate() {
                    let Some((ids, bytes)) = held(&share.0).take() else {
                        assert!(k >= count, "{n}: share {k} of {count} is missing");
                        continue;
                    };
                    assert!(k < count && !ids.is_empty());
                    assert_eq!(bytes.len().div_ceil(stride), ids.len(), "{n}");
                    assert!(bytes.chunks(stride).zip(ids).all(|(b, id)| b[0] == *id as u8), "{n}");
                    joined.extend_from_slice(ids);
                }
                assert_eq!(joined, ids);
            }
        }
    }
}
