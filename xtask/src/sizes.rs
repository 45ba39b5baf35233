//! `cargo xtask sizes`: how large the shipped programs are, and which source files grew past 600 lines.

use crate::workspace::{cargo, root, target, tree};
use crate::{Outcome, steps};

/// Builds in release and prints both lists; they inform, they do not fail.
pub fn run() -> Outcome {
    steps::call(cargo(["build", "--release", "--quiet", "-p", "tensilo-cli"]))?;
    let program = target().join("release/tensilo");
    let bytes = std::fs::metadata(&program).map_err(|e| format!("{}: {e}", program.display()))?.len();
    println!("{bytes:>10} bytes  target/release/tensilo");
    let mut long: Vec<(usize, String)> = Vec::new();
    for path in tree()? {
        if path.extension().is_some_and(|e| e == "rs" || e == "py") {
            let text = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
            long.push((text.lines().count(), path.display().to_string()));
        }
    }
    let (files, lines) = (long.len(), long.iter().map(|(n, _)| n).sum::<usize>());
    long.retain(|(n, _)| *n > 600);
    long.sort_by(|a, b| b.cmp(a));
    for (n, path) in long {
        println!("{n:>10} lines  {path}");
    }
    println!("{lines:>10} lines  in {files} files");
    Ok(())
}
