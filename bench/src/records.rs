//! The record store beside NumPy, loaderx, pyarrow, LMDB and ArrayRecord, those of them that are installed, in one Python
//! process. What the contestants do is in `python/records.py`.

use crate::loader::{Session, median, memory_note, verdict, wanted};
use crate::report::Report;

const BATCH: u64 = 256;
/// Name, bytes of a record, records that are appended: as in `python/records.py`.
const SIZES: [(&str, u64, u64); 4] = [
    ("784 B", 784, 20_000),
    ("150,528 B", 150_528, 150),
    ("784 B of noise", 784, 20_000),
    ("150,528 B of noise", 150_528, 150),
];
/// Faster by this much than whom: ours, how the size begins, peer, factor.
const GOALS: [(&str, &str, &str, f64); 5] = [
    ("tensilo raw, out", "784", "numpy fancy", 1.5),
    ("tensilo raw, out", "150,528", "numpy fancy", 1.25),
    ("tensilo deflate, out", "", "loaderx flate", 4.0),
    ("tensilo lz4, out", "", "loaderx flate", 15.0),
    ("tensilo zstd, out", "", "loaderx flate", 15.0),
];

/// Notes how many times as fast as a peer ours is, if both were there.
fn goal(report: &mut Report, case: &str, times: &[(String, Vec<f64>)], ours: &str, peer: &str, factor: f64) {
    let of = |name: &str| times.iter().find(|(n, _)| n == name).map(|(_, t)| median(t));
    if let (Some(ours_s), Some(peer_s)) = (of(ours), of(peer)) {
        let ratio = peer_s / ours_s;
        let verdict = verdict(ratio >= factor);
        let note =
            format!("goal: {case}: {ours} at least {factor} times {peer}; it is {ratio:.2}: {verdict}");
        eprintln!("{note}");
        report.note(note);
    }
}

/// Runs the comparisons that are wanted in a folder on the disk that holds the build.
pub fn run() -> Result<Report, String> {
    let mut report = Report::default();
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).map_err(|e| e.to_string())?;
    let mut python = Session::start(folder.path(), "records.py")?;
    for (size, bytes, _) in SIZES {
        for order in ["random", "sequential"] {
            let case = format!("gather, {size}, {order}");
            if !wanted(&case) || (order == "sequential" && size.contains("noise")) {
                continue;
            }
            let names = python.names(&format!("names({size:?}, {order:?})"))?;
            let times =
                python.rounds(&case, &names, |name| format!("turn({size:?}, {order:?}, {name:?})"))?;
            for (ours, only, peer, factor) in GOALS {
                if size.starts_with(only) {
                    goal(&mut report, &case, &times, ours, peer, factor);
                }
            }
            report.record(&case, bytes * BATCH, times);
        }
    }
    for (size, bytes, records) in SIZES {
        let case = format!("append, {size}");
        if !wanted(&case) {
            continue;
        }
        let names = python.names("writers()")?;
        let times = python.rounds(&case, &names, |name| format!("append({size:?}, {name:?})"))?;
        goal(&mut report, &case, &times, "tensilo deflate", "loaderx flate", 8.0);
        report.record(&case, bytes * records, times);
    }
    if wanted("memory") {
        let growth = python.ask("growth()")?;
        report.note(memory_note(&growth));
    }
    Ok(report)
}
