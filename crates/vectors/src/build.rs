//! Building: `hnsw_rs` takes the vectors one by one, on one thread and with levels drawn from a fixed seed, and its graph
//! becomes ours.

use crate::graph::{Graph, MOST_NEIGHBOURS};
use crate::metric::{Metric, dot, inverse_length, square_distance};
use hnsw_rs::anndists::dist::Distance;
use hnsw_rs::hnsw::{Hnsw, Neighbour};
use tensilo_core::{Error, Monitor, Progress, Result};

/// As many as the builder has.
const LAYERS: usize = 16;

/// How a graph is built; larger numbers make better and slower graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildOptions {
    /// Neighbours of a vector on the levels above 0, from 2 to 255; twice as many on level 0.
    pub m: u32,
    /// Candidates that are looked at for each new vector, from 1 to 65536.
    pub ef_construction: u32,
}

impl Default for BuildOptions {
    /// 16 neighbours, 200 candidates.
    fn default() -> Self {
        Self { m: 16, ef_construction: 200 }
    }
}

impl BuildOptions {
    pub(crate) fn check(&self) -> Result<()> {
        if !(2..=MOST_NEIGHBOURS).contains(&self.m) || !(1..=65_536).contains(&self.ef_construction) {
            return Err(Error::invalid(format!(
                "m is {} and ef_construction is {}; 2 to {MOST_NEIGHBOURS} and 1 to 65536 are possible",
                self.m, self.ef_construction
            )));
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct SquareDistance;

impl Distance<f32> for SquareDistance {
    fn eval(&self, a: &[f32], b: &[f32]) -> f32 {
        square_distance(a, b)
    }
}

/// Of vectors of length 1.
#[derive(Clone, Copy)]
struct OneLessDot;

impl Distance<f32> for OneLessDot {
    fn eval(&self, a: &[f32], b: &[f32]) -> f32 {
        // Rounding may lead below 0, where the builder wants no distance.
        (1.0 - dot(a, b)).max(0.0)
    }
}

/// The graph over checked vectors.
pub(crate) fn graph(
    vectors: &[f32],
    length: usize,
    metric: Metric,
    options: &BuildOptions,
    monitor: &dyn Monitor,
) -> Result<Graph> {
    match metric {
        Metric::L2 => built(SquareDistance, vectors, length, options, monitor, <[f32]>::to_vec),
        // Made to length 1 once, so that a distance is one product.
        Metric::Cosine => built(OneLessDot, vectors, length, options, monitor, |v| {
            let inverse = inverse_length(v);
            v.iter().map(|x| x * inverse).collect()
        }),
    }
}

fn built<D: Distance<f32> + Send + Sync>(
    distance: D,
    vectors: &[f32],
    length: usize,
    options: &BuildOptions,
    monitor: &dyn Monitor,
    prepared: fn(&[f32]) -> Vec<f32>,
) -> Result<Graph> {
    let count = vectors.len() / length;
    let (m, ef) = (options.m as usize, options.ef_construction as usize);
    let hnsw = Hnsw::new(m, count, LAYERS, ef, distance);
    for (row, vector) in vectors.chunks_exact(length).enumerate() {
        if row % 64 == 0 {
            monitor.poll(&Progress { stage: "building", done: row as u64, total: count as u64 })?;
        }
        hnsw.insert((prepared(vector).as_slice(), row));
    }
    // For each row, its level and its lists.
    let mut rows: Vec<(u8, Vec<Vec<Neighbour>>)> = vec![(0, Vec::new()); count];
    for layer in 0..LAYERS {
        for point in hnsw.get_point_indexation().get_layer_iterator(layer) {
            rows[point.get_origin_id()] = (layer as u8, point.get_neighborhood_id());
        }
    }
    let levels: Vec<u8> = rows.iter().map(|(level, _)| *level).collect();
    let (mut starts, mut neighbours) = (vec![0], Vec::new());
    for (row, (top, lists)) in rows.into_iter().enumerate() {
        for level in 0..=top {
            let list = lists.get(usize::from(level)).map(Vec::as_slice).unwrap_or_default();
            // The builder also notes points that are not on the level.
            let on_level = |n: &&Neighbour| n.d_id != row && levels[n.d_id] >= level;
            let mut list: Vec<u32> = list.iter().filter(on_level).map(|n| n.d_id as u32).collect();
            list.truncate(if level == 0 { 2 * m } else { m });
            list.sort_unstable();
            list.dedup();
            neighbours.extend_from_slice(&list);
            starts.push(neighbours.len() as u64);
        }
    }
    // As the builder does: the first vector of the highest level.
    let highest = levels.iter().max().copied().unwrap_or(0);
    let entry = levels.iter().position(|level| *level == highest).unwrap_or(0) as u32;
    Graph::new(options.m, entry, levels, starts, neighbours)
}
