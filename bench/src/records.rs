//! The record store beside NumPy, loaderx, pyarrow, LMDB and ArrayRecord, those of them that are installed, in one Python
//! process. What the contestants do is in `python/records.py`.

use crate::loader::Session;
use crate::report::Report;

const BATCH: u64 = 256;
/// Name, records, bytes of a record, batches of a turn: as in `python/records.py`.
const SIZES: [(&str, u64, u64, u64); 2] = [("784 B", 60_000, 784, 200), ("150,528 B", 1_500, 150_528, 12)];
/// Faster by this much than whom: ours, size (any if empty), peer, factor.
const GOALS: [(&str, &str, &str, f64); 5] = [
    ("tensilo raw, out", "784 B", "numpy fancy", 1.5),
    ("tensilo raw, out", "150,528 B", "numpy fancy", 1.25),
    ("tensilo deflate, out", "", "loaderx flate", 4.0),
    ("tensilo lz4, out", "", "loaderx flate", 15.0),
    ("tensilo zstd, out", "", "loaderx flate", 15.0),
];

fn median(times: &[(String, Vec<f64>)], name: &str) -> Option<f64> {
    let mut seconds = times.iter().find(|(n, _)| n == name).map(|(_, t)| t.clone())?;
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied()
}

/// Runs all comparisons in a folder on the disk that holds the build.
pub fn run() -> Result<Report, String> {
    let mut report = Report::default();
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).map_err(|e| e.to_string())?;
    let mut python = Session::start(folder.path(), "records.py")?;
    for (size, _, bytes, batches) in SIZES {
        for order in ["random", "sequential"] {
            let names = python.names(&format!("names({size:?}, {order:?})"))?;
            let times = python.rounds(&names, |name| format!("turn({size:?}, {order:?}, {name:?})"))?;
            let case = format!("gather, {size}, {order}, {batches} batches of {BATCH}");
            for (ours, only, peer, factor) in GOALS {
                if !only.is_empty() && only != size {
                    continue;
                }
                if let (Some(ours_s), Some(peer_s)) = (median(&times, ours), median(&times, peer)) {
                    let ratio = peer_s / ours_s;
                    report.note(format!(
                        "goal: {case}: {ours} at least {factor} times {peer}; it is {ratio:.2}"
                    ));
                }
            }
            report.record(&case, bytes * BATCH * batches, times);
        }
    }
    for (size, records, bytes, _) in SIZES {
        let names = python.names("writers()")?;
        let times = python.rounds(&names, |name| format!("append({size:?}, {name:?})"))?;
        let case = format!("append, {size}, {records} records");
        if let (Some(ours), Some(peer)) = (median(&times, "tensilo deflate"), median(&times, "loaderx flate"))
        {
            report.note(format!(
                "goal: {case}: deflate at least 8 times loaderx flate; it is {:.2}",
                peer / ours
            ));
        }
        report.record(&case, bytes * records, times);
    }
    let growth = python.ask("growth()")?;
    report.note(format!("goal: resident memory flat over 10,000 batches; bytes before and after: {growth}"));
    Ok(report)
}
