//! Small files with something of everything, read back by libhdf5.

use super::{assert_lines, h5dump_reads, h5py_lines, hex, write_with};
use tensilo_core::threads::Threads;
use tensilo_hdf5::format::datatype::Datatype;
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::write::{Bound, FileWriter, Filters, Value, WriteOptions};
use tensilo_testkit::oracle::{skip, temp_dir};

fn numbers() -> Vec<u16> {
    (0..7 * 50 * 60_u32).map(|i| (i * i / 97) as u16).collect()
}

pub(super) fn something_of_everything(w: &mut FileWriter<'_>) {
    w.attribute("/", "title", "a file of Tensilo’s").expect("attribute");
    w.attribute("/", "numbers", &[1_i32, -2, 3][..]).expect("attribute");
    w.attribute("/", "nothing", Value::null(Datatype::native_float32())).expect("attribute");
    w.create_group("/entry/empty").expect("group");
    w.attribute("/entry", "NX_class", Value::fixed_text("NXentry")).expect("attribute");
    w.attribute("/entry", "names", Value::texts(&["a", "", "ccc"], &[3]).expect("texts")).expect("attribute");
    let data = numbers();
    w.dataset("/entry/contiguous").shape(&[7, 50, 60]).write(&data).expect("dataset");
    w.dataset("/entry/deflate")
        .shape(&[7, 50, 60])
        .chunk(&[2, 17, 60])
        .filters(Filters::new().shuffle().deflate(4).fletcher32())
        .attribute("units", "counts")
        .write(&data)
        .expect("dataset");
    w.dataset("/entry/plain")
        .shape(&[7, 50, 60])
        .max_shape(&[None, Some(50), Some(60)])
        .chunk(&[1, 50, 60])
        .write(&data)
        .expect("dataset");
    w.dataset("/entry/scalar").dataspace(Dataspace::Scalar).write(&[2.5_f64]).expect("dataset");
    w.dataset("/entry/null").dataspace(Dataspace::Null).element::<i8>().create().expect("dataset");
    w.dataset("/entry/none").shape(&[0, 3]).write::<f32>(&[]).expect("dataset");
    w.dataset("/entry/unwritten").shape(&[4]).fill_value(7_i64).element::<i64>().create().expect("dataset");
    w.dataset("/entry/compact").compact().write(&[1_u8, 2, 3]).expect("dataset");
    w.dataset("/entry/texts").write_texts(&["eins", "zwei", "", "vier"]).expect("dataset");
    w.dataset("/entry/flags").write(&[true, false, true]).expect("dataset");
    w.soft_link("/latest", "/entry/deflate").expect("link");
    w.hard_link("/again", "/entry/scalar").expect("link");
    w.external_link("/entry/far", "other.h5", "/data").expect("link");
    for i in 0..300 {
        w.dataset(format!("/many/set{i:03}")).write(&[i as u32]).expect("dataset");
    }
    w.commit_datatype("/type", Datatype::complex_compound(Datatype::native_float32())).expect("datatype");
    w.dataset("/typed").committed_type("/type").shape(&[2]).write_bytes(&[0; 16]).expect("dataset");
    let target = w.reference("/entry/scalar").expect("reference");
    let own = w.reference("/many").expect("reference");
    w.dataset("/references")
        .datatype(Datatype::object_reference())
        .write(&[target.0, own.0])
        .expect("dataset");
}

pub(super) fn expected() -> Vec<String> {
    let data = hex(&numbers());
    let mut lines: Vec<String> = [
        "/@nothing empty float32".to_owned(),
        format!("/@numbers int32 (3,) {}", hex(&[1_i32, -2, 3])),
        "/@title object () [a file of Tensilo’s]".to_owned(),
        format!("/again dataset float64 () () None [] {}", hex(&[2.5_f64])),
        "/entry group".to_owned(),
        format!("/entry@NX_class |S7 () {}", hex(b"NXentry")),
        "/entry@names object (3,) [a||ccc]".to_owned(),
        "/entry/compact dataset uint8 (3,) (3,) None [] 010203".to_owned(),
        format!("/entry/contiguous dataset uint16 (7, 50, 60) (7, 50, 60) None [] {data}"),
        format!("/entry/deflate dataset uint16 (7, 50, 60) (7, 50, 60) (2, 17, 60) [2, 1, 3] {data}"),
        "/entry/deflate@units object () [counts]".to_owned(),
        "/entry/empty group".to_owned(),
        "/entry/far external other.h5 /data".to_owned(),
        "/entry/flags dataset bool (3,) (3,) None [] 010001".to_owned(),
        "/entry/none dataset float32 (0, 3) (0, 3) None [] ".to_owned(),
        "/entry/null dataset int8 None None None [] null".to_owned(),
        format!("/entry/plain dataset uint16 (7, 50, 60) (None, 50, 60) (1, 50, 60) [] {data}"),
        format!("/entry/scalar dataset float64 () () None [] {}", hex(&[2.5_f64])),
        "/entry/texts dataset object (4,) (4,) None [] [eins|zwei||vier]".to_owned(),
        format!("/entry/unwritten dataset int64 (4,) (4,) None [] {}", hex(&[7_i64; 4])),
        "/latest soft /entry/deflate".to_owned(),
        "/many group".to_owned(),
    ]
    .into();
    lines.extend(
        (0..300_u32).map(|i| format!("/many/set{i:03} dataset uint32 (1,) (1,) None [] {}", hex(&[i]))),
    );
    lines.extend([
        "/references dataset object (2,) (2,) None [] [->/again|->/many]".to_owned(),
        "/type datatype complex64".to_owned(),
        format!("/typed dataset complex64 (2,) (2,) None [] {}", hex(&[0_u8; 16])),
    ]);
    lines
}

#[test]
fn libhdf5_reads_something_of_everything_under_every_bound() {
    let folder = temp_dir();
    let mut skipped = 0;
    for bound in Bound::ALL {
        let path = folder.path().join(format!("{bound}.h5"));
        write_with(WriteOptions::default().bound(bound), &path, something_of_everything);
        match h5py_lines(&path) {
            Some(found) => assert_lines(&found, &expected()),
            None => skipped += 1,
        }
        // h5dump 1.10 knows nothing newer than its own bound, and follows no external links here.
    }
    if skipped > 0 {
        skip("Python with h5py", skipped);
    }
}

#[test]
fn h5dump_of_1_10_reads_the_older_bounds() {
    let folder = temp_dir();
    let mut skipped = 0;
    for bound in [Bound::Earliest, Bound::V18, Bound::V110] {
        let path = folder.path().join(format!("{bound}.h5"));
        write_with(WriteOptions::default().bound(bound), &path, |w| {
            something_of_everything(w);
        });
        // The far file must exist, for h5dump follows the link.
        let other = folder.path().join("other.h5");
        if !other.exists() {
            write_with(WriteOptions::default(), &other, |w| {
                w.dataset("/data").write(&[1_u8]).expect("dataset");
            });
        }
        skipped += usize::from(h5dump_reads(&path).is_none());
    }
    if skipped > 0 {
        skip("h5dump", skipped);
    }
}

#[test]
fn the_bytes_do_not_depend_on_threads_nor_on_the_run() {
    let folder = temp_dir();
    for bound in Bound::ALL {
        let mut files = Vec::new();
        for (run, threads) in [1, 2, 7, 2].into_iter().enumerate() {
            let path = folder.path().join(format!("{bound}-{run}.h5"));
            let mut options = WriteOptions::default().bound(bound).threads(Threads::new(threads));
            options.window = 1 << 14;
            files.push(write_with(options, &path, something_of_everything));
        }
        assert!(files.windows(2).all(|w| w[0] == w[1]), "{bound}");
    }
}
