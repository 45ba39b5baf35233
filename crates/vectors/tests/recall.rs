//! How many of the true neighbours are found.

#![expect(clippy::print_stdout, reason = "what was counted is part of the claim")]

use super::Random;
use tensilo_vectors::{BuildOptions, Metric, VectorIndex};

const COUNT: usize = 10_000;
const LENGTH: usize = 64;
const QUERIES: usize = 200;

/// The true neighbours, in double precision.
fn truth(vectors: &[f32], query: &[f32], metric: Metric) -> Vec<u64> {
    let wide = |a: &[f32], b: &[f32], f: fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(x, y)| f(f64::from(*x), f64::from(*y))).sum()
    };
    let dot = |a: &[f32], b: &[f32]| wide(a, b, |x, y| x * y);
    let distance = |v: &[f32]| match metric {
        Metric::L2 => wide(v, query, |x, y| (x - y) * (x - y)),
        Metric::Cosine => 1.0 - dot(v, query) / (dot(v, v) * dot(query, query)).sqrt(),
    };
    let mut all: Vec<(f64, u64)> =
        vectors.chunks_exact(LENGTH).enumerate().map(|(row, v)| (distance(v), row as u64)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.iter().take(10).map(|(_, row)| *row).collect()
}

#[test]
fn of_the_ten_nearest_of_10000_vectors_of_64_elements_95_in_100_are_found() {
    for metric in [Metric::L2, Metric::Cosine] {
        let mut random = Random(7);
        let vectors = random.vectors(COUNT, LENGTH);
        let queries = random.vectors(QUERIES, LENGTH);
        let index = VectorIndex::build(vectors, LENGTH, metric, BuildOptions::default()).expect("an index");
        let mut searcher = index.searcher();
        let (mut found, mut exact) = (0, 0);
        for query in queries.chunks_exact(LENGTH) {
            let truth = truth(index.vectors(), query, metric);
            let near = searcher.search(query, 10, 256).expect("a search");
            assert!(near.is_sorted_by(|a, b| a.distance <= b.distance), "nearest first");
            found += near.iter().filter(|n| truth.contains(&n.row)).count();
            exact +=
                index.exact(query, 10).expect("a search").iter().filter(|n| truth.contains(&n.row)).count();
        }
        println!("{}: recall at 10 is {:.4}", metric.name(), found as f64 / (10 * QUERIES) as f64);
        assert!(found * 100 >= 95 * 10 * QUERIES, "{}: {found} of {}", metric.name(), 10 * QUERIES);
        assert!(exact >= 10 * QUERIES - 2, "{}: only {exact} by looking at each", metric.name());
    }
}

#[test]
fn every_vector_finds_itself_and_few_vectors_are_all_found() {
    let vectors = Random(11).vectors(300, 8);
    for metric in [Metric::L2, Metric::Cosine] {
        let index =
            VectorIndex::build(vectors.clone(), 8, metric, BuildOptions::default()).expect("an index");
        for (row, v) in vectors.chunks_exact(8).enumerate() {
            assert_eq!(index.search(v, 1, 32).expect("a search")[0].row, row as u64);
        }
        let mut all: Vec<u64> =
            index.search(&vectors[..8], 1000, 1000).expect("a search").iter().map(|n| n.row).collect();
        all.sort_unstable();
        assert_eq!(all, (0..300).collect::<Vec<_>>());
    }
}

#[test]
fn equal_and_zero_vectors_and_no_vectors_at_all_are_searched() {
    for metric in [Metric::L2, Metric::Cosine] {
        let options = BuildOptions { m: 2, ef_construction: 1 };
        let same = VectorIndex::build([0.0, 0.0, 1.0, 1.0].repeat(50), 2, metric, options).expect("an index");
        assert_eq!(same.len(), 100);
        assert!(!same.search(&[1.0, 1.0], 3, 50).expect("a search").is_empty());
        let none = VectorIndex::build(Vec::new(), 5, metric, options).expect("an index");
        assert!(none.is_empty() && none.search(&[0.0; 5], 3, 8).expect("a search").is_empty());
        assert!(none.exact(&[0.0; 5], 3).expect("a search").is_empty());
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let build = |v: Vec<f32>, n, o| VectorIndex::build(v, n, Metric::L2, o);
    let good = BuildOptions::default();
    for (vectors, length) in [(vec![1.0; 5], 2), (vec![1.0; 4], 0), (vec![f32::NAN], 1), (vec![1e16], 1)] {
        let e = build(vectors, length, good).expect_err("refused");
        assert_eq!(e.kind(), tensilo_core::ErrorKind::InvalidArgument);
    }
    for options in [
        BuildOptions { m: 1, ..good },
        BuildOptions { m: 257, ..good },
        BuildOptions { ef_construction: 0, ..good },
    ] {
        build(vec![1.0], 1, options).expect_err("refused");
    }
    let index = build(vec![1.0; 4], 2, good).expect("an index");
    for query in [&[1.0][..], &[1.0, f32::INFINITY], &[1.0, 1.0, 1.0]] {
        index.search(query, 1, 1).expect_err("refused");
        index.exact(query, 1).expect_err("refused");
    }
}

#[test]
fn the_same_vectors_make_the_same_graph_and_a_stopped_build_makes_none() {
    let vectors = Random(5).vectors(500, 24);
    let build = |m| {
        let options = BuildOptions { m, ef_construction: 40 };
        VectorIndex::build(vectors.clone(), 24, Metric::Cosine, options).expect("an index")
    };
    assert!(build(6) == build(6));
    assert!(build(6) != build(7));
    let stop = |p: &tensilo_core::Progress| {
        if p.done >= 128 { Err(tensilo_core::Error::cancelled()) } else { Ok(()) }
    };
    let stopped = VectorIndex::build_with(vectors.clone(), 24, Metric::L2, BuildOptions::default(), &stop)
        .expect_err("stopped");
    assert_eq!(stopped.kind(), tensilo_core::ErrorKind::Cancelled);
}
