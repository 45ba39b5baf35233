//! What the commands of `tensilo pack` do with packs of format 2.

use super::{SourceArguments, info, object, plan, produce, read, unpack, verify};
use crate::exit::{Answer, Outcome};
use crate::output::picture::{Picture, Scale};
use crate::output::{Output, human};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use tensilo::convert::npy::NpyWriter;
use tensilo::core::array::{Axis, Selection};
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::pack::products::{Choice, ImageValues};
use tensilo::pack::read::Values;
use tensilo::pack::receipt_path;
use tensilo::pack::v2::plan::{Plan, PlanOptions, plan as plan_2};
use tensilo::pack::v2::produce::{ProduceOptions, produce as produce_2};
use tensilo::pack::v2::products::Image;
use tensilo::pack::v2::read::{Pack, ReadOptions};
use tensilo::pack::v2::receipt::Receipt;
use tensilo::pack::v2::source::inspect::{Inspection, inspect as inspect_2};
use tensilo::pack::v2::verify::{VerifyOptions, verify as verify_2};
use tensilo::{Error, ErrorKind, Result};

pub(super) fn open(path: &Path, threads: usize) -> Result<Pack> {
    Pack::open_with(path, ReadOptions { threads: Threads::new(threads), ..ReadOptions::default() })
}

/// `16 × 32 scans of 64 × 64 pixels`.
fn shape_text(scan: &[u64], detector: &[u64]) -> String {
    let joined = |s: &[u64]| s.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
    format!("{} scans of {} pixels", joined(scan), joined(detector))
}

/// `pack inspect --format 2`.
pub(super) fn inspect(i: &Inspection, out: &mut Output) -> Outcome {
    if out.is_json() {
        out.json("tensilo.pack.inspect/1", &object(i.to_json())?)?;
        return Ok(Answer::Yes);
    }
    out.line(format_args!("dataset     {}", human::name(&i.dataset)))?;
    out.line(format_args!("source      {}", i.kind.name()))?;
    out.line(format_args!("shape       {}", shape_text(&i.scan_shape, &i.detector_shape)))?;
    out.line(format_args!("dtype       {}", i.counts))?;
    out.line(format_args!("excluded    {} pixels", i.excluded.len()))?;
    out.line(format_args!("identity    {}", i.source_identity))?;
    let row = |m: &tensilo::pack::source::inspect::SourceMember| {
        let path = human::name(&m.path.display().to_string());
        vec![m.role.name().to_owned(), human::bytes(m.bytes), m.sha256.to_string(), path]
    };
    for line in human::columns(&i.members.iter().map(row).collect::<Vec<_>>()) {
        out.line(line)?;
    }
    Ok(Answer::Yes)
}

/// Inspects a source for format 2.
pub(super) fn inspected(a: &SourceArguments, destination: Option<&Path>, out: &Output) -> Result<Inspection> {
    inspect_2(&a.source, &a.options_2(destination.map(Path::to_path_buf)), &out.monitor())
}

fn planned(
    i: &Inspection,
    destination: &Path,
    budget: &super::BudgetArguments,
    threads: usize,
) -> Result<Plan> {
    let options = PlanOptions {
        memory: budget.memory.unwrap_or_else(tensilo::pack::plan::default_memory),
        available_disk: budget.available_disk,
        threads: Threads::new(threads),
    };
    plan_2(i, destination, &options, &SystemDisk)
}

/// `pack plan --format 2`.
pub(super) fn plan(a: &plan::PlanArguments, out: &mut Output) -> Outcome {
    let i = inspected(&a.source, Some(&a.destination), out)?;
    super::note_leftovers(&i.leftovers, out);
    let p = planned(&i, &a.destination, &a.budget, a.source.threads)?;
    if out.is_json() {
        out.json("tensilo.pack.plan/1", &object(p.to_json())?)?;
        return Ok(Answer::Yes);
    }
    let (l, block) = (&p.layout, p.layout.block());
    out.line("format      2")?;
    out.line(format_args!("shards      {} of {} scans", l.shards(), l.shard_scans()))?;
    out.line(format_args!("blocks      {} × {} pixels × {} scans", block.rows, block.columns, block.scans))?;
    out.line(format_args!(
        "work        {} worker{}, {} scans at a time, the source is decoded {}",
        p.workers,
        if p.workers == 1 { "" } else { "s" },
        p.window,
        if p.decodes == 1 { "once".to_owned() } else { format!("up to {} times", p.decodes) }
    ))?;
    out.line(format_args!(
        "memory      {} of {} allowed",
        human::bytes(p.planned_peak_bytes),
        human::bytes(p.memory)
    ))?;
    out.line(format_args!(
        "disk        at most {} of {} available",
        human::bytes(p.maximum_output_bytes.saturating_add(p.maximum_receipt_bytes)),
        human::bytes(p.available_disk)
    ))?;
    Ok(Answer::Yes)
}

/// `pack produce --format 2`.
pub(super) fn produce(a: &produce::ProduceArguments, out: &mut Output) -> Outcome {
    let i = inspected(&a.source, Some(&a.destination), out)?;
    let p = planned(&i, &a.destination, &a.budget, a.source.threads)?;
    let options = ProduceOptions { clear_leftovers: a.clear_leftovers, ..ProduceOptions::default() };
    let made = produce_2(&i, &p, &options, &out.monitor())?;
    for path in &made.cleared {
        out.note(format_args!("removed {}", human::name(&path.display().to_string())));
    }
    let r = &made.receipt;
    if out.is_json() {
        let receipt: Value = serde_json::from_slice(&r.encode())
            .map_err(|e| Error::invalid(format!("the receipt is no JSON: {e}")))?;
        let mut body = Map::new();
        body.insert("receiptPath".into(), made.receipt_path.display().to_string().into());
        body.insert("receipt".into(), receipt);
        out.json("tensilo.pack.produce/1", &body)?;
        return Ok(Answer::Yes);
    }
    let seconds = r.timing.total_before_atomic_publication_milliseconds / 1e3;
    produce::report(out, &a.destination, &made.receipt_path, r.output_bytes, i.logical_bytes(), seconds)
}

/// `pack verify` of a pack of format 2.
pub(super) fn verify(a: &verify::VerifyArguments, out: &mut Output) -> Outcome {
    let options = VerifyOptions {
        receipt: !a.no_receipt,
        receipt_path: a.receipt.clone(),
        shard: a.shard,
        deep: a.deep,
        source: a.source.clone(),
        dataset: a.dataset.clone(),
        threads: Threads::new(a.threads),
        ..VerifyOptions::default()
    };
    let v = verify_2(&a.pack, &options, &out.monitor())?;
    let answer = if v.is_proven() { Answer::Yes } else { Answer::No };
    if out.is_json() {
        out.json("tensilo.pack.verify/1", &object(v.to_json())?)?;
        return Ok(answer);
    }
    for f in &v.findings {
        out.line(format_args!("{:11} {}", f.subject, human::name(&f.message)))?;
    }
    if let Some(sum) = &v.raw_sha256 {
        out.line(format_args!("counts      {sum} ({})", if v.deep { "recomputed" } else { "as stated" }))?;
    }
    if !v.receipt_checked {
        out.note("without its receipt a pack is not published");
    }
    let name = human::name(&a.pack.display().to_string());
    let what = a.shard.map_or_else(|| name.clone(), |k| format!("{name}, shard {k}"));
    out.line(format_args!("{what}: {}", if v.is_proven() { "proven" } else { "NOT proven" }))?;
    Ok(answer)
}

/// `pack info` of a pack of format 2.
pub(super) fn info(a: &info::InfoArguments, out: &mut Output) -> Outcome {
    let pack = Pack::open(&a.pack)?;
    let (index, l) = (pack.index(), pack.layout());
    let (receipt, differences) = match Receipt::read(&receipt_path(&a.pack)) {
        Ok(receipt) => {
            let differences = receipt.differences(index, pack.file_bytes());
            (Some(receipt), differences)
        }
        Err(e) if e.kind() == ErrorKind::NotFound => (None, Vec::new()),
        Err(e) => (None, vec![e.message().to_owned()]),
    };
    let block = l.block();
    if out.is_json() {
        let view = json!({
            "format": 2,
            "shape": pack.shape(),
            "scanShape": l.scan_shape(),
            "detectorShape": l.detector_shape(),
            "sourceDtype": l.counts().name(),
            "block": [block.rows, block.columns, block.scans],
            "scansPerShard": l.shard_scans(),
            "shardCount": l.shards(),
            "excludedPixels": index.excluded.len(),
            "logicalBytes": l.logical_bytes(),
            "fileBytes": pack.file_bytes(),
            "sourceIdentitySHA256": index.source_identity,
            "sourceRawLogicalSHA256": index.raw_sha256,
            "receipt": receipt.is_some(),
            "receiptDifferences": differences,
        });
        out.json("tensilo.pack.info/1", &object(view)?)?;
        return Ok(Answer::Yes);
    }
    out.line("format      2")?;
    out.line(format_args!("shape       {}", shape_text(l.scan_shape(), l.detector_shape())))?;
    out.line(format_args!("values      {}", l.counts()))?;
    out.line(format_args!("excluded    {} pixels, their values can be restored", index.excluded.len()))?;
    out.line(format_args!("shards      {} of {} scans", l.shards(), l.shard_scans()))?;
    out.line(format_args!("blocks      {} × {} pixels × {} scans", block.rows, block.columns, block.scans))?;
    let (logical, file) = (l.logical_bytes(), pack.file_bytes());
    out.line(format_args!(
        "size        {} of {} ({:.2} : 1)",
        human::bytes(file),
        human::bytes(logical),
        logical as f64 / file as f64
    ))?;
    out.line(format_args!("source      {}", index.source_identity))?;
    out.line(format_args!("counts      {}", index.raw_sha256))?;
    let state = match (&receipt, differences.is_empty()) {
        (Some(_), true) => "agrees".to_owned(),
        (None, true) => "there is none; the pack does not count as published".to_owned(),
        _ => format!("DISAGREES: {}", human::name(&differences.join("; "))),
    };
    out.line(format_args!("receipt     {state}"))?;
    Ok(Answer::Yes)
}

/// `pack read` of a pack of format 2.
pub(super) fn read(a: &read::ReadArguments, out: &mut Output) -> Outcome {
    let pack = open(&a.pack, a.threads)?;
    if let Some((row, column)) = a.frame {
        return frame(a, &pack, &[row.into(), column.into()]);
    }
    if let Some(scan) = &a.scan {
        return frame(a, &pack, scan);
    }
    if a.diffraction {
        return image(a, &pack, "diffraction_sum", out);
    }
    image(a, &pack, "bf", out)
}

/// One image by its name, sums in 64 bits.
fn image(a: &read::ReadArguments, pack: &Pack, name: &str, out: &Output) -> Outcome {
    let choice = Choice {
        only: vec![name.to_owned()],
        rings: [a.disk, None, None],
        center: a.center.map(|(row, column)| [row, column]),
    };
    let images = pack.images(&choice, &out.monitor())?.images;
    let Some(Image { values, shape, .. }) = images.into_iter().next() else {
        return Err(Error::invalid("no image was made").into());
    };
    let wide = match values {
        ImageValues::U32(v) => ImageValues::U64(v.into_iter().map(u64::from).collect()),
        other => other,
    };
    save(a, wide.descr(), &shape, &wide.to_bytes(), &wide.to_f64())
}

/// One frame, named by its place in the scan.
fn frame(a: &read::ReadArguments, pack: &Pack, at: &[u64]) -> Outcome {
    let (l, shape) = (pack.layout(), pack.shape());
    if at.len() != l.scan_shape().len() {
        let e = format!("{at:?} names no frame of a scan of {:?}", l.scan_shape());
        return Err(Error::invalid(e)
            .hint("name a frame with one number for each axis of the scan: --scan 3,4")
            .into());
    }
    let one = |at: &u64| Axis::Regular { start: *at, stride: 1, count: 1, block: 1 };
    let axes = at.iter().map(one).chain(l.detector_shape().iter().map(|n| Axis::all(*n))).collect();
    let selection = Selection::Axes(axes);
    let n = selection.elements(&shape)? as usize;
    let width = l.counts().bytes();
    let (mut bytes, _charge) = pack.budget().buffer((n * width) as u64, "a frame")?;
    let values = if a.raw { Values::Raw } else { Values::Masked };
    pack.read_bytes_into(&selection, values, &mut bytes, &tensilo::core::Quiet)?;
    let signed = l.counts().is_signed();
    let numbers: Vec<f64> = bytes
        .chunks_exact(width)
        .map(|b| {
            let mut wide = [0; 8];
            wide[..width].copy_from_slice(b);
            let value = u64::from_ne_bytes(wide);
            if signed {
                ((value << (64 - 8 * width)) as i64 >> (64 - 8 * width)) as f64
            } else {
                value as f64
            }
        })
        .collect();
    save(a, l.counts().descr(), l.detector_shape(), &bytes, &numbers)
}

fn save(a: &read::ReadArguments, descr: &str, shape: &[u64], bytes: &[u8], values: &[f64]) -> Outcome {
    match a.output.extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "npy" => {
            let mut npy = NpyWriter::create(Arc::new(SystemDisk), &a.output, descr, shape)?;
            npy.write(bytes)?;
            npy.finish(a.force)?;
        }
        "png" => {
            let scale = if a.log { Scale::Logarithmic } else { Scale::Linear };
            Picture::new(flat(shape)?, values, scale).save(&a.output, a.force)?;
        }
        _ => {
            let e = format!("{} ends neither in .npy nor in .png", a.output.display());
            return Err(Error::invalid(e).into());
        }
    }
    Ok(Answer::Yes)
}

/// Values that a picture may have.
const MOST_PICTURED: u32 = 1 << 26;

/// Rows and columns of a picture: the last axis is a row.
pub(super) fn flat(shape: &[u64]) -> Result<[u32; 2]> {
    let columns = shape.last().copied().unwrap_or(1);
    let rows: u64 = shape.iter().rev().skip(1).product();
    match (u32::try_from(rows), u32::try_from(columns)) {
        (Ok(rows), Ok(columns)) if rows.saturating_mul(columns) <= MOST_PICTURED => Ok([rows, columns]),
        _ => Err(Error::unsupported(format!("a picture of {rows} × {columns}"))),
    }
}

/// `pack unpack` of a pack of format 2.
pub(super) fn unpack(a: &unpack::UnpackArguments, out: &mut Output) -> Outcome {
    let pack = open(&a.pack, a.threads)?;
    let values = if a.masked { Values::Masked } else { Values::Raw };
    let monitor = out.monitor();
    let exported = match a.output.extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "npy" => {
            let descr = pack.layout().counts().descr();
            let mut npy = NpyWriter::create(Arc::new(SystemDisk), &a.output, descr, &pack.shape())?;
            let exported = pack.export(values, &monitor, &mut |frames| npy.write(frames))?;
            npy.finish(a.force)?;
            exported
        }
        "h5" | "hdf5" => pack.export_hdf5(Arc::new(SystemDisk), &a.output, values, a.force, &monitor)?,
        _ => {
            let e = format!("{} ends neither in .npy nor in .h5 or .hdf5", a.output.display());
            return Err(Error::invalid(e).into());
        }
    };
    drop(monitor);
    unpack::report(a, out, exported.frames, &exported.sha256, exported.proven)
}
