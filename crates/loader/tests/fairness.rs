//! A shuffle is fair: over 100,000 seeds every record is as often at every place, whatever stands beside it or came
//! in the epoch before.

use tensilo_loader::{EpochOrder, Shuffle};

const SEEDS: u64 = 100_000;

/// Pearson's statistic of counts that should be equal.
fn statistic(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|c| (*c as f64 - expected).powi(2) / expected).sum()
}

/// Five standard deviations above the mean of chi-square, and a little more where it is skewed.
fn plausible(statistic: f64, freedom: f64) -> bool {
    statistic < freedom + 5.0 * (2.0 * freedom).sqrt() + 15.0
}

/// Counts how often each record is at each place. With both sums fixed, the statistic times (n - 1) / n is chi-square
/// with (n - 1)^2 degrees of freedom.
fn cells_are_fair(n: usize, order: impl Fn(u64) -> Vec<u64>) -> bool {
    let mut counts = vec![0_u64; n * n];
    for seed in 0..SEEDS {
        for (place, record) in order(seed).into_iter().enumerate() {
            counts[place * n + record as usize] += 1;
        }
    }
    let n = n as f64;
    let expected = SEEDS as f64 / n;
    let deviation = (expected * (1.0 - 1.0 / n)).sqrt();
    let each = counts.iter().all(|c| (*c as f64 - expected).abs() <= 5.5 * deviation.max(1e-9));
    each && plausible(statistic(&counts) * (n - 1.0) / n, (n - 1.0).powi(2))
}

fn shuffled(n: u64, seed: u64, epoch: u64, shuffle: Shuffle) -> Vec<u64> {
    let mut order = EpochOrder::new(n, seed, epoch, shuffle);
    (0..n).map(|place| order.at(place)).collect()
}

#[test]
fn every_record_is_as_often_at_every_place() {
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64] {
        assert!(cells_are_fair(n as usize, |seed| shuffled(n, seed, 0, Shuffle::Full)), "{n} records");
    }
}

#[test]
fn shuffled_blocks_are_fair_too() {
    let shuffle = Shuffle::Blocks { block: 4, window: 2 };
    assert!(cells_are_fair(16, |seed| shuffled(16, seed, 3, shuffle)));
}

#[test]
fn an_unfair_shuffle_is_found_out() {
    // Each card swapped with any card: a known mistake.
    let naive = |seed: u64| {
        let mut draws = tensilo_loader::Sfc64::new(seed);
        let mut cards: Vec<u64> = (0..8).collect();
        (0..8).for_each(|i| cards.swap(i, draws.below(8) as usize));
        cards
    };
    assert!(!cells_are_fair(8, naive));
}

#[test]
fn neighbours_are_uncorrelated() {
    for n in [5_u64, 16, 33, 64] {
        let mut steps = vec![0_u64; n as usize];
        for seed in 0..SEEDS / 2 {
            // Three pairs far enough apart to be nearly independent.
            let mut order = EpochOrder::new(n, seed, 0, Shuffle::Full);
            for place in [0, n / 2, n - 2] {
                steps[((order.at(place + 1) + n - order.at(place)) % n) as usize] += 1;
            }
        }
        assert_eq!(steps[0], 0, "two places never hold one record");
        assert!(plausible(statistic(&steps[1..]), n as f64 - 2.0), "{n} records: {steps:?}");
    }
}

#[test]
fn successive_epochs_and_seeds_are_uncorrelated() {
    for n in [2_u64, 5, 16, 33, 64] {
        for (epoch, seed) in [(1, 0), (0, 1)] {
            let mut steps = vec![0_u64; n as usize];
            for s in 0..SEEDS {
                let a = EpochOrder::new(n, s, 0, Shuffle::Full).at(n / 3);
                let b = EpochOrder::new(n, s + seed, epoch, Shuffle::Full).at(n / 3);
                steps[((a + n - b) % n) as usize] += 1;
            }
            assert!(plausible(statistic(&steps), n as f64 - 1.0), "{n} records: {steps:?}");
        }
    }
}
