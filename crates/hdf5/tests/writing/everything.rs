//! A table of all that can be written beyond plain arrays, each in a file of its own that libhdf5 judges.

#![expect(clippy::disallowed_methods, reason = "test set-up")]
use super::write_with;
use std::path::Path;
use tensilo_hdf5::format::datatype::{BitField, ByteOrder, Class, Datatype, Padding};
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::format::message::fill_value::{AllocationTime, FillMessage, FillTime, FillValue};
use tensilo_hdf5::write::{
    Bound, ExternalData, FileWriter, Filters, Referred, Region, Tracking, Value, VirtualSource, WriteOptions,
};
use tensilo_testkit::oracle::{python, python_stdout, shared_dir, skip, temp_dir};

/// A thing: its name, which is that of its check in everything.py, the oldest bound, and what writes it.
type Thing = (&'static str, Bound, fn(&mut FileWriter<'_>));

const THINGS: &[Thing] = &[
    ("time", Bound::Earliest, time),
    ("bits", Bound::Earliest, bits),
    ("halves", Bound::Earliest, halves),
    ("complex", Bound::Earliest, complex),
    ("opaque", Bound::Earliest, opaque),
    ("sequences", Bound::Earliest, sequences),
    ("old_references", Bound::Earliest, old_references),
    ("new_references", Bound::V112, new_references),
    ("committed", Bound::Earliest, committed),
    ("spaces", Bound::Earliest, spaces),
    ("fills", Bound::Earliest, fills),
    ("links", Bound::Earliest, links),
    ("order", Bound::Earliest, order),
    ("comments", Bound::Earliest, comments),
    ("direct_chunks", Bound::Earliest, direct_chunks),
    ("elsewhere", Bound::Earliest, elsewhere),
    ("user_block", Bound::Earliest, user_block),
];

fn time(w: &mut FileWriter<'_>) {
    for (name, order) in [("little", ByteOrder::Little), ("big", ByteOrder::Big)] {
        let datatype = Datatype { size: 4, class: Class::Time { order, precision: 32 } };
        w.dataset(name).datatype(datatype).shape(&[2]).write(&[1_u32, 1 << 24]).expect("dataset");
    }
}

fn bits(w: &mut FileWriter<'_>) {
    let field = BitField { offset: 2, precision: 5, low_padding: Padding::Zero, high_padding: Padding::One };
    let datatype = Datatype { size: 1, class: Class::Bitfield { order: ByteOrder::Little, bits: field } };
    w.dataset("field").datatype(datatype).shape(&[2]).write(&[0x7c_u8, 0x10]).expect("dataset");
    let nbit = Datatype {
        size: 2,
        class: Class::Integer {
            order: ByteOrder::Little,
            signed: true,
            bits: BitField { offset: 0, precision: 12, ..field },
        },
    };
    let d = w.dataset("nbit").datatype(nbit).shape(&[4]).chunk(&[4]).filters(Filters::new().nbit());
    d.write(&[1_u16, 2, 0xfff, 2047]).expect("dataset");
}

fn halves(w: &mut FileWriter<'_>) {
    let half = Datatype::float16(ByteOrder::Little);
    w.dataset("half").datatype(half).shape(&[2]).write(&[0x3c00_u16, 0xc000]).expect("dataset");
    let brain = Datatype::bfloat16(ByteOrder::Little);
    w.dataset("brain").datatype(brain).shape(&[2]).write(&[0x3f80_u16, 0xc000]).expect("dataset");
}

fn complex(w: &mut FileWriter<'_>) {
    let datatype = Datatype::complex(Datatype::float32(ByteOrder::Big), w.bound());
    let bytes: Vec<u8> = [1.0_f32, -2.0, 0.5, 3.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    w.dataset("c").datatype(datatype).shape(&[2]).write_bytes(&bytes).expect("dataset");
}

fn opaque(w: &mut FileWriter<'_>) {
    let datatype = Datatype { size: 3, class: Class::Opaque { tag: b"three".to_vec() } };
    w.dataset("o").datatype(datatype).shape(&[2]).write_bytes(b"abcdef").expect("dataset");
}

fn sequences(w: &mut FileWriter<'_>) {
    let numbers = Datatype::sequence(Datatype::integer(2, false, ByteOrder::Little));
    let d = w.dataset("numbers").datatype(numbers.clone()).shape(&[3]);
    d.write_heap([&b"\x01\0\x02\0"[..], b"", b"\xff\xff"]).expect("dataset");
    let space = Dataspace::Simple { dims: vec![2], max: vec![Some(2)] };
    let value = Value::heap(numbers, space, vec![vec![7, 0], vec![8, 0, 9, 0]]).expect("value");
    w.attribute("numbers", "too", value).expect("attribute");
    let d = w.dataset("texts").shape(&[3]).chunk(&[2]).filters(Filters::new().deflate(1));
    d.write_texts(&["a", "", "größer"]).expect("dataset");
}

fn old_references(w: &mut FileWriter<'_>) {
    w.dataset("d").shape(&[4, 5]).write(&(0..20).collect::<Vec<i32>>()).expect("dataset");
    let own = w.reference("/").expect("reference").0;
    let to = w.reference("d").expect("reference").0;
    let d = w.dataset("objects").datatype(Datatype::object_reference());
    d.write(&[to, 0, own]).expect("dataset");
    let region = w.region_reference("d", &Region::block(&[1, 2], &[2, 2])).expect("reference");
    let points = w.region_reference("d", &Region::Points(vec![vec![0, 0], vec![3, 4]])).expect("reference");
    let d = w.dataset("regions").datatype(Datatype::region_reference()).shape(&[2]);
    d.write_bytes(&[region, points].concat()).expect("dataset");
}

fn new_references(w: &mut FileWriter<'_>) {
    w.dataset("d").shape(&[4, 5]).attribute("units", "mm").write(&[7_i32; 20]).expect("dataset");
    let block = Region::block(&[1, 2], &[2, 3]);
    let all = [
        w.standard_reference("d", Referred::Object).expect("reference"),
        w.standard_reference("d", Referred::Region(&block)).expect("reference"),
        w.standard_reference("d", Referred::Attribute(b"units")).expect("reference"),
        [0; 18],
    ];
    let d = w.dataset("references").datatype(Datatype::reference()).shape(&[4]);
    d.write_bytes(&all.concat()).expect("dataset");
}

fn committed(w: &mut FileWriter<'_>) {
    w.commit_datatype("types/pair", Datatype::complex_compound(Datatype::native_float64())).expect("type");
    w.attribute("types/pair", "of", "two").expect("attribute");
    w.dataset("d").committed_type("types/pair").shape(&[1]).write_bytes(&[0; 16]).expect("dataset");
    let value = Value::stored(
        Datatype::complex_compound(Datatype::native_float64()),
        Dataspace::Scalar,
        bytemuck::cast_slice(&[1.5, -1.0]).to_vec(),
    );
    w.attribute_of_type("d", "a", "types/pair", value.expect("value")).expect("attribute");
}

fn spaces(w: &mut FileWriter<'_>) {
    w.dataset("scalar").dataspace(Dataspace::Scalar).write(&[1_u8]).expect("dataset");
    w.dataset("null").dataspace(Dataspace::Null).element::<f32>().create().expect("dataset");
    w.dataset("zero").shape(&[0, 3]).element::<f32>().create().expect("dataset");
    let d = w.dataset("unlimited").shape(&[0, 3]).max_shape(&[None, Some(3)]).chunk(&[4, 3]);
    d.element::<f32>().create().expect("dataset");
    let d = w.dataset("both").shape(&[2, 3]).max_shape(&[None, None]).chunk(&[4, 2]);
    d.write(&[1_u16, 2, 3, 4, 5, 6]).expect("dataset");
    w.dataset("compact").shape(&[2, 2]).compact().write(&[1_u8, 2, 3, 4]).expect("dataset");
    let shape: Vec<u64> = vec![1; 32];
    w.dataset("rank32").shape(&shape).write(&[5_u8]).expect("dataset");
}

fn fills(w: &mut FileWriter<'_>) {
    let values = [FillValue::Undefined, FillValue::Default, FillValue::Value(9_u16.to_le_bytes().to_vec())];
    let times = [FillTime::OnAllocation, FillTime::Never, FillTime::IfSet];
    let allocations = [AllocationTime::Early, AllocationTime::Late, AllocationTime::Incremental];
    for (v, value) in values.iter().enumerate() {
        for (t, time) in times.into_iter().enumerate() {
            for (a, allocation) in allocations.into_iter().enumerate() {
                // Early space must be written at once.
                let message = FillMessage { allocation, time, value: value.clone() };
                let d = w.dataset(format!("{v}{t}{a}")).shape(&[3]).chunk(&[2]).fill_message(message);
                d.element::<u16>().create().expect("dataset");
            }
        }
    }
}

fn links(w: &mut FileWriter<'_>) {
    w.dataset("g/d").write(&[3_u8]).expect("dataset");
    w.hard_link("hard", "g/d").expect("link");
    w.soft_link("soft", "g/d").expect("link");
    w.soft_link("dangling", "nowhere").expect("link");
    w.external_link("external", "other.h5", "/x").expect("link");
    w.user_link("own", 77, b"data".to_vec()).expect("link");
    for i in 0..20 {
        w.hard_link(format!("dense/{i}"), "g/d").expect("link");
    }
}

fn order(w: &mut FileWriter<'_>) {
    for (name, tracking) in [
        ("indexed", Tracking::ALL),
        ("tracked", Tracking { links: Some(false), attributes: Some(false) }),
        ("none", Tracking::default()),
    ] {
        w.create_group(name).expect("group");
        w.track(name, tracking).expect("tracked");
        for child in ["c", "a", "b"] {
            w.create_group(format!("{name}/{child}")).expect("group");
            w.attribute(name, child, 1_u8).expect("attribute");
        }
    }
    w.order_links("indexed", &["b", "c", "a"]).expect("ordered");
}

fn comments(w: &mut FileWriter<'_>) {
    w.dataset("d").write(&[3_u8]).expect("dataset");
    w.comment("d", "a comment").expect("comment");
}

fn direct_chunks(w: &mut FileWriter<'_>) {
    let d = w.dataset("d").shape(&[8]).chunk(&[4]).element::<u8>().filters(Filters::new().deflate(6));
    let mut chunks = d.chunk_writer().expect("dataset");
    // A zlib stream of one stored block: 5, 6, 7, 8.
    let stream = b"\x78\x01\x01\x04\x00\xfb\xff\x05\x06\x07\x08\x00\x40\x00\x1b";
    chunks.write_encoded(&[1], stream, 0).expect("chunk");
    chunks.write_encoded(&[0], &[1, 2, 3, 4], 1).expect("chunk");
    chunks.finish().expect("dataset");
}

fn elsewhere(w: &mut FileWriter<'_>) {
    w.dataset("source").write(&[1_i32, 2, 3, 4]).expect("dataset");
    let source = VirtualSource {
        file: ".".to_owned(),
        dataset: "/source".to_owned(),
        source: Region::block(&[1], &[3]),
        shown: Region::block(&[0], &[3]),
    };
    let d = w.dataset("virtual").shape(&[5]).element::<i32>().fill_value(-1_i32);
    d.create_virtual(&[source]).expect("dataset");
    let piece = ExternalData { file: "raw.bin".to_owned(), offset: 2, bytes: None };
    w.dataset("external").shape(&[3]).element::<u8>().create_external(&[piece]).expect("dataset");
}

fn user_block(w: &mut FileWriter<'_>) {
    w.write_user_block(3, b"mine").expect("user block");
    w.dataset("d").write(&[3_u8]).expect("dataset");
}

#[test]
fn all_that_can_be_read_can_be_written() {
    let Some(shared) = shared_dir().filter(|_| python().is_some()) else {
        return skip("Python with h5py and h5digest.py", THINGS.len());
    };
    let folder = temp_dir();
    std::fs::write(folder.path().join("raw.bin"), b"\0\0abc").expect("file");
    let (mut lines, mut files) = (String::new(), 0);
    for (name, oldest, fill) in THINGS {
        for bound in Bound::ALL.into_iter().filter(|b| b >= oldest) {
            let path = folder.path().join(format!("{name}-{bound}.h5"));
            let user = if *name == "user_block" { 512 } else { 0 };
            write_with(WriteOptions::default().bound(bound).user_block(user), &path, fill);
            lines.push_str(&format!("{name}\t{bound}\t{}\n", path.display()));
            files += 1;
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/writing/everything.py");
    let out = python_stdout(&script, [shared.join("oracle/h5digest.py")], lines.as_bytes());
    assert_eq!(String::from_utf8_lossy(&out).trim(), format!("{files} files"));
}
