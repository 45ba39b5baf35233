//! Sampling of scan and detector, where the source states it in units that leave no doubt.

use crate::digest::Sha256Sum;
use serde_json::{Map, Value};
use tensilo_core::{Error, Result};

/// What the source says about its sampling; absent values are not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    /// Scan step along rows (y), in nanometres.
    pub scan_row_sampling_nm: Option<f64>,
    /// Scan step along columns (x), in nanometres.
    pub scan_column_sampling_nm: Option<f64>,
    /// Detector sampling along rows (y), in the unit below.
    pub detector_row_sampling: Option<f64>,
    /// Detector sampling along columns (x), in the unit below.
    pub detector_column_sampling: Option<f64>,
    /// Unit of the detector sampling: `mrad`.
    pub detector_sampling_unit: Option<String>,
}

/// The keys in the manifest and in the receipt.
const KEYS: [(&str, &str); 5] = [
    ("scan_row_sampling_nm", "scanRowSamplingNanometer"),
    ("scan_column_sampling_nm", "scanColumnSamplingNanometer"),
    ("detector_row_sampling", "detectorRowSampling"),
    ("detector_column_sampling", "detectorColumnSampling"),
    ("detector_sampling_unit", "detectorSamplingUnit"),
];

impl Calibration {
    fn values(&self) -> [Option<Value>; 5] {
        let number = |v: Option<f64>| v.and_then(serde_json::Number::from_f64).map(Value::Number);
        [
            number(self.scan_row_sampling_nm),
            number(self.scan_column_sampling_nm),
            number(self.detector_row_sampling),
            number(self.detector_column_sampling),
            self.detector_sampling_unit.clone().map(Value::String),
        ]
    }

    fn object(&self, receipt: bool) -> Map<String, Value> {
        let keys = KEYS.map(|(manifest, in_receipt)| if receipt { in_receipt } else { manifest });
        let mut map = Map::new();
        for (key, value) in keys.into_iter().zip(self.values()) {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        }
        map
    }

    /// SHA-256 of the canonical JSON: the present fields, sorted, compact, numbers in shortest round-trip form.
    pub fn sha256(&self) -> Sha256Sum {
        Sha256Sum::of(Value::Object(self.object(false)).to_string().as_bytes())
    }

    /// The manifest's `source_calibration`.
    pub fn manifest_object(&self) -> Value {
        let mut map = self.object(false);
        map.insert("sha256".into(), self.sha256().to_string().into());
        Value::Object(map)
    }

    /// The receipt's `calibration`.
    pub fn receipt_object(&self) -> Value {
        let mut map = self.object(true);
        map.insert("sha256".into(), self.sha256().to_string().into());
        Value::Object(map)
    }

    /// Reads a `source_calibration` or `calibration` object and the hash it states.
    ///
    /// The hash of a foreign writer may differ from [`sha256`](Self::sha256): Apple's JSON prints numbers with 17
    /// digits.
    ///
    /// # Errors
    /// `Corrupt` when a field has the wrong type.
    pub fn parse(object: &Value) -> Result<(Self, Sha256Sum)> {
        let map = object.as_object().ok_or_else(|| Error::corrupt("calibration is not an object"))?;
        let get = |i: usize| map.get(KEYS[i].0).or_else(|| map.get(KEYS[i].1)).filter(|v| !v.is_null());
        let number = |i: usize| {
            get(i)
                .map(|v| {
                    v.as_f64()
                        .ok_or_else(|| Error::corrupt(format!("calibration: {} is no number", KEYS[i].0)))
                })
                .transpose()
        };
        let unit = get(4)
            .map(|v| {
                let text = v.as_str().ok_or_else(|| Error::corrupt("calibration: the unit is no text"))?;
                Ok::<_, Error>(text.to_owned())
            })
            .transpose()?;
        let sum = map
            .get("sha256")
            .and_then(Value::as_str)
            .ok_or_else(|| Error::corrupt("calibration has no sha256"))?
            .parse()?;
        Ok((
            Self {
                scan_row_sampling_nm: number(0)?,
                scan_column_sampling_nm: number(1)?,
                detector_row_sampling: number(2)?,
                detector_column_sampling: number(3)?,
                detector_sampling_unit: unit,
            },
            sum,
        ))
    }
}

/// Metres of a unit of length, case-insensitive.
pub fn metres(unit: &str) -> Option<f64> {
    match unit.trim().to_lowercase().as_str() {
        "m" => Some(1.0),
        "mm" => Some(1e-3),
        "um" | "µm" | "μm" => Some(1e-6),
        "nm" => Some(1e-9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fields_hash_as_an_empty_object() {
        // The contract, section 4; the sum is that of `{}`.
        let sum = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(Calibration::default().sha256().to_string(), sum);
    }

    #[test]
    fn the_canonical_text_is_sorted_compact_and_shortest() {
        // The text and sum of fixture `mini`.
        let c = Calibration {
            scan_row_sampling_nm: Some(0.8),
            scan_column_sampling_nm: Some(1.2),
            detector_row_sampling: Some(0.7499998593750473),
            detector_column_sampling: Some(0.7499998593750473),
            detector_sampling_unit: Some("mrad".into()),
        };
        assert_eq!(
            c.sha256().to_string(),
            "e393d3d1a51940e7841bd9e53eb05d7d06ef25fdc3beee0ae6896d93ddb2fa06"
        );
        assert_eq!(Calibration::parse(&c.manifest_object()).unwrap(), (c.clone(), c.sha256()));
        assert_eq!(Calibration::parse(&c.receipt_object()).unwrap(), (c.clone(), c.sha256()));
    }

    #[test]
    fn units_are_case_insensitive_and_never_guessed() {
        assert_eq!(metres("NM"), Some(1e-9));
        assert_eq!(metres("µm"), Some(1e-6));
        assert_eq!(metres("m"), Some(1.0));
        assert_eq!(metres(""), None);
        assert_eq!(metres("px"), None);
    }
}
