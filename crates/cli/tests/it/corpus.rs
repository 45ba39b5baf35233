//! Every file of the corpus, malformed ones included, ends in an answer or an error: no panic, no hang, and never
//! more than 512 MiB, which the system enforces on the whole process.

use crate::program::command;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tensilo::core::Quiet;
use tensilo::core::threads::Threads;
use tensilo::{Error, Result};
use tensilo_testkit::oracle;

/// Address space that the whole process may have, in KiB.
const SPACE_KIB: u64 = 512 << 10;
/// Patience with one file on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_none_or(|e| e != "tsv") {
            out.push(path);
        }
    }
}

/// Runs one command under the limit of memory; the exit code.
fn limited(file: &Path, args: &[&str]) -> Result<i32> {
    let fail = |what: String| Error::invalid(format!("{}: {args:?}: {what}", file.display()));
    let program = command(Path::new("/"));
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {SPACE_KIB}; exec \"$@\""), "sh"])
        .arg(program.get_program())
        .args(args)
        .arg(file)
        // One arena: else each thread reserves 64 MiB of address space that it does not use.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Error::io("cannot start the program", e))?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| Error::io("cannot wait", e))? {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(fail(format!("hangs: still running after {PATIENCE:?}")));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut stderr = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        let _ = pipe.read_to_string(&mut stderr);
    }
    match status.code() {
        Some(code @ 0..=2) if !stderr.contains("panicked") => Ok(code),
        _ => Err(fail(format!("{status}\n{stderr}"))),
    }
}

#[test]
fn no_corpus_file_makes_the_program_panic_hang_or_take_more_than_512_mib() {
    let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
    let mut all = Vec::new();
    files(&corpus, &mut all);
    assert!(all.len() > 250, "{} files", all.len());
    let commands: [&[&str]; 4] = [
        &["digest", "--storage", "--threads", "2", "--limit", "256MiB"],
        &["digest", "--refs", "path", "--threads", "1", "--limit", "256MiB"],
        &["ls", "--recursive", "--json", "--limit", "256MiB"],
        &["check", "--threads", "1", "--limit", "256MiB"],
    ];
    Threads::default()
        .for_each(
            all.len() * commands.len(),
            &Quiet,
            "running",
            0,
            || (),
            |_, i, _| limited(&all[i / commands.len()], commands[i % commands.len()]).map(drop),
        )
        .unwrap();
}
