//! The graph: for each vector and each of its levels, the vectors next to it.
//!
//! Lists lie one behind the other: all of vector 0 from level 0 up, then those of vector 1. `starts` says where each
//! begins, and where the last one ends. A graph is checked as a whole before anything walks on it.

use tensilo_core::{Error, Result};

/// Vectors are on levels 0 to this one.
pub(crate) const HIGHEST_LEVEL: u8 = 63;

/// Most neighbours of a vector on the levels above 0; twice as many are possible on level 0.
pub(crate) const MOST_NEIGHBOURS: u32 = 255;

/// A checked graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Graph {
    /// Neighbours that a vector has at most on the levels above 0.
    pub(crate) m: u32,
    /// Where every search begins; meaningless without vectors.
    pub(crate) entry: u32,
    /// For each vector, its highest level.
    pub(crate) levels: Vec<u8>,
    /// For each list, where it begins, and the end of the last one.
    pub(crate) starts: Vec<u64>,
    /// Vector numbers.
    pub(crate) neighbours: Vec<u32>,
    /// For each vector, the number of its list of level 0.
    first: Vec<u64>,
}

/// Number of lists of vectors with these levels.
pub(crate) fn lists(levels: &[u8]) -> u64 {
    levels.iter().map(|level| u64::from(*level) + 1).sum()
}

impl Graph {
    /// Checks that every list leads to vectors that are there, and on its level.
    ///
    /// # Errors
    /// `Corrupt`, saying what is wrong.
    pub(crate) fn new(
        m: u32,
        entry: u32,
        levels: Vec<u8>,
        starts: Vec<u64>,
        neighbours: Vec<u32>,
    ) -> Result<Self> {
        if !(2..=MOST_NEIGHBOURS).contains(&m) {
            return Err(Error::corrupt(format!("m is {m}; 2 to {MOST_NEIGHBOURS} are possible")));
        }
        if let Some(row) = levels.iter().position(|level| *level > HIGHEST_LEVEL) {
            return Err(Error::corrupt(format!("vector {row} is on level {}", levels[row])));
        }
        if starts.len() as u64 != lists(&levels) + 1 {
            return Err(Error::corrupt(format!("{} starts for {} lists", starts.len(), lists(&levels))));
        }
        let mut first = Vec::with_capacity(levels.len());
        let mut next = 0;
        for level in &levels {
            first.push(next);
            next += u64::from(*level) + 1;
        }
        let graph = Self { m, entry, levels, starts, neighbours, first };
        graph.check_entry()?;
        graph.check_lists()?;
        Ok(graph)
    }

    fn check_entry(&self) -> Result<()> {
        let highest = self.levels.iter().max();
        if self.levels.get(self.entry as usize) == highest || self.levels.is_empty() {
            return Ok(());
        }
        Err(Error::corrupt(format!("the entry {} is no vector of the highest level", self.entry)))
    }

    fn check_lists(&self) -> Result<()> {
        let wrong = |row: usize, level: u8, what: &str| {
            Err(Error::corrupt(format!("neighbours of vector {row} on level {level}: {what}")))
        };
        if self.starts.first() != Some(&0) || self.starts.last() != Some(&(self.neighbours.len() as u64)) {
            return Err(Error::corrupt("the lists do not cover the neighbours"));
        }
        for (row, top) in self.levels.iter().enumerate() {
            for level in 0..=*top {
                let at = self.first[row] as usize + usize::from(level);
                let (from, to) = (self.starts[at], self.starts[at + 1]);
                let most = u64::from(self.m) * if level == 0 { 2 } else { 1 };
                if from > to || to > self.neighbours.len() as u64 {
                    return wrong(row, level, "the list ends before it begins, or behind the last one");
                }
                if to - from > most {
                    return wrong(row, level, &format!("{} of them; {most} are possible", to - from));
                }
                for n in &self.neighbours[from as usize..to as usize] {
                    match self.levels.get(*n as usize) {
                        _ if *n as usize == row => return wrong(row, level, "itself"),
                        None => return wrong(row, level, &format!("there is no vector {n}")),
                        Some(other) if *other < level => {
                            return wrong(row, level, &format!("vector {n} is not on this level"));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// The vectors next to one on a level that it has.
    pub(crate) fn next_to(&self, row: u32, level: u8) -> &[u32] {
        let at = self.first[row as usize] as usize + usize::from(level);
        &self.neighbours[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_core::ErrorKind;

    /// Two vectors that know each other, the second on two levels.
    fn parts() -> (u32, u32, Vec<u8>, Vec<u64>, Vec<u32>) {
        (2, 1, vec![0, 1], vec![0, 1, 2, 2], vec![1, 0])
    }

    #[test]
    fn a_sound_graph_is_walked() {
        let (m, entry, levels, starts, neighbours) = parts();
        let graph = Graph::new(m, entry, levels, starts, neighbours).unwrap();
        assert_eq!(graph.next_to(0, 0), [1]);
        assert_eq!(graph.next_to(1, 0), [0]);
        assert!(graph.next_to(1, 1).is_empty());
    }

    #[test]
    fn a_graph_that_leads_nowhere_is_refused() {
        type Change = fn(&mut (u32, u32, Vec<u8>, Vec<u64>, Vec<u32>));
        let changes: [Change; 13] = [
            |p| p.0 = 1,
            |p| p.0 = u32::MAX,
            |p| p.1 = 0,
            |p| p.1 = 7,
            |p| p.2[0] = 64,
            |p| p.2[0] = 1,
            |p| p.3[0] = 1,
            |p| p.3[1] = u64::MAX,
            |p| p.3[1] = 2,
            |p| p.3[3] = 3,
            |p| p.4[0] = 0,
            |p| p.4[0] = 2,
            // On level 1 there is only vector 1.
            |p| (p.3, p.4) = (vec![0, 1, 2, 3], vec![1, 0, 0]),
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut p = parts();
            change(&mut p);
            let e = Graph::new(p.0, p.1, p.2, p.3, p.4).expect_err(&format!("change {i}"));
            assert_eq!(e.kind(), ErrorKind::Corrupt, "change {i}: {e}");
        }
    }
}
