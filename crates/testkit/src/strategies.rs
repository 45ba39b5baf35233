//! Strategies for property tests: shapes, chunk shapes, element types, detector counts, record ids.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldSchema, Schema};

/// A configuration with a fixed seed that writes no files: the same cases in every run.
pub fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x7e57),
        ..ProptestConfig::default()
    }
}

/// Shapes of rank `1..=max_rank` with at most `max_elements` elements; sometimes with a dimension of 0.
pub fn shape(max_rank: usize, max_elements: u64) -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![1 => Just(0), 3 => Just(1), 20 => 1..=17_u64, 4 => 18..=300_u64], 1..=max_rank.max(1))
        .prop_map(move |mut dims| {
            let mut room = max_elements;
            for d in &mut dims {
                *d = (*d).min(room.max(1));
                room /= (*d).max(1);
            }
            dims
        })
}

/// A shape with a chunk shape for it: every chunk dimension at least 1, some larger than the array's.
pub fn chunked_shape(max_rank: usize, max_elements: u64) -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
    shape(max_rank, max_elements).prop_flat_map(|dims| {
        let chunk: Vec<_> = dims.iter().map(|d| 1..=(d + d / 4 + 1)).collect();
        (Just(dims), chunk)
    })
}

/// Any element type.
pub fn dtype() -> impl Strategy<Value = DType> {
    let plain: Vec<_> = DType::all().collect();
    prop_oneof![8 => proptest::sample::select(plain), 1 => (1..40_u32).prop_map(DType::Bytes)]
}

/// Counts of a detector: mostly small, some bright, with runs of zeros; `n` numbers of at most `max`.
pub fn counts(n: impl Into<proptest::collection::SizeRange>, max: u32) -> impl Strategy<Value = Vec<u32>> {
    let one = prop_oneof![
        6 => Just(0),
        6 => 0..=max.min(3),
        2 => 0..=max.min(255),
        1 => 0..=max,
        1 => Just(max),
    ];
    vec(one, n)
}

/// A schema of one to four fields, fixed and ragged, of at most 4 KiB a step.
pub fn schema() -> impl Strategy<Value = Schema> {
    let field = (dtype(), any::<bool>(), shape(2, 100));
    vec(field, 1..=4).prop_map(|fields| {
        let fields = fields.into_iter().enumerate().map(|(i, (dtype, ragged, mut dims))| {
            let name = format!("field {i}");
            if ragged {
                dims.iter_mut().for_each(|d| *d = (*d).max(1));
                FieldSchema::ragged(name, dtype, dims)
            } else {
                FieldSchema::fixed(name, dtype, dims)
            }
        });
        Schema::new(fields.collect()).expect("distinct names")
    })
}

/// A list of ids below `len` (of none when `len` is 0), in any order, with repeats.
pub fn ids(len: u64, max_list: usize) -> impl Strategy<Value = Vec<u64>> {
    let most = if len == 0 { 0 } else { max_list };
    vec(0..len.max(1), 0..=most)
}
