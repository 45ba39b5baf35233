//! A small match finder for the formats that have no encoder of their own here: LZF and BloscLZ.

/// Takes what [`parse`] finds.
pub(crate) trait Sink {
    /// Bytes that stand for themselves; never empty.
    fn literals(&mut self, bytes: &[u8]);
    /// A copy of `length` bytes, at least 3, from `distance` bytes before, at least 1.
    fn copy(&mut self, distance: usize, length: usize);
}

const HASH_BITS: u32 = 14;

fn hash(src: &[u8], at: usize) -> usize {
    let word = u32::from_le_bytes([src[at], src[at + 1], src[at + 2], 0]);
    (word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// What a format allows.
pub(crate) struct Reach {
    pub(crate) distance: usize,
    pub(crate) length: usize,
    /// Bytes at the end that must be literals.
    pub(crate) tail: usize,
}

/// Cuts `src` into literals and copies; `positions` is scratch.
pub(crate) fn parse(positions: &mut Vec<u32>, src: &[u8], reach: &Reach, sink: &mut impl Sink) {
    positions.clear();
    positions.resize(1 << HASH_BITS, u32::MAX);
    let end = src.len().saturating_sub(reach.tail);
    let (mut at, mut literal_start) = (0, 0);
    while at + 3 <= end {
        let candidate = std::mem::replace(&mut positions[hash(src, at)], at as u32) as usize;
        let found = candidate < at
            && at - candidate <= reach.distance
            && src[candidate..candidate + 3] == src[at..at + 3];
        if !found {
            // The longer nothing is found, the larger the steps.
            at += 1 + (at - literal_start) / 64;
            continue;
        }
        let most = reach.length.min(end - at);
        let length = 3 + in_common(&src[candidate + 3..], &src[at + 3..at + most]);
        if at > literal_start {
            sink.literals(&src[literal_start..at]);
        }
        sink.copy(at - candidate, length);
        if let Some(last) = (at + length).checked_sub(2).filter(|l| l + 3 <= src.len()) {
            positions[hash(src, last)] = last as u32;
        }
        at += length;
        literal_start = at;
    }
    if literal_start < src.len() {
        sink.literals(&src[literal_start..]);
    }
}

/// How many bytes two slices have in common at their start.
#[inline(always)]
pub(crate) fn in_common(a: &[u8], b: &[u8]) -> usize {
    let equal = a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0).take_while(|(x, y)| x == y).count();
    32 * equal + in_common_soon(&a[32 * equal..], &b[32 * equal..])
}

/// The same where it is not much.
#[inline(always)]
fn in_common_soon(a: &[u8], b: &[u8]) -> usize {
    let (a8, b8) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    for (i, (x, y)) in a8.iter().zip(b8).enumerate() {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return 8 * i + differ.trailing_zeros() as usize / 8;
        }
    }
    let done = 8 * a8.len().min(b8.len());
    done + a[done..].iter().zip(&b[done..]).take_while(|(x, y)| x == y).count()
}

/// Copies `length` bytes to `at` from `distance` bytes before, repeating them when they overlap; `None` when
/// either side lies outside `dst`.
#[inline]
pub(crate) fn copy_back(dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
    let start = at.checked_sub(distance).filter(|_| distance > 0)?;
    if length > dst.len() - at {
        return None;
    }
    let mut done = 0;
    while done < length {
        let n = (distance + done).min(length - done);
        dst.copy_within(start..start + n, at + done);
        done += n;
    }
    Some(())
}

/// Moves `length` literals, at most 32, from the front of `src` to `at`; `None` when either side is too short.
/// Bytes behind them may be overwritten.
#[inline]
pub(crate) fn copy_literals(src: &mut &[u8], dst: &mut [u8], at: usize, length: usize) -> Option<()> {
    if let (Some(from), Some(to)) =
        (src.first_chunk::<32>(), dst.get_mut(at..).and_then(|d| d.first_chunk_mut::<32>()))
    {
        *to = *from;
        *src = &src[length..];
        return Some(());
    }
    let (literals, rest) = src.split_at_checked(length)?;
    dst.get_mut(at..at + length)?.copy_from_slice(literals);
    *src = rest;
    Some(())
}
