//! References in the canonical form: to objects, regions and attributes, in both stored encodings.
//!
//! Region references of HDF5 1.0 to 1.10 are a heap id whose object holds the address and a serialised
//! selection. References of 1.12 and later hold kind, flags and, for objects, a token; for regions and
//! attributes the rest is in a heap object: token, then the file's name if it is another file, then the region
//! (with its own size) or the attribute's name. These layouts were read off files that libhdf5 wrote.

use super::Trouble;
use super::element::{Referred, Sink, put_string};
use std::borrow::Cow;
use tensilo_core::Error;

/// How a referenced object is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// By the address of its header.
    Address,
    /// By its path.
    Path(Cow<'a, [u8]>),
}

/// The flag of a reference to an object of another file.
const EXTERNAL: u8 = 1;
/// Coordinates that stand for "unlimited".
const UNLIMITED: u64 = u64::MAX;

pub(super) fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(b.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A stored address of up to eight bytes; all bits set means none and reads as 0.
pub(super) fn address(b: &[u8], width: usize) -> u64 {
    let b = &b[..width.min(b.len())];
    b.iter().take(8).rev().fold(0, |n, c| n << 8 | u64::from(*c))
}

/// Appends what stands for the object at `address`.
pub(super) fn put_target(address: u64, from: &dyn Referred, out: &mut dyn Sink) {
    match from.path(address) {
        Target::Address => out.put(&address.to_le_bytes()),
        Target::Path(p) => put_string(&p, out),
    }
}

/// A region reference of HDF5 1.0 to 1.10: heap address, index.
pub(super) fn region(b: &[u8], from: &dyn Referred, out: &mut dyn Sink) -> Result<(), Trouble> {
    if b.iter().all(|c| *c == 0) {
        put_target(0, from, out);
        return Ok(());
    }
    let width = from.address_size();
    let index = u32_at(b, width).ok_or_else(|| Error::corrupt("a region reference is cut short"))?;
    from.heap_object(address(b, width), index, &mut |blob| {
        if blob.len() < width {
            return Err(Error::corrupt("a region reference's heap object is cut short").into());
        }
        let object = address(blob, width);
        let Some(extents) = from.extents(object) else {
            return Err(Trouble::Scope("region reference whose target cannot be opened".into()));
        };
        put_target(object, from, out);
        put_region(&Region::parse(&blob[width..], &extents)?, out);
        Ok(())
    })
}

/// A reference of HDF5 1.12 and later.
pub(super) fn standard(b: &[u8], from: &dyn Referred, out: &mut dyn Sink) -> Result<(), Trouble> {
    let (&[kind, flags], rest) = b.split_first_chunk::<2>().ok_or_else(cut)?;
    if !(2..=4).contains(&kind) {
        out.put(&[0]);
        return Ok(());
    }
    if kind == 2 && flags & EXTERNAL == 0 {
        let object = token(rest)?.0;
        out.put(&[kind]);
        put_target(object, from, out);
        return Ok(());
    }
    let width = from.address_size();
    let heap = rest.get(4..4 + width).map(|a| address(a, width)).ok_or_else(cut)?;
    let index = u32_at(rest, 4 + width).ok_or_else(cut)?;
    if heap == 0 {
        out.put(&[0]);
        return Ok(());
    }
    from.heap_object(heap, index, &mut |blob| {
        let (object, mut rest) = token(blob)?;
        if flags & EXTERNAL != 0 {
            rest = name(rest)?.1;
        }
        let elsewhere = flags & EXTERNAL != 0;
        let put = |out: &mut dyn Sink| {
            out.put(&[kind]);
            match from.path(object) {
                Target::Path(_) if elsewhere => put_string(b"?", out),
                _ => put_target(object, from, out),
            }
        };
        match kind {
            3 => {
                let extents = (!elsewhere).then(|| from.extents(object)).flatten();
                let Some(extents) = extents else {
                    return Err(Trouble::Scope("region reference whose target cannot be opened".into()));
                };
                put(out);
                // Size of the serialised selection, rank, selection.
                put_region(&Region::parse(rest.get(8..).ok_or_else(cut)?, &extents)?, out);
            }
            4 => {
                put(out);
                put_string(name(rest)?.0, out);
            }
            _ => put(out),
        }
        Ok(())
    })
}

fn cut() -> Trouble {
    Error::corrupt("a reference is cut short").into()
}

/// A token: its size, then its bytes, of which the address is the head.
fn token(b: &[u8]) -> Result<(u64, &[u8]), Trouble> {
    let (&size, rest) = b.split_first().ok_or_else(cut)?;
    let (token, rest) = rest.split_at_checked(usize::from(size)).ok_or_else(cut)?;
    Ok((address(token, token.len()), rest))
}

/// A name: u16 length, then its bytes.
fn name(b: &[u8]) -> Result<(&[u8], &[u8]), Trouble> {
    let (len, rest) = b.split_first_chunk::<2>().ok_or_else(cut)?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*len))).ok_or_else(cut)
}

/// A selection, as far as it is described: how many elements, and the box around them.
#[derive(Debug, PartialEq, Eq)]
struct Region {
    elements: u64,
    rank: u64,
    lowest: Vec<u64>,
    highest: Vec<u64>,
}

fn put_region(r: &Region, out: &mut dyn Sink) {
    out.put(&r.elements.to_le_bytes());
    out.put(&r.rank.to_le_bytes());
    if r.elements != 0 && r.elements != UNLIMITED {
        for v in r.lowest.iter().chain(&r.highest) {
            out.put(&v.to_le_bytes());
        }
    }
}

/// A cursor over a serialised selection.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn uint(&mut self, width: usize) -> Result<u64, Trouble> {
        let (b, rest) = self.0.split_at_checked(width).ok_or_else(cut)?;
        self.0 = rest;
        Ok(address(b, width))
    }

    fn u32(&mut self) -> Result<u64, Trouble> {
        self.uint(4)
    }

    /// `n` numbers, after a check that their bytes are there.
    fn many(&mut self, n: u64, width: usize) -> Result<Vec<u64>, Trouble> {
        if n.saturating_mul(width as u64) > self.0.len() as u64 {
            return Err(cut());
        }
        (0..n).map(|_| self.uint(width)).collect()
    }
}

impl Region {
    /// Parses a serialised selection over a dataset of these extents.
    fn parse(b: &[u8], extents: &[u64]) -> Result<Self, Trouble> {
        let rank = extents.len() as u64;
        let mut f = Fields(b);
        let kind = f.u32()?;
        let version = f.u32()?;
        let none = Self { elements: 0, rank, lowest: Vec::new(), highest: Vec::new() };
        match (kind, version) {
            (0, 1) => Ok(none),
            (3, 1) => {
                let elements = extents.iter().try_fold(1_u64, |n, d| n.checked_mul(*d));
                let elements =
                    elements.ok_or_else(|| Error::corrupt("a region has more than 2^64 elements"))?;
                if elements == 0 {
                    return Ok(none);
                }
                let highest = extents.iter().map(|d| d - 1).collect();
                Ok(Self { elements, rank, lowest: vec![0; extents.len()], highest })
            }
            (1, 1 | 2) => Self::points(&mut f, version, rank),
            (2, 1..=3) => Self::hyperslab(&mut f, version, rank),
            _ => Err(Error::unsupported(format!("selection of type {kind} version {version}")).into()),
        }
    }

    fn check_rank(found: u64, rank: u64) -> Result<(), Trouble> {
        if found != rank || rank == 0 {
            return Err(
                Error::corrupt(format!("a region of rank {found} in a dataset of rank {rank}")).into()
            );
        }
        Ok(())
    }

    fn points(f: &mut Fields<'_>, version: u64, rank: u64) -> Result<Self, Trouble> {
        let width = if version == 1 {
            f.uint(8)?; // reserved, length
            4
        } else {
            f.uint(1)? as usize
        };
        Self::check_rank(f.u32()?, rank)?;
        let n = f.uint(width)?;
        let coords = f.many(n.saturating_mul(rank), width)?;
        let mut points = coords.chunks_exact(rank as usize);
        let Some(first) = points.next() else {
            return Ok(Self { elements: 0, rank, lowest: Vec::new(), highest: Vec::new() });
        };
        let (mut lowest, mut highest) = (first.to_vec(), first.to_vec());
        for p in points {
            for (i, c) in p.iter().enumerate() {
                lowest[i] = lowest[i].min(*c);
                highest[i] = highest[i].max(*c);
            }
        }
        Ok(Self { elements: n, rank, lowest, highest })
    }

    fn hyperslab(f: &mut Fields<'_>, version: u64, rank: u64) -> Result<Self, Trouble> {
        let (regular, width) = match version {
            1 => {
                f.uint(8)?; // reserved, length
                (false, 4)
            }
            2 => {
                let flags = f.uint(1)?;
                f.u32()?; // length
                (flags & 1 != 0, 8)
            }
            _ => (f.uint(1)? & 1 != 0, f.uint(1)? as usize),
        };
        if !matches!(width, 2 | 4 | 8) {
            return Err(Error::corrupt(format!("a selection of {width}-byte numbers")).into());
        }
        Self::check_rank(f.u32()?, rank)?;
        if regular { Self::regular(f, width, rank) } else { Self::blocks(f, width, rank) }
    }

    fn regular(f: &mut Fields<'_>, width: usize, rank: u64) -> Result<Self, Trouble> {
        let all = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
        let mut r = Self { elements: 1, rank, lowest: Vec::new(), highest: Vec::new() };
        for d in f.many(4 * rank, width)?.chunks_exact(4) {
            let (start, stride, count, block) = (d[0], d[1], d[2], d[3]);
            if count == all || block == all {
                r.elements = UNLIMITED;
                continue;
            }
            let last = count.checked_sub(1).and_then(|c| c.checked_mul(stride));
            let last = last.and_then(|l| l.checked_add(start)?.checked_add(block.checked_sub(1)?));
            let n = count.checked_mul(block);
            if r.elements != UNLIMITED {
                let elements = n.and_then(|n| n.checked_mul(r.elements));
                r.elements =
                    elements.ok_or_else(|| Error::corrupt("a region has more than 2^64 elements"))?;
            }
            r.lowest.push(start);
            r.highest.push(last.unwrap_or(0));
        }
        Ok(r)
    }

    fn blocks(f: &mut Fields<'_>, width: usize, rank: u64) -> Result<Self, Trouble> {
        let n = f.uint(width)?;
        let corners = f.many(n.saturating_mul(2 * rank), width)?;
        let rank_len = rank as usize;
        let mut r = Self { elements: 0, rank, lowest: Vec::new(), highest: Vec::new() };
        for block in corners.chunks_exact(2 * rank_len) {
            let (low, high) = block.split_at(rank_len);
            let volume = low
                .iter()
                .zip(high)
                .try_fold(1_u64, |v, (l, h)| v.checked_mul(h.checked_sub(*l)?.checked_add(1)?));
            let total = volume.and_then(|v| v.checked_add(r.elements));
            r.elements = total.ok_or_else(|| Error::corrupt("a region's block ends before it starts"))?;
            if r.lowest.is_empty() {
                (r.lowest, r.highest) = (low.to_vec(), high.to_vec());
            }
            for i in 0..rank_len {
                r.lowest[i] = r.lowest[i].min(low[i]);
                r.highest[i] = r.highest[i].max(high[i]);
            }
        }
        Ok(r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(w: &[u32]) -> Vec<u8> {
        w.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn regions_of_version_1_count_their_elements_and_bound_them() {
        // Layouts of the HDF5 specification: two blocks (2,2)-(3,4) and (5,0)-(5,0); then two points.
        let blocks = words(&[2, 1, 0, 40, 2, 2, 2, 2, 3, 4, 5, 0, 5, 0]);
        let r = Region::parse(&blocks, &[10, 10]).unwrap();
        assert_eq!(r, Region { elements: 7, rank: 2, lowest: vec![2, 0], highest: vec![5, 4] });
        let points = words(&[1, 1, 0, 24, 2, 2, 6, 9, 2, 1]);
        let r = Region::parse(&points, &[10, 10]).unwrap();
        assert_eq!(r, Region { elements: 2, rank: 2, lowest: vec![2, 1], highest: vec![6, 9] });
        let all = words(&[3, 1, 0, 0]);
        assert_eq!(Region::parse(&all, &[2, 3]).unwrap().elements, 6);
        assert_eq!(Region::parse(&words(&[0, 1, 0, 0]), &[2, 3]).unwrap().elements, 0);
    }

    #[test]
    fn no_prefix_of_a_selection_panics() {
        let blocks = words(&[2, 1, 0, 40, 2, 2, 2, 2, 3, 4, 5, 0, 5, 0]);
        for n in 0..blocks.len() {
            assert!(Region::parse(&blocks[..n], &[10, 10]).is_err());
        }
        assert!(Region::parse(&words(&[2, 1, 0, 0, 2, u32::MAX, 1]), &[3, 3]).is_err());
    }
}
