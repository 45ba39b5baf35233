//! Crash tables from the disk log: every point of create, fill, finish, append and overwrite.

use std::path::Path;
use std::sync::Arc;
use tensilo_core::ErrorKind;
use tensilo_lanes::{
    FormatVersion, LaneSpec, LaneType, OpenOptions, Store, StoreSchema, StoreWriter, WriterOptions,
};
use tensilo_testkit::disk_log::{
    Counts, CrashState, ModelDisk, Options, RecordingDisk, check_all, every_fault,
};

const PATH: &str = "/d/a.pts";

fn model() -> ModelDisk {
    let disk = ModelDisk::new();
    disk.create_dir_all(Path::new("/d"));
    disk
}

fn options(disk: &RecordingDisk, version: FormatVersion) -> WriterOptions {
    WriterOptions { version, disk: Arc::new(disk.clone()), ..WriterOptions::default() }
}

fn schema() -> StoreSchema {
    StoreSchema::new(
        3,
        vec![LaneSpec::slab("s", LaneType::F32, 300), LaneSpec::flat("f", LaneType::U16, 700)],
    )
}

fn fill(writer: &StoreWriter, value: f32) {
    for k in [2, 0, 1] {
        writer.write_slab_f32("s", k, &[value + k as f32; 300]).unwrap();
    }
    writer.write_flat_u16("f", &[value as u16; 700]).unwrap();
}

/// The value the store was filled with, when it opens; all of it is checked.
fn filled_with(state: &CrashState) -> Result<Option<f32>, String> {
    let Some(source) = state.source(PATH) else { return Ok(None) };
    let store =
        match Store::from_source(Arc::new(source), OpenOptions { verify: true, ..OpenOptions::default() }) {
            Ok(store) => store,
            Err(e) if e.kind() == ErrorKind::Corrupt => return Ok(None),
            Err(e) => return Err(e.to_string()),
        };
    let flat = store.flat_u16("f").map_err(|e| e.to_string())?;
    let value = f32::from(flat[0]);
    if flat != [flat[0]; 700] {
        return Err("the flat lane is mixed".into());
    }
    for k in 0..3 {
        if store.slab_f32("s", k).map_err(|e| e.to_string())? != [value + k as f32; 300] {
            return Err(format!("slab {k} is not of the draw {value}"));
        }
    }
    Ok(Some(value))
}

fn report(what: &str, counts: &Counts) {
    assert!(counts.states > 20, "{what}: {counts}");
    assert_eq!(counts.skipped, 0, "{what}: {counts}");
    println!("{what}: {counts}");
}

fn create(disk: &RecordingDisk, version: FormatVersion, value: f32) {
    let writer = StoreWriter::create_with(PATH, schema(), options(disk, version)).unwrap();
    fill(&writer, value);
    writer.finish().unwrap();
}

#[test]
fn a_crash_while_creating_leaves_nothing_or_the_whole_store() {
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let disk = RecordingDisk::over_model(model());
        create(&disk, version, 5.0);
        disk.mark("finished");
        let counts = check_all(&disk.log(), &Options::default(), |state| {
            match (state.bytes(PATH), filled_with(state)?) {
                (None, _) if !state.passed("finished") => Ok(()),
                (Some(_), Some(5.0)) => Ok(()),
                (there, found) => Err(format!("file {}, draw {found:?}", there.is_some())),
            }
        });
        report(&format!("create {version:?}"), &counts);
    }
}

#[test]
fn a_crash_while_overwriting_leaves_the_old_draw_the_new_one_or_no_store() {
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let first = RecordingDisk::over_model(model());
        create(&first, version, 5.0);
        let disk = RecordingDisk::over_model(ModelDisk::from_image(first.model().image()));
        let writer = StoreWriter::overwrite(PATH, options(&disk, version)).unwrap();
        disk.mark("begun");
        fill(&writer, 9.0);
        writer.finish().unwrap();
        disk.mark("finished");
        let counts = check_all(&disk.log(), &Options::default(), |state| match filled_with(state)? {
            Some(5.0) if !state.passed("begun") => Ok(()),
            None if !state.passed("finished") => Ok(()),
            Some(9.0) => Ok(()),
            found => Err(format!("draw {found:?}")),
        });
        report(&format!("overwrite {version:?}"), &counts);
    }
}

#[test]
fn a_crash_while_appending_leaves_the_old_store_or_the_new_one() {
    let first = RecordingDisk::over_model(model());
    create(&first, FormatVersion::V2, 5.0);
    let disk = RecordingDisk::over_model(ModelDisk::from_image(first.model().image()));
    let mut writer = StoreWriter::append(PATH, options(&disk, FormatVersion::V2)).unwrap();
    writer.append_slabs("s", 2).unwrap();
    writer.add_lane(LaneSpec::slab("new", LaneType::I64, 10)).unwrap();
    writer.write_slab("s", 4, &[44.0_f32; 300]).unwrap();
    writer.write_slab("new", 0, &[-1_i64; 10]).unwrap();
    writer.finish().unwrap();
    disk.mark("finished");
    let counts = check_all(&disk.log(), &Options::default(), |state| {
        if filled_with(state)? != Some(5.0) {
            return Err("the old slabs are not whole".into());
        }
        let source = state.source(PATH).ok_or("no file")?;
        let store =
            Store::from_source(Arc::new(source), OpenOptions::default()).map_err(|e| e.to_string())?;
        if store.slab_count("s").map_err(|e| e.to_string())? == 3 {
            return if state.passed("finished") { Err("committed, but gone".into()) } else { Ok(()) };
        }
        let s = store.typed::<f32>("s").map_err(|e| e.to_string())?;
        let new = store.typed::<i64>("new").map_err(|e| e.to_string())?;
        let whole = s.slab(3).ok() == Some(&[0.0; 300][..])
            && s.slab(4).ok() == Some(&[44.0; 300][..])
            && new.slab(0).ok() == Some(&[-1; 10][..])
            && !store.is_written("s", 3).unwrap_or(true);
        if whole { Ok(()) } else { Err("the new slabs are not whole".into()) }
    });
    report("append", &counts);
}

#[test]
fn a_failing_disk_leaves_nothing_under_the_name_and_no_partial() {
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let faults = every_fault(
            model,
            |disk| {
                let writer = StoreWriter::create_with(
                    PATH,
                    schema(),
                    WriterOptions { version, disk, ..WriterOptions::default() },
                )?;
                for k in 0..3 {
                    writer.write_slab_f32("s", k, &[1.0; 300])?;
                }
                writer.finish()
            },
            |disk, fault, result| match result {
                Ok(()) => assert!(disk.bytes(PATH).is_some(), "{fault:?}"),
                // A lasting fault may keep the file from being taken back, but then it is whole.
                Err(_) if fault.lasting => {
                    if let Some(source) = disk.source(PATH) {
                        Store::from_source(
                            Arc::new(source),
                            OpenOptions { verify: true, ..OpenOptions::default() },
                        )
                        .unwrap_or_else(|e| panic!("{fault:?}: {e}"));
                    }
                }
                Err(_) => assert_eq!(disk.image().files().len(), 0, "{fault:?}"),
            },
        );
        assert!(faults > 20, "{version:?}: {faults}");
    }
}
