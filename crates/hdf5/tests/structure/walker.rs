//! Describes a file's structure as JSON lines, in the canonical form of the digests that libhdf5 made.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::{Budget, Result};
use tensilo_hdf5::format::datatype::text_of;
use tensilo_hdf5::format::message::data_layout::DataLayout;
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::format::message::fill_value::FillValue;
use tensilo_hdf5::object::{self, Link, LinkTarget, ObjectHeader, ObjectKind};
use tensilo_hdf5::space::FileSpace;

/// Describes the file at `path`, one JSON object a line.
pub fn describe(path: &Path) -> Vec<Value> {
    match FileSource::open(path) {
        Ok(source) => describe_source(Arc::new(source), Budget::default(), true).0,
        Err(e) => vec![failed(json!({"kind": "file"}), &e)],
    }
}

/// Describes a source; says also how many objects were met. `sound` files also find by name what they list.
pub fn describe_source(source: Arc<dyn ByteSource>, budget: Budget, sound: bool) -> (Vec<Value>, usize) {
    let space = match FileSpace::open(source, budget) {
        Ok(space) => space,
        Err(e) => return (vec![failed(json!({"kind": "file"}), &e)], 0),
    };
    let mut lines = vec![json!({"kind": "file", "userblock": space.user_block()})];
    let root = Link {
        name: Vec::new(),
        target: LinkTarget::Hard(space.root()),
        creation_order: None,
        charset: tensilo_hdf5::format::datatype::CharacterSet::Ascii,
    };
    let mut seen = HashMap::new();
    let mut todo = vec![("/".to_owned(), root)];
    let mut objects = 0;
    while let Some((path, link)) = todo.pop() {
        let (line, children) = link_line(&space, &path, &link, &mut seen, sound);
        lines.push(line);
        objects += 1;
        let base = if path == "/" { "" } else { &path };
        for child in children.into_iter().rev() {
            todo.push((format!("{base}/{}", text_of(&child.name)), child));
        }
    }
    (lines, objects)
}

fn failed(mut line: Value, e: &tensilo_core::Error) -> Value {
    line["status"] = json!("error");
    line["detail"] = json!(e.to_string());
    line
}

fn link_line(
    space: &FileSpace,
    path: &str,
    link: &Link,
    seen: &mut HashMap<u64, String>,
    sound: bool,
) -> (Value, Vec<Link>) {
    let line = match &link.target {
        LinkTarget::Hard(address) => {
            if let Some(first) = seen.get(&address.0) {
                return (json!({"path": path, "kind": "alias", "target": first}), Vec::new());
            }
            return match object_line(space, path, *address, sound) {
                Ok(found) => {
                    seen.insert(address.0, path.to_owned());
                    found
                }
                Err(e) => (failed(json!({"path": path, "kind": "object"}), &e), Vec::new()),
            };
        }
        LinkTarget::Soft(target) => {
            json!({"path": path, "kind": "softlink", "target": text_of(until_nul(target))})
        }
        LinkTarget::External { file, object } => {
            json!({"path": path, "kind": "extlink", "file": text_of(file), "target": text_of(object)})
        }
        LinkTarget::UserDefined { class: 64, .. } => {
            json!({"path": path, "kind": "object", "status": "error", "detail": "bad external link"})
        }
        LinkTarget::UserDefined { class, .. } => json!({"path": path, "kind": "udlink", "class": class}),
    };
    (line, Vec::new())
}

fn until_nul(b: &[u8]) -> &[u8] {
    b.split(|b| *b == 0).next().unwrap_or(b)
}

fn object_line(
    space: &FileSpace,
    path: &str,
    address: tensilo_hdf5::format::Address,
    sound: bool,
) -> Result<(Value, Vec<Link>)> {
    let header = ObjectHeader::load(space, address)?;
    let mut line = json!({"path": path});
    let mut children = Vec::new();
    match header.kind()? {
        ObjectKind::Group => {
            line["kind"] = json!("group");
            match object::links(space, &header) {
                Ok(mut links) => {
                    for link in &links {
                        let alone = object::lookup(space, &header, &link.name);
                        assert!(
                            !sound || alone.expect("a link found by name").as_ref() == Some(link),
                            "by name and in the list"
                        );
                    }
                    line["nlinks"] = json!(links.len());
                    links.sort_by(|a, b| a.name.cmp(&b.name));
                    children = links;
                }
                Err(e) => line = failed(line, &e),
            }
        }
        ObjectKind::Dataset => {
            line["kind"] = json!("dataset");
            dataset(&header, &mut line)?;
        }
        ObjectKind::Datatype => {
            line["kind"] = json!("datatype");
            match header.datatype() {
                Ok(t) => line["dtype"] = json!(t.expect("a datatype message").to_string()),
                Err(e) => line = failed(line, &e),
            }
        }
    }
    line["attrs"] = attributes(space, &header, sound);
    Ok((line, children))
}

fn space_keys(line: &mut Value, space: &Dataspace, with_max: bool) {
    match space {
        Dataspace::Null => line["space"] = json!("null"),
        Dataspace::Scalar => line["space"] = json!("scalar"),
        Dataspace::Simple { dims, max } => {
            line["space"] = json!("simple");
            line["shape"] = json!(dims);
            if with_max {
                line["maxshape"] = json!(max);
            }
        }
    }
}

fn dataset(header: &ObjectHeader, line: &mut Value) -> Result<()> {
    let datatype = header.datatype()?.expect("a datatype message");
    let space = header.dataspace()?.expect("a dataspace message");
    let layout = header.layout()?.ok_or_else(|| header.corrupt("a dataset without a layout"))?;
    line["dtype"] = json!(datatype.to_string());
    space_keys(line, &space, true);
    if matches!(layout, DataLayout::Virtual { .. }) {
        // The extents of a virtual dataset without limit follow from its sources, which are no structure.
        line["shape"] = Value::Null;
    }
    line["layout"] = json!(match &layout {
        DataLayout::Compact(_) => "compact",
        DataLayout::Contiguous { .. } => "contiguous",
        DataLayout::Chunked(_) => "chunked",
        DataLayout::Virtual { .. } => "virtual",
    });
    if let DataLayout::Chunked(c) = &layout {
        line["chunk"] = json!(c.dims);
    }
    let filters = header.filters()?;
    if !filters.is_empty() {
        line["filters"] = filters.iter().map(|f| json!([f.id, f.flags, f.values])).collect();
    }
    let external = header.external_files()?;
    if !external.is_empty() {
        line["external"] = external.iter().map(|e| json!([text_of(&e.name), e.offset, e.size])).collect();
    }
    line["fill"] = json!(match header.fill()?.value {
        FillValue::Undefined => "undefined",
        FillValue::Default => "default",
        FillValue::Value(_) => "user",
    });
    Ok(())
}

fn attributes(space: &FileSpace, header: &ObjectHeader, sound: bool) -> Value {
    let found = match object::attributes(space, header) {
        Ok(found) => found,
        Err(e) => return json!([failed(json!({}), &e)]),
    };
    let clean = sound && found.iter().all(Result::is_ok);
    let mut lines: Vec<(Vec<u8>, Value)> = found
        .into_iter()
        .map(|a| match a {
            Ok(a) => {
                let mut line = json!({"name": text_of(&a.name), "dtype": a.datatype.to_string()});
                space_keys(&mut line, &a.dataspace, false);
                let alone = object::attribute(space, header, &a.name);
                assert!(
                    !clean || alone.expect("an attribute found by name").as_ref() == Some(&a),
                    "by name and in the list"
                );
                (a.name, line)
            }
            Err(d) => {
                let name = d.name.unwrap_or_default();
                let line = failed(json!({"name": text_of(&name)}), &d.error);
                (name, line)
            }
        })
        .collect();
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    lines.into_iter().map(|l| l.1).collect()
}

/// What of an expected line is about structure: without data, and with a fill value only said to be there.
pub fn structure_of(line: &Value) -> Value {
    let Value::Object(map) = line else { return line.clone() };
    let mut out = Map::new();
    for (key, value) in map {
        match key.as_str() {
            "nbytes" | "sha256" | "format" | "virtual" | "detail" => {}
            "shape" if map.get("layout").is_some_and(|l| l == "virtual") => {
                out.insert(key.clone(), Value::Null);
            }
            "status" if value == "ok" || map.contains_key("space") => {}
            "fill" => {
                let kind = value.as_str().unwrap_or("user");
                let kind = if matches!(kind, "undefined" | "default") { kind } else { "user" };
                out.insert(key.clone(), json!(kind));
            }
            "attrs" => {
                let list = value.as_array().map_or(&[][..], Vec::as_slice);
                out.insert(key.clone(), list.iter().map(structure_of).collect());
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(out)
}
