//! Packing a family of the reference kind: the whole, each part alone, reading, and the same job with h5py and NumPy.
//!
//! `bench pack` takes a small family, `bench pack --full` the reference size of 512 × 512 scans (19.3 GB of counts); both
//! take `--json`. Producing and verifying run in processes of their own, whose memory is measured.
#![expect(clippy::disallowed_methods, reason = "files that live as long as a measurement")]

use crate::clock::{self, Spent};
use crate::family::{self, PIXELS, Pool, SIDE};
use crate::h5py::Python;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tensilo_core::Quiet;
use tensilo_core::io::SystemDisk;
use tensilo_core::threads::Threads;
use tensilo_filters::{bitshuffle, lz4};
use tensilo_pack::plan::{Plan, PlanOptions, plan};
use tensilo_pack::produce::parts::Packing;
use tensilo_pack::produce::{ProduceOptions, produce};
use tensilo_pack::products::{Bands, Request, Ring};
use tensilo_pack::read::Pack;
use tensilo_pack::receipt::Receipt;
use tensilo_pack::sha_pair::{Sha256Stream, update_pair};
use tensilo_pack::source::authentication::hash_members;
use tensilo_pack::source::inspect::{InspectOptions, Inspection, inspect};
use tensilo_pack::verify::{VerifyOptions, verify};
use tensilo_pack::{Sha256Sum, receipt_path};

const TILE: usize = 32;
/// Workers of the run and of the goal.
const WORKERS: usize = 2;

/// Says what was measured, one line each.
struct Report {
    json: bool,
}

impl Report {
    fn add(&self, name: &str, bytes: u64, spent: Spent, note: impl Into<String>) {
        let note = note.into();
        if self.json {
            // What was not measured is null.
            let number = |n: f64| if n.is_finite() { format!("{n:.4}") } else { "null".to_owned() };
            println!(
                "{{\"schema\":\"tensilo.bench.pack/1\",\"name\":{:?},\"bytes\":{bytes},\"wall\":{},\"cpu\":{},\"note\":{:?}}}",
                name,
                number(spent.wall),
                number(spent.cpu),
                note
            );
        } else {
            let number = |n: f64| if n.is_finite() { format!("{n:8.3}") } else { format!("{:>8}", "–") };
            let mut text = format!("{name:44} {} s wall {} s CPU", number(spent.wall), number(spent.cpu));
            if bytes > 0 {
                write!(text, " {:7.2} GB/s", bytes as f64 / spent.wall / 1e9).expect("a string takes text");
            }
            println!("{text}  {note}");
        }
    }
}

/// `bench pack-family FOLDER [--full]`: only makes the family.
pub fn make(args: &[String]) -> Result<(), String> {
    let [folder, rest @ ..] = args else { return Err("pack-family FOLDER [--full]".into()) };
    let full = rest.iter().any(|a| a == "--full");
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let master = family::write(Path::new(folder), scan(full), &family::pool(frames(full)))?;
    println!("{}", master.display());
    Ok(())
}

pub fn scan(full: bool) -> [u64; 2] {
    if full { [512, 512] } else { [64, 128] }
}

pub fn frames(full: bool) -> usize {
    if full { 3000 } else { 200 }
}

/// `bench pack [--full] [--json]`.
pub fn run(args: &[String]) -> Result<(), String> {
    let has = |flag: &str| args.iter().any(|a| a == flag);
    let full = has("--full");
    let report = &Report { json: has("--json") };
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).map_err(|e| e.to_string())?;
    let source = folder.path().join("source");
    std::fs::create_dir(&source).map_err(|e| e.to_string())?;
    let (pool, spent) = clock::on_this_thread(|| family::pool(frames(full)));
    report.add("a pool of frames", 0, spent, format!("{} frames", frames(full)));
    let (master, spent) = clock::in_this_process(|| family::write(&source, scan(full), &pool));
    let master = master?;
    let [rows, columns] = scan(full);
    let logical = 2 * rows * columns * PIXELS as u64;
    report.add("the family, written", logical, spent, format!("{rows} x {columns} scans"));
    let destination = folder.path().join("pack.h5");
    let whole = produced(report, folder.path(), &master, &destination, logical)?;
    parts(report, folder.path(), &master, &pool, &destination, whole)?;
    reading(report, &destination, logical)?;
    yardsticks(report, folder.path(), &pool)
}

/// Produces and verifies in processes of their own; returns what producing spent.
fn produced(
    report: &Report,
    folder: &Path,
    master: &Path,
    destination: &Path,
    logical: u64,
) -> Result<Spent, String> {
    let child = |what: &str| -> Result<Vec<f64>, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let out = std::process::Command::new(program)
            .args(["pack-child", what])
            .args([folder, master, destination])
            .output()
            .map_err(|e| e.to_string())?;
        if !out.status.success() {
            return Err(format!("{what}: {}", String::from_utf8_lossy(&out.stderr)));
        }
        let text = String::from_utf8_lossy(&out.stdout);
        text.split_whitespace().map(|n| n.parse().map_err(|_| format!("{what} said {text}"))).collect()
    };
    let numbers = child("produce")?;
    let [wall, cpu, resident, planned, inspecting, ..] = numbers[..] else {
        return Err("producing told too little".into());
    };
    let whole = Spent { wall, cpu };
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let mib = f64::from(1 << 20);
    report.add(
        "inspect and produce",
        logical,
        whole,
        format!(
            "{:.2} : 1, inspecting {inspecting:.2} s, peak RSS {:.0} MiB of planned {:.0} + 96 MiB",
            logical as f64 / bytes(destination) as f64,
            resident / mib,
            planned / mib
        ),
    );
    let receipt = Receipt::read(&receipt_path(destination)).map_err(|e| e.to_string())?;
    let t = &receipt.timing;
    for (name, milliseconds) in [
        ("  of it: the source authenticated", t.source_authentication_milliseconds),
        ("  of it: decoded, hashed, packed", t.decode_and_packing_milliseconds),
        ("  of it: the container finished, fsync", t.container_write_milliseconds),
        ("  of it: the output hashed", t.stability_and_output_hash_milliseconds),
    ] {
        report.add(name, 0, Spent { wall: milliseconds / 1e3, cpu: f64::NAN }, "");
    }
    let numbers = child("verify")?;
    let [wall, cpu, resident, ..] = numbers[..] else { return Err("verifying told too little".into()) };
    report.add(
        "verify, with receipt",
        logical,
        Spent { wall, cpu },
        format!("peak RSS {:.0} MiB", resident / mib),
    );
    Ok(whole)
}

/// What the processes of [`produced`] run.
pub fn child(args: &[String]) -> Result<(), String> {
    let [what, folder, master, destination] = args else { return Err("pack-child is for `pack`".into()) };
    let (folder, destination) = (Path::new(folder), Path::new(destination));
    let text = |e: tensilo_core::Error| e.to_string();
    if what == "verify" {
        let options = VerifyOptions { threads: Threads::new(WORKERS), ..VerifyOptions::default() };
        let (found, spent) = clock::in_this_process(|| verify(destination, &options, &Quiet));
        let found = found.map_err(text)?;
        if !found.is_proven() {
            return Err(format!("{:?}", found.findings));
        }
        println!("{} {} {}", spent.wall, spent.cpu, clock::peak_resident());
        return Ok(());
    }
    let begun = std::time::Instant::now();
    let (made, spent) = clock::in_this_process(|| -> tensilo_core::Result<(Plan, f64)> {
        let inspection = inspected(Path::new(master), folder)?;
        let inspecting = begun.elapsed().as_secs_f64();
        let options =
            PlanOptions { threads: Threads::new(WORKERS), memory: 1 << 30, ..PlanOptions::default() };
        let plan = plan(&inspection, destination, &options, &SystemDisk)?;
        let options = ProduceOptions { index_dir: Some(folder.join("index")), ..ProduceOptions::default() };
        produce(&inspection, &plan, &options, &Quiet)?;
        Ok((plan, inspecting))
    });
    let (plan, inspecting) = made.map_err(text)?;
    let planned = plan.planned_peak_transient_bytes;
    println!("{} {} {} {planned} {inspecting}", spent.wall, spent.cpu, clock::peak_resident());
    Ok(())
}

fn inspected(master: &Path, folder: &Path) -> tensilo_core::Result<Inspection> {
    let options = InspectOptions {
        index_dir: Some(folder.join("index")),
        threads: Threads::new(WORKERS),
        ..InspectOptions::default()
    };
    inspect(master, &options, &Quiet)
}

/// Every part alone, and their sum.
fn parts(
    report: &Report,
    folder: &Path,
    master: &Path,
    pool: &Pool,
    destination: &Path,
    whole: Spent,
) -> Result<(), String> {
    let text = |e: tensilo_core::Error| e.to_string();
    let inspection = inspected(master, folder).map_err(text)?;
    let scans = inspection.geometry.scans();
    let logical = 2 * scans * PIXELS as u64;
    let mut sum = 0.0;
    let mut part = |report: &Report, name: &str, bytes: u64, spent: Spent, note: &str| {
        sum += spent.cpu;
        report.add(&format!("part: {name}"), bytes, spent, note);
    };
    let files: Vec<_> = inspection.members.iter().map(|m| (m.role, m.path.clone())).collect();
    let stored: u64 = inspection.members.iter().map(|m| m.bytes).sum();
    let (done, spent) = clock::in_this_process(|| {
        (0..2).try_for_each(|_| hash_members(&files, Threads::new(WORKERS), &Quiet, "").map(drop))
    });
    done.map_err(text)?;
    part(report, "the source hashed twice", 2 * stored, spent, "");
    let order = family::drawn(pool, scans);
    let spent = decoded(pool, &order)?;
    part(report, "decoding", logical, spent, &lz4_alone(pool));
    let working = working(pool);
    let (sums, spent) = clock::on_this_thread(|| {
        let (mut raw, mut narrow) = (Sha256Stream::new(), Sha256Stream::new());
        for k in &order {
            let bytes = bytemuck::cast_slice(&pool.raw[*k as usize]);
            let (now, later) = bytes.split_at(PIXELS);
            update_pair(&mut raw, now, &mut narrow, &working[*k as usize]);
            raw.update(later);
        }
        [raw.finish(), narrow.finish()]
    });
    part(report, "the two logical SHA-256", logical, spent, "");
    let receipt = Receipt::read(&receipt_path(destination)).map_err(text)?;
    if sums != [receipt.source_raw_logical_sha256, receipt.working_logical_sha256] {
        return Err("the receipt's hashes are not those of the frames".into());
    }
    let excluded = inspection.excluded.clone();
    let spent = packed(pool, &order, &excluded, &receipt)?;
    part(report, "packing and gathering", logical, spent, "");
    let stored: u64 = receipt.shards.iter().map(|s| s.payload_bytes + s.header_bytes).sum();
    let (_, spent) = clock::on_this_thread(|| {
        let buffer = vec![7_u8; 1 << 20];
        let mut sum = Sha256Stream::new();
        (0..stored.div_ceil(1 << 20)).for_each(|_| sum.update(&buffer));
        black_box(sum.finish())
    });
    part(report, "payloads and headers hashed", stored, spent, "");
    let (done, spent) = clock::on_this_thread(|| written(&folder.join("written"), stored));
    done.map_err(|e| e.to_string())?;
    part(report, "as many bytes written, fsync", stored, spent, "");
    let (sum_of_file, spent) = clock::on_this_thread(|| file_hash(destination));
    if sum_of_file.map_err(|e| e.to_string())? != receipt.output_sha256 {
        return Err("the receipt's hash of the pack is wrong".into());
    }
    part(report, "the output hashed", receipt.output_bytes, spent, "");
    let note = format!(
        "inspect and produce: {:.2} x (sum of parts / {WORKERS}), {:.2} x (its own CPU / {WORKERS})",
        whole.wall / (sum / WORKERS as f64),
        whole.wall / (whole.cpu / WORKERS as f64)
    );
    report.add("parts: sum", 0, Spent { wall: f64::NAN, cpu: sum }, note);
    Ok(())
}

/// Decodes frames from memory on one thread.
fn decoded(pool: &Pool, order: &[u32]) -> Result<Spent, String> {
    let mut block = vec![0; 2 * 4096 + 64];
    let mut frame = vec![0_u8; 2 * PIXELS];
    let (ok, spent) = clock::on_this_thread(|| {
        order.iter().all(|k| {
            let (mut at, mut to) = (12, 0);
            let stored = &pool.stored[*k as usize];
            while to < frame.len() {
                let n = u32::from_be_bytes(stored[at..at + 4].try_into().expect("four bytes")) as usize;
                if lz4::decode_block(&stored[at + 4..at + 4 + n], &mut block).ok() != Some(8192) {
                    return false;
                }
                bitshuffle::unshuffle_block(&block[..8192], &mut frame[to..to + 8192], 2);
                (at, to) = (at + 4 + n, to + 8192);
            }
            true
        })
    });
    let last = order.last().map(|k| &pool.raw[*k as usize][..]);
    if !ok || last != Some(bytemuck::cast_slice(&frame)) {
        return Err("a frame is decoded wrongly".into());
    }
    Ok(spent)
}

/// LZ4 without the unshuffling.
fn lz4_alone(pool: &Pool) -> String {
    let mut block = vec![0; 2 * 4096 + 64];
    let mut bytes = 0_u64;
    let (_, spent) = clock::on_this_thread(|| {
        for stored in pool.stored.iter().cycle().take(2000) {
            let mut at = 12;
            while at < stored.len() {
                let n = u32::from_be_bytes(stored[at..at + 4].try_into().expect("four bytes")) as usize;
                bytes += lz4::decode_block(&stored[at + 4..at + 4 + n], &mut block).map_or(0, |n| n as u64);
                at += 4 + n;
            }
        }
        black_box(&block);
    });
    format!("LZ4 alone {:.1} GB/s of one core", bytes as f64 / spent.cpu / 1e9)
}

/// The pool with masked pixels cleared, in bytes.
fn working(pool: &Pool) -> Vec<Vec<u8>> {
    let narrow = |v: &u16| if *v == u16::MAX { 0 } else { *v as u8 };
    pool.raw.iter().map(|f| f.iter().map(narrow).collect()).collect()
}

/// Packs all frames on one thread.
fn packed(pool: &Pool, order: &[u32], excluded: &[u32], receipt: &Receipt) -> Result<Spent, String> {
    let tiles = receipt.scans_per_shard / TILE as u32;
    let constants = vec![u16::MAX; excluded.len()];
    let mut packing = Packing::new(PIXELS, tiles, excluded.to_vec(), constants);
    let (mut raw, mut narrow) = (vec![0; TILE * PIXELS], vec![0; TILE * PIXELS]);
    let mut total = Spent::default();
    let mut first = None;
    for shard in order.chunks(receipt.scans_per_shard as usize) {
        let mut payload = Sha256Stream::new();
        let check = first.is_none();
        for scans in shard.chunks(TILE) {
            for (to, k) in raw.chunks_exact_mut(PIXELS).zip(scans) {
                to.copy_from_slice(&pool.raw[*k as usize]);
            }
            let (done, spent) = clock::on_this_thread(|| packing.tile(&raw, &mut narrow));
            done.map_err(|e| e.to_string())?;
            (total.wall, total.cpu) = (total.wall + spent.wall, total.cpu + spent.cpu);
        }
        let (done, spent) = clock::on_this_thread(|| {
            packing.shard(&mut |bytes| {
                if check {
                    payload.update(bytes)
                } else {
                    let _ = black_box(bytes);
                }
            })
        });
        done.map_err(|e| e.to_string())?;
        if check {
            // Hashed only to compare, so not counted.
            first = Some(payload.finish());
            continue;
        }
        (total.wall, total.cpu) = (total.wall + spent.wall, total.cpu + spent.cpu);
    }
    if first != receipt.shards.first().map(|s| s.payload_sha256) {
        return Err("the packed words are not those of the pack".into());
    }
    Ok(total)
}

fn written(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    let buffer = vec![7_u8; 1 << 20];
    for at in (0..bytes).step_by(1 << 20) {
        file.write_all(&buffer[..(bytes - at).min(1 << 20) as usize])?;
    }
    file.sync_all()?;
    std::fs::remove_file(path)
}

fn file_hash(path: &Path) -> std::io::Result<Sha256Sum> {
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 128 << 10];
    let mut sum = Sha256Stream::new();
    loop {
        let n = std::io::Read::read(&mut file, &mut buffer)?;
        if n == 0 {
            return Ok(sum.finish());
        }
        sum.update(&buffer[..n]);
    }
}

/// One frame, one image, all products, each from a pack that was just opened.
fn reading(report: &Report, path: &Path, logical: u64) -> Result<(), String> {
    let open = || Pack::open(path).map_err(|e| e.to_string());
    let (frame, spent) = clock::in_this_process(|| open()?.frame(4097).map_err(|e| e.to_string()));
    black_box(frame?);
    report.add(
        "read: one frame, opening included",
        2 * PIXELS as u64,
        spent,
        "its shard is read and checked",
    );
    let disk = |pack: &Pack| Ring::centered(pack.geometry(), 0.0, 30.0);
    let bands = |pack: &Pack| Bands::rings(pack.geometry(), &[disk(pack)]).map_err(|e| e.to_string());
    for (name, all) in [("read: bright field", false), ("read: all products", true)] {
        let (done, spent) = clock::in_this_process(|| -> Result<_, String> {
            let pack = open()?;
            let bands = bands(&pack)?;
            let request =
                if all { Request::all(bands) } else { Request { bands: Some(bands), ..Request::default() } };
            pack.products(&request, &Quiet).map_err(|e| e.to_string())
        });
        black_box(done?);
        report.add(name, logical, spent, "from the file");
    }
    let pack = open()?.resident(&Quiet).map_err(|e| e.to_string())?;
    let request = Request { bands: Some(bands(&pack)?), ..Request::default() };
    let (done, spent) = clock::in_this_process(|| pack.products(&request, &Quiet).map(drop));
    done.map_err(|e| e.to_string())?;
    report.add("read: bright field, resident", logical, spent, "");
    Ok(())
}

/// The same job in Python, on one shard of 4096 scans.
fn yardsticks(report: &Report, folder: &Path, pool: &Pool) -> Result<(), String> {
    let Some(python) = Python::start() else {
        eprintln!("bench: no Python with h5py; its yardsticks are left out");
        return Ok(());
    };
    let source = folder.join("shard");
    std::fs::create_dir(&source).map_err(|e| e.to_string())?;
    let master = family::write(&source, [64, 64], pool)?;
    let logical = 2 * 4096 * PIXELS as u64;
    let destination = folder.join("shard.h5");
    let ours = std::process::Command::new(std::env::current_exe().map_err(|e| e.to_string())?)
        .args(["pack-child", "produce"])
        .args([folder, &master, &destination])
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&ours.stdout).into_owned();
    let mut numbers = text.split_whitespace().map_while(|n| n.parse::<f64>().ok());
    let (Some(wall), Some(cpu)) = (numbers.next(), numbers.next()) else {
        return Err(String::from_utf8_lossy(&ours.stderr).into_owned());
    };
    report.add("4096 scans: inspect and produce", logical, Spent { wall, cpu }, "");
    let receipt = Receipt::read(&receipt_path(&destination)).map_err(|e| e.to_string())?;
    let shard = &receipt.shards[0];
    let expected = [
        shard.payload_sha256,
        shard.header_sha256,
        receipt.source_raw_logical_sha256,
        receipt.working_logical_sha256,
    ];
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/pack_yardstick.py");
    python.run(&format!("exec(open({:?}).read(), globals())", script));
    for (name, skilled) in
        [("4096 scans: h5py and NumPy, skilled", "True"), ("4096 scans: h5py and NumPy, plain", "False")]
    {
        let expected: Vec<String> = expected.iter().map(|s| format!("'{s}'")).collect();
        let call = format!("found = yardstick({master:?}, {folder:?}, {skilled})");
        let (_, spent) = clock::on_this_thread(|| python.run(&call));
        python.run(&format!("assert found == ({}), found", expected.join(", ")));
        let spent = Spent { cpu: f64::NAN, ..spent };
        report.add(name, logical, spent, format!("{:.1} x as long, the same bytes", spent.wall / wall));
    }
    assert_eq!(SIDE * SIDE, PIXELS);
    Ok(())
}
