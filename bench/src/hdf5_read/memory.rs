//! Extra memory of reading 64 MiB: the highest resident size of a process of its own, less what it was before.

use super::H5py;
use crate::report::Report;
use std::path::Path;
use std::process::Command;
use tensilo_hdf5::read::File;

/// The argument that makes this program the process that is measured.
const CHILD: &str = "read-once";

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Reads a dataset and prints the growth in KiB, when the arguments say that this is that process.
pub fn child(args: &[String]) -> bool {
    let [name, path, dataset] = args else { return false };
    if name != CHILD {
        return false;
    }
    let before = status("VmRSS");
    let values = File::open(path).and_then(|f| f.dataset(dataset)?.read::<f64>()).expect("a whole file");
    assert!(!values.is_empty());
    println!("{}", status("VmHWM").saturating_sub(before));
    true
}

/// Measures us and h5py.
pub fn run(python: &H5py, folder: &Path, report: &mut Report) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    for dataset in ["contiguous", "plain", "gzip"] {
        let path = folder.join("new.h5");
        let out =
            Command::new(&this).arg(CHILD).arg(&path).arg(dataset).output().map_err(|e| e.to_string())?;
        let ours = text(&out.stdout)?;
        let code = format!(
            "import h5py; f = h5py.File({:?}); \
             now = lambda k: int(next(l for l in open('/proc/self/status') if l.startswith(k)).split()[1]); \
             b = now('VmRSS'); x = f[{dataset:?}][()]; print(now('VmHWM') - b)",
            path.display().to_string()
        );
        python.run(&format!(
            "import subprocess, sys; D = subprocess.run([sys.executable, '-c', {code:?}], capture_output=True).stdout.decode().strip()"
        ));
        let theirs = python.0.borrow().ask("D");
        let verdict = if ours / 1024.0 <= 66.0 { "met" } else { "missed" };
        report.note(format!(
            "extra memory of reading {dataset}, 64 MiB: tensilo {:.1} MiB (goal 66: {verdict}), h5py {:.1} MiB",
            ours / 1024.0,
            theirs.parse::<f64>().unwrap_or(f64::NAN) / 1024.0
        ));
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<f64, String> {
    String::from_utf8_lossy(bytes)
        .trim()
        .parse()
        .map_err(|_| "the process that is measured failed".to_owned())
}
