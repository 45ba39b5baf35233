//! `tensilo info`: one file or object described.

use super::OpenArguments;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::core::io::FileSource;
use tensilo::view::{self, AttributeView, CacheImageView, DatasetView, ObjectView};

/// Longest value of an attribute that is printed on its line.
const VALUE: usize = 120;

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The object; without it the file itself and its root group are described.
    pub path: Option<String>,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// Describes.
pub fn run(a: &InfoArguments, out: &mut Output) -> Outcome {
    let file = match a.open.open(&a.file) {
        Ok(file) => file,
        Err(e) => {
            refused_image(a, out)?;
            return Err(e.into());
        }
    };
    if a.path.is_none() {
        let view = view::file(&file);
        if out.is_json() {
            out.json("tensilo.file/1", &view)?;
        } else {
            out.line(format_args!("file        {}", human::name(&view.file)))?;
            out.line(format_args!("size        {} ({} bytes)", human::bytes(view.bytes), view.bytes))?;
            out.line(format_args!("superblock  version {}", view.superblock))?;
            if view.user_block > 0 {
                out.line(format_args!("user block  {} bytes", view.user_block))?;
            }
            if let Some(driver) = &view.driver {
                out.line(format_args!("driver      {}", human::name(driver)))?;
            }
            if let Some(f) = &view.file_space {
                let kept = if f.persist { ", free space kept" } else { "" };
                out.line(format_args!("file space  {}{kept}, pages of {} bytes", f.strategy, f.page_size))?;
            }
            out.line(cache_image(&view.cache_image))?;
        }
    }
    let object = file.object(a.path.as_deref().unwrap_or("/"))?;
    let view = view::object(&object)?;
    if out.is_json() {
        out.json("tensilo.info/1", &view)?;
        return Ok(Answer::Yes);
    }
    let attributes = match &view {
        ObjectView::Group { path, links, attributes } => {
            out.line(format_args!("group       {}", human::name(path)))?;
            out.line(format_args!("links       {links}"))?;
            attributes
        }
        ObjectView::Datatype { path, dtype, attributes } => {
            out.line(format_args!("datatype    {}", human::name(path)))?;
            out.line(format_args!("dtype       {}", human::name(dtype)))?;
            attributes
        }
        ObjectView::Dataset(d) => {
            dataset(d, out)?;
            &d.attributes
        }
        _ => return Ok(Answer::Yes),
    };
    print_attributes(attributes, out)?;
    Ok(Answer::Yes)
}

/// One line about the metadata cache image.
fn cache_image(v: &CacheImageView) -> String {
    let more = match (v.bytes, v.entries, &v.reason) {
        (Some(bytes), Some(entries), _) => format!(", {entries} structures in {}", human::bytes(bytes)),
        (_, _, Some(reason)) => format!(": {}", human::name(reason)),
        _ => String::new(),
    };
    format!("cache image {}{more}", v.state)
}

/// Says so where the file does not open because of its cache image.
fn refused_image(a: &InfoArguments, out: &mut Output) -> Outcome<()> {
    let Ok(source) = FileSource::open(&a.file) else { return Ok(()) };
    match view::refused_image(Arc::new(source)) {
        Some(v) if out.is_json() => out.json("tensilo.cache-image/1", &v),
        Some(v) => out.line(cache_image(&v)),
        None => Ok(()),
    }
}

fn dataset(d: &DatasetView, out: &mut Output) -> Outcome<()> {
    out.line(format_args!("dataset     {}", human::name(&d.path)))?;
    out.line(format_args!("dtype       {}", human::name(&d.dtype)))?;
    let shape = if d.space == "simple" { human::shape(&d.shape) } else { d.space.to_owned() };
    let growing = d.max_shape.iter().zip(&d.shape).any(|(max, now)| *max != Some(*now));
    if growing {
        let max: Vec<String> =
            d.max_shape.iter().map(|m| m.map_or_else(|| "∞".to_owned(), |m| m.to_string())).collect();
        out.line(format_args!("shape       {shape} (at most {})", max.join(" × ")))?;
    } else {
        out.line(format_args!("shape       {shape}"))?;
    }
    match &d.chunk {
        Some(chunk) => {
            out.line(format_args!("layout      {}, chunks of {}", d.layout, human::shape(chunk)))?
        }
        None => out.line(format_args!("layout      {}", d.layout))?,
    }
    for f in &d.filters {
        let name = f.name.as_deref().unwrap_or("unknown filter");
        let values: Vec<String> = f.values.iter().map(u32::to_string).collect();
        out.line(format_args!("filter      {} ({}) {}", human::name(name), f.id, values.join(" ")))?;
    }
    out.line(format_args!("fill        {}", human::name(&d.fill.to_string())))?;
    match d.stored_bytes {
        Some(stored) if stored > 0 => out.line(format_args!(
            "size        {} stored as {} ({:.2} : 1)",
            human::bytes(d.bytes),
            human::bytes(stored),
            d.bytes as f64 / stored as f64
        )),
        _ => out.line(format_args!("size        {}", human::bytes(d.bytes))),
    }
}

fn print_attributes(attributes: &[AttributeView], out: &mut Output) -> Outcome<()> {
    if attributes.is_empty() {
        return Ok(());
    }
    out.line("attributes")?;
    let rows: Vec<Vec<String>> = attributes
        .iter()
        .map(|a| {
            let value = match (&a.value, &a.error) {
                (_, Some(e)) => format!("unreadable: {e}"),
                (Some(v), _) => v.to_string(),
                (None, None) => String::new(),
            };
            let mut value = human::name(&value);
            if value.chars().count() > VALUE {
                value = value.chars().take(VALUE).chain(std::iter::once('…')).collect();
            }
            let dtype = human::name(a.dtype.as_deref().unwrap_or("?"));
            vec![format!("  {}", human::name(&a.name)), dtype, value]
        })
        .collect();
    for line in human::columns(&rows) {
        out.line(line)?;
    }
    Ok(())
}
