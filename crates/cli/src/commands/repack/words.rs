//! The words of h5repack: filters, layouts, bounds.

use std::str::FromStr;
use tensilo::hdf5::repack::{Change, NewLayout, RepackOptions};
use tensilo::hdf5::write::{Bound, Filters};
use tensilo::{Error, Result};

/// A size with a unit or without.
#[derive(Debug, Clone, Copy)]
pub struct SizeWord(pub u64);

impl FromStr for SizeWord {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        crate::commands::bytes(text).map(Self)
    }
}

/// One filter, and the datasets it is for.
#[derive(Debug, Clone)]
pub struct FilterWord {
    objects: Vec<Vec<u8>>,
    filter: One,
}

#[derive(Debug, Clone, PartialEq)]
enum One {
    Nothing,
    Gzip(u32),
    Shuffle,
    Fletcher32,
    Szip(u32, bool),
    Nbit,
    ScaleOffset(i32),
    Zstd(u32),
    Lz4,
    Lzf,
    Bitshuffle,
    Other { id: u16, optional: bool, values: Vec<u32> },
}

/// The paths in front of a colon, with one slash in front of each name.
fn objects(text: &str) -> (Vec<Vec<u8>>, &str) {
    let Some((names, word)) = text.rsplit_once(':') else { return (Vec::new(), text) };
    let normal = |name: &str| -> Vec<u8> {
        name.split('/').filter(|c| !c.is_empty()).flat_map(|c| format!("/{c}").into_bytes()).collect()
    };
    (names.split(',').map(normal).collect(), word)
}

fn number<T: FromStr>(text: &str, what: &str) -> std::result::Result<T, String> {
    text.trim().parse().map_err(|_| format!("{what} is a number, not {text:?}"))
}

fn level(text: &str, most: u32) -> std::result::Result<u32, String> {
    match number(text, "the level")? {
        n if n <= most => Ok(n),
        n => Err(format!("the level {n} is above {most}")),
    }
}

impl FromStr for FilterWord {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (objects, word) = objects(text);
        let (name, parameters) = word.split_once('=').unwrap_or((word, ""));
        let pair = || parameters.split_once(',').ok_or_else(|| format!("{name} has two parameters"));
        let filter = match (name, parameters) {
            ("NONE", "") => One::Nothing,
            ("SHUF", "") => One::Shuffle,
            ("FLET", "") => One::Fletcher32,
            ("NBIT", "") => One::Nbit,
            ("LZ4", "") => One::Lz4,
            ("LZF", "") => One::Lzf,
            ("BSHUF", "") => One::Bitshuffle,
            ("GZIP", p) => One::Gzip(level(p, 9)?),
            ("ZSTD", p) => One::Zstd(level(p, 22)?),
            ("SZIP", _) => match pair()? {
                (n, "NN") => One::Szip(pixels(n)?, true),
                (n, "EC") => One::Szip(pixels(n)?, false),
                (_, other) => return Err(format!("{other:?} is neither NN nor EC")),
            },
            ("SOFF", _) => match pair()? {
                (n, "IN" | "DS") => One::ScaleOffset(number(n, "the scale")?),
                (_, other) => return Err(format!("{other:?} is neither IN nor DS")),
            },
            ("UD", p) => user_defined(p)?,
            _ => {
                return Err(format!(
                    "{word:?} is none of GZIP=N, SHUF, FLET, SZIP=N,NN|EC, NBIT, SOFF=N,IN|DS, UD=…, ZSTD=N, LZ4, LZF, \
                     BSHUF, NONE"
                ));
            }
        };
        Ok(Self { objects, filter })
    }
}

fn pixels(text: &str) -> std::result::Result<u32, String> {
    let n = number(text, "pixels per block")?;
    let possible = (2..=32).contains(&n) && n % 2 == 0;
    if possible { Ok(n) } else { Err(format!("pixels per block are an even number from 2 to 32, not {n}")) }
}

/// Number, flag (0 mandatory, 1 optional), count of values, values.
fn user_defined(text: &str) -> std::result::Result<One, String> {
    let all = text
        .split(',')
        .map(|n| number::<u32>(n, "a parameter of UD"))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    match all.as_slice() {
        [id, flag @ (0 | 1), count, values @ ..] if *count as usize == values.len() => {
            let id = u16::try_from(*id).map_err(|_| format!("the filter {id} does not exist"))?;
            Ok(One::Other { id, optional: *flag == 1, values: values.to_vec() })
        }
        _ => Err("UD has a number, a flag of 0 or 1, a count, and that many values".to_owned()),
    }
}

impl One {
    fn behind(&self, filters: Filters) -> Filters {
        match self {
            Self::Nothing => Filters::new(),
            Self::Gzip(level) => filters.deflate(*level),
            Self::Shuffle => filters.shuffle(),
            Self::Fletcher32 => filters.fletcher32(),
            Self::Szip(pixels, nearest) => filters.szip(*pixels, *nearest),
            Self::Nbit => filters.nbit(),
            Self::ScaleOffset(scale) => filters.scale_offset(*scale),
            Self::Zstd(level) => filters.zstd(*level),
            Self::Lz4 => filters.lz4(),
            Self::Lzf => filters.lzf(),
            Self::Bitshuffle => filters.bitshuffle(2),
            Self::Other { id, optional, values } => filters.filter(*id, values, *optional),
        }
    }
}

/// What is to be changed for these datasets, or for all.
fn changes<'a>(options: &'a mut RepackOptions, objects: &'a [Vec<u8>], each: &mut dyn FnMut(&mut Change)) {
    if objects.is_empty() {
        each(&mut options.all);
    }
    for name in objects {
        each(options.objects.entry(name.clone()).or_default());
    }
}

impl FilterWord {
    /// The filter behind others; `None` when it is for named datasets.
    pub fn behind(&self, filters: Filters) -> Option<Filters> {
        self.objects.is_empty().then(|| self.filter.behind(filters))
    }

    /// Puts the filter behind those given before it.
    pub fn apply(&self, options: &mut RepackOptions) {
        changes(options, &self.objects, &mut |c| {
            c.filters = Some(self.filter.behind(c.filters.take().unwrap_or_default()));
        });
    }
}

/// A layout, and the datasets it is for.
#[derive(Debug, Clone)]
pub struct LayoutWord {
    objects: Vec<Vec<u8>>,
    layout: NewLayout,
}

impl FromStr for LayoutWord {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (objects, word) = objects(text);
        let layout = match word.split_once('=') {
            None if word == "CONTI" => NewLayout::Contiguous,
            None if word == "COMPA" => NewLayout::Compact,
            Some(("CHUNK", dims)) => {
                let dims = dims.split('x').map(|n| number::<u64>(n, "an extent of a chunk"));
                let dims = dims.collect::<std::result::Result<Vec<_>, _>>()?;
                if dims.contains(&0) {
                    return Err("an extent of a chunk is 0".to_owned());
                }
                NewLayout::Chunked(dims)
            }
            _ => return Err(format!("{word:?} is none of CHUNK=NxN…, CONTI, COMPA")),
        };
        Ok(Self { objects, layout })
    }
}

impl LayoutWord {
    /// Sets the layout.
    ///
    /// # Errors
    /// `InvalidArgument` when another layout was given for the same datasets.
    pub fn apply(&self, options: &mut RepackOptions) -> Result<()> {
        let mut twice = false;
        changes(options, &self.objects, &mut |c| twice |= c.layout.replace(self.layout.clone()).is_some());
        if twice { Err(Error::invalid("two layouts were given for the same datasets")) } else { Ok(()) }
    }
}

/// A bound by its name or h5repack's number.
pub fn bound(text: &str) -> std::result::Result<Bound, String> {
    if let Ok(n) = text.parse::<usize>() {
        return Bound::ALL.get(n).copied().ok_or_else(|| format!("bounds are 0 to 5, not {n}"));
    }
    let name = if text == "latest" { "v200" } else { text };
    name.parse().map_err(|e: Error| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_h5repack_are_understood() {
        let word = |text: &str| text.parse::<FilterWord>().map(|w| (w.objects.len(), w.filter));
        assert_eq!(word("GZIP=6"), Ok((0, One::Gzip(6))));
        assert_eq!(word("/a/b,c:SHUF"), Ok((2, One::Shuffle)));
        assert_eq!(word("x:SZIP=16,EC"), Ok((1, One::Szip(16, false))));
        assert_eq!(word("SOFF=-2,DS"), Ok((0, One::ScaleOffset(-2))));
        let zstd = One::Other { id: 32015, optional: true, values: vec![3] };
        assert_eq!(word("UD=32015,1,1,3"), Ok((0, zstd)));
        for wrong in
            ["GZIP", "GZIP=10", "SZIP=16", "SZIP=16,XX", "UD=1,0,2,3", "UD=1,7,0", "gzip=1", "SHUF=1", ""]
        {
            assert!(word(wrong).is_err(), "{wrong}");
        }
        let layout = |text: &str| text.parse::<LayoutWord>().map(|w| w.layout);
        assert_eq!(layout("CHUNK=2x3"), Ok(NewLayout::Chunked(vec![2, 3])));
        assert_eq!(layout("a:CONTI"), Ok(NewLayout::Contiguous));
        for wrong in ["CHUNK", "CHUNK=", "CHUNK=2x0", "CONTI=1"] {
            assert!(layout(wrong).is_err(), "{wrong}");
        }
        assert_eq!((bound("2"), bound("latest")), (Ok(Bound::V110), Ok(Bound::V200)));
        assert!(bound("6").is_err() && bound("v19").is_err());
    }
}
