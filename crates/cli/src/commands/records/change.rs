//! `records delete` and `records compact`.

use super::WriteArguments;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;

/// Arguments of `records delete`.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// The store.
    #[command(flatten)]
    pub write: WriteArguments,

    /// The records, as ID or START:END.
    #[arg(required = true, value_name = "IDS", value_parser = ids)]
    pub ids: Vec<std::ops::Range<u64>>,
}

/// Arguments of `records compact`.
#[derive(Debug, Args)]
pub struct CompactArguments {
    /// The store.
    #[command(flatten)]
    pub write: WriteArguments,
}

fn ids(text: &str) -> std::result::Result<std::ops::Range<u64>, String> {
    let wanted = || format!("records are ID or START:END, such as 7 or 3:9, not {text:?}");
    let number = |t: &str| t.parse::<u64>().map_err(|_| wanted());
    match text.split_once(':') {
        None => {
            let id = number(text)?;
            Ok(id..id.checked_add(1).ok_or_else(wanted)?)
        }
        Some((start, end)) => {
            let range = number(start)?..number(end)?;
            if range.start > range.end { Err(wanted()) } else { Ok(range) }
        }
    }
}

#[derive(Serialize)]
struct DeletedView {
    store: String,
    deleted: u64,
    records: u64,
}

#[derive(Serialize)]
struct CompactedView {
    store: String,
    before: u64,
    after: u64,
}

/// Deletes records.
pub fn delete(a: &DeleteArguments, out: &mut Output) -> Outcome {
    let mut writer = a.write.open()?;
    let before = writer.len();
    if let Some(range) = a.ids.iter().find(|r| r.end > before) {
        let message = format!("there is no record {}, there are {before}", range.end - 1);
        return Err(tensilo::Error::invalid(message).in_file(&a.write.store).into());
    }
    let ids: Vec<u64> = a.ids.iter().flat_map(Clone::clone).collect();
    writer.delete(&ids)?;
    let view = DeletedView {
        store: a.write.store.display().to_string(),
        deleted: before - writer.len(),
        records: writer.len(),
    };
    if out.is_json() {
        out.json("tensilo.records.delete/1", &view)?;
    } else {
        out.line(format_args!(
            "{} deleted, {} in the store",
            human::count(view.deleted, "record"),
            view.records
        ))?;
    }
    Ok(Answer::Yes)
}

/// Gives space back.
pub fn compact(a: &CompactArguments, out: &mut Output) -> Outcome {
    let before = super::open(&a.write.store)?.stats()?.file_bytes;
    a.write.open()?.compact(&out.monitor())?;
    let after = super::open(&a.write.store)?.stats()?.file_bytes;
    let view = CompactedView { store: a.write.store.display().to_string(), before, after };
    if out.is_json() {
        out.json("tensilo.records.compact/1", &view)?;
    } else {
        out.line(format_args!("{} before, {} now", human::bytes(before), human::bytes(after)))?;
    }
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_ranges_are_read() {
        assert_eq!((ids("7"), ids("3:9")), (Ok(7..8), Ok(3..9)));
        for text in ["", "-1", "9:3", "a", "1:2:3", "18446744073709551615"] {
            assert!(ids(text).is_err(), "{text}");
        }
    }
}
