//! hidefix as a contestant: does what a line on its input says and answers with one line, so that its start is not timed.
//!
//! A line is `TASK CHECK PATH DATASET [NUMBER…]`, separated by tabs; the answer is the digest of what was read (0 when
//! `CHECK` is `-`), or `no: ` and the reason. libhdf5 makes hidefix's index, of the wanted dataset only; data is read in
//! parallel, as its documentation shows.

use anyhow::{Context, Result};
use hidefix::prelude::*;
use std::io::{BufRead, Write};
use std::path::Path;

fn main() {
    // Data that cannot be read is an answer, and no cause for a message.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let fields: Vec<&str> = line.split('\t').collect();
        let answer = match std::panic::catch_unwind(|| work(&fields)) {
            Ok(Ok(digest)) => digest.to_string(),
            Ok(Err(e)) => format!("no: {e:#}").replace('\n', " "),
            Err(_) => "no: it panicked".to_owned(),
        };
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn work(fields: &[&str]) -> Result<u64> {
    let [task, check, path, dataset, numbers @ ..] = fields else { anyhow::bail!("not a task") };
    let (path, check) = (Path::new(path), *check != "-");
    match *task {
        "whole" => {
            let bytes = whole(path, dataset)?;
            Ok(if check {
                digest(&bytes)
            } else {
                drop(std::hint::black_box(bytes));
                0
            })
        }
        "rows" => {
            let numbers = numbers.iter().map(|n| n.parse()).collect::<Result<Vec<u64>, _>>()?;
            let values = rows(path, dataset, &numbers)?;
            let bytes = values.iter().flat_map(|v| v.to_le_bytes());
            Ok(if check { digest(&bytes.collect::<Vec<u8>>()) } else { 0 })
        }
        "walk" => {
            let values = walk(path)?;
            let bytes = values.iter().flat_map(|v| v.to_le_bytes());
            Ok(if check { digest(&bytes.collect::<Vec<u8>>()) } else { 0 })
        }
        _ => anyhow::bail!("not a task"),
    }
}

/// A whole dataset's bytes; every machine that this runs on is little-endian, as the data is.
fn whole(path: &Path, dataset: &str) -> Result<Vec<u8>> {
    let index = hdf5::File::open(path)?.dataset(dataset)?.index()?;
    let reader = index.as_par_reader(&path)?;
    let all = Extents::try_from(..).context("all")?;
    let mut bytes = vec![0; index.size() * index.dsize()];
    reader.read_to_par(&all, &mut bytes)?;
    Ok(bytes)
}

fn rows(path: &Path, dataset: &str, numbers: &[u64]) -> Result<Vec<f32>> {
    let index = hdf5::File::open(path)?.dataset(dataset)?.index()?;
    let reader = index.as_par_reader(&path)?;
    let width = index.shape().get(1).copied().context("rows")?;
    let mut values = vec![0_f32; numbers.len() * width as usize];
    for (row, n) in values.chunks_mut(width as usize).zip(numbers) {
        reader.values_to_par((vec![*n, 0], vec![1, width]), row)?;
    }
    Ok(values)
}

/// The 2,000 small datasets, in order.
fn walk(path: &Path) -> Result<Vec<f64>> {
    let file = hdf5::File::open(path)?;
    let mut values = Vec::new();
    for i in 0..2000 {
        let index = file.dataset(&format!("d{i:04}"))?.index()?;
        values.extend(index.as_reader(path)?.values::<f64, _>(..)?);
    }
    Ok(values)
}

/// As the comparison computes it.
fn digest(bytes: &[u8]) -> u64 {
    let word = |(i, part): (usize, &[u8])| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word).wrapping_mul(i as u64 * 2 + 1)
    };
    bytes.chunks(8).enumerate().map(word).fold(0, u64::wrapping_add)
}
