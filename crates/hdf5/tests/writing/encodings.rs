//! Structures have the versions, flags and encodings that libhdf5 itself chooses under the same bound.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::write_with;
use std::path::Path;
use tensilo_hdf5::format::datatype::{ByteOrder, CharacterSet, Class, Datatype};
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::format::message::fill_value::{AllocationTime, FillMessage, FillTime, FillValue};
use tensilo_hdf5::write::{Bound, FileWriter, Filters, Value, WriteOptions};
use tensilo_testkit::oracle::{python, python_stdout, skip, temp_dir};

fn types() -> Vec<(&'static str, Datatype)> {
    let f8 = || Datatype::float64(ByteOrder::Little);
    let array = Datatype { size: 48, class: Class::Array { dims: vec![2, 3], base: Box::new(f8()) } };
    vec![
        ("enum", Datatype::boolean()),
        ("compound", Datatype::complex_compound(f8())),
        ("text", Datatype::text()),
        ("vlen", Datatype::sequence(Datatype::integer(4, true, ByteOrder::Little))),
        ("array", array),
        ("f16", Datatype::float16(ByteOrder::Big)),
        ("reference", Datatype::object_reference()),
    ]
}

/// What encodings.py writes with libhdf5.
fn same(w: &mut FileWriter<'_>) {
    let n: Vec<i32> = (1..=100).collect();
    let zipped = || Filters::new().shuffle().deflate(4).fletcher32();
    w.dataset("contiguous").shape(&[10, 10]).write(&n).expect("dataset");
    w.dataset("unwritten").shape(&[3, 4]).element::<f64>().create().expect("dataset");
    w.dataset("scalar").dataspace(Dataspace::Scalar).write(&[2.5_f64]).expect("dataset");
    w.dataset("compact").compact().write(&n[..5]).expect("dataset");
    w.dataset("filled").shape(&[5]).fill_value(7_i32).element::<i32>().create().expect("dataset");
    w.dataset("single").shape(&[10, 10]).chunk(&[10, 10]).write(&n).expect("dataset");
    w.dataset("single_zipped")
        .shape(&[10, 10])
        .chunk(&[10, 10])
        .filters(zipped())
        .write(&n)
        .expect("dataset");
    let early =
        FillMessage { allocation: AllocationTime::Early, time: FillTime::IfSet, value: FillValue::Default };
    w.dataset("implicit").chunk(&[7]).fill_message(early).write(&n).expect("dataset");
    w.dataset("fixed").chunk(&[7]).write(&n).expect("dataset");
    let d = w.dataset("fixed_zipped").shape(&[100]).max_shape(&[Some(200)]).chunk(&[7]).filters(zipped());
    d.write(&n).expect("dataset");
    let d = w.dataset("growing").shape(&[100]).max_shape(&[None]).chunk(&[7]).filters(zipped());
    d.write(&n).expect("dataset");
    let d = w.dataset("growing_twice").shape(&[10, 10]).max_shape(&[None, None]).chunk(&[3, 4]);
    d.write(&n).expect("dataset");
    let d = w.dataset("wide").shape(&[100]).max_shape(&[None]).chunk(&[70_000]);
    d.write(&n).expect("dataset");
    let d = w.dataset("wider").shape(&[10]).max_shape(&[None]).chunk(&[300]);
    d.write(&(0..10).collect::<Vec<u8>>()).expect("dataset");
    for (name, datatype) in types() {
        w.dataset(format!("type_{name}")).datatype(datatype.clone()).shape(&[2]).create().expect("dataset");
        let committed = format!("committed_{name}");
        w.commit_datatype(&committed, datatype).expect("datatype");
        w.dataset(format!("of_{name}")).committed_type(&committed).shape(&[2]).create().expect("dataset");
    }
    w.dataset("null").dataspace(Dataspace::Null).element::<i32>().create().expect("dataset");
    for count in [3, 20] {
        let attributes = format!("attributes_{count}");
        w.dataset(&attributes).shape(&[2]).element::<i32>().create().expect("dataset");
        for i in 0..count {
            w.soft_link(format!("links_{count}/soft_{i}"), "/scalar").expect("link");
            w.attribute(&attributes, format!("number {i}"), i).expect("attribute");
        }
    }
    w.attribute("null", "three", &[0.0_f64, 1.0, 2.0][..]).expect("attribute");
    let fixed =
        Value::stored(Datatype::fixed_string(5, CharacterSet::Ascii), Dataspace::Scalar, b"fixed".to_vec());
    w.attribute("null", "fixed", fixed.expect("value")).expect("attribute");
    w.attribute("null", "größe", 1_i32).expect("attribute");
}

#[test]
fn headers_are_encoded_as_libhdf5_encodes_them() {
    let folder = temp_dir();
    if python().is_none() {
        return skip("Python with h5py", 1);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/writing/encodings.py");
    let mut differences = Vec::new();
    for bound in Bound::ALL {
        let (ours, theirs) = (folder.path().join("ours.h5"), folder.path().join("theirs.h5"));
        let bytes = write_with(WriteOptions::default().bound(bound), &ours, same);
        assert!(!bytes.is_empty());
        let arguments = [bound.name().as_ref(), ours.as_os_str(), theirs.as_os_str()];
        let out = String::from_utf8_lossy(&python_stdout(&script, arguments, b"")).into_owned();
        let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
        let objects: usize = lines.pop().and_then(|n| n.parse().ok()).expect("a number of objects");
        assert!(objects > 35, "{objects}");
        differences.append(&mut lines);
        std::fs::remove_file(&ours).expect("removed");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
