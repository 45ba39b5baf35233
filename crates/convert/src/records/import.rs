//! Records from anything that can be gathered.

use super::block;
use tensilo_core::gather::{FieldShape, Gather, Schema, gather};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Monitor, Progress, Result};
use tensilo_records::RecordsWriter;
use tensilo_records::store::Column;

/// Appends all records of sources side by side: record `i` has the fields of the sources' records `i`. Bounded in memory;
/// committed at the end. Returns how many.
///
/// # Errors
/// `InvalidArgument` when the sources differ in length or do not fit the store; as reading and writing; the monitor's.
pub fn import(
    sources: &[&dyn Gather],
    writer: &mut RecordsWriter,
    threads: Threads,
    monitor: &dyn Monitor,
) -> Result<u64> {
    let schema = joined_schema(sources)?;
    let into = writer.schema()?;
    let names = |s: &Schema| s.fields().iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ");
    let order = into.fields().iter().map(|f| schema.position(&f.name)).collect::<Result<Vec<usize>>>();
    let order = order.ok().filter(|o| o.len() == schema.fields().len()).ok_or_else(|| {
        Error::invalid(format!("the store has the fields {}; given are {}", names(&into), names(&schema)))
            .hint("one source for each field, as NAME=SOURCE")
    })?;
    for (field, at) in into.fields().iter().zip(&order) {
        let given = schema.field(*at)?;
        if given != field {
            return Err(Error::invalid(format!(
                "field {:?} of the store is {} {}, the source is {} {}",
                field.name,
                field.dtype,
                shape(&field.shape),
                given.dtype,
                shape(&given.shape)
            )));
        }
    }
    let total = sources.first().map_or(0, |s| s.len());
    let budget = Budget::default();
    let mut first = 0;
    while first < total {
        monitor.poll(&Progress { stage: "importing", done: first, total })?;
        let ids = block(sources, first)?;
        let mut values = Vec::new();
        for source in sources {
            values.extend(gather(*source, &ids, &[], &budget, threads, monitor)?);
        }
        let steps: Vec<Vec<u64>> =
            values.iter().map(|v| v.offsets.windows(2).map(|w| w[1] - w[0]).collect()).collect();
        let columns: Vec<Column<'_>> = order
            .iter()
            .map(|at| {
                match into.fields().iter().any(|f| f.name == schema.fields()[*at].name && f.is_ragged()) {
                    true => Column::ragged(&values[*at].bytes, &steps[*at]),
                    false => Column::fixed(&values[*at].bytes),
                }
            })
            .collect();
        writer.append(ids.len() as u64, &columns)?;
        first += ids.len() as u64;
    }
    writer.commit()?;
    Ok(total)
}

/// A shape as `records create` takes it.
fn shape(shape: &FieldShape) -> String {
    let (first, dims) = match shape {
        FieldShape::Fixed(dims) => (None, dims),
        FieldShape::Ragged(dims) => (Some("*".to_owned()), dims),
    };
    let all: Vec<String> = first.into_iter().chain(dims.iter().map(u64::to_string)).collect();
    if all.is_empty() { "scalar".into() } else { all.join("x") }
}

/// The fields of sources side by side.
///
/// # Errors
/// `InvalidArgument` when the sources differ in length, or two fields have one name.
pub fn joined_schema(sources: &[&dyn Gather]) -> Result<Schema> {
    let Some(first) = sources.first() else { return Err(Error::invalid("there is no source")) };
    for source in sources {
        if source.len() != first.len() {
            return Err(Error::invalid(format!(
                "{:?} has {} records, {:?} has {}",
                first.schema().fields()[0].name,
                first.len(),
                source.schema().fields()[0].name,
                source.len()
            )));
        }
    }
    Schema::new(sources.iter().flat_map(|s| s.schema().fields().to_vec()).collect())
}
