//! Other readers in Rust, each as its documentation says is fastest. Without the feature `peers` there are none.

#[cfg(not(feature = "peers"))]
mod none {
    use crate::hdf5_read::Reader;
    use std::path::Path;

    pub fn whole<'a>(_: &Path, _: &'static str) -> Vec<Reader<'a>> {
        Vec::new()
    }
    pub fn mapped<'a>(_: &Path) -> Vec<Reader<'a>> {
        Vec::new()
    }
    pub fn reused<'a>(_: &Path) -> Vec<Reader<'a>> {
        Vec::new()
    }
    pub fn some_rows<'a>(_: &Path) -> Vec<Reader<'a>> {
        Vec::new()
    }
    pub fn points<'a>(_: &Path) -> Vec<Reader<'a>> {
        Vec::new()
    }
    pub fn walk<'a>(_: &Path) -> Vec<Reader<'a>> {
        Vec::new()
    }
    pub fn one<'a>(_: &Path) -> Vec<Reader<'a>> {
        Vec::new()
    }
    pub fn attributes<'a>(_: &Path) -> Vec<Reader<'a>> {
        Vec::new()
    }
}

#[cfg(not(feature = "peers"))]
pub use none::*;

#[cfg(feature = "peers")]
pub use some::*;

#[cfg(feature = "peers")]
mod some {
    use crate::hdf5_read::{Reader, found, ours, rows};
    use hdf5_reader::{Hdf5File, SliceInfo, SliceInfoElem};
    use rust_hdf5::H5File;
    use std::path::Path;

    const RUST: &str = "rust-hdf5";
    const PURE: &str = "hdf5-pure";
    const READER: &str = "hdf5-reader";
    const WHOLE: &str = "a file that it reads";

    pub fn whole<'a>(path: &Path, dataset: &'static str) -> Vec<Reader<'a>> {
        match dataset {
            "tiles" => typed::<f32>(path, dataset),
            "frames" => typed::<u16>(path, dataset),
            _ => typed::<f64>(path, dataset),
        }
    }

    fn typed<'a, T>(path: &Path, dataset: &'static str) -> Vec<Reader<'a>>
    where
        T: rust_hdf5::H5Type + hdf5_reader::H5Type + bytemuck::NoUninit,
    {
        let [p, q, r] = [path.to_path_buf(), path.to_path_buf(), path.to_path_buf()];
        vec![
            Reader::new(RUST, move |check| {
                let file = H5File::open(&p).expect(WHOLE);
                found(&file.dataset(dataset).expect(WHOLE).read_raw::<T>().expect(WHOLE), check)
            }),
            Reader::new(PURE, move |check| {
                let file = hdf5_pure::File::open_streaming(&q).expect(WHOLE);
                found(&file.dataset(dataset).expect(WHOLE).read_raw().expect(WHOLE), check)
            }),
            Reader::new(READER, move |check| {
                let file = Hdf5File::open(&r).expect(WHOLE);
                let array = file.dataset(dataset).expect(WHOLE).read_array_parallel::<T>().expect(WHOLE);
                found(array.as_slice().expect(WHOLE), check)
            }),
        ]
    }

    pub fn mapped<'a>(path: &Path) -> Vec<Reader<'a>> {
        let path = path.to_path_buf();
        vec![Reader::new(RUST, move |_| {
            let file = H5File::open(&path).expect(WHOLE);
            ours::sum(&file.dataset("contiguous").expect(WHOLE).read_mapped::<f64>().expect(WHOLE))
        })]
    }

    pub fn reused<'a>(path: &Path) -> Vec<Reader<'a>> {
        let path = path.to_path_buf();
        let mut buffer = vec![0_u16; 64 * 512 * 512];
        vec![Reader::new(READER, move |check| {
            let file = Hdf5File::open(&path).expect(WHOLE);
            file.dataset("frames").expect(WHOLE).read_into(&mut buffer).expect(WHOLE);
            found(&buffer, check)
        })]
    }

    pub fn some_rows<'a>(path: &Path) -> Vec<Reader<'a>> {
        let [p, q, r] = [path.to_path_buf(), path.to_path_buf(), path.to_path_buf()];
        vec![
            Reader::new(RUST, move |check| {
                let file = H5File::open(&p).expect(WHOLE);
                let data = file.dataset("tiles").expect(WHOLE);
                let row = |i: u64| data.read_slice::<f32>(&[i as usize, 0], &[1, 4096]).expect(WHOLE);
                found(&rows::wanted_rows().into_iter().flat_map(row).collect::<Vec<f32>>(), check)
            }),
            Reader::new(PURE, move |check| {
                let file = hdf5_pure::File::open_streaming(&q).expect(WHOLE);
                let data = file.dataset("tiles").expect(WHOLE);
                let row = |i: u64| data.read_raw_rows(i, 1).expect(WHOLE);
                found(&rows::wanted_rows().into_iter().flat_map(row).collect::<Vec<u8>>(), check)
            }),
            Reader::new(READER, move |check| {
                let file = Hdf5File::open(&r).expect(WHOLE);
                let data = file.dataset("tiles").expect(WHOLE);
                let all = SliceInfoElem::Slice { start: 0, end: 4096, step: 1 };
                let row = |i: u64| {
                    let slice = SliceInfo { selections: vec![SliceInfoElem::Index(i), all.clone()] };
                    data.read_slice_parallel::<f32>(&slice).expect(WHOLE).into_iter()
                };
                found(&rows::wanted_rows().into_iter().flat_map(row).collect::<Vec<f32>>(), check)
            }),
        ]
    }

    pub fn points<'a>(path: &Path) -> Vec<Reader<'a>> {
        let path = path.to_path_buf();
        let points: Vec<Vec<usize>> =
            rows::wanted_points().iter().map(|p| p.iter().map(|c| *c as usize).collect()).collect();
        vec![Reader::new(RUST, move |check| {
            let file = H5File::open(&path).expect(WHOLE);
            found(&file.dataset("tiles").expect(WHOLE).read_points::<f32>(&points).expect(WHOLE), check)
        })]
    }

    pub fn walk<'a>(path: &Path) -> Vec<Reader<'a>> {
        let [p, q, r] = [path.to_path_buf(), path.to_path_buf(), path.to_path_buf()];
        let names = || (0..2000).map(|i| format!("d{i:04}"));
        vec![
            Reader::new(RUST, move |check| {
                let file = H5File::open(&p).expect(WHOLE);
                let read = |n: String| file.dataset(&n).expect(WHOLE).read_raw::<f64>().expect(WHOLE);
                found(&names().flat_map(read).collect::<Vec<f64>>(), check)
            }),
            Reader::new(PURE, move |check| {
                let file = hdf5_pure::File::open(&q).expect(WHOLE);
                let read = |n: String| file.dataset(&n).expect(WHOLE).read_f64().expect(WHOLE);
                found(&names().flat_map(read).collect::<Vec<f64>>(), check)
            }),
            Reader::new(READER, move |check| {
                let file = Hdf5File::open(&r).expect(WHOLE);
                let read =
                    |n: String| file.dataset(&n).expect(WHOLE).read_array::<f64>().expect(WHOLE).into_iter();
                found(&names().flat_map(read).collect::<Vec<f64>>(), check)
            }),
        ]
    }

    pub fn one<'a>(path: &Path) -> Vec<Reader<'a>> {
        let [p, q, r] = [path.to_path_buf(), path.to_path_buf(), path.to_path_buf()];
        vec![
            Reader::new(RUST, move |check| {
                let file = H5File::open(&p).expect(WHOLE);
                found(&file.dataset("d1234").expect(WHOLE).read_raw::<f64>().expect(WHOLE), check)
            }),
            Reader::new(PURE, move |check| {
                let file = hdf5_pure::File::open(&q).expect(WHOLE);
                found(&file.dataset("d1234").expect(WHOLE).read_f64().expect(WHOLE), check)
            }),
            Reader::new(READER, move |check| {
                let file = Hdf5File::open(&r).expect(WHOLE);
                let array = file.dataset("d1234").expect(WHOLE).read_array::<f64>().expect(WHOLE);
                found(array.as_slice().expect(WHOLE), check)
            }),
        ]
    }

    pub fn attributes<'a>(path: &Path) -> Vec<Reader<'a>> {
        let [q, r] = [path.to_path_buf(), path.to_path_buf()];
        vec![
            Reader::new(PURE, move |check| {
                let file = hdf5_pure::File::open(&q).expect(WHOLE);
                let attributes = file.group("g").expect(WHOLE).attrs().expect(WHOLE);
                let mut all: Vec<_> = attributes.into_iter().collect();
                all.sort_by(|a, b| a.0.cmp(&b.0));
                let values = |a| match a {
                    hdf5_pure::AttrValue::F64Array(v) => v,
                    _ => Vec::new(),
                };
                found(&all.into_iter().flat_map(|a| values(a.1)).collect::<Vec<f64>>(), check)
            }),
            Reader::new(READER, move |check| {
                let file = Hdf5File::open(&r).expect(WHOLE);
                let group = file.root_group().and_then(|root| root.group("g")).expect(WHOLE);
                let mut all = group.attributes().expect(WHOLE);
                all.sort_by(|a, b| a.name.cmp(&b.name));
                found(&all.into_iter().flat_map(|a| a.raw_data).collect::<Vec<u8>>(), check)
            }),
        ]
    }
}
