//! A file that is stored as several: family, split and multi files as one run of addresses.
//!
//! A family is cut into members of equal size. A split or multi file keeps each kind of data in a member of its own,
//! which begins at an address far from the others; driver information names the members (specification II.B):
//!
//! | bytes | driver `NCSAfami` | bytes | driver `NCSAmult` |
//! |---|---|---|---|
//! | 8 | size of a member | 6, 2 | for each of six kinds of data the kind whose member holds it; reserved |
//! | | | 8, 8 | for each member: first address, end of what is allocated |
//! | | | … | for each member: its name, `%s` for the common part, filled up to 8 bytes |

use super::FileSpace;
use super::extension::Extension;
use crate::format::message::file::DriverInfo;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{ByteSource, FileSource, Fingerprint};
use tensilo_core::wire::FieldReader;
use tensilo_core::{Budget, Error, ErrorKind, Result};

/// Most members of a family.
const MOST: usize = 1 << 16;
/// Kinds of data: superblock, B-trees, raw data, global heaps, local heaps, object headers.
const KINDS: usize = 6;
/// The letters by which libhdf5 names the members of a multi file where nothing else was asked for.
const LETTERS: [char; KINDS] = ['s', 'b', 'r', 'g', 'l', 'o'];

/// Called with a member and a position in it, or none, for a part of a buffer.
type Part<'p> = dyn FnMut(Option<(&dyn ByteSource, u64)>, Range<usize>) -> Result<()> + 'p;

/// The members of one file.
#[derive(Debug)]
pub struct Members {
    path: PathBuf,
    /// First address and file of each, by address.
    members: Vec<(u64, Arc<dyn ByteSource>)>,
}

impl Members {
    /// Opens a family by a pattern such as `part%05d.h5`: members 0, 1, 2, … as far as they exist.
    ///
    /// # Errors
    /// `NotFound` when there is no member 0; `InvalidArgument` when the name is no pattern.
    pub fn family(pattern: impl AsRef<Path>) -> Result<Self> {
        let path = pattern.as_ref();
        let name = Pattern::of(path)
            .ok_or_else(|| Error::invalid("a pattern such as part%05d.h5 is wanted").in_file(path))?;
        let mut members: Vec<(u64, Arc<dyn ByteSource>)> = Vec::new();
        let mut size = 0;
        for i in 0..MOST {
            let source = match FileSource::open(path.with_file_name(name.member(i))) {
                Ok(source) => source,
                Err(e) if e.kind() == ErrorKind::NotFound && i > 0 => break,
                Err(e) => return Err(e),
            };
            if i == 0 {
                size = source.len();
            }
            let start = (i as u64).checked_mul(size).ok_or_else(|| Error::corrupt("members past 64 bits"))?;
            members.push((start, Arc::new(source)));
        }
        let new = Self { path: path.to_path_buf(), members };
        new.check_family(size)?;
        Ok(new)
    }

    /// The size of a member that the file states must be that of all but the last.
    fn check_family(&self, size: u64) -> Result<()> {
        let first = &self.members[0].1;
        let stated = match driver_of(first.clone())? {
            Some(driver) if &driver.name == b"NCSAfami" => {
                FieldReader::new(&driver.data, 0, "family driver information").u64()?
            }
            _ => {
                return Err(
                    Error::corrupt("the first member does not say that it is one").in_file(&self.path)
                );
            }
        };
        let all_but_last = &self.members[..self.members.len() - 1];
        if let Some((_, odd)) = all_but_last.iter().find(|(_, m)| m.len() != stated) {
            let e = Error::corrupt(format!("a member of {} bytes in a family of {stated}", odd.len()));
            return Err(e.in_file(odd.path().unwrap_or(&self.path)));
        }
        if all_but_last.is_empty() && size > stated {
            return Err(Error::corrupt(format!("a member of {size} bytes in a family of {stated}")));
        }
        Ok(())
    }

    /// Opens a split or multi file by the member that holds the superblock, `path`. The other members lie beside it, under
    /// the names that the file gives them, or those that libhdf5 gives them by default; `None` when it is no such file.
    ///
    /// # Errors
    /// `Corrupt` when driver information is damaged, or names members elsewhere; `NotFound` for a member.
    pub fn multi(path: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = path.as_ref();
        let first: Arc<dyn ByteSource> = Arc::new(FileSource::open(path)?);
        let places = match driver_of(first.clone()) {
            Ok(Some(driver)) if &driver.name == b"NCSAmult" => parse_multi(&driver.data)?,
            Ok(_) => return Ok(None),
            // What says so is itself in another member.
            Err(e) if e.kind() == ErrorKind::Corrupt => match default_places(path) {
                Some(places) => places,
                None => return Ok(None),
            },
            Err(e) => return Err(e),
        };
        let Some(Place { name: own, .. }) = places.iter().find(|p| p.start == 0) else {
            return Err(Error::corrupt("no member of the file begins at address 0").in_file(path));
        };
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (before, behind) = own.split_once("%s").unwrap_or(("", ""));
        let Some(common) = file_name.strip_prefix(before).and_then(|n| n.strip_suffix(behind)) else {
            return Err(Error::unsupported(format!("the file was named {own:?} when it was written"))
                .in_file(path)
                .hint("give the members the names that they had"));
        };
        let mut members: Vec<(u64, Arc<dyn ByteSource>)> = Vec::new();
        for Place { start, name, .. } in &places {
            if *start == 0 {
                members.push((0, first.clone()));
                continue;
            }
            if name.contains(['/', '\\', '\0']) {
                return Err(Error::limit(format!("a member {name:?} in another folder")).in_file(path));
            }
            let member = FileSource::open(path.with_file_name(name.replacen("%s", common, 1)))?;
            members.push((*start, Arc::new(member)));
        }
        members.sort_by_key(|(start, _)| *start);
        for pair in members.windows(2) {
            if pair[0].0.checked_add(pair[0].1.len()).is_none_or(|end| end > pair[1].0) {
                return Err(Error::corrupt("the members of the file overlap").in_file(path));
            }
        }
        let new = Self { path: path.to_path_buf(), members };
        new.check_ends(&places)?;
        Ok(Some(new))
    }

    /// No member may be shorter than the file says.
    fn check_ends(&self, places: &[Place]) -> Result<()> {
        let mut stated = Vec::new();
        if places.iter().all(|p| p.len == 0) {
            let all = Self { path: self.path.clone(), members: self.members.clone() };
            if let Some(driver) = driver_of(Arc::new(all))?.filter(|d| &d.name == b"NCSAmult") {
                stated = parse_multi(&driver.data)?;
            }
        }
        for place in places.iter().chain(&stated) {
            let member = self.members.iter().find(|(start, _)| *start == place.start);
            let len = member.map_or(0, |(_, m)| m.len());
            if len < place.len {
                let e =
                    Error::corrupt(format!("truncated: {} bytes are expected, {len} are there", place.len));
                return Err(e.in_file(member.and_then(|(_, m)| m.path()).unwrap_or(&self.path)));
            }
        }
        Ok(())
    }

    /// Number of members.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Calls `part` for each part of a range that lies in one member; what lies in none reads as zeros.
    fn parts(&self, offset: u64, len: usize, part: &mut Part<'_>) -> Result<()> {
        let mut done = 0;
        while done < len {
            let at = offset.saturating_add(done as u64);
            let i = self.members.partition_point(|(start, _)| *start <= at);
            let found = i.checked_sub(1).and_then(|i| self.members.get(i));
            let inside = found.map(|(start, m)| (m, at - start)).filter(|(m, inside)| *inside < m.len());
            let room = |end: u64, at: u64| usize::try_from(end - at).unwrap_or(usize::MAX).min(len - done);
            let n = match (inside, self.members.get(i)) {
                (Some((member, inside)), _) => {
                    let n = room(member.len(), inside);
                    part(Some((&**member, inside)), done..done + n)?;
                    n
                }
                (None, Some((next, _))) => {
                    let n = room(*next, at);
                    part(None, done..done + n)?;
                    n
                }
                (None, None) => {
                    return Err(Error::corrupt("a read past the end of the file").at(at).in_file(&self.path));
                }
            };
            done += n;
        }
        Ok(())
    }
}

impl ByteSource for Members {
    fn len(&self) -> u64 {
        self.members.last().map_or(0, |(start, m)| start.saturating_add(m.len()))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.parts(offset, buf.len(), &mut |member, range| match member {
            Some((member, at)) => member.read_at(at, &mut buf[range]),
            None => {
                buf[range].fill(0);
                Ok(())
            }
        })
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        // That of the first member, which holds the superblock, with what the others add to it.
        let mut all = self.members[0].1.fingerprint()?;
        for (_, member) in &self.members[1..] {
            let f = member.fingerprint()?;
            all.bytes = all.bytes.saturating_add(f.bytes);
            all.mtime_ns = all.mtime_ns.max(f.mtime_ns);
        }
        Ok(all)
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// A file name with one `%d`, which may have a width: `%05d`.
struct Pattern {
    before: String,
    width: usize,
    zeros: bool,
    behind: String,
}

impl Pattern {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (before, rest) = name.split_once('%')?;
        let (width, behind) = rest.split_once('d').filter(|(w, _)| w.chars().all(|c| c.is_ascii_digit()))?;
        let number = if width.is_empty() { 0 } else { width.parse().ok().filter(|w| *w <= 20)? };
        let zeros = width.starts_with('0');
        Some(Self { before: before.to_owned(), width: number, zeros, behind: behind.to_owned() })
    }

    fn member(&self, i: usize) -> String {
        let width = self.width;
        let number = if self.zeros { format!("{i:0width$}") } else { format!("{i:width$}") };
        format!("{}{number}{}", self.before, self.behind)
    }
}

/// Is this the name of a family, and not of a file that exists?
pub fn is_family(path: &Path) -> bool {
    Pattern::of(path).is_some() && !path.exists()
}

/// What a file says about the driver that wrote it.
fn driver_of(source: Arc<dyn ByteSource>) -> Result<Option<DriverInfo>> {
    let mut superblock = super::find_superblock(&*source)?;
    superblock.end_of_file = superblock.end_of_file.max(source.len());
    let space = FileSpace::with(source, Budget::default(), superblock);
    Ok(Extension::load(&space)?.driver)
}

/// A member of a split or multi file.
struct Place {
    /// Its first address.
    start: u64,
    /// Bytes that are allocated in it, 0 where that is not known.
    len: u64,
    /// Its name, `%s` for the common part.
    name: String,
}

fn parse_multi(data: &[u8]) -> Result<Vec<Place>> {
    let mut r = FieldReader::new(data, 0, "multi driver information");
    let map: [u8; KINDS] = r.array()?;
    r.skip(2)?;
    // A kind of 0 keeps its own member.
    let mut members: Vec<u8> = (1..).zip(map).map(|(own, kind)| if kind == 0 { own } else { kind }).collect();
    if members.iter().any(|m| usize::from(*m) > KINDS) {
        return Err(r.corrupt(format_args!("kinds of data {map:?}")));
    }
    members.sort_unstable();
    members.dedup();
    let mut starts = Vec::new();
    for _ in &members {
        starts.push((r.u64()?, r.u64()?));
    }
    let mut places = Vec::new();
    for (start, len) in starts {
        let mut name = Vec::new();
        loop {
            let piece: [u8; 8] = r.array()?;
            name.extend(piece.split(|b| *b == 0).next().unwrap_or(&[]));
            if piece.contains(&0) {
                break;
            }
        }
        let name = String::from_utf8(name).map_err(|_| r.corrupt("a member's name is no UTF-8"))?;
        places.push(Place { start, len, name });
    }
    Ok(places)
}

/// The members of a multi file whose names and addresses nobody chose, where they exist.
fn default_places(path: &Path) -> Option<Vec<Place>> {
    let common = path.file_name()?.to_str()?.strip_suffix("-s.h5")?;
    let place = |(kind, letter): (u64, &char)| Place {
        start: (u64::MAX - 1) / KINDS as u64 * kind,
        len: 0,
        name: format!("%s-{letter}.h5"),
    };
    let places: Vec<Place> = (0..).zip(&LETTERS).map(place).collect();
    let exist = |p: &Place| path.with_file_name(p.name.replacen("%s", common, 1)).is_file();
    places.iter().all(exist).then_some(places)
}
