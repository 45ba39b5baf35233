//! The words of h5repack about the file as a whole: management of its space, shared messages.

use clap::Args;
use std::str::FromStr;
use tensilo::Result;
use tensilo::hdf5::File;
use tensilo::hdf5::repack::like;
use tensilo::hdf5::write::{SharedIndexOptions, SharedKind, SpaceStrategy, WriteOptions};

/// How the space of the file is managed; what is not given stays as it is.
#[derive(Debug, Args)]
pub struct SpaceArguments {
    /// How the file's space is managed later: FSM_AGGR, PAGE, AGGR or NONE.
    #[arg(long = "fs-strategy", alias = "fs_strategy", short = 'S', value_name = "STRATEGY", value_parser = strategy)]
    strategy: Option<SpaceStrategy>,

    /// Remember free space when the file is closed: 0 or 1.
    #[arg(long = "fs-persist", alias = "fs_persist", short = 'P', value_name = "0|1", value_parser = flag)]
    persist: Option<bool>,

    /// Bytes of the smallest free piece that is remembered.
    #[arg(long = "fs-threshold", alias = "fs_threshold", short = 'T', value_name = "BYTES")]
    threshold: Option<u64>,

    /// Bytes of a page.
    #[arg(long = "fs-pagesize", alias = "fs_pagesize", short = 'G', value_name = "BYTES")]
    page_size: Option<u64>,

    /// Share header messages of at least this many bytes: of one kind (dspace, dtype, fill, pline, attr) or of all.
    /// 0 shares none.
    #[arg(long = "ssize", short = 's', value_name = "BYTES[:KIND]")]
    shared: Vec<SharedWord>,
}

/// A smallest size, and the kind of messages it is for.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedWord {
    min_size: u32,
    kind: Option<SharedKind>,
}

impl FromStr for SharedWord {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (size, kind) = text.split_once(':').map_or((text, None), |(size, kind)| (size, Some(kind)));
        let min_size = size.parse().map_err(|_| format!("{size:?} is no number of bytes"))?;
        let kind = match kind {
            None => None,
            Some("dspace") => Some(SharedKind::Dataspace),
            Some("dtype") => Some(SharedKind::Datatype),
            Some("fill") => Some(SharedKind::FillValue),
            Some("pline") => Some(SharedKind::Filters),
            Some("attr") => Some(SharedKind::Attribute),
            Some(other) => return Err(format!("{other:?} is none of dspace, dtype, fill, pline, attr")),
        };
        Ok(Self { min_size, kind })
    }
}

fn strategy(text: &str) -> std::result::Result<SpaceStrategy, String> {
    match text {
        "FSM_AGGR" => Ok(SpaceStrategy::Managers),
        "PAGE" => Ok(SpaceStrategy::Pages),
        "AGGR" => Ok(SpaceStrategy::Aggregation),
        "NONE" => Ok(SpaceStrategy::Nothing),
        _ => Err(format!("{text:?} is none of FSM_AGGR, PAGE, AGGR, NONE")),
    }
}

fn flag(text: &str) -> std::result::Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("{text:?} is neither 0 nor 1")),
    }
}

impl SpaceArguments {
    /// The options with what the source says of itself, and what is given here instead.
    ///
    /// # Errors
    /// `Corrupt` for a damaged source.
    pub fn apply(&self, source: &File, options: WriteOptions) -> Result<WriteOptions> {
        let mut options = like(source, options)?;
        let space = &mut options.file_space;
        if let Some(strategy) = self.strategy {
            space.strategy = strategy;
            let managed = matches!(strategy, SpaceStrategy::Managers | SpaceStrategy::Pages);
            space.persist &= managed;
        }
        space.persist = self.persist.unwrap_or(space.persist);
        space.threshold = self.threshold.unwrap_or(space.threshold);
        space.page_size = self.page_size.unwrap_or(space.page_size);
        if !self.shared.is_empty() {
            options.shared = indexes(&self.shared);
        }
        Ok(options)
    }
}

/// One index for each size; a kind has the size that is given for it, or the last that is given for all.
fn indexes(words: &[SharedWord]) -> Vec<SharedIndexOptions> {
    let mut all: Vec<SharedIndexOptions> = Vec::new();
    for kind in SharedKind::ALL {
        let own = words.iter().rfind(|w| w.kind == Some(kind));
        let Some(word) = own.or_else(|| words.iter().rfind(|w| w.kind.is_none())) else { continue };
        match all.iter_mut().find(|i| i.min_size == word.min_size) {
            _ if word.min_size == 0 => {}
            Some(index) => index.kinds.push(kind),
            None => all.push(SharedIndexOptions { kinds: vec![kind], min_size: word.min_size }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_make_indexes_of_the_kinds_they_are_for() {
        let words = |all: &[&str]| {
            let words: Vec<SharedWord> = all.iter().map(|w| w.parse().expect("a word")).collect();
            indexes(&words).into_iter().map(|i| (i.min_size, i.kinds.len())).collect::<Vec<_>>()
        };
        assert_eq!(words(&["50"]), [(50, 5)]);
        assert_eq!(words(&["50", "20:attr", "20:dtype"]), [(50, 3), (20, 2)]);
        assert_eq!(words(&["20:attr"]), [(20, 1)]);
        assert_eq!(words(&["0"]), []);
        for wrong in ["", "x", "5:links", "-1", "5:"] {
            assert!(wrong.parse::<SharedWord>().is_err(), "{wrong}");
        }
        assert!(strategy("page").is_err() && flag("2").is_err());
    }
}
