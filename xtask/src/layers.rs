//! `cargo xtask layers`: invariants 1, 2 and 4 of ARCHITECTURE.md. Crates depend downwards only, folders inside a crate
//! import downwards only, and every file with unsafe code is listed in docs/safety.md.
//!
//! Code behind `#[cfg(test)]` and dev-dependencies may reach up: a test of a parser may use the reader above it.

use crate::rust_source::{reexports, root_names, tokens, without_tests};
use crate::workspace::{Package, packages, root, rust_files};
use crate::{Outcome, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Every package, and the ones it may use. A package that is not here may not exist.
const CRATES: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("testkit", &["core"]),
    ("filters", &["core"]),
    ("hdf5", &["core", "filters"]),
    ("records", &["core", "filters"]),
    ("lanes", &["core"]),
    ("loader", &["core"]),
    ("vectors", &["core", "hdf5"]),
    ("pack", &["core", "filters", "hdf5"]),
    ("convert", &["core", "filters", "hdf5", "records", "lanes", "pack"]),
    ("capi", &["core", "pack"]),
    ("capi-sampler", &["core", "loader"]),
    ("capi-zrecord", &["core", "records"]),
    ("tensilo", &["core", "filters", "hdf5", "records", "lanes", "loader", "pack", "convert"]),
    ("cli", &["tensilo"]),
    ("python", &["tensilo", "capi-sampler", "capi-zrecord"]),
];

/// Floors of a crate, from the ground up; folders on one floor do not import each other. Crates that are not here may
/// have any order, but no two of their folders may reach each other.
const FLOORS: &[(&str, &[&[&str]])] = &[
    (
        "core",
        &[
            &["error"],
            &["buffer", "streaming", "progress", "wire", "dtype"],
            &["limits"],
            &["threads", "io"],
            &["array"],
            &["gather"],
        ],
    ),
    (
        "hdf5",
        &[&["format"], &["space"], &["object"], &["index"], &["read", "write"], &["edit", "repack", "check"]],
    ),
];

/// Prints every breach, or one line that says what was checked.
pub fn run() -> Outcome {
    let packages = packages()?;
    let mut breaches = Vec::new();
    for package in &packages {
        dependencies(package, &mut breaches);
        let imports = Imports::of(package)?;
        match FLOORS.iter().find(|(name, _)| *name == package.folder) {
            Some((_, floors)) => imports.check_floors(floors, &mut breaches),
            None => imports.check_circles(&mut breaches),
        }
    }
    let unsafe_files = unsafe_code(&packages, &mut breaches)?;
    if breaches.is_empty() {
        println!(
            "layers: {} crates depend and import downwards only; {unsafe_files} files with unsafe code are listed",
            packages.len()
        );
        return Ok(());
    }
    breaches.iter().for_each(|b| println!("{b}"));
    Err(format!("{} breaches of the layers", breaches.len()))
}

/// Compares the `tensilo-…` dependencies of a manifest with the table.
fn dependencies(package: &Package, breaches: &mut Vec<String>) {
    let Some((_, allowed)) = CRATES.iter().find(|(name, _)| *name == package.folder) else {
        breaches.push(format!("{}: not in the table of crates in xtask/src/layers.rs", package.folder));
        return;
    };
    let mut section = "";
    for line in package.manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            continue;
        }
        let ours = line.split(['.', '=', ' ']).next().unwrap_or("");
        let used = match ours.strip_prefix("tensilo-") {
            Some(rest) => rest,
            None if ours == "tensilo" => "tensilo",
            None => continue,
        };
        let shipped = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
        if shipped && !allowed.contains(&used) {
            breaches.push(format!("{}: [{section}] may not name {ours}", package.folder));
        }
    }
}

/// Which top-level module of a crate imports which, and where it says so.
struct Imports {
    package: String,
    /// Top-level modules.
    modules: BTreeSet<String>,
    /// Those of them that are folders.
    folders: BTreeSet<String>,
    /// (importer, imported) → the first file that does it.
    edges: BTreeMap<(String, String), String>,
}

impl Imports {
    fn of(package: &Package) -> Result<Self, String> {
        let src = package.path.join("src");
        let lib = std::fs::read_to_string(src.join("lib.rs")).unwrap_or_default();
        let lib_tokens = without_tests(&tokens(&lib));
        let names = reexports(&lib_tokens);
        let files = rust_files(&src);
        let module_of = |file: &Path| -> Vec<String> {
            let inside = file.strip_prefix(&src).unwrap_or(file).with_extension("");
            let parts: Vec<_> = inside.iter().map(|p| p.to_string_lossy().into_owned()).collect();
            parts.into_iter().filter(|p| p != "mod").collect()
        };
        let ignored = |m: &[String]| matches!(m.first().map(String::as_str), None | Some("lib" | "main"));
        let modules: BTreeSet<String> =
            files.iter().map(|f| module_of(f)).filter(|m| !ignored(m)).map(|m| m[0].clone()).collect();
        let mut edges = BTreeMap::new();
        for file in &files {
            let module = module_of(file);
            if ignored(&module) || module.iter().any(|p| p == "tests" || p.ends_with("_tests")) {
                continue;
            }
            let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
            for name in root_names(&without_tests(&tokens(&text)), module.len()) {
                let target = if modules.contains(name) { Some(name) } else { names.get(name).copied() };
                if let Some(to) = target.filter(|to| modules.contains(*to) && *to != module[0]) {
                    let shown = file.strip_prefix(root()).unwrap_or(file).display().to_string();
                    edges.entry((module[0].clone(), to.to_owned())).or_insert(shown);
                }
            }
        }
        let folders = modules.iter().filter(|m| src.join(m).is_dir()).cloned().collect();
        Ok(Self { package: package.folder.clone(), modules, folders, edges })
    }

    fn check_floors(&self, floors: &[&[&str]], breaches: &mut Vec<String>) {
        let floor = |module: &str| floors.iter().position(|f| f.contains(&module));
        for module in self.modules.iter().filter(|m| floor(m).is_none()) {
            breaches.push(format!("{}: {module} has no floor in xtask/src/layers.rs", self.package));
        }
        for ((from, to), file) in &self.edges {
            if let (Some(a), Some(b)) = (floor(from), floor(to))
                && a <= b
            {
                breaches.push(format!("{file}: {from} may not import {to}"));
            }
        }
    }

    /// Two folders may not reach each other, directly or over files between them.
    fn check_circles(&self, breaches: &mut Vec<String>) {
        for (lower, upper) in self.folders.iter().flat_map(|a| self.folders.iter().map(move |b| (a, b))) {
            if lower < upper && self.reaches(lower, upper) && self.reaches(upper, lower) {
                let seen: Vec<&String> = self
                    .edges
                    .iter()
                    .filter(|((from, to), _)| self.reaches(from, to) && self.reaches(to, from))
                    .map(|(_, file)| file)
                    .collect();
                breaches.push(format!("{}: {lower} and {upper} import each other: {seen:?}", self.package));
            }
        }
    }

    /// Whether a chain of imports leads from one module to the other.
    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut reached = BTreeSet::from([from]);
        loop {
            let before = reached.len();
            for (a, b) in self.edges.keys() {
                if reached.contains(a.as_str()) {
                    reached.insert(b);
                }
            }
            if reached.len() == before {
                return reached.contains(to);
            }
        }
    }
}

/// Every file with unsafe code is named in docs/safety.md, and opts in by itself. Returns how many there are.
fn unsafe_code(packages: &[Package], breaches: &mut Vec<String>) -> Result<usize, String> {
    let listed = std::fs::read_to_string(root().join("docs/safety.md")).unwrap_or_default();
    let mut found = 0;
    let folders = packages.iter().map(|p| p.path.clone()).chain([root().join("xtask")]);
    for file in folders.flat_map(|folder| rust_files(&folder)) {
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let words = tokens(&text);
        if !words.contains(&"unsafe") {
            continue;
        }
        found += 1;
        let shown = file.strip_prefix(workspace::root()).unwrap_or(&file).display().to_string();
        if !listed.contains(&shown) {
            breaches.push(format!("{shown}: has unsafe code that docs/safety.md does not list"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(edges: &[(&str, &str)]) -> Imports {
        let both = edges.iter().flat_map(|(a, b)| [(*a).to_owned(), (*b).to_owned()]);
        let modules: BTreeSet<String> = both.collect();
        Imports {
            package: "x".into(),
            folders: modules.iter().filter(|m| !m.ends_with("_rs")).cloned().collect(),
            modules,
            edges: edges.iter().map(|(a, b)| (((*a).into(), (*b).into()), "f.rs".into())).collect(),
        }
    }

    #[test]
    fn an_import_upwards_or_sideways_is_a_breach() {
        let floors: &[&[&str]] = &[&["format"], &["read", "write"]];
        let breaches = |edges| {
            let mut b = Vec::new();
            imports(edges).check_floors(floors, &mut b);
            b.len()
        };
        assert_eq!(breaches(&[("read", "format"), ("write", "format")]), 0);
        assert_eq!(breaches(&[("format", "read")]), 1);
        assert_eq!(breaches(&[("write", "read")]), 1);
        assert_eq!(breaches(&[("edit", "read")]), 1, "a folder without a floor");
    }

    #[test]
    fn a_circle_is_a_breach_and_a_diamond_is_not() {
        let breaches = |edges| {
            let mut b = Vec::new();
            imports(edges).check_circles(&mut b);
            b.len()
        };
        assert_eq!(breaches(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]), 0);
        assert_eq!(breaches(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]), 1);
        assert_eq!(breaches(&[("a", "x_rs"), ("x_rs", "b"), ("b", "a")]), 1, "over a file between them");
        assert_eq!(breaches(&[("a", "x_rs"), ("x_rs", "a")]), 0, "a folder and a file beside it");
    }

    #[test]
    fn a_shipped_dependency_upwards_is_a_breach_and_a_test_dependency_is_not() {
        let package = |manifest: &str| Package {
            folder: "filters".into(),
            path: "x".into(),
            manifest: manifest.into(),
        };
        let breaches = |manifest| {
            let mut b = Vec::new();
            dependencies(&package(manifest), &mut b);
            b.len()
        };
        assert_eq!(breaches("[dependencies]\ntensilo-core.workspace = true\n"), 0);
        assert_eq!(breaches("[dependencies]\ntensilo-hdf5 = { path = \"../hdf5\" }\n"), 1);
        assert_eq!(breaches("[target.'cfg(unix)'.dependencies]\ntensilo.workspace = true\n"), 1);
        assert_eq!(breaches("[dev-dependencies]\ntensilo-testkit.workspace = true\n"), 0);
    }
}
