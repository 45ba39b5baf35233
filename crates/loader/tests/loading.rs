//! The loader: order, back-pressure, errors that arrive, a close that returns, memory that is used again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldBuffer, FieldSchema, Gather, Schema, StoreFingerprint};
use tensilo_core::progress::CancelFlag;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Limits, Monitor, Result};
use tensilo_loader::{Batch, Loader, LoaderOptions, Order, Sampler, SamplerOptions, Shuffle, Zip};
use tensilo_testkit::{MemoryRecords, conformance};

/// Record `i` is `i` as two bytes, and `i % 4` rows of it.
fn store(n: u16) -> Arc<MemoryRecords> {
    let fields =
        vec![FieldSchema::fixed("x", DType::U16, vec![]), FieldSchema::ragged("rows", DType::U16, vec![1])];
    let record = |i: u16| vec![i.to_le_bytes().to_vec(), i.to_le_bytes().repeat(usize::from(i % 4))];
    Arc::new(MemoryRecords::new(Schema::new(fields).unwrap(), (0..n).map(record).collect()))
}

fn sampler(n: u64, order: Order, epochs: Option<u64>) -> Sampler {
    Sampler::new(n, SamplerOptions { batch_size: 8, order, epochs, ..SamplerOptions::default() }).unwrap()
}

fn options(workers: usize, prefetch: usize) -> LoaderOptions {
    LoaderOptions { workers, prefetch, ..LoaderOptions::default() }
}

const SHAPES: [(usize, usize); 8] = [(0, 4), (1, 0), (1, 1), (2, 1), (4, 1), (8, 1), (8, 4), (16, 2)];

#[test]
fn batches_come_in_the_samplers_order_whatever_the_workers() {
    let order = Order::Epoch(Shuffle::Full);
    let mut expected = sampler(100, order.clone(), Some(3));
    let expected: Vec<_> = std::iter::from_fn(|| expected.next_batch()).collect();
    for (workers, prefetch) in SHAPES {
        // Later steps are faster than earlier ones.
        let uneven = |batch: Batch| {
            std::thread::sleep(Duration::from_micros(200 * (3 - batch.step % 4)));
            Ok(batch)
        };
        let loader = Loader::with_transform(
            store(100),
            sampler(100, order.clone(), Some(3)),
            &options(workers, prefetch),
            uneven,
        );
        let mut steps = 0;
        for (batch, (step, ids)) in loader.unwrap().zip(&expected) {
            let batch = batch.unwrap();
            assert_eq!((batch.step, batch.epoch, &batch.ids), (step.number, step.epoch, ids));
            let x: Vec<u64> =
                batch.field("x").unwrap().values::<u16>().unwrap().iter().map(|x| u64::from(*x)).collect();
            assert_eq!(&x, ids);
            let rows = batch.field("rows").unwrap();
            let expected: Vec<u16> = ids.iter().flat_map(|id| vec![*id as u16; (*id % 4) as usize]).collect();
            assert_eq!(rows.values::<u16>().unwrap(), expected);
            for (bounds, id) in rows.offsets.windows(2).zip(ids) {
                assert_eq!(bounds[1] - bounds[0], id % 4);
            }
            steps += 1;
        }
        assert_eq!(steps, expected.len());
    }
}

#[test]
fn a_slow_consumer_stops_the_workers() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let count = move |batch: Batch| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(batch)
    };
    let mut loader =
        Loader::with_transform(store(50), sampler(50, Order::Iid, None), &options(2, 3), count).unwrap();
    while loader.ahead() < 5 || made.load(Ordering::SeqCst) < 5 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(made.load(Ordering::SeqCst), 5, "prefetch and workers together, no more");
    loader.next().unwrap().unwrap();
    while made.load(Ordering::SeqCst) < 6 {
        std::thread::yield_now();
    }
}

#[test]
fn an_error_or_panic_of_a_transform_arrives_with_the_records_and_the_rest_goes_on() {
    for workers in [0, 1, 3] {
        let transform = |batch: Batch| match batch.step {
            2 => Err(Error::unsupported("no step 2")),
            4 => panic!("no step {}", batch.step),
            _ => Ok(batch.step),
        };
        let sampler = sampler(48, Order::Epoch(Shuffle::None), Some(1));
        let loader = Loader::with_transform(store(48), sampler, &options(workers, 2), transform).unwrap();
        let all: Vec<_> = loader.collect();
        let done: Vec<u64> = all.iter().flatten().copied().collect();
        assert_eq!(done, [0, 1, 3, 5]);
        let failure = all[2].as_ref().unwrap_err();
        assert_eq!((failure.step, &failure.ids[..]), (2, &(16..24).collect::<Vec<u64>>()[..]));
        assert_eq!(failure.error.kind(), ErrorKind::Unsupported);
        let text = all.into_iter().nth(4).unwrap().map_err(Error::from).unwrap_err().to_string();
        assert_eq!(text, "step 4, records [32, 33, 34, 35, 36, 37, 38, 39]: panicked: no step 4");
    }
}

/// A store that can be made to fail, or to wait, when a record is read.
#[derive(Debug)]
struct Stubborn {
    inner: Arc<MemoryRecords>,
    broken: Option<u64>,
    gate: Mutex<bool>,
    opened: Condvar,
}

impl Stubborn {
    fn new(inner: Arc<MemoryRecords>, broken: Option<u64>, open: bool) -> Arc<Self> {
        Arc::new(Self { inner, broken, gate: Mutex::new(open), opened: Condvar::new() })
    }
}

impl Gather for Stubborn {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        self.inner.fingerprint()
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        self.inner.lengths(field, ids, steps)
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut open = self.gate.lock().unwrap();
        while !*open {
            (open, _) = self.opened.wait_timeout(open, Duration::from_millis(5)).unwrap();
            monitor.poll(&tensilo_core::Progress::default())?;
        }
        drop(open);
        if let Some(id) = self.broken.filter(|id| ids.contains(id)) {
            return Err(Error::corrupt("a bad record").in_record(id));
        }
        self.inner.gather_into(ids, into, threads, monitor)
    }
}

#[test]
fn a_damaged_record_is_named() {
    let store = Stubborn::new(store(32), Some(11), true);
    let sampler = sampler(32, Order::Epoch(Shuffle::None), Some(1));
    let all: Vec<_> = Loader::new(store, sampler, &options(2, 2)).unwrap().collect();
    assert_eq!(all.iter().filter(|r| r.is_ok()).count(), 3);
    let failure = all[1].as_ref().unwrap_err();
    assert_eq!((failure.error.record(), failure.ids.len()), (Some(11), 8));
    assert_eq!(failure.error.kind(), ErrorKind::Corrupt);
}

#[test]
fn close_returns_for_every_shape_at_any_moment() {
    for (workers, prefetch) in SHAPES {
        for taken in [0, 1, 5] {
            let mut loader =
                Loader::new(store(50), sampler(50, Order::Iid, None), &options(workers, prefetch)).unwrap();
            assert_eq!(loader.by_ref().take(taken).filter(|b| b.is_ok()).count(), taken);
            loader.close();
            loader.close();
            assert!(loader.next().is_none(), "closed is closed");
        }
    }
}

#[test]
fn close_stops_a_read_that_waits_and_leaves_a_transform_that_hangs() {
    let waiting = Stubborn::new(store(50), None, false);
    let mut loader = Loader::new(waiting, sampler(50, Order::Iid, None), &options(3, 1)).unwrap();
    loader.close();

    let (send, receive) = mpsc::channel::<()>();
    let receive = Mutex::new(receive);
    let hangs = move |batch: Batch| {
        let _ = receive.lock().map(|r| r.recv());
        Ok(batch)
    };
    let mut loader =
        Loader::with_transform(store(50), sampler(50, Order::Iid, None), &options(2, 1), hangs).unwrap();
    loader.close();
    drop(send);
}

#[test]
fn a_consumer_that_waits_can_be_stopped_and_loses_nothing() {
    let waiting = Stubborn::new(store(50), None, false);
    let sampler = sampler(50, Order::Sequential, None);
    let mut loader = Loader::new(Arc::clone(&waiting) as Arc<dyn Gather>, sampler, &options(1, 1)).unwrap();
    let flag = CancelFlag::new();
    flag.cancel();
    let stopped = loader.next_with(&flag).unwrap().unwrap_err();
    assert_eq!(stopped.error.kind(), ErrorKind::Cancelled);
    *waiting.gate.lock().unwrap() = true;
    assert_eq!(loader.next().unwrap().unwrap().ids, (0..8).collect::<Vec<u64>>());
}

#[test]
fn the_state_is_behind_what_was_taken_not_what_was_read_ahead() {
    let order = Order::Epoch(Shuffle::Blocks { block: 4, window: 3 });
    let make = || sampler(60, order.clone(), Some(4));
    let all: Vec<Vec<u64>> =
        Loader::new(store(60), make(), &options(2, 4)).unwrap().map(|b| b.unwrap().ids).collect();
    for cut in 0..all.len() {
        let mut loader = Loader::new(store(60), make(), &options(3, 4)).unwrap();
        loader.by_ref().take(cut).for_each(|b| drop(b.unwrap()));
        let mut resumed = make();
        resumed.resume(&loader.state()).unwrap();
        let rest: Vec<_> =
            Loader::new(store(60), resumed, &options(2, 1)).unwrap().map(|b| b.unwrap().ids).collect();
        assert_eq!(rest, all[cut..]);
    }
}

#[test]
fn memory_is_used_again() {
    let mut one = options(2, 2);
    one.fields = vec!["x".into()];
    let loader = Loader::new(store(50), sampler(50, Order::Iid, None), &one).unwrap();
    let addresses: HashSet<usize> =
        loader.take(200).map(|b| b.unwrap().fields[0].memory.bytes().as_ptr().addr()).collect();
    assert!(addresses.len() <= 2 + 2 * 2 + 2, "{}", addresses.len());
}

#[test]
fn batches_stay_within_the_limits() {
    let mut few = options(1, 1);
    few.limits = Limits::default().with_bytes(10);
    let mut loader = Loader::new(store(50), sampler(50, Order::Iid, None), &few).unwrap();
    assert_eq!(loader.next().unwrap().unwrap_err().error.kind(), ErrorKind::Limit);
}

#[test]
fn wrong_options_are_refused() {
    let mut other = options(1, 1);
    other.fields = vec!["y".into()];
    let e = Loader::new(store(50), sampler(50, Order::Iid, None), &other).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    let e = Loader::new(store(50), sampler(49, Order::Iid, None), &options(1, 1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn reading_pauses_for_a_fork() {
    let reading = Arc::new(AtomicBool::new(false));
    tensilo_loader::fork::pause();
    let seen = Arc::clone(&reading);
    let note = move |batch: Batch| {
        seen.store(true, Ordering::SeqCst);
        Ok(batch)
    };
    let mut loader =
        Loader::with_transform(store(50), sampler(50, Order::Iid, None), &options(2, 1), note).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert!(!reading.load(Ordering::SeqCst));
    tensilo_loader::fork::resume();
    assert!(loader.next().unwrap().is_ok());
}

#[test]
fn stores_side_by_side_are_one_store() {
    let labels = Schema::new(vec![FieldSchema::fixed("x", DType::I64, vec![2])]).unwrap();
    let label = |i: u64| vec![[i, i * i].map(u64::to_le_bytes).concat()];
    let labels = Arc::new(MemoryRecords::new(labels, (0..20).map(label).collect()));
    let joined =
        Zip::new(vec![(None, store(20) as Arc<dyn Gather>), (Some("label".into()), labels.clone())]).unwrap();
    let names: Vec<_> = joined.schema().fields().iter().map(|f| f.name.clone()).collect();
    assert_eq!(names, ["x", "rows", "label"]);
    let schema = joined.schema().clone();
    let both = store(20)
        .records()
        .iter()
        .zip(labels.records())
        .map(|(a, b)| [a.clone(), b.clone()].concat())
        .collect();
    conformance::gather(&joined, &MemoryRecords::new(schema, both));
    let short = Zip::new(vec![(None, store(19) as Arc<dyn Gather>), (Some("label".into()), labels.clone())]);
    assert!(short.unwrap_err().message().contains("19 records"));
    assert!(Zip::new(vec![(Some("one".into()), store(20) as Arc<dyn Gather>)]).is_err());
    assert!(Zip::new(vec![(None, labels.clone() as Arc<dyn Gather>), (None, labels)]).is_err());
}
