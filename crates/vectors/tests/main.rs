//! The index beside exact neighbours, NumPy and h5py; its file under faults, crashes and false contents.

mod crash;
mod file;
mod hostile;
mod recall;

use tensilo_testkit::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From -1 to 1, most of them near 0.
    fn element(&mut self) -> f32 {
        let parts: f32 = (0..3).map(|_| (self.next() >> 40) as f32 / (1 << 24) as f32).sum();
        parts / 1.5 - 1.0
    }

    fn vectors(&mut self, count: usize, length: usize) -> Vec<f32> {
        (0..count * length).map(|_| self.element()).collect()
    }
}
