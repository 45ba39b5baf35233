//! The global order: complete, the same for every world and number of workers, resumed at any step.

use proptest::prelude::*;
use tensilo_loader::{Mixture, Order, Sampler, SamplerOptions, SamplerState, Shuffle, share};
use tensilo_testkit::strategies;

fn orders(len: u64) -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Sequential),
        Just(Order::Iid),
        Just(Order::Epoch(Shuffle::None)),
        Just(Order::Epoch(Shuffle::Full)),
        (1..20_u64, 1..5_u64).prop_map(|(block, window)| Order::Epoch(Shuffle::Blocks { block, window })),
        (1..6_u32, 1..6_u32).prop_map(move |(a, b)| {
            let parts = if len < 2 { vec![(len, a)] } else { vec![(len / 2, a), (len - len / 2, b)] };
            Order::Mixture(Mixture::new(parts).unwrap())
        }),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    len: u64,
    options: SamplerOptions,
    world: u64,
    other_world: u64,
    workers: u64,
    cut: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    (1..150_u64).prop_flat_map(|len| {
        let rest = (orders(len), any::<u64>(), any::<bool>(), 1..5_u64, 1..5_u64, 1..4_u64, 0..12_usize);
        ((1..40_usize), rest).prop_map(
            move |(batch_size, (order, seed, drop_last, world, other_world, workers, cut))| {
                let drop_last = drop_last && batch_size as u64 <= len;
                let options = SamplerOptions { batch_size, order, seed, drop_last, ..Default::default() };
                let limit = batch_size as u64;
                let (world, other_world) = (world.min(limit), other_world.min(limit));
                Case { len, options, world, other_world, workers, cut }
            },
        )
    })
}

/// Samplers of all ranks.
fn ranks(case: &Case, world: u64, worker: (u64, u64)) -> Vec<Sampler> {
    let options = |rank| SamplerOptions { rank, world, worker, ..case.options.clone() };
    (0..world).map(|rank| Sampler::new(case.len, options(rank)).unwrap()).collect()
}

/// The next steps of all ranks, joined.
fn steps(ranks: &mut [Sampler], n: usize) -> Vec<Vec<u64>> {
    (0..n).map(|_| ranks.iter_mut().flat_map(|r| r.next_batch().expect("endless").1).collect()).collect()
}

proptest! {
    #![proptest_config(strategies::fixed(400))]

    #[test]
    fn the_global_order_is_the_same_for_every_world_and_number_of_workers(case in cases()) {
        const STEPS: usize = 12;
        let alone = steps(&mut ranks(&case, 1, (0, 1)), STEPS);
        prop_assert_eq!(&steps(&mut ranks(&case, case.world, (0, 1)), STEPS), &alone);
        let mut workers: Vec<_> = (0..case.workers).map(|w| ranks(&case, case.world, (w, case.workers))).collect();
        let in_turn: Vec<_> =
            (0..STEPS).map(|i| steps(&mut workers[i % case.workers as usize], 1).remove(0)).collect();
        prop_assert_eq!(in_turn, alone);
    }

    #[test]
    fn every_record_comes_once_in_an_epoch(case in cases()) {
        let Order::Epoch(_) = case.options.order else { return Ok(()) };
        let mut options = case.options.clone();
        options.epochs = Some(2);
        let sampler = |rank| {
            let options = SamplerOptions { rank, world: case.world, ..options.clone() };
            Sampler::new(case.len, options).unwrap()
        };
        let mut ranks: Vec<Sampler> = (0..case.world).map(sampler).collect();
        let total = ranks[0].total_steps().unwrap();
        for epoch in 0..2 {
            let mut seen = vec![0; case.len as usize];
            for _ in 0..ranks[0].steps_per_epoch().unwrap() {
                for rank in &mut ranks {
                    let (step, ids) = rank.next_batch().expect("a step of the epoch");
                    prop_assert_eq!(step.epoch, epoch);
                    prop_assert!(ids.len() <= rank.largest_share());
                    ids.iter().for_each(|id| seen[*id as usize] += 1);
                }
            }
            let left_out = if options.drop_last { case.len % options.batch_size as u64 } else { 0 };
            prop_assert!(seen.iter().all(|n| *n <= 1));
            prop_assert_eq!(seen.iter().filter(|n| **n == 0).count() as u64, left_out);
        }
        prop_assert!(ranks.iter_mut().all(|r| r.next_batch().is_none()), "{} steps", total);
    }

    #[test]
    fn resuming_at_any_step_equals_going_on_also_on_another_world(case in cases()) {
        let mut whole = ranks(&case, 1, (0, 1));
        let mut before = ranks(&case, case.world, (0, 1));
        steps(&mut whole, case.cut);
        steps(&mut before, case.cut);
        let states: Vec<SamplerState> = before.iter().map(Sampler::state).collect();
        prop_assert!(states.iter().all(|s| *s == states[0]), "a state is the same on every rank");
        let mut after = ranks(&case, case.other_world, (0, 1));
        after.iter_mut().for_each(|r| r.resume(&states[0]).unwrap());
        let rest = steps(&mut whole, 6);
        prop_assert_eq!(&steps(&mut after, 6), &rest);
        // Workers that take turns begin with the state's step.
        let mut workers: Vec<_> = (0..case.workers).map(|w| ranks(&case, case.world, (w, case.workers))).collect();
        if case.workers > 1 {
            workers.iter_mut().flatten().for_each(|r| r.resume(&states[0]).unwrap());
            let in_turn: Vec<_> =
                (0..6).map(|i| steps(&mut workers[i % case.workers as usize], 1).remove(0)).collect();
            prop_assert_eq!(in_turn, rest);
        }
    }

    #[test]
    fn workers_resume_their_own_turns(case in cases()) {
        let make = |w| Sampler::new(case.len, SamplerOptions { worker: (w, 3), ..case.options.clone() }).unwrap();
        for w in 0..3 {
            let mut worker = make(w);
            for _ in 0..case.cut {
                worker.next_batch();
            }
            let mut resumed = make(w);
            resumed.resume(&worker.state()).unwrap();
            for _ in 0..4 {
                prop_assert_eq!(resumed.next_batch(), worker.next_batch());
            }
        }
    }

    #[test]
    fn shares_are_in_order_and_nearly_equal(n in any::<u64>(), world in 1..100_u64) {
        let shares: Vec<_> = (0..world).map(|r| share(n, r, world)).collect();
        prop_assert_eq!((shares[0].start, shares[world as usize - 1].end), (0, n));
        prop_assert!(shares.windows(2).all(|w| w[0].end == w[1].start));
        let sizes = shares.iter().map(|s| s.end - s.start);
        prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
    }
}

#[test]
fn a_mixture_keeps_its_weights_exactly_and_visits_every_record() {
    let mixture = Mixture::new(vec![(40, 6), (10, 2), (7, 2)]).unwrap();
    assert_eq!(mixture.parts(), [(40, 3), (10, 1), (7, 1)], "weights are reduced");
    let options = SamplerOptions { batch_size: 5, order: Order::Mixture(mixture), ..Default::default() };
    let mut sampler = Sampler::new(57, options).unwrap();
    let mut seen = vec![0_u32; 57];
    for _ in 0..1400 {
        let (_, ids) = sampler.next_batch().unwrap();
        let of = |range: std::ops::Range<u64>| ids.iter().filter(|id| range.contains(id)).count();
        assert_eq!((of(0..40), of(40..50), of(50..57)), (3, 1, 1));
        ids.iter().for_each(|id| seen[*id as usize] += 1);
    }
    // 1400 steps are 105, 140 and 200 epochs of the sources.
    assert_eq!((&seen[..40], &seen[40..50], &seen[50..]), (&[105; 40][..], &[140; 10][..], &[200; 7][..]));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let wrong = |len: u64, change: &dyn Fn(&mut SamplerOptions)| {
        let mut options = SamplerOptions::default();
        change(&mut options);
        Sampler::new(len, options).unwrap_err().to_string()
    };
    let epoch = Order::Epoch(Shuffle::Full);
    for (len, change, expected) in [
        (0, &(|_: &mut SamplerOptions| ()) as &dyn Fn(&mut SamplerOptions), "no records"),
        (9, &|o| o.batch_size = 0, "at least one"),
        (9, &|o| o.rank = 1, "rank 1 of 1"),
        (9, &|o| o.worker = (2, 2), "worker 2 of 2"),
        (9, &|o| o.world = 300, "cannot share"),
        (9, &|o| o.epochs = Some(1), "no epochs"),
        (9, &|o| (o.order, o.drop_last) = (epoch.clone(), true), "no full batch"),
        (9, &|o| o.order = Order::Mixture(Mixture::new(vec![(8, 1)]).unwrap()), "mixture of 8"),
    ] {
        assert!(wrong(len, change).contains(expected), "{}", wrong(len, change));
    }
    assert!(Mixture::new(vec![]).is_err() && Mixture::new(vec![(3, 0)]).is_err());
    assert!(Mixture::new(vec![(u64::MAX, 1), (1, 1)]).is_err());
}

#[test]
fn states_of_other_orders_seeds_and_lengths_are_refused() {
    let make = |len, seed, order| {
        Sampler::new(len, SamplerOptions { seed, order, ..SamplerOptions::default() }).unwrap()
    };
    let state = make(10, 1, Order::Iid).state();
    for mut other in [make(11, 1, Order::Iid), make(10, 2, Order::Iid), make(10, 1, Order::Sequential)] {
        assert!(other.resume(&state).unwrap_err().message().contains("another"));
    }
    let mut damaged = state;
    damaged.offset = 10;
    assert!(make(10, 1, Order::Iid).resume(&damaged).is_err());
}

#[test]
fn an_epoch_is_started_and_another_batch_size_goes_on_where_the_state_stands() {
    let make = |batch_size| {
        let order = Order::Epoch(Shuffle::Full);
        Sampler::new(100, SamplerOptions { batch_size, order, ..SamplerOptions::default() }).unwrap()
    };
    let mut sampler = make(30);
    let third: Vec<u64> =
        (0..12).filter_map(|_| sampler.next_batch()).skip(8).flat_map(|(_, ids)| ids).collect();
    let mut started = make(30);
    started.start_epoch(2).unwrap();
    let (step, ids) = started.next_batch().unwrap();
    assert_eq!((step.number, step.epoch, &ids[..]), (8, 2, &third[..30]));
    let mut smaller = make(7);
    smaller.resume(&started.state()).unwrap();
    assert_eq!(smaller.next_batch().unwrap().1, third[30..37]);
}

#[test]
fn two_to_the_64_records_are_sampled_in_no_memory() {
    let order = Order::Epoch(Shuffle::Blocks { block: 1 << 40, window: 1 << 30 });
    let options = SamplerOptions { batch_size: 1000, order, ..SamplerOptions::default() };
    let mut sampler = Sampler::new(u64::MAX, options).unwrap();
    let (_, mut ids) = sampler.next_batch().unwrap();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 1000);
}
