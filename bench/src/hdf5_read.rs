//! Reading datasets that h5py wrote: whole, a part, and every other row; h5py reads the same into the same array.

use crate::h5py::Python;
use crate::measure::Contestant;
use crate::report::Report;
use std::path::Path;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_hdf5::read::{Dataset, File};

/// Name, element type and how h5py creates it; every dataset has 64 × 512 × 512 elements.
const DATASETS: &[(&str, &str, &str)] = &[
    ("contiguous", "f4", ""),
    ("chunked", "f4", "chunks=(1, 256, 512)"),
    ("deflate", "f4", "chunks=(1, 256, 512), compression='gzip', compression_opts=4, shuffle=True"),
    ("bitshuffle-lz4", "u2", "chunks=(1, 512, 512), **hdf5plugin.Bitshuffle()"),
    ("zstd", "u2", "chunks=(1, 512, 512), **hdf5plugin.Zstd()"),
];

/// What is read: name; start, count and stride of our selection; the same for h5py.
type Part = (&'static str, [u64; 3], [u64; 3], [i64; 3], &'static str);

const SELECTIONS: &[Part] = &[
    ("whole", [0, 0, 0], [64, 512, 512], [1, 1, 1], "np.s_[:]"),
    ("eight frames", [8, 0, 0], [8, 512, 512], [1, 1, 1], "np.s_[8:16]"),
    ("a middle region", [0, 200, 200], [64, 100, 100], [1, 1, 1], "np.s_[:, 200:300, 200:300]"),
    ("every other row", [0, 0, 0], [64, 256, 512], [1, 2, 1], "np.s_[:, ::2]"),
];

/// Needs the test environment, whose h5py also makes the file.
pub fn run() -> Result<Report, String> {
    let python = Python::start().ok_or("needs h5py: run `cargo xtask env` first")?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("read.h5");
    make(&python, &path);
    let file = File::open(&path).map_err(|e| e.to_string())?;
    python.run(&format!("f = h5py.File({:?}, 'r')", path.display().to_string()));
    let mut report = Report::default();
    for (name, kind, _) in DATASETS {
        let dataset = file.dataset(format!("/{name}")).map_err(|e| e.to_string())?;
        for (what, start, count, step, slice) in SELECTIONS {
            let slab = Hyperslab::new(start.to_vec(), count.to_vec()).with_stride(step.to_vec());
            let elements: u64 = count.iter().product();
            python.run(&format!("d = f[{name:?}]; s = {slice}; out = np.empty(d[s].shape, d.dtype)"));
            let h5py = Contestant::new("h5py", || python.run("d.read_direct(out, s)"));
            let ours = contestant(&dataset, kind, Selection::from(slab), elements);
            let bytes = elements * u64::from(dataset.datatype().size);
            report.compare(format!("{name} {what}"), bytes, vec![ours, h5py]);
        }
    }
    Ok(report)
}

fn make(python: &Python, path: &Path) {
    python
        .run(&format!("f = h5py.File({:?}, 'w'); r = np.random.default_rng(1)", path.display().to_string()));
    python.run("u2 = r.poisson(0.4, (64, 512, 512)).astype('u2')");
    python.run("f4 = (np.sin(np.arange(64 * 512 * 512) / 311) + r.random(64 * 512 * 512) * 1e-3).astype('f4').reshape(64, 512, 512)");
    for (name, kind, how) in DATASETS {
        python.run(&format!("f.create_dataset({name:?}, data={kind}, {how})"));
    }
    python.run("f.close()");
}

fn contestant<'a>(dataset: &'a Dataset, kind: &str, selection: Selection, elements: u64) -> Contestant<'a> {
    let elements = elements as usize;
    if kind == "f4" {
        let mut out = vec![0_f32; elements];
        Contestant::new("tensilo", move || dataset.read_into(&selection, &mut out).expect("a whole file"))
    } else {
        let mut out = vec![0_u16; elements];
        Contestant::new("tensilo", move || dataset.read_into(&selection, &mut out).expect("a whole file"))
    }
}
