//! How far two numbers may be apart and still be the same, by the rules of h5diff's options `-d` and `-p`.

use crate::value::Value;

/// What counts as the same number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Tolerance {
    /// Equal values; 0 and −0 are not.
    #[default]
    Exact,
    /// `|a − b|` is at most this.
    Absolute(f64),
    /// `|(b − a) / a|` is at most this, `a` being of the first file; where `a` is 0, `b` must be too.
    Relative(f64),
}

impl Tolerance {
    /// Are two numbers the same? Two NaNs are, and an infinity is the same as itself only.
    pub(super) fn same(self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            // In the precision of the type, as h5diff computes.
            (Value::Float32(x), Value::Float32(y)) => {
                let (wide_x, wide_y) = (f64::from(*x), f64::from(*y));
                match self {
                    Self::Exact => equal(wide_x, wide_y),
                    _ if !(x.is_finite() && y.is_finite()) => equal(wide_x, wide_y),
                    Self::Absolute(most) => (x - y).abs() <= most as f32,
                    Self::Relative(most) => near(f64::from(y - x), wide_x, wide_y, most),
                }
            }
            (Value::Integer(x), Value::Integer(y)) => match self {
                Self::Exact => x == y,
                Self::Absolute(most) => x.abs_diff(*y) as f64 <= most,
                Self::Relative(most) => near((y - x) as f64, *x as f64, *y as f64, most),
            },
            _ => match (wide(a), wide(b)) {
                (Some(x), Some(y)) => match self {
                    Self::Exact => equal(x, y),
                    _ if !(x.is_finite() && y.is_finite()) => equal(x, y),
                    Self::Absolute(most) => (x - y).abs() <= most,
                    Self::Relative(most) => near(y - x, x, y, most),
                },
                _ => a == b,
            },
        }
    }
}

fn wide(v: &Value) -> Option<f64> {
    match v {
        Value::Float32(x) => Some(f64::from(*x)),
        Value::Float64(x) => Some(*x),
        _ => None,
    }
}

fn equal(x: f64, y: f64) -> bool {
    x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
}

fn near(difference: f64, x: f64, y: f64, most: f64) -> bool {
    if x == 0.0 { y == 0.0 } else { (difference / x).abs() <= most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_limit_are_the_same_and_beyond_it_are_not() {
        let (int, float) = (Value::Integer, Value::Float64);
        for (a, b, absolute, relative) in [
            (int(10), int(12), 2.0, 0.2),
            (int(-10), int(-12), 2.0, 0.2),
            (int(i128::from(u64::MAX)), int(0), 18_446_744_073_709_551_615.0, 1.0),
            (float(4.0), float(5.0), 1.0, 0.25),
            (Value::Float32(4.0), Value::Float32(5.0), 1.0, 0.25),
            (Value::Float32(4.0), float(5.0), 1.0, 0.25),
        ] {
            for (limit, made) in [
                (absolute, Tolerance::Absolute as fn(f64) -> Tolerance),
                (relative, Tolerance::Relative as fn(f64) -> Tolerance),
            ] {
                assert!(made(limit).same(&a, &b), "{a:?} {b:?} {limit}");
                assert!(!made(limit * 0.999).same(&a, &b), "{a:?} {b:?} {limit}");
            }
            assert!(!Tolerance::Exact.same(&a, &b));
        }
    }

    #[test]
    fn zeros_and_what_is_no_finite_number_have_rules_of_their_own() {
        let f = Value::Float64;
        assert!(Tolerance::Relative(0.1).same(&f(0.0), &f(-0.0)));
        assert!(!Tolerance::Relative(1e9).same(&f(0.0), &f(1e-30)));
        assert!(!Tolerance::Exact.same(&f(0.0), &f(-0.0)));
        for limit in [Tolerance::Exact, Tolerance::Absolute(1e300), Tolerance::Relative(1e300)] {
            assert!(limit.same(&f(f64::NAN), &f(-f64::NAN)));
            assert!(limit.same(&f(f64::INFINITY), &f(f64::INFINITY)));
            assert!(!limit.same(&f(f64::INFINITY), &f(1.0)));
            assert!(!limit.same(&f(1.0), &f(f64::NEG_INFINITY)));
            assert!(!limit.same(&f(f64::NAN), &f(1.0)));
        }
    }
}
