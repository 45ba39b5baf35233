//! Our side of every row.

use super::{Reader, digest, found, rows};
use std::path::Path;
use tensilo_core::array::{Axis, Points, Selection};
use tensilo_hdf5::read::{Element, File, OpenOptions};

const US: &str = "tensilo";
const WHOLE: &str = "a whole file";

/// The elements of a whole dataset, by the type that each of our files has.
pub fn whole<'a>(path: &Path, dataset: &'static str) -> Reader<'a> {
    match dataset {
        "tiles" => typed::<f32>(path, dataset),
        "frames" => typed::<u16>(path, dataset),
        _ => typed::<f64>(path, dataset),
    }
}

fn typed<'a, T: Element>(path: &Path, dataset: &'static str) -> Reader<'a> {
    let path = path.to_path_buf();
    Reader::new(US, move |check| {
        let values = File::open(&path).and_then(|f| f.dataset(dataset)?.read::<T>()).expect(WHOLE);
        if check { digest(bytemuck::cast_slice(&values)) } else { values.len() as u64 }
    })
}

pub fn mapped<'a>(path: &Path) -> Reader<'a> {
    let path = path.to_path_buf();
    Reader::new(US, move |_| {
        let file = File::open_mapped(&path, OpenOptions::default()).expect(WHOLE);
        let data = file.dataset("contiguous").expect(WHOLE);
        sum(data.view::<f64>().expect(WHOLE).expect("doubles of this machine's order"))
    })
}

/// A sum that every contestant computes alike.
pub fn sum(values: &[f64]) -> u64 {
    let mut sums = [0.0; 8];
    for part in values.chunks_exact(8) {
        sums.iter_mut().zip(part).for_each(|(s, v)| *s += v);
    }
    sums.iter().sum::<f64>().to_bits()
}

pub fn reused<'a>(path: &Path) -> Reader<'a> {
    let path = path.to_path_buf();
    let mut buffer = vec![0_u16; 64 * 512 * 512];
    Reader::new(US, move |check| {
        let data = File::open(&path).and_then(|f| f.dataset("frames")).expect(WHOLE);
        data.read_into(&Selection::All, &mut buffer).expect(WHOLE);
        found(&buffer, check)
    })
}

pub fn some_rows<'a>(path: &Path) -> Reader<'a> {
    let path = path.to_path_buf();
    let selection = Selection::Axes(vec![Axis::List(rows::wanted_rows()), Axis::all(4096)]);
    Reader::new(US, move |check| {
        let data = File::open(&path).and_then(|f| f.dataset("tiles")).expect(WHOLE);
        found(&data.read_selection::<f32>(&selection).expect(WHOLE), check)
    })
}

pub fn points<'a>(path: &Path) -> Reader<'a> {
    let path = path.to_path_buf();
    let points = rows::wanted_points().into_iter().flatten().collect();
    let selection = Selection::from(Points::new(2, points).expect("pairs"));
    Reader::new(US, move |check| {
        let data = File::open(&path).and_then(|f| f.dataset("tiles")).expect(WHOLE);
        found(&data.read_selection::<f32>(&selection).expect(WHOLE), check)
    })
}

pub fn walk<'a>(path: &Path) -> Reader<'a> {
    let path = path.to_path_buf();
    Reader::new(US, move |check| {
        let file = File::open(&path).expect(WHOLE);
        let mut values = Vec::with_capacity(20_000);
        for i in 0..2000 {
            let data = file.dataset(format!("d{i:04}")).expect(WHOLE);
            values.extend(data.read::<f64>().expect(WHOLE));
        }
        found(&values, check)
    })
}

pub fn one<'a>(path: &Path) -> Reader<'a> {
    let path = path.to_path_buf();
    Reader::new(US, move |check| {
        let values = File::open(&path).and_then(|f| f.dataset("d1234")?.read::<f64>()).expect(WHOLE);
        found(&values, check)
    })
}

pub fn attributes<'a>(path: &Path) -> Reader<'a> {
    let path = path.to_path_buf();
    Reader::new(US, move |check| {
        let group = File::open(&path).and_then(|f| f.group("g")).expect(WHOLE);
        let read = |a: Result<tensilo_hdf5::read::Attribute, _>| {
            let a = a.map_err(|damaged: tensilo_hdf5::read::DamagedAttribute| damaged.error).expect(WHOLE);
            (a.name().to_vec(), a.read::<f64>().expect(WHOLE))
        };
        let mut all: Vec<_> = group.attributes().expect(WHOLE).into_iter().map(read).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        found(&all.into_iter().flat_map(|a| a.1).collect::<Vec<f64>>(), check)
    })
}
