//! `cargo xtask demo`: the main job on the family in `examples/family`, one printed command at a time.

use crate::workspace::{cargo, command, root, target};
use crate::{Outcome, steps};
use std::path::Path;

/// The source, a family of one acquisition.
const SOURCE: &str = "examples/family/demo_master.h5";

/// Builds the program, then inspects, plans, packs, verifies and draws into `target/demo`.
pub fn run() -> Outcome {
    steps::call(cargo(["build", "--release", "-p", "tensilo-cli"]))?;
    let program = target().join("release/tensilo");
    let folder = fresh_folder(&target().join("demo"))?;
    let folder = folder.strip_prefix(root()).unwrap_or(&folder).display().to_string();
    let pack = format!("{folder}/demo.h5");
    let (diffraction, detector) = (format!("{folder}/diffraction.png"), format!("{folder}/bright-field.png"));
    // The prepared index of the source stays below target/, too.
    let index = format!("--index-dir={folder}");
    for args in [
        vec!["pack", "inspect", SOURCE, &index],
        vec!["pack", "plan", SOURCE, &pack, &index],
        vec!["pack", "produce", SOURCE, &pack, &index],
        vec!["pack", "verify", &pack, "--source", SOURCE],
        vec!["pack", "read", &pack, "--diffraction", "--log", "--output", &diffraction],
        vec!["pack", "read", &pack, "--disk", "8", "--output", &detector],
    ] {
        println!("\n$ tensilo {}", args.join(" "));
        steps::call(command(&program, &args))?;
    }
    println!("\npictures:\n{diffraction}\n{detector}");
    Ok(())
}

/// An empty folder: what an earlier run left there is removed.
#[expect(clippy::disallowed_methods, reason = "a chore clears its own output below target/")]
fn fresh_folder(folder: &Path) -> Result<std::path::PathBuf, String> {
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(fail)?;
    }
    std::fs::create_dir_all(folder).map_err(fail)?;
    Ok(folder.to_path_buf())
}
