//! Distances, summed in a fixed order, so that they are the same bits on every machine.

use tensilo_core::{Error, Result};

/// How far two vectors are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The square of the Euclidean distance.
    L2,
    /// One less the cosine of the angle between them, from 0 to 2; 1 where one of them is zero.
    Cosine,
}

/// Sums that are kept apart, so that the compiler may use wide registers.
const LANES: usize = 16;

/// Larger magnitudes could overflow in a sum of squares.
const LARGEST: f32 = 1e15;

impl Metric {
    /// The name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::Cosine => "cosine",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::L2, Self::Cosine].into_iter().find(|m| m.name() == name)
    }
}

/// Adds up `term` of each pair, lane by lane, then the lanes from the first to the last.
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let (mut left, mut right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let mut lanes = [0.0_f32; LANES];
    for (x, y) in left.by_ref().zip(right.by_ref()) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += term(*x, *y);
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(left.remainder()).zip(right.remainder()) {
        *lane += term(*x, *y);
    }
    lanes.iter().sum()
}

/// The square of the Euclidean distance.
pub(crate) fn square_distance(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| (x - y) * (x - y))
}

/// The scalar product.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| x * y)
}

/// One divided by the length of a vector; 0 for a vector of no length.
pub(crate) fn inverse_length(a: &[f32]) -> f32 {
    let square = dot(a, a);
    if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 }
}

/// Checks that distances between vectors of such elements are numbers.
pub(crate) fn check_elements(vectors: &[f32], length: usize) -> Result<()> {
    match vectors.iter().position(|x| x.is_nan() || x.abs() > LARGEST) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!(
            "element {} of vector {} is {}; elements are numbers of a magnitude of 1e15 at most",
            at % length,
            at / length,
            vectors[at]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_double_precision_to_seven_digits() {
        for n in [0, 1, 15, 16, 17, 64, 100, 4099] {
            let a: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
            let b: Vec<f32> = (0..n).map(|i| (i as f32 * 1.3).cos()).collect();
            let pairs = || a.iter().zip(&b).map(|(x, y)| (f64::from(*x), f64::from(*y)));
            let wide: f64 = pairs().map(|(x, y)| (x - y) * (x - y)).sum();
            assert!((f64::from(square_distance(&a, &b)) - wide).abs() <= 1e-6 * wide.max(1.0), "{n}");
            let wide: f64 = pairs().map(|(x, y)| x * y).sum();
            assert!((f64::from(dot(&a, &b)) - wide).abs() <= 1e-6 * n as f64, "{n}");
        }
    }

    #[test]
    fn a_vector_of_no_length_has_no_direction() {
        assert_eq!(inverse_length(&[0.0; 5]), 0.0);
        assert_eq!(inverse_length(&[0.0, 4.0, 3.0]), 0.2);
    }
}
