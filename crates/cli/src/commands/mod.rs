//! The commands, one file each: arguments, then what is done with them.

pub mod check;
pub mod chunks;
pub mod completions;
pub mod convert;
pub mod copy;
pub mod diff;
pub mod digest;
pub mod dump;
pub mod info;
pub mod lanes;
pub mod ls;
pub mod man;
pub mod pack;
pub mod plan;
pub mod read;
pub mod records;
pub mod repack;

use clap::Args;
use std::path::Path;
use tensilo::core::Limits;
use tensilo::core::threads::Threads;
use tensilo::hdf5::{ExternalLinks, File, OpenOptions};
use tensilo::{Error, Result};

/// How files are opened, the same for all commands that read one.
#[derive(Debug, Args)]
pub struct OpenArguments {
    /// Open files outside the folder of the given file when it names them; only for files that you trust.
    #[arg(long)]
    pub follow_anywhere: bool,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,

    /// Most memory that a file may make us allocate, such as 512MiB.
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4GiB")]
    pub limit: u64,
}

impl OpenArguments {
    /// As the library takes them.
    pub fn options(&self) -> OpenOptions {
        OpenOptions {
            limits: Limits::default().with_bytes(self.limit),
            threads: Threads::new(self.threads),
            links: if self.follow_anywhere { ExternalLinks::Anywhere } else { ExternalLinks::SameFolderTree },
            ..OpenOptions::default()
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn open(&self, path: &Path) -> Result<File> {
        File::open_with(path, self.options())
    }
}

/// Refuses to write over a file, before any work is done.
fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Error::already_exists("the file exists").in_file(path).hint("--force replaces it"))
}

/// Reads a size: digits with `B`, `KiB`, `MiB`, `GiB`, `TiB` (or `K`, `M`, `G`, `T`), or `kB`, `MB`, `GB`, `TB`.
pub fn bytes(text: &str) -> std::result::Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("unit {unit:?} is none of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB")),
    };
    if let Ok(n) = number.parse::<u64>() {
        return n.checked_mul(factor).ok_or_else(|| "too large".to_owned());
    }
    match number.parse::<f64>() {
        Ok(n) if n * factor as f64 <= 1e18 => Ok((n * factor as f64).round() as u64),
        _ => Err("a number with a unit is wanted, such as 512MiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, n) in [
            ("0", 0),
            ("512MiB", 512 << 20),
            ("1.5 GiB", 3 << 29),
            ("2k", 2048),
            ("3MB", 3_000_000),
            ("7b", 7),
        ] {
            assert_eq!(bytes(text), Ok(n), "{text}");
        }
        for text in ["", "MiB", "-1", "1 parsec", "99999999999TiB", "1.2.3M"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
