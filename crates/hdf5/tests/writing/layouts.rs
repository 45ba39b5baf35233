//! Files laid out as pandas, anndata, netCDF-4, Keras and MATLAB do it, opened by the tools.

use super::write_with;
use std::path::Path;
use tensilo_hdf5::format::datatype::{CharacterSet, Class, Datatype, StringPadding};
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::write::{Bound, FileWriter, Value, WriteOptions};
use tensilo_testkit::oracle::{python, python_has, python_stdout, skip, temp_dir};

fn text_type(bytes: usize, charset: CharacterSet) -> Datatype {
    Datatype { size: bytes as u32, class: Class::String { padding: StringPadding::NullTerminated, charset } }
}

/// A fixed string without a terminator, as PyTables stores all its texts; empty ones are null.
fn fixed(text: &str) -> Value {
    let datatype = text_type(text.len().max(1), CharacterSet::Utf8);
    match text {
        "" => Value::null(datatype),
        _ => Value::stored(datatype, Dataspace::Scalar, text.as_bytes().to_vec()).expect("a text"),
    }
}

fn ascii(text: &str) -> Value {
    let datatype = text_type(text.len(), CharacterSet::Ascii);
    Value::stored(datatype, Dataspace::Scalar, text.as_bytes().to_vec()).expect("a text")
}

fn attributes(w: &mut FileWriter<'_>, path: &str, all: &[(&str, Value)]) {
    for (name, value) in all {
        w.attribute(path, name, value.clone()).expect("attribute");
    }
}

/// An HDFStore of the fixed format: axes, and blocks of columns of one type.
fn pandas(w: &mut FileWriter<'_>) {
    attributes(
        w,
        "/",
        &[
            ("CLASS", fixed("GROUP")),
            ("PYTABLES_FORMAT_VERSION", fixed("2.1")),
            ("TITLE", fixed("")),
            ("VERSION", fixed("1.0")),
        ],
    );
    w.create_group("frame").expect("group");
    attributes(
        w,
        "frame",
        &[
            ("CLASS", fixed("GROUP")),
            ("TITLE", fixed("")),
            ("VERSION", fixed("1.0")),
            ("axis0_variety", fixed("regular")),
            ("axis1_variety", fixed("regular")),
            ("block0_items_variety", fixed("regular")),
            ("block1_items_variety", fixed("regular")),
            ("encoding", fixed("UTF-8")),
            ("errors", fixed("strict")),
            ("nblocks", 2_i64.into()),
            ("ndim", 2_i64.into()),
            ("pandas_type", fixed("frame")),
            ("pandas_version", fixed("0.15.2")),
        ],
    );
    let names = |w: &mut FileWriter<'_>, path: &str, names: &[u8]| {
        let d = w.dataset(path).datatype(text_type(1, CharacterSet::Ascii)).shape(&[names.len() as u64]);
        d.write_bytes(names).expect("dataset");
        table_array(w, path, Some("string"));
    };
    names(w, "frame/axis0", b"abn");
    names(w, "frame/block0_items", b"ab");
    names(w, "frame/block1_items", b"n");
    w.dataset("frame/axis1").write(&[10_i64, 20, 30]).expect("dataset");
    table_array(w, "frame/axis1", Some("integer"));
    let values = [1.5, 4.0, 2.5, 5.0, 3.5, 6.0];
    w.dataset("frame/block0_values").shape(&[3, 2]).write(&values).expect("dataset");
    table_array(w, "frame/block0_values", None);
    w.dataset("frame/block1_values").shape(&[3, 1]).write(&[1_i64, 2, 3]).expect("dataset");
    table_array(w, "frame/block1_values", None);
}

/// What PyTables and pandas note of an array; axes have a kind, and a name, here a pickled None.
fn table_array(w: &mut FileWriter<'_>, path: &str, kind: Option<&str>) {
    let all = [
        ("CLASS", fixed("ARRAY")),
        ("FLAVOR", fixed("numpy")),
        ("TITLE", fixed("")),
        ("VERSION", fixed("2.4")),
        ("transposed", 1_u8.into()),
    ];
    attributes(w, path, &all);
    if let Some(kind) = kind {
        attributes(w, path, &[("kind", fixed(kind)), ("name", ascii("N."))]);
    }
}

/// Annotated data: a sparse matrix, observations with a categorical column, variables.
fn anndata(w: &mut FileWriter<'_>) {
    fn encoded(w: &mut FileWriter<'_>, path: &str, kind: &str, version: &str) {
        attributes(w, path, &[("encoding-type", kind.into()), ("encoding-version", version.into())]);
    }
    encoded(w, "/", "anndata", "0.1.0");
    for group in ["layers", "obsm", "obsp", "uns", "varm", "varp"] {
        w.create_group(group).expect("group");
        encoded(w, group, "dict", "0.1.0");
    }
    w.create_group("X").expect("group");
    encoded(w, "X", "csr_matrix", "0.1.0");
    w.attribute("X", "shape", &[2_i64, 3][..]).expect("attribute");
    w.dataset("X/data").write(&[1.5_f32, 2.0, 3.0]).expect("dataset");
    w.dataset("X/indices").write(&[1_i32, 0, 2]).expect("dataset");
    w.dataset("X/indptr").write(&[0_i32, 1, 3]).expect("dataset");
    let texts = |w: &mut FileWriter<'_>, path: &str, texts: &[&str]| {
        w.dataset(path).write_texts(texts).expect("dataset");
        encoded(w, path, "string-array", "0.2.0");
    };
    for (frame, index, columns) in
        [("obs", &["c0", "c1"][..], &["kind", "n"][..]), ("var", &["g0", "g1", "g2"], &[])]
    {
        w.create_group(frame).expect("group");
        encoded(w, frame, "dataframe", "0.2.0");
        let order = match columns {
            [] => Value::array::<f64>(&[], &[0]).expect("no columns"),
            _ => Value::texts(columns, &[columns.len() as u64]).expect("columns"),
        };
        attributes(w, frame, &[("_index", "_index".into()), ("column-order", order)]);
        texts(w, &format!("{frame}/_index"), index);
    }
    w.create_group("obs/kind").expect("group");
    encoded(w, "obs/kind", "categorical", "0.2.0");
    w.attribute("obs/kind", "ordered", false).expect("attribute");
    texts(w, "obs/kind/categories", &["x", "y"]);
    w.dataset("obs/kind/codes").write(&[0_i8, 1]).expect("dataset");
    encoded(w, "obs/kind/codes", "array", "0.2.0");
    w.dataset("obs/n").write(&[1_i64, 2]).expect("dataset");
    encoded(w, "obs/n", "array", "0.2.0");
    w.dataset("uns/title").write_value("a title".into()).expect("dataset");
    encoded(w, "uns/title", "string", "0.2.0");
}

/// netCDF-4: coordinate variables are dimension scales, variables refer to them.
fn netcdf(w: &mut FileWriter<'_>) {
    attributes(w, "/", &[("title", ascii("a title")), ("_NCProperties", ascii("version=2,tensilo=0.1"))]);
    w.dataset("time").write(&[0_i32, 1]).expect("dataset");
    w.dataset("x").write(&[10.0, 20.0, 30.0]).expect("dataset");
    w.attribute("time", "units", ascii("days since 2000-01-01")).expect("attribute");
    let d = w.dataset("temperature").shape(&[2, 3]).chunk(&[1, 3]).fill_value(f64::NAN);
    d.write(&[0.0, 1.0, 2.0, 3.0, 4.0, f64::NAN]).expect("dataset");
    attributes(w, "temperature", &[("units", ascii("K")), ("_FillValue", (&[f64::NAN][..]).into())]);
    for (number, name) in ["time", "x"].into_iter().enumerate() {
        w.make_scale(name, name).expect("scale");
        w.attribute(name, "_Netcdf4Dimid", number as i32).expect("attribute");
        w.attach_scale("temperature", number as u32, name).expect("attached");
    }
}

/// Weights of two dense layers as Keras 3 saves them.
fn keras(w: &mut FileWriter<'_>) {
    for (path, name) in
        [("layers/dense/vars", "first"), ("layers/dense_1/vars", "second"), ("vars", "sequential")]
    {
        w.create_group(path).expect("group");
        w.attribute(path, "name", name).expect("attribute");
    }
    let kernel: Vec<f32> = (0..6_u8).map(f32::from).collect();
    w.dataset("layers/dense/vars/0").shape(&[3, 2]).write(&kernel).expect("dataset");
    w.dataset("layers/dense/vars/1").write(&[0.5_f32, -0.5]).expect("dataset");
    w.dataset("layers/dense_1/vars/0").shape(&[2, 1]).write(&[2.0_f32, 3.0]).expect("dataset");
    w.dataset("layers/dense_1/vars/1").write(&[0.25_f32]).expect("dataset");
}

/// MATLAB v7.3: a user block that says so, classes in attributes, columns first.
fn matlab(w: &mut FileWriter<'_>) {
    let mut head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64 HDF5 schema 1.00 .".to_vec();
    head.resize(116, b' ');
    head.resize(124, 0);
    head.extend(b"\x00\x02IM");
    w.write_user_block(0, &head).expect("user block");
    let class = |w: &mut FileWriter<'_>, path: &str, class: &str| {
        w.attribute(path, "MATLAB_class", ascii(class)).expect("attribute");
    };
    let text = |w: &mut FileWriter<'_>, path: &str, text: &str| {
        let units: Vec<u16> = text.encode_utf16().collect();
        w.dataset(path).shape(&[units.len() as u64, 1]).write(&units).expect("dataset");
        class(w, path, "char");
        w.attribute(path, "MATLAB_int_decode", 2_i32).expect("attribute");
    };
    // [1 2 3; 4 5 6], of which a column is a row here.
    let matrix = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    w.dataset("matrix").shape(&[3, 2]).chunk(&[3, 2]).write(&matrix).expect("dataset");
    class(w, "matrix", "double");
    text(w, "word", "größe");
    w.dataset("flags").shape(&[3, 1]).write(&[1_u8, 0, 1]).expect("dataset");
    class(w, "flags", "logical");
    w.attribute("flags", "MATLAB_int_decode", 1_i32).expect("attribute");
    w.dataset("counts").shape(&[2, 1]).write(&[7_i32, -8]).expect("dataset");
    class(w, "counts", "int32");
    w.create_group("record").expect("group");
    class(w, "record", "struct");
    w.dataset("record/x").shape(&[1, 1]).write(&[2.5]).expect("dataset");
    class(w, "record/x", "double");
    text(w, "record/name", "abc");
    w.dataset("#refs#/a").shape(&[1, 1]).write(&[9.0]).expect("dataset");
    class(w, "#refs#/a", "double");
    text(w, "#refs#/b", "in a cell");
    let cells = ["#refs#/a", "#refs#/b"].map(|p| w.reference(p).expect("a reference").0);
    let d = w.dataset("cell").datatype(Datatype::object_reference()).shape(&[2, 1]);
    d.write(&cells).expect("dataset");
    class(w, "cell", "cell");
    w.dataset("nothing").write(&[0_u64, 0]).expect("dataset");
    class(w, "nothing", "double");
    w.attribute("nothing", "MATLAB_empty", 1_u8).expect("attribute");
}

/// A layout: its name, what writes it, and the modules that open it.
type Tool = (&'static str, fn(&mut FileWriter<'_>), &'static [&'static str]);

const TOOLS: [Tool; 5] = [
    ("pandas", pandas, &["pandas", "tables"]),
    ("anndata", anndata, &["anndata"]),
    ("netcdf", netcdf, &["xarray", "netCDF4"]),
    ("keras", keras, &["keras", "jax"]),
    ("matlab", matlab, &["mat73"]),
];

#[test]
fn layouts_of_other_tools_are_opened_by_them() {
    let folder = temp_dir();
    if python().is_none() {
        return skip("Python with h5py", TOOLS.len());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/writing/layouts.py");
    for (name, fill, modules) in TOOLS {
        if let Some(module) = modules.iter().find(|m| !python_has(m)) {
            skip(&format!("Python with {module}"), 1);
            continue;
        }
        let mut arguments = vec![name.to_owned()];
        for bound in [Bound::Earliest, Bound::V110] {
            let path = folder.path().join(format!("{name}-{bound}.weights.h5"));
            let mut options = WriteOptions::default().bound(bound);
            options.track_order = name == "netcdf";
            options.user_block = if name == "matlab" { 512 } else { 0 };
            write_with(options, &path, fill);
            arguments.push(path.display().to_string());
        }
        let out = python_stdout(&script, &arguments, b"");
        assert_eq!(String::from_utf8_lossy(&out).lines().last(), Some("2 opened"), "{name}");
    }
}
