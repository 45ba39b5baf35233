//! The data of datasets and attributes: as many elements on a line as fit, each line with the position of its first.

use super::Dump;
use crate::hdf5::{Class, Dataset, Datatype, Hyperslab, Selection};
use tensilo_core::{Progress, Result};

/// Columns of a line.
const WIDTH: usize = 80;
/// Bytes that are read at a time.
const WINDOW: u64 = 4 << 20;

impl Dump<'_> {
    pub(super) fn data(&mut self, d: &Dataset) -> Result<()> {
        let select = self.options.select.as_ref().filter(|_| self.options.path.is_some());
        if let Some(index) = select {
            let wanted = index.resolve(d.shape())?;
            self.put(&format!("# selection of shape {:?}", wanted.shape))?;
            self.put("DATA {")?;
            match d.read_bytes(&wanted.selection) {
                Ok(bytes) => print(self, d.datatype(), &bytes, &wanted.shape)?,
                Err(e) => self.damaged(&e)?,
            }
            return self.put("}");
        }
        self.put("DATA {")?;
        self.windows(d)?;
        self.put("}")
    }

    /// Prints the dataset in windows along its first dimension, so that little of it is in memory.
    fn windows(&mut self, d: &Dataset) -> Result<()> {
        let shape = d.shape().to_vec();
        if d.elements() == 0 {
            return Ok(());
        }
        let Some((&rows, rest)) = shape.split_first() else {
            return match d.read_bytes(&Selection::All) {
                Ok(bytes) => print(self, d.datatype(), &bytes, &[]),
                Err(e) => self.damaged(&e),
            };
        };
        let row_bytes = rest.iter().try_fold(u64::from(d.datatype().size), |n, e| n.checked_mul(*e));
        let mut step = (WINDOW / row_bytes.unwrap_or(u64::MAX).max(1)).max(1);
        // Whole chunks, so that none is decoded twice.
        if let Some(chunk) = d.chunk_shape().and_then(|c| c.first()) {
            step = step.div_ceil(*chunk).saturating_mul(*chunk);
        }
        let mut lines = Lines::new(&shape, self.depth);
        let mut row = 0;
        while row < rows {
            self.monitor.poll(&Progress { stage: "dumping", done: row, total: rows })?;
            let n = step.min(rows - row);
            let start = std::iter::once(row).chain(rest.iter().map(|_| 0)).collect();
            let count = std::iter::once(n).chain(rest.iter().copied()).collect();
            match d.read_bytes(&Selection::from(Hyperslab::new(start, count))) {
                Ok(bytes) => lines.add(self, d.datatype(), &bytes)?,
                Err(e) => {
                    lines.flush(self)?;
                    return self.damaged(&e);
                }
            }
            row += n;
        }
        lines.end(self)
    }
}

/// Prints elements of an array of this shape.
pub(super) fn print(dump: &mut Dump<'_>, t: &Datatype, bytes: &[u8], shape: &[u64]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut lines = Lines::new(shape, dump.depth);
    lines.add(dump, t, bytes)?;
    lines.end(dump)
}

/// Elements on their way to lines.
struct Lines {
    shape: Vec<u64>,
    /// Number of the next element.
    next: u64,
    line: String,
    column: usize,
}

impl Lines {
    fn new(shape: &[u64], depth: usize) -> Self {
        Self { shape: shape.to_vec(), next: 0, line: String::new(), column: 3 * depth }
    }

    /// The position of an element, `(i,j)`.
    fn position(&self) -> String {
        if self.shape.is_empty() {
            return "(0)".to_owned();
        }
        let mut rest = self.next;
        let mut coords = vec![0; self.shape.len()];
        for (c, n) in coords.iter_mut().zip(&self.shape).rev() {
            *c = rest % (*n).max(1);
            rest /= (*n).max(1);
        }
        format!("({})", coords.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
    }

    fn add(&mut self, dump: &mut Dump<'_>, t: &Datatype, bytes: &[u8]) -> Result<()> {
        let row = self.shape.last().copied().unwrap_or(1).max(1);
        let alone = matches!(t.class, Class::Compound { .. } | Class::Reference(_));
        for (i, element) in bytes.chunks_exact((t.size as usize).max(1)).enumerate() {
            if i % 4096 == 4095 {
                dump.monitor.poll(&Progress { stage: "dumping", done: self.next, total: 0 })?;
            }
            let text = match dump.element(t, element, self.column + 3) {
                Ok(text) => text,
                Err(e) => format!("# unreadable: {}", super::escape(e.message().as_bytes())),
            };
            let rows_end = self.shape.len() > 1 && self.next.is_multiple_of(row);
            let last_line = self.line.rsplit('\n').next().unwrap_or("");
            let first_line = text.split('\n').next().unwrap_or("");
            // The comma behind this element, and the space before it.
            let full = self.column + last_line.chars().count() + first_line.chars().count() + 3 >= WIDTH;
            if self.next > 0 && (alone || rows_end || full) {
                self.line.push(',');
                self.flush(dump)?;
            } else if self.next > 0 {
                self.line.push_str(", ");
            }
            if self.line.is_empty() {
                self.line = format!("{}: ", self.position());
            }
            self.line.push_str(&text);
            self.next += 1;
        }
        Ok(())
    }

    fn flush(&mut self, dump: &mut Dump<'_>) -> Result<()> {
        for (i, line) in std::mem::take(&mut self.line).split('\n').enumerate() {
            // Lines behind the first know their own column.
            if i == 0 { dump.put(line)? } else { (dump.line)(line)? }
        }
        Ok(())
    }

    fn end(&mut self, dump: &mut Dump<'_>) -> Result<()> {
        if self.line.is_empty() { Ok(()) } else { self.flush(dump) }
    }
}
