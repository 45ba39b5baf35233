//! `cargo xtask docs`: links between documents lead somewhere, ARCHITECTURE.md names only what exists, and no file holds
//! what belongs to one machine or what is not finished.

use crate::Outcome;
use crate::workspace::{root, tree};
use std::path::Path;

/// Folders whose names begin a path that ARCHITECTURE.md must not invent.
const PLACES: &[&str] =
    &["crates/", "docs/", "xtask/", "python/", "bench/", "fuzz/", "examples/", ".ci/", ".cargo/"];

/// Left-overs that must not be committed, in pieces so that this file does not hold them.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("#[", "ignore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

/// Hosts of package registries: pins name packages and hashes, not places.
const HOSTS: &[&str] = &[
    concat!("cra", "tes.io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
    concat!("deb.", "debian.org"),
];

/// Prints every fault, or one line that says what was checked.
pub fn run() -> Outcome {
    let files = tree()?;
    let mut faults = Vec::new();
    let mut links = 0;
    for path in &files {
        let bytes = std::fs::read(root().join(path)).map_err(|e| format!("{}: {e}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut add = |fault: String| faults.push(format!("{}: {fault}", path.display()));
        foreign(path, &text).into_iter().for_each(&mut add);
        if path.extension().is_some_and(|e| e == "md") {
            for target in link_targets(&text) {
                links += 1;
                let folder = root().join(path.parent().unwrap_or(Path::new("")));
                if !folder.join(target).exists() {
                    add(format!("the link {target} leads nowhere"));
                }
            }
        }
        if path == Path::new("ARCHITECTURE.md") {
            for name in named_paths(&text).filter(|n| !root().join(n).exists()) {
                add(format!("{name} does not exist"));
            }
        }
    }
    if faults.is_empty() {
        println!(
            "docs: {links} links lead somewhere; {} files hold nothing foreign or unfinished",
            files.len()
        );
        return Ok(());
    }
    faults.iter().for_each(|f| println!("{f}"));
    Err(format!("{} faults in documents and tree", faults.len()))
}

/// Relative targets of Markdown links, without their `#part`.
fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        let path = target.split('#').next()?;
        (!path.is_empty() && !target.contains(':')).then_some(path)
    })
}

/// Words in backticks that look like a path of this tree.
fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|word| {
        PLACES.iter().any(|p| word.starts_with(p)) && !word.contains([' ', '*', '<', '{', '…', '\n'])
    })
}

/// What a file must not hold.
fn foreign(path: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut line_with = |needle: &str, why: &str| {
        let holds = |l: &&str| l.contains(needle) && !canonical_source(path, l);
        if let Some(n) = text.lines().position(|l| holds(&l)) {
            found.push(format!("line {}: {why}: {needle}", n + 1));
        }
    };
    HOSTS.iter().for_each(|h| line_with(h, "host of a registry"));
    let mut machine = vec![concat!("/ro", "ot/").to_owned(), concat!("/ho", "me/").to_owned()];
    if let Some(above) = root().parent().filter(|p| p.parent().is_some()) {
        machine.push(format!("{}/", above.display()));
    }
    machine.extend(std::env::var("HOME").ok().filter(|h| h.len() > 1).map(|h| format!("{h}/")));
    machine.dedup();
    machine.iter().for_each(|p| line_with(p, "path of one machine"));
    if path.extension().is_some_and(|e| e == "rs" || e == "py") {
        UNFINISHED.iter().for_each(|u| line_with(u, "left unfinished"));
    }
    found
}

/// Cargo's own lock files name the default registry by its index; that line is cargo's, not ours.
fn canonical_source(path: &Path, line: &str) -> bool {
    path.file_name().is_some_and(|n| n == "Cargo.lock") && line.starts_with("source = \"registry+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_links_are_followed() {
        let text = "[a](docs/x.md) [b](https://example.org) [c](#part) [d](y.md#part) [e](z.md \"title\")";
        assert_eq!(link_targets(text).collect::<Vec<_>>(), ["docs/x.md", "y.md", "z.md"]);
    }

    #[test]
    fn paths_in_backticks_are_named() {
        let text = "`crates/core/` and `crates/*/src`, `cargo xtask test`, `docs/safety.md`";
        assert_eq!(named_paths(text).collect::<Vec<_>>(), ["crates/core/", "docs/safety.md"]);
    }

    #[test]
    fn hosts_machine_paths_and_left_overs_are_found() {
        let rs = Path::new("a.rs");
        assert_eq!(foreign(rs, concat!("see cra", "tes.io")).len(), 1);
        assert_eq!(foreign(rs, concat!("/ho", "me/somebody")).len(), 1);
        assert_eq!(foreign(rs, concat!("// TO", "DO later")).len(), 1);
        assert_eq!(foreign(rs, "fn whole() {}").len(), 0);
        let lock = concat!("source = \"registry+https://example.org/cra", "tes.io-index\"");
        assert_eq!(foreign(Path::new("Cargo.lock"), lock).len(), 0);
    }
}
