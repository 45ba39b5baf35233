//! Packs made here are read alike by `Pack` and by a decoder that shares no code with it.

use crate::producing::{inspect_with, plan_with, run};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tensilo_core::Quiet;
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::write::{FileWriter, Filters, Value, WriteOptions};
use tensilo_pack::Profile;
use tensilo_pack::products::Request;
use tensilo_pack::read::{Pack, Values};
use tensilo_testkit::{oracle, slow_pack, strategies};

/// A family: what its files hold.
#[derive(Debug, Clone)]
pub struct Family {
    shape: [u64; 4],
    /// Raw values, scan-major.
    raw: Vec<u16>,
    /// Codes of the mask; empty for no mask at all.
    mask: Vec<u32>,
    /// Frames of each member.
    members: Vec<u64>,
    calibrated: bool,
}

/// A number that looks random and depends on its seed only.
fn noise(seed: u64, k: u64) -> u64 {
    let mut x = seed ^ k.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Families of a profile: counts of every width, excluded pixels constant only where they must be.
pub fn families(profile: Profile) -> impl Strategy<Value = Family> {
    let tile = u64::from(profile.tile());
    let most_bits = if profile == Profile::ExactUint8BitPacked { 8 } else { 16 };
    let sides = (1_u64..=4, 0_u32..=2, 1_u64..=7, 1_u64..=11);
    let rest =
        (any::<u64>(), any::<bool>(), 0_u64..4, any::<bool>(), proptest::collection::vec(1_u64..200, 0..3));
    (sides, rest).prop_map(move |((tiles, rows, r, c), (seed, masked, zeros, calibrated, cuts))| {
        let scans = tiles * tile;
        let (rows, pixels) = (1 << rows, r * c);
        let mask: Vec<u32> = if masked {
            (0..pixels)
                .map(|p| if p > 0 && noise(seed, p).is_multiple_of(7) { 1 << (p % 32) } else { 0 })
                .collect()
        } else {
            Vec::new()
        };
        let value = |scan: u64, p: u64| {
            if mask.get(p as usize).is_some_and(|m| *m != 0) && profile == Profile::ExactUint8BitPacked {
                return [u16::MAX, 0, 3][(p % 3) as usize];
            }
            let bits = noise(seed, 1000 + p * 64 + scan / 32) % (most_bits + 1);
            if noise(seed, 77 + p) % 4 < zeros {
                0
            } else {
                (noise(seed, scan << 32 | p) & ((1 << bits) - 1)) as u16
            }
        };
        let raw =
            (0..scans).flat_map(|s| (0..pixels).map(move |p| (s, p))).map(|(s, p)| value(s, p)).collect();
        let mut members = Vec::new();
        let mut left = scans;
        for cut in cuts {
            if cut < left {
                members.push(cut);
                left -= cut;
            }
        }
        members.push(left);
        Family { shape: [rows, scans / rows, r, c], raw, mask, members, calibrated }
    })
}

/// Writes a master and its members; returns the master.
pub fn write(family: &Family, folder: &Path) -> PathBuf {
    let [scan_rows, scan_columns, r, c] = family.shape;
    let pixels = (r * c) as usize;
    let begin = |name: &str| {
        FileWriter::create(SystemDisk::shared(), folder.join(name), WriteOptions::default()).unwrap()
    };
    let mut rest = &family.raw[..];
    let mut master = begin("s_master.h5");
    for (k, frames) in family.members.iter().enumerate() {
        let (part, after) = rest.split_at(*frames as usize * pixels);
        rest = after;
        let name = format!("s_data_{:06}.h5", k + 1);
        let mut w = begin(&name);
        let data = w.dataset("/entry/data/data").shape(&[*frames, r, c]).chunk(&[1, r, c]);
        data.filters(Filters::bitshuffle_lz4()).write(part).unwrap();
        w.finish().unwrap();
        master.external_link(format!("/entry/data/data_{:06}", k + 1), &name, "/entry/data/data").unwrap();
    }
    let shape = Value::array(&[scan_rows, scan_columns], &[2]).unwrap();
    master.attribute("/entry/data", "scan_shape", shape).unwrap();
    if !family.mask.is_empty() {
        let mask = master.dataset("/entry/instrument/detector/detectorSpecific/pixel_mask");
        mask.shape(&[r, c]).write(&family.mask).unwrap();
    }
    if family.calibrated {
        for (name, step) in [("y_pixel_size", 0.75), ("x_pixel_size", 1.25)] {
            let path = format!("/entry/instrument/scan/{name}");
            master.dataset(path).shape(&[]).attribute("units", "nm").write(&[step]).unwrap();
        }
    }
    master.finish().unwrap();
    folder.join("s_master.h5")
}

fn agree(family: &Family, profile: Profile) {
    let work = oracle::temp_dir();
    let master = write(family, work.path());
    let indexes = work.path().join("indexes");
    let inspection = inspect_with(&master, &indexes).unwrap();
    let destination = work.path().join("out.h5");
    let plan = plan_with(&inspection, &destination, |o| o.profile = profile).unwrap();
    run(&inspection, &plan, &indexes).unwrap();
    let slow = slow_pack::decode(&std::fs::read(&destination).unwrap()).unwrap();
    assert_eq!(slow.shape.map(|n| n as u64), family.shape);
    assert_eq!(slow.raw.as_deref(), Some(&family.raw[..]), "raw values");
    let pixels = (family.shape[2] * family.shape[3]) as usize;
    let excluded = |p: usize| family.mask.get(p).is_some_and(|m| *m != 0);
    let working: Vec<u16> =
        family.raw.iter().enumerate().map(|(k, v)| if excluded(k % pixels) { 0 } else { *v }).collect();
    assert_eq!(slow.working, working, "working values");
    let pack = Pack::open(&destination).unwrap();
    for (values, expected) in [(Values::Raw, &family.raw), (Values::Masked, &working)] {
        let mut all = vec![9; expected.len()];
        pack.frames_into(0..pack.geometry().scans(), values, &mut all, &Quiet).unwrap();
        assert_eq!(all, *expected, "{values:?}");
    }
    let request = Request { diffraction: true, moments: true, bands: None };
    let products = pack.products(&request, &Quiet).unwrap();
    let total: u64 = working.iter().map(|v| u64::from(*v)).sum();
    assert_eq!(products.counts().unwrap().total, total);
    assert_eq!(products.moments.unwrap().total.iter().sum::<u64>(), total);
    let calibration = &slow.manifest["source_calibration"];
    assert_eq!(calibration.get("scan_row_sampling_nm").is_some(), family.calibrated, "{calibration}");
}

proptest! {
    #![proptest_config(strategies::fixed(12))]

    #[test]
    fn uint8_packs_are_read_by_the_formats_rules(family in families(Profile::ExactUint8BitPacked)) {
        agree(&family, Profile::ExactUint8BitPacked);
    }

    #[test]
    fn uint16_packs_are_read_by_the_formats_rules(family in families(Profile::ExactUint16Lz4)) {
        agree(&family, Profile::ExactUint16Lz4);
    }
}
