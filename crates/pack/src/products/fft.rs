//! Discrete Fourier transforms of any length, for integrating gradients over a scan.
//!
//! Mixed radix: a length of prime factors p, q, … costs about n (p + q + …) multiplications. A scan side is rarely a
//! large prime, and then it is only slower.

/// A complex number.
pub(super) type Complex = [f64; 2];

fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// Transforms one length, again and again.
pub(super) struct Fft {
    /// exp(-2πi k / n).
    roots: Vec<Complex>,
    scratch: Vec<Complex>,
}

impl Fft {
    pub(super) fn new(n: usize) -> Self {
        let root = |k: usize| {
            let (sin, cos) = (-std::f64::consts::TAU * k as f64 / n as f64).sin_cos();
            [cos, sin]
        };
        Self { roots: (0..n).map(root).collect(), scratch: vec![[0.0; 2]; n] }
    }

    /// Transforms in place; not scaled.
    pub(super) fn forward(&mut self, data: &mut [Complex]) {
        self.scratch.copy_from_slice(data);
        recurse(&self.scratch, 1, data, &self.roots);
    }

    /// The inverse, scaled by 1/n.
    pub(super) fn inverse(&mut self, data: &mut [Complex]) {
        let n = data.len() as f64;
        data.iter_mut().for_each(|c| c[1] = -c[1]);
        self.forward(data);
        data.iter_mut().for_each(|c| *c = [c[0] / n, -c[1] / n]);
    }
}

/// Transforms every `stride`-th value of `x` into `out`.
fn recurse(x: &[Complex], stride: usize, out: &mut [Complex], roots: &[Complex]) {
    let n = out.len();
    if n <= 1 {
        if let (Some(to), Some(from)) = (out.first_mut(), x.first()) {
            *to = *from;
        }
        return;
    }
    let p = (2..).take_while(|p| p * p <= n).find(|p| n.is_multiple_of(*p)).unwrap_or(n);
    let (m, step) = (n / p, roots.len() / n);
    for (r, part) in out.chunks_exact_mut(m).enumerate() {
        recurse(&x[r * stride..], stride * p, part, roots);
    }
    let mut terms = vec![[0.0; 2]; p];
    for k in 0..m {
        for (r, term) in terms.iter_mut().enumerate() {
            *term = times(out[r * m + k], roots[r * k * step]);
        }
        for q in 0..p {
            let mut sum = [0.0; 2];
            for (r, term) in terms.iter().enumerate() {
                let [a, b] = times(*term, roots[r * q % p * m * step]);
                sum = [sum[0] + a, sum[1] + b];
            }
            out[q * m + k] = sum;
        }
    }
}

/// Transforms rows, then columns.
pub(super) fn two_d(data: &mut [Complex], rows: usize, columns: usize, inverse: bool) {
    let run =
        |fft: &mut Fft, line: &mut [Complex]| if inverse { fft.inverse(line) } else { fft.forward(line) };
    let mut fft = Fft::new(columns);
    data.chunks_exact_mut(columns).for_each(|row| run(&mut fft, row));
    let mut fft = Fft::new(rows);
    let mut line = vec![[0.0; 2]; rows];
    for c in 0..columns {
        for (to, row) in line.iter_mut().zip(data.chunks_exact(columns)) {
            *to = row[c];
        }
        run(&mut fft, &mut line);
        for (from, row) in line.iter().zip(data.chunks_exact_mut(columns)) {
            row[c] = *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_transforms_by_the_definition_and_back() {
        for n in [1_usize, 2, 3, 4, 5, 6, 8, 12, 13, 30, 64, 66, 97, 100] {
            let data: Vec<Complex> =
                (0..n).map(|i| [(i * i % 17) as f64 - 4.0, (i * 7 % 5) as f64]).collect();
            let mut found = data.clone();
            let mut fft = Fft::new(n);
            fft.forward(&mut found);
            for (k, f) in found.iter().enumerate() {
                let mut sum = [0.0; 2];
                for (j, x) in data.iter().enumerate() {
                    let (sin, cos) = (-std::f64::consts::TAU * (j * k % n) as f64 / n as f64).sin_cos();
                    let [a, b] = times(*x, [cos, sin]);
                    sum = [sum[0] + a, sum[1] + b];
                }
                assert!((f[0] - sum[0]).abs() < 1e-9 && (f[1] - sum[1]).abs() < 1e-9, "{n}, {k}");
            }
            fft.inverse(&mut found);
            for (f, x) in found.iter().zip(&data) {
                assert!((f[0] - x[0]).abs() < 1e-10 && (f[1] - x[1]).abs() < 1e-10, "{n}");
            }
        }
    }
}
