//! Lane stores: writing, windows, opening; petektools, NumPy's memmap and contiguous HDF5 do the same. Durability is
//! inside every writing time: fsync, msync, or the library's flush followed by fsync.

use crate::h5py::Python;
use crate::measure::Contestant;
use crate::report::Report;
use std::hint::black_box;
use std::path::Path;
use tensilo_lanes::{FormatVersion, LaneSpec, LaneType, Store, StoreSchema, StoreWriter, WriterOptions};

const SLABS: u64 = 64;
const ELEMS: usize = 1 << 20;
const BYTES: u64 = SLABS * ELEMS as u64 * 4;
const WINDOW: u64 = 8;
/// Window calls of one timed round.
const CALLS: u64 = 100_000;

fn slab(k: u64) -> Vec<f32> {
    (0..ELEMS).map(|i| (k as usize * 31 + i % 1009) as f32 * 0.5).collect()
}

/// Starts of windows in a fixed, scattered order.
fn scattered() -> impl Iterator<Item = u64> {
    (0..SLABS / WINDOW * 2).map(|i| i * 29 % (SLABS - WINDOW))
}

fn sequential() -> impl Iterator<Item = u64> {
    (0..SLABS / WINDOW).map(|i| i * WINDOW)
}

fn write(path: &Path, slabs: &[Vec<f32>], version: FormatVersion, write_behind: bool) {
    let schema = StoreSchema::new(SLABS, vec![LaneSpec::slab("v", LaneType::F32, ELEMS as u64)]);
    let options = WriterOptions { version, write_behind, replace: true, ..WriterOptions::default() };
    let writer = StoreWriter::create_with(path, schema, options).expect("a writable folder");
    for (k, slab) in (0..).zip(slabs) {
        writer.write_slab("v", k, slab).expect("room on the disk");
    }
    writer.finish().expect("room on the disk");
}

/// Runs all comparisons in a folder on the disk that holds the build (not a memory file system).
pub fn run() -> Result<Report, String> {
    let mut report = Report::default();
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).map_err(|e| e.to_string())?;
    let at = |name: &str| folder.path().join(name);
    let slabs: Vec<Vec<f32>> = (0..SLABS).map(slab).collect();
    let python = Python::start();
    if let Some(python) = &python {
        python.run(&format!(
            "import os; F = {:?}; A = np.random.default_rng(1).random(({SLABS}, {ELEMS}), dtype='f4')",
            folder.path()
        ));
        python.run(PYTHON_DEFINITIONS);
    }

    for (case, behind) in [("write, durable", false), ("write, durable, evicting", true)] {
        let mut who = peers::writers(folder.path(), &slabs, behind);
        for (name, version) in
            [("tensilo format 1", FormatVersion::V1), ("tensilo format 2", FormatVersion::V2)]
        {
            let (slabs, path) = (&slabs, at("ours.pts"));
            who.push(Contestant::new(name, move || write(&path, slabs, version, behind)));
        }
        if let (Some(python), false) = (&python, behind) {
            who.push(Contestant::clocked("numpy memmap", || python.seconds("write_numpy()")));
            who.push(Contestant::clocked("h5py contiguous", || python.seconds("write_h5py()")));
        }
        report.compare(case, BYTES, who);
    }

    write(&at("one.pts"), &slabs, FormatVersion::V1, false);
    write(&at("two.pts"), &slabs, FormatVersion::V2, false);
    let stores = [("tensilo format 1", at("one.pts")), ("tensilo format 2", at("two.pts"))];
    let open = |path: &Path| Store::open(path).expect("just written");
    let peer = peers::open(&at("one.pts"));
    let lanes: Vec<_> =
        stores.iter().map(|(n, p)| (*n, open(p).typed::<f32>("v").expect("a lane of f32"))).collect();
    let window = (WINDOW as usize) * ELEMS;
    let mut copy = vec![0_f32; window];
    let mut copies: Vec<Vec<f32>> = vec![vec![0.0; window]; lanes.len()];

    for (case, starts) in [
        ("sequential windows, sum", sequential().collect::<Vec<_>>()),
        ("scattered windows, sum", scattered().collect()),
    ] {
        let bytes = starts.len() as u64 * window as u64 * 4;
        let mut who = peers::sums(&peer, &starts);
        for (name, lane) in &lanes {
            let starts = &starts;
            who.push(Contestant::new(*name, move || {
                for s in starts {
                    let values = lane.window(*s, s + WINDOW).expect("in range");
                    black_box(values.iter().map(|v| f64::from(*v)).sum::<f64>());
                }
            }));
        }
        if let Some(python) = &python {
            python.run(&format!("S = {starts:?}"));
            who.push(Contestant::clocked("numpy memmap", || python.seconds("sum_numpy(S)")));
            who.push(Contestant::clocked("h5py contiguous", || python.seconds("sum_h5py(S)")));
        }
        report.compare(case, bytes, who);
    }

    let starts: Vec<u64> = scattered().collect();
    let mut who = peers::copies(&peer, &starts, &mut copy);
    for ((name, lane), copy) in lanes.iter().zip(&mut copies) {
        let starts = &starts;
        who.push(Contestant::new(*name, move || {
            for s in starts {
                copy.copy_from_slice(lane.window(*s, s + WINDOW).expect("in range"));
                black_box(&copy);
            }
        }));
    }
    if let Some(python) = &python {
        who.push(Contestant::clocked("numpy memmap", || python.seconds("copy_numpy(S)")));
        who.push(Contestant::clocked("h5py contiguous", || python.seconds("copy_h5py(S)")));
    }
    report.compare("scattered windows, copy", starts.len() as u64 * window as u64 * 4, who);

    let mut who = peers::opens(&at("one.pts"));
    for (name, path) in &stores {
        who.push(Contestant::new(*name, move || (0..100).for_each(|_| drop(black_box(open(path))))));
    }
    report.compare("open, 100 times", 0, who);

    let mut who = peers::calls(&peer);
    for (name, lane) in &lanes {
        who.push(Contestant::new(*name, move || {
            for i in 0..CALLS {
                black_box(lane.window(i % 50, i % 50 + WINDOW).expect("in range"));
            }
        }));
    }
    report.compare("window call, 100,000 times", 0, who);
    Ok(report)
}

/// One statement a line is all that the server takes, so functions are made by `exec` of a text.
const PYTHON_DEFINITIONS: &str = concat!(
    "exec('",
    "def write_numpy(name=\"/w.raw\"):\\n",
    "  m = np.memmap(F + name, dtype=\"f4\", mode=\"w+\", shape=A.shape)\\n",
    "  for k in range(len(A)): m[k] = A[k]\\n",
    "  m.flush()\\n",
    "def write_h5py(name=\"/w.h5\"):\\n",
    "  with h5py.File(F + name, \"w\") as f:\\n",
    "    d = f.create_dataset(\"v\", A.shape, \"f4\")\\n",
    "    for k in range(len(A)): d[k] = A[k]\\n",
    "  fd = os.open(F + name, os.O_RDONLY); os.fsync(fd); os.close(fd)\\n",
    "write_numpy(\"/n.raw\"); write_h5py(\"/h.h5\")\\n",
    "M = np.memmap(F + \"/n.raw\", dtype=\"f4\", mode=\"r\", shape=A.shape)\\n",
    "H = h5py.File(F + \"/h.h5\")[\"v\"]\\n",
    "B = np.empty((8, A.shape[1]), \"f4\")\\n",
    "def sum_numpy(S):\\n",
    "  for s in S: M[s:s+8].sum(dtype=\"f8\")\\n",
    "def sum_h5py(S):\\n",
    "  for s in S: H[s:s+8].sum(dtype=\"f8\")\\n",
    "def copy_numpy(S):\\n",
    "  for s in S: B[...] = M[s:s+8]\\n",
    "def copy_h5py(S):\\n",
    "  for s in S: H.read_direct(B, np.s_[s:s+8])\\n",
    "')"
);

/// petektools, the library whose format 1 this is.
#[cfg(feature = "peers")]
mod peers {
    use super::*;
    use petektools::store::{self, Dtype};

    pub fn writers<'a>(folder: &Path, slabs: &'a [Vec<f32>], behind: bool) -> Vec<Contestant<'a>> {
        let path = folder.join("theirs.pts");
        let run = move |behind: bool| {
            let schema =
                store::StoreSchema::new(SLABS, vec![store::LaneSpec::slab("v", Dtype::F32, ELEMS as u64)]);
            let mut writer = store::StoreWriter::create(&path, schema)
                .expect("a writable folder")
                .with_flush_behind(behind);
            for (k, slab) in (0..).zip(slabs) {
                writer.write_slab_f32("v", k, slab).expect("room on the disk");
            }
            writer.finalize().expect("room on the disk");
        };
        let plain = run.clone();
        let mut who = vec![Contestant::new("petektools", move || plain(false))];
        if behind {
            who.push(Contestant::new("petektools, flush-behind", move || run(true)));
        }
        who
    }

    pub fn open(path: &Path) -> store::Store {
        store::Store::open(path).expect("format 1 is theirs")
    }

    pub fn sums<'a>(peer: &'a store::Store, starts: &'a [u64]) -> Vec<Contestant<'a>> {
        vec![Contestant::new("petektools", move || {
            for s in starts {
                let values = peer.window_f32("v", *s, s + WINDOW).expect("in range");
                black_box(values.iter().map(|v| f64::from(*v)).sum::<f64>());
            }
        })]
    }

    pub fn copies<'a>(peer: &'a store::Store, starts: &'a [u64], copy: &'a mut [f32]) -> Vec<Contestant<'a>> {
        vec![Contestant::new("petektools", move || {
            for s in starts {
                copy.copy_from_slice(peer.window_f32("v", *s, s + WINDOW).expect("in range"));
                black_box(&copy);
            }
        })]
    }

    pub fn opens<'a>(path: &Path) -> Vec<Contestant<'a>> {
        let path = path.to_path_buf();
        vec![Contestant::new("petektools", move || (0..100).for_each(|_| drop(black_box(open(&path)))))]
    }

    pub fn calls(peer: &store::Store) -> Vec<Contestant<'_>> {
        vec![Contestant::new("petektools", move || {
            for i in 0..CALLS {
                black_box(peer.window_f32("v", i % 50, i % 50 + WINDOW).expect("in range"));
            }
        })]
    }
}

#[cfg(not(feature = "peers"))]
mod peers {
    use super::*;

    /// Nobody.
    pub struct Peer;

    pub fn writers<'a>(_: &Path, _: &'a [Vec<f32>], _: bool) -> Vec<Contestant<'a>> {
        Vec::new()
    }

    pub fn open(_: &Path) -> Peer {
        Peer
    }

    pub fn sums<'a>(_: &'a Peer, _: &'a [u64]) -> Vec<Contestant<'a>> {
        Vec::new()
    }

    pub fn copies<'a>(_: &'a Peer, _: &'a [u64], _: &'a mut [f32]) -> Vec<Contestant<'a>> {
        Vec::new()
    }

    pub fn opens<'a>(_: &Path) -> Vec<Contestant<'a>> {
        Vec::new()
    }

    pub fn calls(_: &Peer) -> Vec<Contestant<'_>> {
        Vec::new()
    }
}
