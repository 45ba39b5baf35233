//! Comparisons in one run: `cargo xtask bench NAME [--json]`. Peers that need a C compiler are behind the feature
//! `peers`.

mod clock;
mod data;
mod family;
mod filters;
mod h5py;
mod hdf5_read;
mod hdf5_write;
mod lanes;
mod loader;
mod measure;
mod pack;
mod pack_v2;
mod pack_v2_data;
mod pack_v2_file;
mod pack_v2_full;
mod plot;
mod records;
mod report;
mod second_core;

use std::process::ExitCode;

/// One comparison: its name, what it compares, and the function that runs it.
type Comparison = (&'static str, &'static str, fn() -> Result<report::Report, String>);

const COMPARISONS: &[Comparison] = &[
    (
        "filters",
        "every filter, encoding and decoding one chunk of detector counts and of floats",
        filters::run,
    ),
    (
        "hdf5-read",
        "files that h5py wrote, read whole and in parts, by us, h5py and other readers; memory; scaling",
        hdf5_read::run,
    ),
    (
        "hdf5-write",
        "the same arrays, many datasets and many attributes, written by us, h5py and other writers; memory; --full",
        hdf5_write::run,
    ),
    ("lanes", "lane stores written, opened and windowed, by us, petektools, NumPy and h5py", lanes::run),
    ("loader", "batches by us, PyTorch, Grain and loaderx, and record numbers by us and NumPy", loader::run),
    (
        "records",
        "record stores gathered from and appended to, by us, NumPy, loaderx, pyarrow and others",
        records::run,
    ),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if hdf5_read::child(&args) || hdf5_write::child(&args) {
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("bench: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<(), String> {
    // These take options of their own.
    match args {
        [name, rest @ ..] if name == "pack" => return pack::run(rest),
        [name, rest @ ..] if name == "pack-v2-child" => return pack_v2_full::in_child(rest),
        [name, rest @ ..] if name == "pack-v2" => return pack_v2::run(rest),
        [name, rest @ ..] if name == "pack-family" => return pack::make(rest),
        [name, rest @ ..] if name == "pack-child" => return pack::child(rest),
        _ => {}
    }
    let (name, json) = match args {
        [name] => (name.as_str(), false),
        [name, flag] if flag == "--json" => (name.as_str(), true),
        [name, flag] if name == "hdf5-write" && flag == "--full" => {
            hdf5_write::at_full_size();
            (name.as_str(), false)
        }
        _ => ("list", false),
    };
    if name == "list" {
        COMPARISONS.iter().for_each(|(name, what, _)| println!("{name:12} {what}"));
        println!("{:12} a detector family packed, part by part, and by h5py and NumPy; --full", "pack");
        println!(
            "{:12} pack format 2, format 1, bitshuffle with zstd and LZ4, blosc2; KIND…, --scans N, --family, --full",
            "pack-v2"
        );
        println!("{:12} only makes such a family: FOLDER, --full", "pack-family");
        return Ok(());
    }
    let Some((_, _, compare)) = COMPARISONS.iter().find(|(n, _, _)| *n == name) else {
        return Err(format!("no comparison is called {name}; `list` names them"));
    };
    let report = compare()?;
    print!("{}", if json { report.json() } else { report.table() });
    for path in report.draw(name)? {
        eprintln!("drawn: {}", path.display());
    }
    Ok(())
}
