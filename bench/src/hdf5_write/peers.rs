//! Other writers in Rust, each as its documentation says, without a sync. Without the feature `peers` there are none.

#[cfg(not(feature = "peers"))]
mod none {
    use crate::hdf5_write::rows::Case;
    use crate::hdf5_write::{Arrays, Writer};

    pub fn one<'a>(_: &'a Arrays, _: Case) -> Vec<Writer<'a>> {
        Vec::new()
    }
    pub fn datasets<'a>(_: &'a Arrays) -> Vec<Writer<'a>> {
        Vec::new()
    }
    pub fn attributes<'a>() -> Vec<Writer<'a>> {
        Vec::new()
    }
}

#[cfg(not(feature = "peers"))]
pub use none::*;

#[cfg(feature = "peers")]
pub use some::*;

#[cfg(feature = "peers")]
mod some {
    use crate::hdf5_write::rows::{Array, Case, Coding};
    use crate::hdf5_write::{Arrays, MANY, Writer};
    use hdf5_pure::{AttrValue, FileBuilder};
    use hdf5_writer::{
        AttributeBuilder, DatasetBuilder, FilterDescription, Hdf5Builder, WriteOptions as TheirOptions,
    };
    use rust_hdf5::{FilterPipeline, H5File, H5Type};
    use std::path::Path;

    const RUST: &str = "rust-hdf5";
    const PURE: &str = "hdf5-pure";
    const WRITER: &str = "hdf5-writer";
    const DONE: &str = "a file that it writes";

    /// Writers that have the filters.
    pub fn one<'a>(arrays: &'a Arrays, case: Case) -> Vec<Writer<'a>> {
        let mut writers = vec![Writer::new(RUST, move |path| match case.array {
            Array::Counts => rust(path, case, &arrays.counts),
            floats => rust(path, case, floats.floats(arrays)),
        })];
        if matches!(case.coding, Coding::None | Coding::ShuffleDeflate(_)) {
            writers.push(Writer::new(PURE, move |path| pure(path, case, arrays)));
            writers.push(Writer::new(WRITER, move |path| writer(path, case, arrays)));
        }
        writers
    }

    fn rust<T: H5Type>(path: &Path, case: Case, values: &[T]) {
        let sizes = |extents: &[u64]| extents.iter().map(|n| *n as usize).collect::<Vec<_>>();
        let file = H5File::create(path).expect(DONE);
        let mut d = file.new_dataset::<T>().shape(sizes(case.array.shape()));
        if !case.chunk.is_empty() {
            d = d.chunk(&sizes(case.chunk));
        }
        let size = size_of::<T>() as u32;
        let d = match case.coding {
            Coding::None => d,
            Coding::ShuffleDeflate(level) => d.shuffle_deflate(level),
            Coding::ShuffleZstd(level) => {
                let mut pipeline = FilterPipeline::shuffle(size);
                pipeline.filters.extend(FilterPipeline::zstd(level).filters);
                d.filter_pipeline(pipeline)
            }
            Coding::BitshuffleLz4 => d.filter_pipeline(FilterPipeline::bshuf_lz4(size)),
        };
        d.create("d").expect(DONE).write_raw(values).expect(DONE);
        file.close_no_sync().expect(DONE);
    }

    fn pure(path: &Path, case: Case, arrays: &Arrays) {
        let mut file = FileBuilder::new();
        let d =
            file.create_dataset("d").with_f32_data(case.array.floats(arrays)).with_shape(case.array.shape());
        if !case.chunk.is_empty() {
            d.with_chunks(case.chunk);
        }
        if let Coding::ShuffleDeflate(level) = case.coding {
            d.with_shuffle().with_deflate(level);
        }
        file.write(path).expect(DONE);
    }

    fn writer(path: &Path, case: Case, arrays: &Arrays) {
        let mut d = DatasetBuilder::typed_data("d", case.array.shape().to_vec(), case.array.floats(arrays))
            .expect(DONE);
        if !case.chunk.is_empty() {
            d = d.chunked(case.chunk.to_vec());
        }
        if let Coding::ShuffleDeflate(level) = case.coding {
            for (id, value) in [(2, 4), (1, level)] {
                d = d.filter(FilterDescription { id, name: None, client_data: vec![value] });
            }
        }
        encode(path, Hdf5Builder::new().dataset(d));
    }

    fn encode(path: &Path, file: Hdf5Builder) {
        let bytes = file.into_plan().and_then(|plan| plan.encode(TheirOptions::default())).expect(DONE);
        std::fs::write(path, bytes).expect(DONE);
    }

    pub fn datasets<'a>(arrays: &'a Arrays) -> Vec<Writer<'a>> {
        let small = &arrays.small;
        vec![
            Writer::new(RUST, move |path| {
                let file = H5File::create(path).expect(DONE);
                for i in 0..MANY {
                    let d = file.new_dataset::<f32>().shape([10]).create(&format!("d{i}")).expect(DONE);
                    d.write_raw(small).expect(DONE);
                }
                file.close_no_sync().expect(DONE);
            }),
            Writer::new(PURE, move |path| {
                let mut file = FileBuilder::new();
                for i in 0..MANY {
                    file.create_dataset(&format!("d{i}")).with_f32_data(small);
                }
                file.write(path).expect(DONE);
            }),
            Writer::new(WRITER, move |path| {
                let one = |i| DatasetBuilder::typed_data(format!("d{i}"), [10], small).expect(DONE);
                encode(path, (0..MANY).map(one).fold(Hdf5Builder::new(), Hdf5Builder::dataset));
            }),
        ]
    }

    pub fn attributes<'a>() -> Vec<Writer<'a>> {
        vec![
            Writer::new(RUST, |path| {
                let file = H5File::create(path).expect(DONE);
                for i in 0..MANY {
                    file.set_attr_numeric(&format!("a{i}"), &(i as u64)).expect(DONE);
                }
                file.close_no_sync().expect(DONE);
            }),
            Writer::new(PURE, |path| {
                let mut file = FileBuilder::new();
                for i in 0..MANY {
                    file.set_attr(&format!("a{i}"), AttrValue::U64(i as u64));
                }
                file.write(path).expect(DONE);
            }),
            Writer::new(WRITER, |path| {
                let one = |i| AttributeBuilder::scalar(format!("a{i}"), i as u64).expect(DONE);
                encode(path, (0..MANY).map(one).fold(Hdf5Builder::new(), Hdf5Builder::attribute));
            }),
        ]
    }
}
