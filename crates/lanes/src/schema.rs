//! What a store is made of: lanes with names, types and sizes, and an application's own JSON.

use crate::lane_type::LaneType;
use serde_json::Value;
use tensilo_core::{Error, Result};

/// How a lane's elements are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneKind {
    /// One slab of `elems` elements for every step of the slow axis.
    Slab {
        /// Elements of one slab.
        elems: u64,
    },
    /// One run of `len` elements without steps.
    Flat {
        /// Elements of the lane.
        len: u64,
    },
}

/// One named, typed array of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSpec {
    /// Name, unique in the store.
    pub name: String,
    /// Element type.
    pub dtype: LaneType,
    /// Slabs or one flat run.
    pub kind: LaneKind,
    /// Slabs of this lane; `None` means the store's (format 1 knows nothing else).
    pub slabs: Option<u64>,
    /// Extents of one slab, slowest first; empty when a slab is just a run (format 2).
    pub shape: Vec<u64>,
    /// Chunk extents inside a slab: elements are stored chunk by chunk; empty for C order (format 2).
    pub chunk: Vec<u64>,
    /// Slabs to keep room for behind the last, so that appended slabs stay contiguous (format 2).
    pub reserve: u64,
}

impl LaneSpec {
    fn new(name: impl Into<String>, dtype: LaneType, kind: LaneKind) -> Self {
        Self { name: name.into(), dtype, kind, slabs: None, shape: Vec::new(), chunk: Vec::new(), reserve: 0 }
    }

    /// A lane with one slab of `elems` elements for every step.
    pub fn slab(name: impl Into<String>, dtype: LaneType, elems: u64) -> Self {
        Self::new(name, dtype, LaneKind::Slab { elems })
    }

    /// A lane that is one run of `len` elements.
    pub fn flat(name: impl Into<String>, dtype: LaneType, len: u64) -> Self {
        Self::new(name, dtype, LaneKind::Flat { len })
    }

    /// The same lane with a slab count of its own.
    #[must_use]
    pub fn with_slabs(mut self, slabs: u64) -> Self {
        self.slabs = Some(slabs);
        self
    }

    /// The same lane with slabs of this shape.
    #[must_use]
    pub fn with_shape(mut self, shape: &[u64]) -> Self {
        self.shape = shape.to_vec();
        self
    }

    /// The same lane with slabs stored in chunks of this shape.
    #[must_use]
    pub fn with_chunk(mut self, chunk: &[u64]) -> Self {
        self.chunk = chunk.to_vec();
        self
    }

    /// The same lane with room for more slabs.
    #[must_use]
    pub fn with_reserve(mut self, slabs: u64) -> Self {
        self.reserve = slabs;
        self
    }

    /// Elements of one slab; all of a flat lane.
    pub fn elems(&self) -> u64 {
        match self.kind {
            LaneKind::Slab { elems } => elems,
            LaneKind::Flat { len } => len,
        }
    }

    /// Elements that one slab takes in the file: whole chunks when it is chunked.
    ///
    /// # Errors
    /// `InvalidArgument` on overflow.
    pub fn stored_elems(&self) -> Result<u64> {
        if self.chunk.is_empty() {
            return Ok(self.elems());
        }
        self.shape
            .iter()
            .zip(&self.chunk)
            .try_fold(1_u64, |n, (s, c)| n.checked_mul(s.checked_next_multiple_of(*c)?))
            .ok_or_else(|| self.too_large())
    }

    /// Bytes of one slab in the file.
    ///
    /// # Errors
    /// `InvalidArgument` on overflow.
    pub fn slab_bytes(&self) -> Result<u64> {
        self.stored_elems()?.checked_mul(self.dtype.size()).ok_or_else(|| self.too_large())
    }

    fn too_large(&self) -> Error {
        Error::invalid("elements × size passes 2^64").in_object(&self.name)
    }

    /// Slabs in a store with `nslabs` steps; a flat lane is one slab.
    pub fn slab_count(&self, nslabs: u64) -> u64 {
        match self.kind {
            LaneKind::Flat { .. } => 1,
            LaneKind::Slab { .. } => self.slabs.unwrap_or(nslabs),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |m: String| Err(Error::invalid(m).in_object(&self.name));
        if self.name.is_empty() {
            return wrong("a lane needs a name".into());
        }
        if self.elems() == 0 {
            return wrong("a lane needs at least one element".into());
        }
        if matches!(self.kind, LaneKind::Flat { .. }) && (self.slabs.is_some() || self.reserve > 0) {
            return wrong("a flat lane has no slabs to count or to reserve".into());
        }
        if !self.shape.is_empty() {
            let n = self.shape.iter().try_fold(1_u64, |n, s| n.checked_mul(*s));
            if n != Some(self.elems()) {
                return wrong(format!("shape {:?} does not hold {} elements", self.shape, self.elems()));
            }
        }
        if !self.chunk.is_empty() && (self.chunk.len() != self.shape.len() || self.chunk.contains(&0)) {
            return wrong(format!("chunk {:?} does not fit shape {:?}", self.chunk, self.shape));
        }
        Ok(())
    }

    pub(crate) fn is_v1(&self) -> bool {
        self.dtype.in_v1()
            && self.slabs.is_none()
            && self.shape.is_empty()
            && self.chunk.is_empty()
            && self.reserve == 0
    }
}

/// On-disk format of a new store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FormatVersion {
    /// `PTS\x01`: byte for byte what petektools writes.
    V1,
    /// `PTS\x02`: checksums, more types, growth.
    #[default]
    V2,
}

/// The lanes of a store, its number of steps, and the application's JSON.
///
/// ```
/// use tensilo_lanes::{LaneSpec, LaneType, StoreSchema};
/// let schema = StoreSchema::new(4, vec![LaneSpec::slab("PORO", LaneType::F32, 100)])
///     .with_app(serde_json::json!({ "kind": "demo" }));
/// assert!(schema.validate().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSchema {
    /// Steps of the slow axis.
    pub nslabs: u64,
    /// The lanes, in file order.
    pub lanes: Vec<LaneSpec>,
    /// Anything the application wants to keep; `null` by default.
    pub app: Value,
}

impl StoreSchema {
    /// A schema without application data.
    pub fn new(nslabs: u64, lanes: Vec<LaneSpec>) -> Self {
        Self { nslabs, lanes, app: Value::Null }
    }

    /// The same schema with application data.
    #[must_use]
    pub fn with_app(mut self, app: Value) -> Self {
        self.app = app;
        self
    }

    /// Checks names, counts and sizes.
    ///
    /// # Errors
    /// `InvalidArgument` naming the lane and what is wrong with it.
    pub fn validate(&self) -> Result<()> {
        if self.nslabs == 0 {
            return Err(Error::invalid("a store needs at least one slab"));
        }
        if let Some(name) = twice(self.lanes.iter().map(|l| l.name.as_str())) {
            return Err(Error::invalid("two lanes have this name").in_object(name));
        }
        for lane in &self.lanes {
            lane.check()?;
            lane.slab_bytes()?
                .checked_mul(lane.slab_count(self.nslabs).saturating_add(lane.reserve))
                .ok_or_else(|| lane.too_large())?;
        }
        Ok(())
    }
}

/// A name that occurs more than once.
pub(crate) fn twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}
