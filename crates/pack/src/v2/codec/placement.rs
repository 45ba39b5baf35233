//! Where each symbol and each raw bit of a block is, from the classes of its units alone.
//!
//! A *group* is eight neighbouring pixels, a *segment* some consecutive scans, a *unit* a group during a segment. Units
//! of one *class* share a model. The symbols of a class stand together: segment by segment, scan by scan, group by
//! group. Raw bits stand segment by segment, scan by scan, group by group, whatever their class.

use super::tuples::Tuple;

/// Pixels of a group.
pub(super) const GROUP: usize = 8;

/// What the units of a class have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub tuple: Tuple,
    /// Low bits of each count that are stored as they are.
    pub shift: u32,
    /// A base is subtracted from every count first.
    pub based: bool,
}

/// Neighbouring groups of one class in one segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub kind: Kind,
    /// First group, and their number.
    pub group: usize,
    pub groups: usize,
    /// Symbols of the segment's first scan, and from one scan to the next.
    pub symbols: usize,
    pub symbols_step: usize,
    /// Raw bytes likewise.
    pub raw: usize,
    pub raw_step: usize,
}

/// A segment: its scans and its runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub first: usize,
    pub end: usize,
    runs: (usize, usize),
}

/// The places of a block. Re-used from block to block.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub groups: usize,
    pub segments: Vec<Segment>,
    /// First symbol of each class, and the end.
    pub starts: Vec<usize>,
    pub raw_bytes: usize,
    runs: Vec<Run>,
    /// For each segment and class: where its groups begin in `members`, and its first symbol.
    cells: Vec<Cell>,
    members: Vec<u16>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    members: usize,
    groups: usize,
    symbols: usize,
}

/// One symbol's scan, group, and number within the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub scan: usize,
    pub segment: usize,
    pub group: usize,
    pub index: usize,
}

impl Placement {
    /// Finds all places. `units` are the classes, segment by segment, all below `kinds.len()`.
    pub fn set(&mut self, kinds: &[Kind], units: &[u8], groups: usize, scans: usize, segment: usize) {
        let segments = scans.div_ceil(segment);
        debug_assert_eq!(units.len(), groups * segments);
        self.groups = groups;
        self.cells.clear();
        self.cells.resize(kinds.len() * segments, Cell::default());
        self.members.clear();
        self.members.resize(units.len(), 0);
        self.segments.clear();
        self.runs.clear();
        self.starts.clear();
        // How many groups of each class each segment has, and where their list begins.
        let mut member = 0;
        for (cells, units) in self.cells.chunks_exact_mut(kinds.len()).zip(units.chunks_exact(groups)) {
            units.iter().for_each(|class| cells[usize::from(*class)].groups += 1);
            for cell in cells.iter_mut() {
                cell.members = member;
                member += std::mem::take(&mut cell.groups);
            }
            for (group, class) in units.iter().enumerate() {
                let cell = &mut cells[usize::from(*class)];
                self.members[cell.members + cell.groups] = group as u16;
                cell.groups += 1;
            }
        }
        // Symbols: class by class, segment by segment.
        let length = |s: usize| segment.min(scans - s * segment);
        let mut at = 0;
        for (class, kind) in kinds.iter().enumerate() {
            self.starts.push(at);
            for s in 0..segments {
                let cell = &mut self.cells[s * kinds.len() + class];
                cell.symbols = at;
                at += cell.groups * kind.tuple.symbols() * length(s);
            }
        }
        self.starts.push(at);
        let mut raw = 0;
        for s in 0..segments {
            raw = self.add_runs(kinds, &units[s * groups..][..groups], s, segment, length(s), raw);
        }
        self.raw_bytes = raw;
    }

    /// Adds the runs of one segment; `raw` is its first raw byte. Returns the next segment's.
    fn add_runs(
        &mut self,
        kinds: &[Kind],
        units: &[u8],
        s: usize,
        segment: usize,
        scans: usize,
        raw: usize,
    ) -> usize {
        let raw_step = units.iter().map(|c| kinds[usize::from(*c)].shift as usize).sum::<usize>();
        let cells = &self.cells[s * kinds.len()..][..kinds.len()];
        let before = self.runs.len();
        let mut used = [0; 256];
        let (mut group, mut row) = (0, raw);
        for units in units.chunk_by(|a, b| a == b) {
            let class = usize::from(units[0]);
            let (kind, cell) = (kinds[class], cells[class]);
            let per = kind.tuple.symbols();
            self.runs.push(Run {
                kind,
                group,
                groups: units.len(),
                symbols: cell.symbols + used[class] * per,
                symbols_step: cell.groups * per,
                raw: row,
                raw_step,
            });
            used[class] += units.len();
            group += units.len();
            row += units.len() * kind.shift as usize;
        }
        let first = s * segment;
        self.segments.push(Segment { first, end: first + scans, runs: (before, self.runs.len()) });
        raw + raw_step * scans
    }

    /// Runs of a segment, in the order of groups.
    #[inline(always)]
    pub fn runs(&self, segment: &Segment) -> &[Run] {
        &self.runs[segment.runs.0..segment.runs.1]
    }

    /// Groups of a class in a segment, ascending, whose symbols stand one behind the other; the first symbol of them.
    pub fn members(&self, segment: usize, class: usize) -> (&[u16], usize) {
        let classes = self.starts.len() - 1;
        let cell = self.cells[segment * classes + class];
        (&self.members[cell.members..][..cell.groups], cell.symbols)
    }

    /// Where decoding of each class may end when only the scans before `until` are wanted; classes that none of these scans
    /// needs have no end. Classes share their states, so that all but the last one are decoded whole.
    pub fn ends(&self, kinds: &[Kind], until: usize, to: &mut Vec<usize>) {
        to.clear();
        let Some(last) = self.segments.iter().rposition(|s| s.first < until) else { return };
        let scans = self.segments[last].end.min(until) - self.segments[last].first;
        let wanted = |class: usize| {
            let cell = self.cells[last * kinds.len() + class];
            cell.symbols + cell.groups * kinds[class].tuple.symbols() * scans
        };
        let Some(class) = (0..kinds.len()).rev().find(|class| wanted(*class) > self.starts[*class]) else {
            return;
        };
        to.extend_from_slice(&self.starts[1..=class]);
        to.push(wanted(class));
    }

    /// Symbols in all.
    pub fn symbols(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Where a symbol of a class belongs.
    pub fn place(&self, kinds: &[Kind], class: usize, symbol: usize) -> Place {
        // One, two or four: shifts are much faster than divisions.
        let per = kinds[class].tuple.symbols().trailing_zeros();
        let classes = kinds.len();
        let holds = |segment: &usize| {
            let cell = self.cells[segment * classes + class];
            cell.symbols <= symbol && cell.groups > 0
        };
        let segment = match self.segments.len() {
            1 => 0,
            n => (0..n).rev().find(holds).expect("a symbol of this class"),
        };
        let cell = self.cells[segment * classes + class];
        // A block has at most 2^24 counts.
        let (within, of_scan) = ((symbol - cell.symbols) as u32, (cell.groups << per) as u32);
        let (scan, within) = (within / of_scan, within % of_scan);
        let group = usize::from(self.members[cell.members + (within >> per) as usize]);
        let index = (within & ((1 << per) - 1)) as usize;
        Place { scan: self.segments[segment].first + scan as usize, segment, group, index }
    }
}
