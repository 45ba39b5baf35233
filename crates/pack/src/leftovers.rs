//! What dead runs leave behind: partial files, and receipts whose pack was never published.
//!
//! A run that dies leaves `.<name>.<16 hex digits>.partial` files, which it no longer locks, or, between its last two
//! steps, a receipt without its pack. Neither is ever taken for a result; the next run refuses an orphan receipt's
//! place. They are named here, and cleared only when asked for.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tensilo_core::io::Disk;
use tensilo_core::io::staged::{find_partials, remove_partial};
use tensilo_core::{ErrorKind, Result};

const RECEIPT: &str = ".receipt.json";
const PARTIAL: &str = ".partial";

/// Files of dead runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// Unfinished files that no live run holds.
    pub partials: Vec<PathBuf>,
    /// Receipts without a pack.
    pub orphan_receipts: Vec<PathBuf>,
}

impl Leftovers {
    /// Is there nothing?
    pub fn is_empty(&self) -> bool {
        self.partials.is_empty() && self.orphan_receipts.is_empty()
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (to, from) in
            [(&mut self.partials, other.partials), (&mut self.orphan_receipts, other.orphan_receipts)]
        {
            to.extend(from);
            to.sort();
            to.dedup();
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let shown = |paths: &[PathBuf]| paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
        json!({ "partials": shown(&self.partials), "orphanReceipts": shown(&self.orphan_receipts) })
    }
}

/// Finds what dead runs left: of one destination, or of all packs in a folder.
///
/// # Errors
/// `Io` when the folder cannot be listed; a folder that is not there holds nothing.
pub fn find(place: &Path, disk: &dyn Disk) -> Result<Leftovers> {
    match disk.list(place) {
        Ok(_) => of_names(place, None, disk),
        Err(_) => match place.file_name() {
            Some(name) => of_names(folder_of(place), Some(name), disk),
            None => Ok(Leftovers::default()),
        },
    }
}

/// The folder a path is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn of_names(folder: &Path, only: Option<&OsStr>, disk: &dyn Disk) -> Result<Leftovers> {
    let entries = match disk.list(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Leftovers::default()),
        Err(e) => return Err(e),
    };
    let mut found = Leftovers::default();
    let mut packs: Vec<String> = match only {
        Some(name) => name.to_str().map(str::to_owned).into_iter().collect(),
        None => entries.iter().filter_map(|e| pack_of(e.to_str()?)).collect(),
    };
    packs.sort();
    packs.dedup();
    for pack in &packs {
        let receipt = format!("{pack}{RECEIPT}");
        for name in [pack, &receipt] {
            found.partials.extend(find_partials(disk, folder, name)?);
        }
        let there = |name: &str| entries.iter().any(|e| e == name);
        // A run that publishes right now has named its receipt and still holds its partial pack.
        let live = entries.iter().any(|e| {
            e.to_str().is_some_and(|e| e.ends_with(PARTIAL) && pack_of(e).as_deref() == Some(pack))
                && !found.partials.contains(&folder.join(e))
        });
        if there(&receipt) && !there(pack) && !live {
            found.orphan_receipts.push(folder.join(receipt));
        }
    }
    found.add(Leftovers::default());
    Ok(found)
}

/// The pack that a partial or a receipt belongs to.
fn pack_of(entry: &str) -> Option<String> {
    let name = match entry.strip_prefix('.').and_then(|e| e.strip_suffix(PARTIAL)) {
        Some(partial) => partial.rsplit_once('.')?.0,
        None => entry.strip_suffix(RECEIPT)?,
    };
    Some(name.strip_suffix(RECEIPT).unwrap_or(name).to_owned())
}

/// Removes leftovers; returns what was removed. A partial that a live run holds by now, and a receipt whose pack
/// appeared, stay.
///
/// # Errors
/// `Io`.
pub fn clear(leftovers: &Leftovers, disk: &dyn Disk) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for partial in &leftovers.partials {
        if remove_partial(disk, partial)? {
            removed.push(partial.clone());
        }
    }
    for receipt in &leftovers.orphan_receipts {
        if find(receipt.with_file_name(pack_name(receipt)).as_path(), disk)?.orphan_receipts.contains(receipt)
        {
            disk.unlink(receipt)?;
            removed.push(receipt.clone());
        }
    }
    Ok(removed)
}

fn pack_name(receipt: &Path) -> String {
    let name = receipt.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(RECEIPT).unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "test set-up")]
    use super::*;
    use tensilo_core::io::{Staged, SystemDisk};

    #[test]
    fn partials_and_orphan_receipts_are_named_and_cleared_and_nothing_else() {
        let dir = tensilo_testkit::oracle::temp_dir();
        let at = |n: &str| dir.path().join(n);
        for name in [
            ".a.h5.0123456789abcdef.partial",
            ".a.h5.receipt.json.0123456789abcdef.partial",
            "b.h5.receipt.json",
            "c.h5",
            "c.h5.receipt.json",
            ".a.h5.xyz.partial",
        ] {
            std::fs::write(at(name), b"x").unwrap();
        }
        let live = Staged::create(SystemDisk::shared(), at("d.h5")).unwrap();
        let found = find(dir.path(), &SystemDisk).unwrap();
        assert_eq!(
            found.partials,
            [at(".a.h5.0123456789abcdef.partial"), at(".a.h5.receipt.json.0123456789abcdef.partial")]
        );
        assert_eq!(found.orphan_receipts, [at("b.h5.receipt.json")]);
        // Of one destination only its own.
        let of_b = find(&at("b.h5"), &SystemDisk).unwrap();
        assert!(of_b.partials.is_empty() && of_b.orphan_receipts == found.orphan_receipts);
        assert!(find(&at("c.h5"), &SystemDisk).unwrap().is_empty());
        assert_eq!(clear(&found, &SystemDisk).unwrap().len(), 3);
        assert!(find(dir.path(), &SystemDisk).unwrap().is_empty());
        assert!(at("c.h5.receipt.json").exists() && live.temporary().exists());
    }

    #[test]
    fn a_folder_that_is_not_there_holds_nothing() {
        let dir = tensilo_testkit::oracle::temp_dir();
        assert!(find(&dir.path().join("no/such.h5"), &SystemDisk).unwrap().is_empty());
    }
}
