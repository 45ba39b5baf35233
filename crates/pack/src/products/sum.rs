//! The two types that sums have.

use super::ImageValues;

/// A type of sums: `u64` of unsigned counts, `i64` of signed ones.
pub trait Sum: bytemuck::Pod + Ord + Send + Sync + sealed::Sealed {
    /// May sums be negative?
    const SIGNED: bool;
    /// The least value.
    const LEAST: Self;
    /// How far from 0 every sum may be.
    const MOST: u128;
    /// The value with these bits.
    fn of_bits(bits: u64) -> Self;
    /// The value's bits.
    fn bits(self) -> u64;
    /// The values with these bits.
    fn of_all_bits(bits: Vec<u64>) -> Vec<Self>;
    /// The value in 128 bits.
    fn wide(self) -> i128;
    /// The nearest float.
    fn to_f64(self) -> f64;
    /// Sums as an image.
    fn image(sums: &[Self]) -> ImageValues;
    /// Sums as an image, unsigned ones in 32 bits where all fit.
    fn narrow_image(sums: &[Self]) -> ImageValues;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for i64 {}
}

impl Sum for u64 {
    const SIGNED: bool = false;
    const LEAST: Self = 0;
    const MOST: u128 = u64::MAX as u128;

    fn of_bits(bits: u64) -> Self {
        bits
    }

    fn bits(self) -> u64 {
        self
    }

    fn of_all_bits(bits: Vec<u64>) -> Vec<Self> {
        bits
    }

    fn wide(self) -> i128 {
        self.into()
    }

    fn to_f64(self) -> f64 {
        self as f64
    }

    fn image(sums: &[Self]) -> ImageValues {
        ImageValues::U64(sums.to_vec())
    }

    fn narrow_image(sums: &[Self]) -> ImageValues {
        let narrow: Option<Vec<u32>> = sums.iter().map(|s| u32::try_from(*s).ok()).collect();
        narrow.map_or_else(|| Self::image(sums), ImageValues::U32)
    }
}

impl Sum for i64 {
    const SIGNED: bool = true;
    const LEAST: Self = Self::MIN;
    const MOST: u128 = i64::MAX as u128;

    fn of_bits(bits: u64) -> Self {
        bits as Self
    }

    fn bits(self) -> u64 {
        self as u64
    }

    fn of_all_bits(bits: Vec<u64>) -> Vec<Self> {
        bytemuck::allocation::cast_vec(bits)
    }

    fn wide(self) -> i128 {
        self.into()
    }

    fn to_f64(self) -> f64 {
        self as f64
    }

    fn image(sums: &[Self]) -> ImageValues {
        ImageValues::I64(sums.to_vec())
    }

    fn narrow_image(sums: &[Self]) -> ImageValues {
        Self::image(sums)
    }
}
