//! Searching: down the levels to a near vector, then around it among the best candidates.

use crate::index::VectorIndex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tensilo_core::{Error, Result};

/// A vector that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its row in the array of vectors.
    pub row: u64,
    /// How far it is from what was asked for.
    pub distance: f32,
}

/// Nearer first, then by row.
#[derive(Debug, Clone, Copy)]
struct Near {
    distance: f32,
    row: u32,
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.distance.total_cmp(&other.distance).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Near {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Near {}

/// Searches one index again and again with the same scratch memory: a bit for each vector.
#[derive(Debug)]
pub struct Searcher<'i> {
    index: &'i VectorIndex,
    seen: Vec<u64>,
    /// Words of `seen` that are not zero.
    touched: Vec<u32>,
    candidates: BinaryHeap<Reverse<Near>>,
    best: BinaryHeap<Near>,
}

impl<'i> Searcher<'i> {
    pub(crate) fn new(index: &'i VectorIndex) -> Self {
        Self {
            index,
            seen: vec![0; (index.len() as usize).div_ceil(64)],
            touched: Vec::new(),
            candidates: BinaryHeap::new(),
            best: BinaryHeap::new(),
        }
    }

    /// The `k` vectors nearest to `query` that are found with `ef` candidates (at least `k`), nearest first. More
    /// candidates find more of the true neighbours and take longer.
    ///
    /// # Errors
    /// `InvalidArgument` for a query of another length or with elements that are no numbers below 1e15.
    pub fn search(&mut self, query: &[f32], k: usize, ef: usize) -> Result<Vec<Neighbour>> {
        let measure = self.index.measure(query)?;
        let graph = self.index.graph();
        if graph.levels.is_empty() || k == 0 {
            return Ok(Vec::new());
        }
        let near = |row: u32| Near { distance: measure.to(row), row };
        let mut nearest = near(graph.entry);
        for level in (1..=graph.levels[graph.entry as usize]).rev() {
            loop {
                let before = nearest;
                nearest = graph.next_to(before.row, level).iter().map(|n| near(*n)).fold(before, Near::min);
                if nearest == before {
                    break;
                }
            }
        }
        let ef = ef.max(k);
        self.forget();
        self.look_at(nearest.row);
        self.candidates.push(Reverse(nearest));
        self.best.push(nearest);
        while let Some(Reverse(candidate)) = self.candidates.pop() {
            if self.best.len() >= ef && self.best.peek().is_some_and(|worst| candidate > *worst) {
                break;
            }
            for n in graph.next_to(candidate.row, 0) {
                if !self.look_at(*n) {
                    continue;
                }
                let found = near(*n);
                if self.best.len() < ef || self.best.peek().is_some_and(|worst| found < *worst) {
                    self.candidates.push(Reverse(found));
                    self.best.push(found);
                    if self.best.len() > ef {
                        self.best.pop();
                    }
                }
            }
        }
        let mut found: Vec<Near> = self.best.drain().collect();
        found.sort_unstable();
        found.truncate(k);
        Ok(found.into_iter().map(|n| Neighbour { row: u64::from(n.row), distance: n.distance }).collect())
    }

    /// Is the vector seen for the first time?
    fn look_at(&mut self, row: u32) -> bool {
        let (word, bit) = (row / 64, 1 << (row % 64));
        let seen = &mut self.seen[word as usize];
        if *seen == 0 {
            self.touched.push(word);
        }
        let new = *seen & bit == 0;
        *seen |= bit;
        new
    }

    fn forget(&mut self) {
        self.touched.drain(..).for_each(|word| self.seen[word as usize] = 0);
        self.candidates.clear();
        self.best.clear();
    }
}

/// The `k` nearest of all vectors, by looking at each.
pub(crate) fn exact(index: &VectorIndex, query: &[f32], k: usize) -> Result<Vec<Neighbour>> {
    let measure = index.measure(query)?;
    let mut best = BinaryHeap::new();
    let count = u32::try_from(index.len()).map_err(|_| Error::invalid("more vectors than numbers"))?;
    for row in 0..count {
        let found = Near { distance: measure.to(row), row };
        if best.len() < k || best.peek().is_some_and(|worst| found < *worst) {
            best.push(found);
            if best.len() > k {
                best.pop();
            }
        }
    }
    let found = best.into_sorted_vec();
    Ok(found.into_iter().map(|n| Neighbour { row: u64::from(n.row), distance: n.distance }).collect())
}
