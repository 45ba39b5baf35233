//! Every layout, chunk index, filter and number type, with random selections, against NumPy.

use super::{Case, oracle};
use half::f16;
use num_complex::Complex;
use std::collections::HashMap;
use std::sync::Arc;
use tensilo_core::array::{Hyperslab, NumpyIndex, Points, Selection};
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Result};
use tensilo_hdf5::read::{Dataset, Element, File, OpenOptions};
use tensilo_testkit::oracle::skip;

/// The selection of a case, and the shape of its result without dropped dimensions.
pub fn selection_of(text: &str, shape: &[u64]) -> Result<(Selection, Vec<u64>)> {
    let numbers = |t: &str| t.split(',').map(|n| n.parse::<u64>().expect("a number")).collect::<Vec<_>>();
    if let Some(index) = text.strip_prefix("np:") {
        let resolved = index.parse::<NumpyIndex>()?.resolve(shape)?;
        return Ok((resolved.selection, resolved.shape));
    }
    let selection = if let Some(points) = text.strip_prefix("pts:") {
        Selection::Points(Points::new(shape.len(), points.split(';').flat_map(numbers).collect())?)
    } else {
        let slab = |t: &str| {
            let parts: Vec<Vec<u64>> = t.split('/').map(numbers).collect();
            let [start, stride, count, block] = &parts[..] else { panic!("{t}") };
            Hyperslab::new(start.clone(), count.clone())
                .with_stride(stride.iter().map(|s| *s as i64).collect())
                .with_block(block.clone())
        };
        Selection::Union(text.strip_prefix("or:").expect("a union").split('|').map(slab).collect())
    };
    let shape = selection.shape(shape)?;
    Ok((selection, shape))
}

fn converted<T: Element>(data: &Dataset, selection: &Selection) -> Result<Vec<u8>> {
    let values = data.read_selection::<T>(selection)?;
    // The same into a dirty buffer of the caller's.
    let mut again: Vec<T> = vec![bytemuck::cast_slice(&vec![0xA5_u8; size_of::<T>()])[0]; values.len()];
    data.read_into(selection, &mut again)?;
    assert!(bytemuck::cast_slice::<T, u8>(&again) == bytemuck::cast_slice::<T, u8>(&values));
    Ok(bytemuck::cast_slice(&values).to_vec())
}

fn read_as(data: &Dataset, selection: &Selection, target: &str) -> Result<Vec<u8>> {
    match target {
        "i1" => converted::<i8>(data, selection),
        "i2" => converted::<i16>(data, selection),
        "i4" => converted::<i32>(data, selection),
        "i8" => converted::<i64>(data, selection),
        "u1" => converted::<u8>(data, selection),
        "u2" => converted::<u16>(data, selection),
        "u4" => converted::<u32>(data, selection),
        "u8" => converted::<u64>(data, selection),
        "f2" => converted::<f16>(data, selection),
        "f4" => converted::<f32>(data, selection),
        "f8" => converted::<f64>(data, selection),
        "c16" => converted::<Complex<f64>>(data, selection),
        other => panic!("no target {other}"),
    }
}

fn run(case: &Case, data: &Dataset, selection: &Selection) -> Result<Vec<u8>> {
    match case.mode.split_once(':') {
        None if case.mode == "raw" => {
            let bytes = data.read_bytes(selection)?;
            let mut again = vec![0xA5; bytes.len()];
            data.read_bytes_into(selection, &mut again)?;
            assert!(again == bytes, "read and read_into differ");
            Ok(bytes)
        }
        None => {
            let strings = data.read_string_bytes(selection)?;
            Ok(strings.into_iter().flat_map(|s| [s, vec![0]].concat()).collect())
        }
        Some(("as", target)) => read_as(data, selection, target),
        Some(("refused", _)) => data.read_bytes(selection),
        Some((_, mode)) => read_as(data, selection, mode.trim_start_matches("as:")),
    }
}

/// Bytes are equal; where they are floats, any two NaNs are.
fn same(case: &Case, found: &[u8], wanted: &[u8]) -> bool {
    let nan = |x: f64, y: f64| x.is_nan() && y.is_nan();
    found.len() == wanted.len()
        && (found == wanted
            || match case.mode.as_str() {
                "as:f8" => found
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .zip(wanted.as_chunks::<8>().0)
                    .all(|(a, b)| a == b || nan(f64::from_le_bytes(*a), f64::from_le_bytes(*b))),
                "as:f4" => found.as_chunks::<4>().0.iter().zip(wanted.as_chunks::<4>().0).all(|(a, b)| {
                    a == b || nan(f32::from_le_bytes(*a).into(), f32::from_le_bytes(*b).into())
                }),
                _ => false,
            })
}

/// Files that name other files.
const NAMING: [&str; 3] = ["linked", "external", "virtual"];

/// Runs all cases whose file begins with `prefix`, with one thread and with many, from disk and from memory.
fn check(prefix: &str) {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let cases: Vec<&Case> = oracle.cases.iter().filter(|c| c.file.starts_with(prefix)).collect();
    assert!(!cases.is_empty());
    for (threads, memory) in [(1, false), (4, false), (3, true)] {
        let options = OpenOptions { threads: Threads::new(threads), ..OpenOptions::default() };
        let mut files: HashMap<&str, File> = HashMap::new();
        let mut wrong = Vec::new();
        // Names of other files are followed from a file on disk only.
        for case in cases.iter().filter(|c| !memory || !NAMING.iter().any(|n| c.file.starts_with(n))) {
            let file = files.entry(&case.file).or_insert_with(|| {
                let path = oracle.folder.join(&case.file);
                if memory {
                    let source = Arc::new(MemorySource::new(std::fs::read(path).expect("the file")));
                    File::from_source(source, options.clone()).expect("an HDF5 file")
                } else {
                    File::open_with(path, options.clone()).expect("an HDF5 file")
                }
            });
            let what = format!("{} {} {} {}", case.file, case.path, case.mode, case.selection);
            let refused = case.mode.strip_prefix("refused:");
            let result = file.dataset(&case.path).and_then(|data| {
                let (selection, shape) = selection_of(&case.selection, data.shape())?;
                assert!(shape == case.shape || refused.is_some(), "{what}: {shape:?}, not {:?}", case.shape);
                run(case, &data, &selection)
            });
            let wanted = &oracle.expected[case.bytes.clone()];
            match result {
                Err(e) if refused == Some(e.kind().name()) => {}
                Ok(_) if refused.is_some() => wrong.push(format!("{what}: read")),
                Err(e) if case.mode.starts_with("error:") && e.kind() == ErrorKind::InvalidArgument => {}
                Ok(found) if !case.mode.starts_with("error:") && same(case, &found, wanted) => {}
                Ok(_) => wrong.push(format!("{what}: other bytes")),
                Err(e) => wrong.push(format!("{what}: {e}")),
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {} wrong ({threads} threads):\n{}",
            wrong.len(),
            cases.len(),
            wrong.join("\n")
        );
    }
}

#[test]
fn every_layout_and_index_reads_as_numpy_selects() {
    check("layouts-");
}

#[test]
fn deep_array_indexes_and_trees_read_as_numpy_selects() {
    check("deep-");
}

#[test]
fn all_widths_of_addresses_and_lengths_and_user_blocks_are_read() {
    check("sizes-");
}

#[test]
fn every_number_type_is_read_and_converted_as_numpy_does() {
    check("types");
}

#[test]
fn soft_and_external_links_are_followed_within_the_folder() {
    check("linked");
}

#[test]
fn raw_data_in_external_files_is_read() {
    check("external");
}

#[test]
fn virtual_datasets_read_as_libhdf5_puts_them_together() {
    check("virtual");
}
