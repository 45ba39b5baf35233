//! Views and concatenations of record stores are record stores.

use proptest::prelude::*;
use std::sync::Arc;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{
    Concat, FieldBuffer, FieldSchema, Gather, Lens, Locality, Places, Schema, StoreFingerprint, View, gather,
};
use tensilo_core::progress::{Monitor, Quiet};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, CancelFlag, ErrorKind, Limits, Result};
use tensilo_testkit::{MemoryRecords, conformance, strategies};

fn schema() -> Schema {
    Schema::new(vec![
        FieldSchema::fixed("image", DType::U16, [2, 3]),
        FieldSchema::ragged("track", DType::F32, [2]),
        FieldSchema::fixed("label", DType::U8, []),
    ])
    .unwrap()
}

fn store(from: usize, n: usize) -> MemoryRecords {
    let record = |i: usize| {
        let bytes = |n: usize, k: usize| (0..n).map(|j| (i * 31 + j * 7 + k) as u8).collect::<Vec<u8>>();
        vec![bytes(12, 1), bytes(8 * (i * 5 % 4), 2), bytes(1, 3)]
    };
    MemoryRecords::new(schema(), (from..from + n).map(record).collect())
}

#[test]
fn the_plain_store_conforms() {
    conformance::gather(&store(0, 40), &store(0, 40));
    conformance::gather(&store(0, 0), &store(0, 0));
}

#[test]
fn a_view_conforms_to_the_records_it_lists() {
    let ids: Vec<u64> = vec![3, 3, 39, 0, 17, 21];
    let view = View::new(Arc::new(store(0, 40)), ids.clone()).unwrap();
    let all = store(0, 40);
    let picked = ids.iter().map(|i| all.records()[*i as usize].clone()).collect();
    conformance::gather(&view, &MemoryRecords::new(schema(), picked));
    conformance::gather(&View::new(Arc::new(all.clone()), vec![]).unwrap(), &store(0, 0));
    assert_eq!(View::new(Arc::new(all), vec![40]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn joined_stores_conform_to_the_records_of_all() {
    let parts: Vec<Arc<dyn Gather>> =
        vec![Arc::new(store(0, 7)), Arc::new(store(0, 0)), Arc::new(store(7, 30)), Arc::new(store(37, 3))];
    let joined = Concat::new(parts.clone()).unwrap();
    conformance::gather(&joined, &store(0, 40));
    conformance::gather(&Concat::new(vec![parts[1].clone()]).unwrap(), &store(0, 0));
    let nested: Arc<dyn Gather> = Arc::new(joined);
    let view = View::new(nested, (0..40).rev().collect::<Vec<_>>()).unwrap();
    let reversed = store(0, 40).records().iter().rev().cloned().collect();
    conformance::gather(&view, &MemoryRecords::new(schema(), reversed));
    assert_eq!(Concat::new(vec![]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let other = Schema::new(vec![FieldSchema::fixed("x", DType::U8, [])]).unwrap();
    let other = Arc::new(MemoryRecords::new(other, vec![]));
    assert_eq!(Concat::new(vec![parts[0].clone(), other]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn fingerprints_tell_contents_and_order_apart() {
    let base: Arc<dyn Gather> = Arc::new(store(0, 10));
    let view = |ids: Vec<u64>| View::new(base.clone(), ids).unwrap().fingerprint().unwrap();
    let mut prints: Vec<StoreFingerprint> = vec![
        base.fingerprint().unwrap(),
        store(0, 11).fingerprint().unwrap(),
        store(1, 10).fingerprint().unwrap(),
        view(vec![0, 1]),
        view(vec![1, 0]),
        Concat::new(vec![base.clone()]).unwrap().fingerprint().unwrap(),
        Concat::new(vec![base.clone(), base.clone()]).unwrap().fingerprint().unwrap(),
    ];
    let n = prints.len();
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), n);
}

#[test]
fn gathering_asks_the_budget_and_the_monitor_first() {
    let store = store(0, 10);
    let ids: Vec<u64> = (0..10).collect();
    let run = |bytes: u64, monitor: &dyn Monitor| {
        gather(&store, &ids, &[0], &Budget::new(Limits::default().with_bytes(bytes)), Threads::ONE, monitor)
    };
    assert_eq!(run(119, &Quiet).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(run(120, &Quiet).unwrap()[0].bytes.len(), 120);
    let flag = CancelFlag::new();
    flag.cancel();
    assert_eq!(run(120, &flag).unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn schemas_are_checked() {
    let field = |name: &str| FieldSchema::fixed(name, DType::U8, []);
    let kind = |fields| Schema::new(fields).unwrap_err().kind();
    assert_eq!(kind(vec![]), ErrorKind::InvalidArgument);
    assert_eq!(kind(vec![field("a"), field("a")]), ErrorKind::InvalidArgument);
    assert_eq!(kind(vec![field("")]), ErrorKind::InvalidArgument);
    assert_eq!(kind(vec![FieldSchema::fixed("big", DType::U16, [1 << 40, 1 << 40])]), ErrorKind::Limit);
    let error = schema().position("imag").unwrap_err();
    assert_eq!(error.to_string(), "no field \"imag\"; there are: image, track, label");
    assert_eq!(schema().position("label").unwrap(), 2);
}

#[test]
fn places_may_be_interleaved_but_not_overlap() {
    let mut bytes = vec![0; 100];
    let mut check = |places, lens, n| {
        FieldBuffer { field: 0, bytes: &mut bytes, places }.check(n, lens).map_err(|e| e.to_string())
    };
    check(Places::Starts(&[50, 0, 25]), Lens::Same(25), 3).unwrap();
    check(Places::Starts(&[50, 40, 50]), Lens::Steps(&[5, 1, 0], 10), 3).unwrap();
    let overlap = check(Places::Starts(&[50, 41]), Lens::Steps(&[5, 1], 10), 2).unwrap_err();
    assert_eq!(overlap, "records 1 and 0 of the list overlap");
    check(Places::Stride(33), Lens::Same(34), 2).unwrap_err();
    check(Places::Stride(33), Lens::Same(34), 1).unwrap();
    check(Places::Stride(u64::MAX), Lens::Same(1), 3).unwrap_err();
    check(Places::Starts(&[0]), Lens::Steps(&[u64::MAX], 2), 1).unwrap_err();
}

/// A store that says it decodes records in blocks.
#[derive(Debug)]
struct Blocks(MemoryRecords, u64);

impl Gather for Blocks {
    fn schema(&self) -> &Schema {
        self.0.schema()
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn fingerprint(&self) -> Result<StoreFingerprint> {
        self.0.fingerprint()
    }
    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        self.0.lengths(field, ids, steps)
    }
    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        t: Threads,
        m: &dyn Monitor,
    ) -> Result<()> {
        self.0.gather_into(ids, into, t, m)
    }
    fn locality(&self) -> Locality {
        Locality { block: self.1 }
    }
}

#[test]
fn blocks_are_promised_only_where_they_hold() {
    let blocks = |n, block| Arc::new(Blocks(store(0, n), block)) as Arc<dyn Gather>;
    let joined = |stores| Concat::new(stores).unwrap().locality().block;
    assert_eq!(joined(vec![blocks(8, 4), blocks(5, 4)]), 4);
    assert_eq!(joined(vec![blocks(8, 2), blocks(5, 4)]), 4);
    assert_eq!(joined(vec![blocks(7, 4), blocks(5, 4)]), 1);
    assert_eq!(joined(vec![blocks(12, 3), blocks(5, 4)]), 1);
    let view = |ids: Vec<u64>| View::new(blocks(16, 4), ids).unwrap().locality().block;
    assert_eq!(view((4..12).collect()), 4);
    assert_eq!(view(vec![8, 9, 10, 11, 0, 1]), 4);
    assert_eq!(view((1..9).collect()), 1);
    assert_eq!(view(vec![0, 5, 2, 3]), 1);
}

proptest! {
    #![proptest_config(strategies::fixed(60))]

    #[test]
    fn joined_views_of_any_schema_conform(
        schema in strategies::schema(), n in 1..30_u64, seed in any::<u8>(), cut in 0..30_u64, ids in strategies::ids(30, 20)) {
        let record = |i: u64| -> Vec<Vec<u8>> {
            schema.fields().iter().map(|f| {
                let steps = if f.is_ragged() { i % 4 } else { 1 };
                let bytes = steps * f.step_bytes().unwrap();
                (0..bytes).map(|b| (b as u8).wrapping_mul(13) ^ seed ^ i as u8).collect()
            }).collect()
        };
        let records: Vec<_> = (0..n).map(record).collect();
        let (head, tail) = records.split_at(cut.min(n) as usize);
        let part = |records: &[Vec<Vec<u8>>]| {
            Arc::new(MemoryRecords::new(schema.clone(), records.to_vec())) as Arc<dyn Gather>
        };
        let joined = Concat::new(vec![part(head), part(tail)]).unwrap();
        let ids: Vec<u64> = ids.into_iter().map(|i| i % n).collect();
        let wanted = ids.iter().map(|i| records[*i as usize].clone()).collect();
        let view = View::new(Arc::new(joined), ids).unwrap();
        conformance::gather(&view, &MemoryRecords::new(schema.clone(), wanted));
    }

    #[test]
    fn chunk_shapes_fit_their_shapes((shape, chunk) in strategies::chunked_shape(4, 5000)) {
        prop_assert!(shape.iter().product::<u64>() <= 5000 && (1..=4).contains(&shape.len()));
        prop_assert!(shape.len() == chunk.len() && chunk.iter().all(|c| *c > 0));
    }

    #[test]
    fn counts_stay_below_their_maximum(counts in strategies::counts(0..200, 70_000)) {
        prop_assert!(counts.iter().all(|c| *c <= 70_000));
    }
}
