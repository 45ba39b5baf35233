//! What people compute over a lane larger than memory: slabs on all cores, sums in f64, one fixed order.
//!
//! Partial results are combined in slab order, so an answer does not depend on the number of threads.

use crate::lane_type::LaneElement;
use crate::store::Lane;
use std::sync::Mutex;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Result};

/// Sum, least, greatest, and how many values there were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of values that are no NaN.
    pub count: u64,
    /// Number of NaN values, which count nowhere else.
    pub nan: u64,
    /// Sum.
    pub sum: f64,
    /// Least value, or infinity without any.
    pub min: f64,
    /// Greatest value, or minus infinity without any.
    pub max: f64,
}

impl Summary {
    const EMPTY: Self = Self { count: 0, nan: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

    fn of<T: LaneElement>(values: &[T]) -> Self {
        // Eight running sums break the chain of additions; their order is fixed.
        let mut part = [Self::EMPTY; 8];
        for (i, v) in values.iter().enumerate() {
            let (v, p) = (v.to_f64(), &mut part[i % 8]);
            if v.is_nan() {
                p.nan += 1;
            } else {
                p.count += 1;
                p.sum += v;
                p.min = p.min.min(v);
                p.max = p.max.max(v);
            }
        }
        part.into_iter().fold(Self::EMPTY, Self::join)
    }

    fn join(self, o: Self) -> Self {
        Self {
            count: self.count + o.count,
            nan: self.nan + o.nan,
            sum: self.sum + o.sum,
            min: self.min.min(o.min),
            max: self.max.max(o.max),
        }
    }

    /// Mean, or NaN without values.
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

/// Counts in equal bins over `[low, high]`, the last bin closed above.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Lower edge of the first bin.
    pub low: f64,
    /// Upper edge of the last bin.
    pub high: f64,
    /// Values in each bin.
    pub counts: Vec<u64>,
    /// Values outside, NaN included.
    pub outside: u64,
}

impl<T: LaneElement> Lane<T> {
    /// Calls `map` once for every window of at most `slabs` slabs, on all threads, and returns the results in order.
    ///
    /// # Errors
    /// The first error by window order; the monitor's.
    pub fn map_windows<R: Send>(
        &self,
        slabs: u64,
        threads: Threads,
        monitor: &dyn Monitor,
        map: impl Fn(u64, &[T]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        if slabs == 0 {
            return Err(Error::invalid("a window needs at least one slab"));
        }
        let total = self.slabs();
        let windows = usize::try_from(total.div_ceil(slabs)).map_err(|_| Error::limit("too many windows"))?;
        let results: Vec<Mutex<Option<R>>> = (0..windows).map(|_| Mutex::new(None)).collect();
        threads.for_each(
            windows,
            monitor,
            "slabs",
            total,
            || (),
            |(), i, done| {
                let start = i as u64 * slabs;
                let end = (start + slabs).min(total);
                let view = self.view();
                let r = match view.lane.window(start, end) {
                    Ok(_) => map(start, view.range(start, end)?)?,
                    // Slabs that were appended elsewhere are copied together.
                    Err(_) => {
                        let n = usize::try_from((end - start) * self.spec().elems())
                            .map_err(|_| Error::limit("window too large"))?;
                        let mut copy = vec![T::zeroed(); n];
                        view.read_window(start, end, &mut copy)?;
                        map(start, &copy)?
                    }
                };
                *results[i].lock().unwrap_or_else(|p| p.into_inner()) = Some(r);
                done.add(end - start);
                Ok(())
            },
        )?;
        Ok(results.into_iter().filter_map(|m| m.into_inner().unwrap_or_else(|p| p.into_inner())).collect())
    }

    /// Sum, mean, minimum and maximum of all values (a chunked lane's padding included: use shapes that divide).
    ///
    /// # Errors
    /// As [`slab`](Self::slab); the monitor's.
    pub fn summary(&self, threads: Threads, monitor: &dyn Monitor) -> Result<Summary> {
        let parts = self.map_windows(1, threads, monitor, |_, v| Ok(Summary::of(v)))?;
        Ok(parts.into_iter().fold(Summary::EMPTY, Summary::join))
    }

    /// Counts the values in `bins` equal bins over `[low, high]`.
    ///
    /// # Errors
    /// `InvalidArgument` without bins or for an empty range; as [`slab`](Self::slab).
    pub fn histogram(
        &self,
        low: f64,
        high: f64,
        bins: usize,
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<Histogram> {
        if bins == 0 || bins > 1 << 24 || low >= high || !(high - low).is_finite() {
            return Err(Error::invalid(format!("{bins} bins over [{low}, {high}]")));
        }
        let total = Mutex::new(Histogram { low, high, counts: vec![0; bins], outside: 0 });
        let scale = bins as f64 / (high - low);
        self.map_windows(1, threads, monitor, |_, values| {
            let (mut counts, mut outside) = (vec![0_u64; bins], 0);
            for v in values {
                let v = v.to_f64();
                if v >= low && v <= high {
                    counts[(((v - low) * scale) as usize).min(bins - 1)] += 1;
                } else {
                    outside += 1;
                }
            }
            // Counts are integers: the order of adding them does not matter.
            let mut t = total.lock().unwrap_or_else(|p| p.into_inner());
            t.outside += outside;
            t.counts.iter_mut().zip(counts).for_each(|(t, c)| *t += c);
            Ok(())
        })?;
        Ok(total.into_inner().unwrap_or_else(|p| p.into_inner()))
    }
}
