//! `tensilo ls`: what is in a file.

use super::OpenArguments;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::collections::HashSet;
use std::path::PathBuf;
use tensilo::core::{Monitor, Progress};
use tensilo::hdf5::{Group, Object};
use tensilo::view::{self, LinkView};

/// Rows that are aligned with each other.
const PAGE: usize = 1000;

/// Arguments of `ls`.
#[derive(Debug, Args)]
pub struct LsArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The group to list.
    #[arg(default_value = "/")]
    pub path: String,

    /// List groups inside groups too.
    #[arg(long, short)]
    pub recursive: bool,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// Lists links, names in ascending order.
pub fn run(a: &LsArguments, out: &mut Output) -> Outcome {
    let file = a.open.open(&a.file)?;
    let cancel = out.cancel().clone();
    let mut rows = Vec::new();
    let mut todo = match file.object(&a.path)? {
        Object::Group(group) => vec![Level::new(group)?],
        _ => {
            return Err(tensilo::Error::invalid("only groups have links to list")
                .in_object(&a.path)
                .in_file(&a.file)
                .hint(format!("tensilo info {} {}", a.file.display(), a.path))
                .into());
        }
    };
    let mut seen: HashSet<u64> = todo.iter().map(|l| l.group.address().0).collect();
    while let Some(level) = todo.last_mut() {
        cancel.poll(&Progress::default())?;
        let Some(link) = level.links.next() else {
            todo.pop();
            continue;
        };
        let view = view::link(&level.group, &link);
        if a.recursive
            && view.kind == "group"
            && let Ok(Object::Group(group)) = level.group.open_link(&link)
            && seen.insert(group.address().0)
        {
            todo.push(Level::new(group)?);
        }
        if out.is_json() {
            out.json("tensilo.ls/1", &view)?;
        } else {
            rows.push(row(&view));
            if rows.len() == PAGE {
                print(&mut rows, out)?;
            }
        }
    }
    print(&mut rows, out)?;
    Ok(Answer::Yes)
}

struct Level {
    group: Group,
    links: std::vec::IntoIter<tensilo::hdf5::LinkInfo>,
}

impl Level {
    fn new(group: Group) -> tensilo::Result<Self> {
        let mut links = group.links()?;
        links.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(Self { group, links: links.into_iter() })
    }
}

fn row(view: &LinkView) -> Vec<String> {
    let path = human::name(&view.path);
    let what = match (&view.shape, &view.dtype, &view.target, &view.error) {
        (_, _, _, Some(e)) => human::name(e),
        (_, _, Some(target), _) => format!("→ {}", human::name(target)),
        (Some(shape), Some(dtype), _, _) => format!("{}  {}", human::shape(shape), human::name(dtype)),
        (_, Some(dtype), _, _) => human::name(dtype),
        _ => String::new(),
    };
    vec![path, view.kind.to_owned(), what]
}

fn print(rows: &mut Vec<Vec<String>>, out: &mut Output) -> Outcome<()> {
    for line in human::columns(rows) {
        out.line(line)?;
    }
    rows.clear();
    Ok(())
}
