//! Where the fixtures are, and what they expect.

use serde_json::Value;
use std::path::PathBuf;
use tensilo_testkit::oracle;

/// Folders with a source, a cache and what is expected of them, in the uint8 profile.
pub const UINT8: [&str; 6] = ["mini", "family", "multishard", "prime", "allzero", "ext_96x96"];

/// The folder of pack fixtures; says what is skipped without it.
pub fn packs(tests: usize) -> Option<PathBuf> {
    let found = oracle::fixtures().map(|f| f.join("pack")).filter(|p| p.is_dir());
    if found.is_none() {
        oracle::skip("the pack fixtures", tests);
    }
    found
}

/// `expected.json` of a folder.
pub fn expected(folder: &str) -> Value {
    let path = packs(1).unwrap().join(folder).join("expected.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
