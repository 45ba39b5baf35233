//! Products are what NumPy makes of the whole array.

use crate::fixtures::{expected, packs};
use serde_json::{Value, json};
use tensilo_core::Quiet;
use tensilo_core::threads::Threads;
use tensilo_pack::Sha256Sum;
use tensilo_pack::products::{BandSums, Bands, Choice, DpcFrame, Moments, Request, Ring};
use tensilo_pack::read::{Pack, ReadOptions};
use tensilo_testkit::{oracle, slow_pack};

const ALL: [&str; 8] =
    ["mini", "family", "multishard", "prime", "allzero", "ext_96x96", "uint16_enc2", "uint16_lz4"];

fn check(name: &str, product: &str, stated: &Value, dtype: &str, values: &[u64]) {
    let stated = &stated[product];
    assert_eq!(stated["dtype"], dtype, "{name}: {product}");
    let bytes: Vec<u8> = match dtype {
        "<u8" => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        _ => values.iter().flat_map(|v| u32::try_from(*v).unwrap().to_le_bytes()).collect(),
    };
    assert_eq!(json!(values.iter().take(4).collect::<Vec<_>>()), stated["first"], "{name}: {product}");
    assert_eq!(json!(values.iter().sum::<u64>()), stated["sum"], "{name}: {product}");
    assert_eq!(json!(Sha256Sum::of(&bytes).to_string()), stated["sha256"], "{name}: {product}");
}

fn rings(pack: &Pack, e: &Value) -> Bands {
    let number = |v: &Value| v.as_f64().unwrap();
    let center = |v: &Value| [number(&v["center"][0]), number(&v["center"][1])];
    let (bf, adf) = (&e["bf"], &e["adf"]);
    let rings = [
        Ring { center: center(bf), inner: 0.0, outer: number(&bf["radius"]) },
        Ring { center: center(bf), inner: number(&bf["radius"]) / 2.0, outer: number(&bf["radius"]) },
        Ring { center: center(adf), inner: number(&adf["inner"]), outer: number(&adf["outer"]) },
    ];
    assert_eq!(rings[0].center, tensilo_pack::products::middle(pack.geometry()));
    Bands::rings(pack.geometry(), &rings).unwrap()
}

#[test]
fn every_product_hashes_as_expected_whatever_the_number_of_threads() {
    let Some(folder) = packs(1) else { return };
    for name in ALL {
        let e = expected(name);
        let e = &e["products"];
        for threads in [1, 2, 3] {
            let options = ReadOptions { threads: Threads::new(threads), ..ReadOptions::default() };
            let pack = Pack::open_with(folder.join(name).join("cache.h5"), options).unwrap();
            let bands = rings(&pack, e);
            let selected = bands.selected();
            assert_eq!(
                (json!(selected[0]), json!(selected[2])),
                (e["bf"]["selected"].clone(), e["adf"]["selected"].clone())
            );
            let p = pack.products(&Request::all(bands), &Quiet).unwrap();
            let m = p.moments.as_ref().unwrap();
            check(name, "total_per_scan", e, "<u8", &m.total);
            check(name, "detector_row_moment_per_scan", e, "<u8", &m.row);
            check(name, "detector_column_moment_per_scan", e, "<u8", &m.column);
            check(name, "diffraction_sum", e, "<u8", p.diffraction_sum.as_ref().unwrap());
            check(name, "diffraction_max", e, "<u8", p.diffraction_max.as_ref().unwrap());
            let [bf, _, adf] = p.bands.as_ref().unwrap();
            assert!(matches!((bf, adf), (BandSums::U32(_), BandSums::U32(_))), "{name}");
            check(name, "bf", e, "<u4", &bf.to_u64());
            check(name, "adf", e, "<u4", &adf.to_u64());
            let counts = p.counts().unwrap();
            assert_eq!(json!(counts.total), e["total_per_scan"]["sum"]);
        }
    }
}

#[test]
fn annular_bright_field_mean_and_centre_of_mass_follow_from_the_slow_decoder() {
    let Some(folder) = packs(1) else { return };
    for name in ["mini", "uint16_enc2", "uint16_lz4"] {
        let path = folder.join(name).join("cache.h5");
        let slow = slow_pack::decode(&std::fs::read(&path).unwrap()).unwrap();
        let pack = Pack::open(&path).unwrap();
        let e = expected(name);
        let bands = rings(&pack, &e["products"]);
        let membership = bands.membership().to_vec();
        let p = pack.products(&Request::all(bands), &Quiet).unwrap();
        let pixels = pack.geometry().pixels() as usize;
        let columns = pack.geometry().detector_columns() as usize;
        let mut mean = vec![0_u64; pixels];
        let [_, abf, _] = p.bands.as_ref().unwrap();
        let [com_r, com_c] = p.moments.as_ref().unwrap().center_of_mass();
        for (scan, frame) in slow.working.chunks(pixels).enumerate() {
            let (mut sum, mut t, mut r, mut c) = (0_u64, 0_u64, 0_u64, 0_u64);
            for (k, v) in frame.iter().enumerate() {
                let v = u64::from(*v);
                mean[k] += v;
                t += v;
                r += v * (k / columns) as u64;
                c += v * (k % columns) as u64;
                sum += if membership[k] & 2 != 0 { v } else { 0 };
            }
            assert_eq!(abf.to_u64()[scan], sum, "{name}: scan {scan}");
            assert_eq!([com_r[scan], com_c[scan]], [r as f64 / t as f64, c as f64 / t as f64]);
        }
        let n = pack.geometry().scans() as f64;
        let expected: Vec<f64> = mean.iter().map(|d| *d as f64 / n).collect();
        assert_eq!(p.diffraction_mean().unwrap(), expected, "{name}");
        assert_eq!(p.counts().unwrap().mean_per_pattern, mean.iter().sum::<u64>() as f64 / n);
    }
}

#[test]
fn images_by_name_hash_as_expected_and_senseless_names_are_refused() {
    let Some(folder) = packs(1) else { return };
    for name in ALL {
        let e = expected(name);
        let e = &e["products"];
        let pack = Pack::open(folder.join(name).join("cache.h5")).unwrap();
        let number = |v: &Value| v.as_f64().unwrap();
        let choice = Choice {
            only: Vec::new(),
            rings: [
                Some((0.0, number(&e["bf"]["radius"]))),
                None,
                Some((number(&e["adf"]["inner"]), number(&e["adf"]["outer"]))),
            ],
            center: Some([number(&e["bf"]["center"][0]), number(&e["bf"]["center"][1])]),
        };
        let made = pack.images(&choice, &Quiet).unwrap();
        let mut checked = 0;
        for image in &made.images {
            let Some(stated) = e.get(image.name) else { continue };
            assert_eq!(stated["dtype"], image.values.descr(), "{name}: {}", image.name);
            let found = Sha256Sum::of(&image.values.to_bytes()).to_string();
            assert_eq!(stated["sha256"], found, "{name}: {}", image.name);
            checked += 1;
        }
        assert_eq!(checked, e.as_object().unwrap().len() - usize::from(e.get("note").is_some()), "{name}");
        assert_eq!(json!(made.counts.unwrap().total), e["total_per_scan"]["sum"], "{name}");
        let only = |names: &[&str]| Choice {
            only: names.iter().map(|n| (*n).to_owned()).collect(),
            ..choice.clone()
        };
        let some = pack.images(&only(&["com_row", "bf"]), &Quiet).unwrap();
        let names: Vec<&str> = some.images.iter().map(|i| i.name).collect();
        assert_eq!(names, ["com_row", "bf"], "{name}");
        for wrong in ["abf", "sums", ""] {
            let e = pack.images(&only(&[wrong]), &Quiet).unwrap_err();
            assert_eq!(e.kind(), tensilo_core::ErrorKind::InvalidArgument, "{wrong}");
        }
    }
}

#[test]
fn single_products_equal_those_of_the_whole_pass() {
    let Some(folder) = packs(1) else { return };
    let pack = Pack::open(folder.join("multishard/cache.h5")).unwrap();
    let bands = rings(&pack, &expected("multishard")["products"]);
    let all = pack.products(&Request::all(bands.clone()), &Quiet).unwrap();
    let only = |r: Request| pack.products(&r, &Quiet).unwrap();
    let d = only(Request { diffraction: true, ..Request::default() });
    assert_eq!((d.diffraction_sum, d.moments), (all.diffraction_sum, None));
    let m = only(Request { moments: true, ..Request::default() });
    assert_eq!((m.moments, m.bands), (all.moments, None));
    let b = only(Request { bands: Some(bands), ..Request::default() });
    assert_eq!((b.bands, b.diffraction_max), (all.bands, None));
}

#[test]
fn bins_are_sums_of_blocks_and_partial_edges_stay() {
    let Some(folder) = packs(1) else { return };
    let pack = Pack::open(folder.join("uint16_lz4/cache.h5")).unwrap();
    let (rows, columns) = (64, 64);
    for factor in [1_usize, 2, 5, 64, 100] {
        let b = pack.binned(100..140, factor as u32, &Quiet).unwrap();
        let side = 64_usize.div_ceil(factor);
        assert_eq!(b.shape, [40, side, side]);
        for (scan, found) in (100..140).zip(b.values.chunks(side * side)) {
            let frame = pack.frame(scan).unwrap();
            let mut expected = vec![0_u32; side * side];
            for r in 0..rows {
                for c in 0..columns {
                    expected[r / factor * side + c / factor] += u32::from(frame[r * columns + c]);
                }
            }
            assert_eq!(found, expected, "bin {factor}, scan {scan}");
        }
    }
    let wide = pack.binned(0..1, 2, &Quiet).unwrap();
    assert!(wide.to_u16().is_err(), "4 x 65535 does not fit 16 bits");
    let narrow = Pack::open(folder.join("mini/cache.h5")).unwrap().binned(0..2, 16, &Quiet).unwrap();
    assert_eq!(narrow.bound, 65_280);
    let sums: Vec<u32> = narrow.to_u16().unwrap().into_iter().map(u32::from).collect();
    assert_eq!(sums, narrow.values);
}

#[test]
fn integrated_deflections_are_what_numpy_integrates() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let geometry = tensilo_pack::Geometry::new([6, 10, 8, 8]).unwrap();
    let mut x = 5_u64;
    let mut next = |n: u64| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 33) % n
    };
    let total: Vec<u64> = (0..60).map(|i| if i == 17 { 0 } else { 100 + next(50) }).collect();
    let mut moment =
        || total.iter().map(|t| if *t == 0 { 0 } else { 3 * t + next(40) }).collect::<Vec<u64>>();
    let (row, column) = (moment(), moment());
    let m = Moments { total: total.clone(), row: row.clone(), column: column.clone() };
    let frame = DpcFrame { reference: None, rotation_degrees: 20.0, exchanged: true };
    let dpc = m.dpc(&geometry, &frame).unwrap();
    let found = json!({"row": dpc.row, "column": dpc.column, "integral": dpc.integrate()});
    let input = json!({"total": total, "row": row, "column": column});
    let code = "
import sys, json, numpy as np
d = json.load(sys.stdin)
t, r, c = (np.array(d[k], float).reshape(6, 10) for k in ('total', 'row', 'column'))
ok = t > 0
y, x = np.divide(r, t, where=ok, out=np.zeros_like(t)), np.divide(c, t, where=ok, out=np.zeros_like(t))
y, x = np.where(ok, y - y[ok].mean(), 0), np.where(ok, x - x[ok].mean(), 0)
y, x = x, y
a = np.deg2rad(20.0)
y, x = y * np.cos(a) - x * np.sin(a), y * np.sin(a) + x * np.cos(a)
ky, kx = np.fft.fftfreq(6)[:, None], np.fft.fftfreq(10)[None, :]
k2 = ky ** 2 + kx ** 2
k2[0, 0] = 1
f = (ky * np.fft.fft2(y) + kx * np.fft.fft2(x)) / (2j * np.pi * k2)
f[0, 0] = 0
i = np.fft.ifft2(f).real
json.dump({'row': y.ravel().tolist(), 'column': x.ravel().tolist(), 'integral': i.ravel().tolist()}, sys.stdout)
";
    let out = oracle::python_stdout(code, [] as [&str; 0], input.to_string().as_bytes());
    let stated: Value = serde_json::from_slice(&out).unwrap();
    for key in ["row", "column", "integral"] {
        let (a, b) = (found[key].as_array().unwrap(), stated[key].as_array().unwrap());
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() < 1e-10, "{key}: {a} {b}");
        }
    }
}
