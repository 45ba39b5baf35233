//! The index: vectors, metric and graph together.

use crate::build::{self, BuildOptions};
use crate::graph::Graph;
use crate::metric::{Metric, check_elements, dot, inverse_length, square_distance};
use crate::search::{self, Neighbour, Searcher};
use tensilo_core::{Error, Monitor, Quiet, Result};

/// Most elements of a vector.
pub(crate) const LONGEST: usize = 65_536;

/// An index of nearest neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorIndex {
    vectors: Vec<f32>,
    length: usize,
    metric: Metric,
    options: BuildOptions,
    graph: Graph,
    /// One over the length of each vector, where angles are asked for.
    inverse: Vec<f32>,
}

/// The distance from one query to any vector.
pub(crate) struct Measure<'q> {
    index: &'q VectorIndex,
    query: &'q [f32],
    inverse: f32,
}

impl Measure<'_> {
    pub(crate) fn to(&self, row: u32) -> f32 {
        let row = row as usize;
        let vector = &self.index.vectors[row * self.index.length..(row + 1) * self.index.length];
        match self.index.metric {
            Metric::L2 => square_distance(self.query, vector),
            Metric::Cosine => 1.0 - dot(self.query, vector) * self.inverse * self.index.inverse[row],
        }
    }
}

impl VectorIndex {
    /// Builds an index of the rows of an array: `vectors` holds one vector of `length` elements behind the other.
    ///
    /// While it is built, every vector is held twice. 10,000 vectors of 64 elements take seconds.
    ///
    /// # Errors
    /// `InvalidArgument` when the vectors are no whole number, longer than 65536 elements or 2^31 or more, when
    /// an element is no number below 1e15, and for impossible options.
    pub fn build(vectors: Vec<f32>, length: usize, metric: Metric, options: BuildOptions) -> Result<Self> {
        Self::build_with(vectors, length, metric, options, &Quiet)
    }

    /// As [`build`](Self::build); the monitor hears of every 64 vectors and may stop the work.
    ///
    /// # Errors
    /// As [`build`](Self::build), and the monitor's.
    pub fn build_with(
        vectors: Vec<f32>,
        length: usize,
        metric: Metric,
        options: BuildOptions,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        options.check()?;
        check_shape(vectors.len(), length)?;
        check_elements(&vectors, length)?;
        let graph = build::graph(&vectors, length, metric, &options, monitor)?;
        Ok(Self::of(vectors, length, metric, options, graph))
    }

    /// Puts checked parts together.
    pub(crate) fn of(
        vectors: Vec<f32>,
        length: usize,
        metric: Metric,
        options: BuildOptions,
        graph: Graph,
    ) -> Self {
        let inverse = match metric {
            Metric::L2 => Vec::new(),
            Metric::Cosine => vectors.chunks_exact(length).map(inverse_length).collect(),
        };
        Self { vectors, length, metric, options, graph, inverse }
    }

    /// Number of vectors.
    pub fn len(&self) -> u64 {
        self.graph.levels.len() as u64
    }

    /// Are there no vectors?
    pub fn is_empty(&self) -> bool {
        self.graph.levels.is_empty()
    }

    /// Elements of a vector.
    pub fn vector_length(&self) -> usize {
        self.length
    }

    /// How far vectors are from each other.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// How the graph was built.
    pub fn options(&self) -> &BuildOptions {
        &self.options
    }

    /// All vectors, one behind the other.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(crate) fn measure<'q>(&'q self, query: &'q [f32]) -> Result<Measure<'q>> {
        if query.len() != self.length {
            return Err(Error::invalid(format!(
                "a query of {} elements among vectors of {}",
                query.len(),
                self.length
            )));
        }
        check_elements(query, self.length).map_err(|e| e.context("the query"))?;
        let inverse = if self.metric == Metric::Cosine { inverse_length(query) } else { 0.0 };
        Ok(Measure { index: self, query, inverse })
    }

    /// For many searches, with scratch memory that is used again.
    pub fn searcher(&self) -> Searcher<'_> {
        Searcher::new(self)
    }

    /// The `k` vectors nearest to `query` that are found with `ef` candidates, nearest first.
    ///
    /// # Errors
    /// As [`Searcher::search`].
    pub fn search(&self, query: &[f32], k: usize, ef: usize) -> Result<Vec<Neighbour>> {
        self.searcher().search(query, k, ef)
    }

    /// The `k` nearest of all vectors, nearest first, by looking at each: slow and certain.
    ///
    /// # Errors
    /// As [`Searcher::search`].
    pub fn exact(&self, query: &[f32], k: usize) -> Result<Vec<Neighbour>> {
        search::exact(self, query, k)
    }
}

/// Checks the size of an array of vectors.
pub(crate) fn check_shape(elements: usize, length: usize) -> Result<()> {
    if length == 0 || length > LONGEST || !elements.is_multiple_of(length) {
        return Err(Error::invalid(format!(
            "{elements} elements for vectors of {length}; a whole number of vectors of 1 to {LONGEST} is wanted"
        )));
    }
    if (elements / length) as u64 >= u64::from(u32::MAX) {
        return Err(Error::invalid(format!(
            "{} vectors; less than 2^32 - 1 are possible",
            elements / length
        )));
    }
    Ok(())
}
