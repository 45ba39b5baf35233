//! The files that are read, made by h5py.
#![expect(clippy::disallowed_methods, reason = "the files of a comparison need no crash safety")]

use super::H5py;
use std::path::Path;

/// 64 MiB of doubles: a random walk, rounded, so that filters have something to find.
const WALK: &str = "x = np.round(np.cumsum(np.random.default_rng(1).normal(size=1 << 23)), 2)";
/// 64 MiB of floats for tiles, and 32 MiB of detector counts.
const TILES: &str = "y = np.round(np.cumsum(np.random.default_rng(2).normal(size=1 << 24)), 1).astype('f4').reshape(4096, 4096)";
const FRAMES: &str = "z = np.random.default_rng(3).poisson(0.4, (64, 512, 512)).astype('u2')";

const MAKE: &[&str] = &[
    "N = h5py.File(F + '/new.h5', 'w', libver=('v110', 'v110'))",
    "N['contiguous'] = x",
    "N.create_dataset('plain', data=x, chunks=(32768,))",
    "N.create_dataset('gzip', data=x, chunks=(32768,), compression='gzip', compression_opts=4, shuffle=True)",
    "N.create_dataset('zstd', data=x, chunks=(32768,), shuffle=True, **hdf5plugin.Zstd())",
    "N.create_dataset('tiles', data=y, chunks=(64, 64), compression='gzip', compression_opts=4, shuffle=True)",
    "N.create_dataset('frames', data=z, chunks=(1, 512, 512), **hdf5plugin.Bitshuffle())",
    "N.close()",
    "O = h5py.File(F + '/old.h5', 'w', libver=('earliest', 'v108'))",
    "O.create_dataset('gzip', data=x, chunks=(32768,), compression='gzip', compression_opts=4, shuffle=True)",
    "O.close()",
    "M = h5py.File(F + '/many.h5', 'w', libver=('v110', 'v110'))",
    "[M.__setitem__(f'd{i:04}', np.arange(i, i + 10, dtype='f8')) for i in range(2000)]",
    "M.create_group('g')",
    "[M['g'].attrs.__setitem__(f'attribute {i}', np.arange(i, i + 4, dtype='f8')) for i in range(128)]",
    "M.close()",
    "del x, y, z",
];

/// Defines what the Python process needs, and makes all files in a folder, unless they are there from an earlier run.
pub fn prepare(python: &H5py, folder: &Path, definitions: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let script = folder.join("definitions.py");
    std::fs::write(&script, definitions).map_err(failed)?;
    python.run(&format!("exec(open({:?}).read(), globals())", script.display().to_string()));
    python.run(&format!("F = {:?}", folder.display().to_string()));
    let complete = folder.join("complete");
    if !complete.exists() {
        for statement in [WALK, TILES, FRAMES].iter().chain(MAKE) {
            python.run(statement);
        }
        std::fs::write(&complete, "").map_err(failed)?;
    }
    Ok(())
}
