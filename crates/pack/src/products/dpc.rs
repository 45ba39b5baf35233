//! Differential phase contrast from moments: deflections of the centre of mass, and their integral.

use super::fft::{Complex, two_d};
use super::{Moments, Sum};
use crate::format::manifest::DetectorCalibration;
use crate::geometry::Geometry;
use tensilo_core::{Error, Result};

/// What deflections are measured against, and how the detector lies to the scan.
///
/// The components are exchanged first, where the detector's order is the other way round; then
/// `row' = row cos a - column sin a`, `column' = row sin a + column cos a`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DpcFrame {
    /// Row and column, in detector pixels, that count as no deflection; `None` takes the mean centre of mass.
    pub reference: Option<[f64; 2]>,
    /// Angle from detector to scan in degrees.
    pub rotation_degrees: f64,
    /// Do row and column change places?
    pub exchanged: bool,
}

impl DpcFrame {
    /// What a pack's detector calibration says.
    pub fn calibrated(calibration: &DetectorCalibration) -> Self {
        let (rotation_degrees, exchanged) = calibration.dpc.unwrap_or((0.0, false));
        Self { reference: Some(calibration.center_px), rotation_degrees, exchanged }
    }
}

/// Deflections of every scan in detector pixels, in the scan's axes; 0 where a scan has no counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Dpc {
    /// Scan rows and columns.
    pub scan: [usize; 2],
    /// Along scan rows (y).
    pub row: Vec<f64>,
    /// Along scan columns (x).
    pub column: Vec<f64>,
}

impl<S: Sum> Moments<S> {
    /// Deflections of the centre of mass.
    ///
    /// # Errors
    /// `InvalidArgument` when the moments are not of this geometry, or an angle or reference is no number.
    pub fn dpc(&self, geometry: &Geometry, frame: &DpcFrame) -> Result<Dpc> {
        let [rows, columns, ..] = geometry.shape().map(|n| n as usize);
        if self.total.len() != rows * columns {
            return Err(Error::invalid(format!("{} moments for {rows} x {columns} scans", self.total.len())));
        }
        let reference_is_finite = frame.reference.is_none_or(|r| r.iter().all(|x| x.is_finite()));
        if !frame.rotation_degrees.is_finite() || !reference_is_finite {
            return Err(Error::invalid(format!("{frame:?} holds no numbers")));
        }
        let [r, c] = self.center_of_mass();
        let [row0, column0] = frame.reference.unwrap_or_else(|| [mean(&r), mean(&c)]);
        let (sin, cos) = frame.rotation_degrees.to_radians().sin_cos();
        let turn = |(r, c): (&f64, &f64)| {
            if r.is_nan() {
                return (0.0, 0.0);
            }
            let (mut r, mut c) = (r - row0, c - column0);
            if frame.exchanged {
                (r, c) = (c, r);
            }
            (r * cos - c * sin, r * sin + c * cos)
        };
        let (row, column) = r.iter().zip(&c).map(turn).unzip();
        Ok(Dpc { scan: [rows, columns], row, column })
    }
}

/// The mean of what is a number; 0 when nothing is.
fn mean(values: &[f64]) -> f64 {
    let (sum, n) = values.iter().filter(|v| !v.is_nan()).fold((0.0, 0_u64), |(s, n), v| (s + v, n + 1));
    if n == 0 { 0.0 } else { sum / n as f64 }
}

impl Dpc {
    /// The integral of the deflections (iDPC) in detector pixels times scan steps, of mean 0.
    ///
    /// The least-squares solution on a periodic scan: `F = (k_r D_r + k_c D_c) / (2πi (k_r² + k_c²))`, `k` in cycles
    /// for each scan step, `F = 0` at `k = 0`.
    pub fn integrate(&self) -> Vec<f64> {
        let [rows, columns] = self.scan;
        let spectrum = |values: &[f64]| {
            let mut data: Vec<Complex> = values.iter().map(|v| [*v, 0.0]).collect();
            two_d(&mut data, rows, columns, false);
            data
        };
        let (r, c) = (spectrum(&self.row), spectrum(&self.column));
        let mut phase = vec![[0.0; 2]; rows * columns];
        for (at, to) in phase.iter_mut().enumerate() {
            let (kr, kc) = (frequency(at / columns, rows), frequency(at % columns, columns));
            let k2 = kr * kr + kc * kc;
            if k2 > 0.0 {
                let scale = 1.0 / (std::f64::consts::TAU * k2);
                let (re, im) = (kr * r[at][0] + kc * c[at][0], kr * r[at][1] + kc * c[at][1]);
                // Divided by i.
                *to = [im * scale, -re * scale];
            }
        }
        two_d(&mut phase, rows, columns, true);
        phase.iter().map(|p| p[0]).collect()
    }
}

/// The `k`-th frequency of `n`, in cycles for each step; the upper half is negative.
fn frequency(k: usize, n: usize) -> f64 {
    let signed = if k < n.div_ceil(2) { k as f64 } else { k as f64 - n as f64 };
    signed / n as f64
}
