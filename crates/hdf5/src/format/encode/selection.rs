//! Serialised selections (specification III.E and appendix D.B): of region references and virtual datasets.
//!
//! | type | version | what follows |
//! |---|---|---|
//! | 0 none, 3 all | 1 | 8 zero bytes |
//! | 1 points | 1 | 4 zero bytes, length, rank, number, coordinates, 4 bytes each |
//! | 2 hyperslab | 1 | 4 zero bytes, length, rank, number of blocks, first and last corner of each, 4 bytes each |
//! | 2 hyperslab | 2 | flags (1: regular), length, rank, start, stride, count, block of each dimension, 8 bytes each |

use super::Bound;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// Most blocks that are listed one by one.
const MOST_BLOCKS: u64 = 1 << 20;

/// A selection that is kept in a file: by a region reference, or by a virtual dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// All elements.
    All,
    /// No element.
    None,
    /// These elements, each with as many coordinates as the array has dimensions.
    Points(Vec<Vec<u64>>),
    /// Blocks at regular distances.
    Hyperslab(Vec<Span>),
}

/// Blocks along one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First element.
    pub start: u64,
    /// Distance from the start of one block to the next.
    pub stride: u64,
    /// Number of blocks; [`Span::UNLIMITED`] for as many as there are.
    pub count: u64,
    /// Elements of a block; [`Span::UNLIMITED`] for all behind the start.
    pub block: u64,
}

impl Span {
    /// As far as the dimension reaches.
    pub const UNLIMITED: u64 = u64::MAX;

    /// The `len` elements from `start` on, as one block.
    pub fn run(start: u64, len: u64) -> Self {
        Self { start, stride: 1, count: 1, block: len }
    }
}

impl Region {
    /// One block: from `start` on, `count` elements along each dimension.
    pub fn block(start: &[u64], count: &[u64]) -> Self {
        Self::Hyperslab(start.iter().zip(count).map(|(s, c)| Span::run(*s, *c)).collect())
    }

    /// Appends the selection, in the version that the bound's releases read.
    ///
    /// # Errors
    /// `Unsupported` for what they cannot, `InvalidArgument` for points of different ranks.
    pub(crate) fn encode(&self, w: &mut FieldWriter, bound: Bound) -> Result<()> {
        match self {
            Self::None => {
                w.u32(0).u32(1).zeros(8);
            }
            Self::All => {
                w.u32(3).u32(1).zeros(8);
            }
            Self::Points(points) => encode_points(w, points)?,
            Self::Hyperslab(spans) => {
                let single = spans.iter().all(|s| s.count == 1 && s.block != Span::UNLIMITED);
                if single || bound < Bound::V110 {
                    encode_blocks(w, spans)?;
                } else {
                    encode_regular(w, spans);
                }
            }
        }
        Ok(())
    }
}

fn narrow(value: u64) -> Result<u32> {
    u32::try_from(value).map_err(|_| {
        Error::unsupported(format!("the coordinate {value} of a stored selection needs over 32 bits"))
    })
}

fn encode_points(w: &mut FieldWriter, points: &[Vec<u64>]) -> Result<()> {
    let rank = points.first().map_or(0, Vec::len);
    if points.iter().any(|p| p.len() != rank) || rank == 0 {
        return Err(Error::invalid("selected points need the same number of coordinates, at least one"));
    }
    let length = narrow((8 + 4 * rank * points.len()) as u64)?;
    w.u32(1).u32(1).u32(0).u32(length).u32(rank as u32).u32(narrow(points.len() as u64)?);
    for coordinate in points.iter().flatten() {
        w.u32(narrow(*coordinate)?);
    }
    Ok(())
}

/// Corners of every block, the last dimension running fastest.
fn encode_blocks(w: &mut FieldWriter, spans: &[Span]) -> Result<()> {
    let rank = spans.len() as u64;
    let blocks = spans.iter().try_fold(1_u64, |n, s| n.checked_mul(s.count).filter(|n| *n <= MOST_BLOCKS));
    let Some(blocks) = blocks else {
        return Err(Error::unsupported(format!("a stored selection of over {MOST_BLOCKS} blocks"))
            .hint("the bound v110 and newer ones store regular selections in one piece"));
    };
    w.u32(2).u32(1).u32(0).u32(narrow(8 + 8 * rank * blocks)?).u32(rank as u32).u32(narrow(blocks)?);
    for number in 0..blocks {
        let mut rest = number;
        let mut firsts = vec![0; spans.len()];
        for (first, s) in firsts.iter_mut().zip(spans).rev() {
            *first = s.start + rest % s.count * s.stride;
            rest /= s.count;
        }
        for first in &firsts {
            w.u32(narrow(*first)?);
        }
        for (first, s) in firsts.iter().zip(spans) {
            let last = first.checked_add(s.block.saturating_sub(1));
            w.u32(narrow(last.unwrap_or(u64::MAX))?);
        }
    }
    Ok(())
}

fn encode_regular(w: &mut FieldWriter, spans: &[Span]) {
    w.u32(2).u32(2).u8(1).u32(4 + 32 * spans.len() as u32).u32(spans.len() as u32);
    for s in spans {
        w.u64(s.start).u64(s.stride).u64(s.count).u64(s.block);
    }
}
