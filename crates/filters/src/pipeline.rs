//! The filters of one dataset, run over its chunks: forwards to encode, backwards to decode.
//!
//! Decoding never trusts a stored size. From the chunk's exact decoded size the bound of every intermediate
//! result follows (what filter `i` was given at most), and each filter writes into a buffer of that bound; the
//! last one writes straight into the destination.

use crate::filter::{Decoded, Encoded, Filter};
use crate::scratch::sized;
use crate::{ChunkInfo, FilterSpec, Registry, Scratch, provider_of};
use std::sync::Arc;
use tensilo_core::{Error, Result};

/// Most filters that HDF5 allows in one pipeline.
const MOST_FILTERS: usize = 32;

/// The filters of one dataset, in writing order; built once per dataset, cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    specs: Arc<[FilterSpec]>,
    filters: Arc<[Option<Arc<dyn Filter>>]>,
}

impl Pipeline {
    /// Looks up the filters. One that the registry lacks is kept: it only fails when a chunk needs it.
    ///
    /// # Errors
    /// `Corrupt` for more than 32 filters.
    pub fn new(specs: &[FilterSpec], registry: &Registry) -> Result<Self> {
        if specs.len() > MOST_FILTERS {
            return Err(Error::corrupt(format!("{} filters, HDF5 allows {MOST_FILTERS}", specs.len())));
        }
        Ok(Self { specs: specs.into(), filters: specs.iter().map(|s| registry.get(s.id).cloned()).collect() })
    }

    /// The filters as the file states them, in writing order.
    pub fn specs(&self) -> &[FilterSpec] {
        &self.specs
    }

    /// Whether there is no filter at all.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Decodes one stored chunk into `out`, whose length is the chunk's exact decoded size. Bit `i` of `mask`
    /// set means that filter `i` was skipped for this chunk.
    ///
    /// # Errors
    /// `Corrupt` when the bytes break a filter's format or decode to another size than `out`; `Unsupported`,
    /// naming id, name and provider, when a filter that is needed is missing.
    pub fn decode(&self, scratch: &mut Scratch, stored: &[u8], mask: u32, out: &mut [u8]) -> Result<()> {
        let used = |i: &usize| mask >> i & 1 == 0;
        let mut bounds = [0; MOST_FILTERS];
        let mut bound = out.len();
        for i in (0..self.specs.len()).filter(used) {
            let filter = self.filters[i].as_ref().ok_or_else(|| missing(&self.specs[i]))?;
            bounds[i] = bound;
            bound = filter.most_encoded(&self.specs[i].values, bound);
        }
        let first_used = (0..self.specs.len()).find(used);
        let Scratch { stages: [a, b], codecs } = scratch;
        let (mut spare, mut held) = (a, b);
        let mut at = Lies::Stored(stored.len());
        for i in (0..self.specs.len()).rev().filter(used) {
            let Some(filter) = &self.filters[i] else { return Err(missing(&self.specs[i])) };
            let src = match at {
                Lies::Stored(n) => &stored[..n],
                Lies::Held(n) => &held[..n],
                Lies::Out(_) => return Err(Error::corrupt("the filter mask is inconsistent")),
            };
            let last = first_used == Some(i);
            let dst = if last { &mut *out } else { sized(spare, bounds[i]) };
            let room = dst.len();
            let done = filter
                .decode(&self.specs[i].values, codecs, src, dst)
                .map_err(|e| e.context(format_args!("filter {} ({})", filter.id(), filter.name())))?;
            at = match (done, at) {
                (Decoded::Written(n), _) if n > room => {
                    return Err(Error::corrupt(format!("filter {} claims {n} of {room} bytes", filter.id())));
                }
                (Decoded::Written(n), _) if last => Lies::Out(n),
                (Decoded::Written(n), _) => {
                    std::mem::swap(&mut spare, &mut held);
                    Lies::Held(n)
                }
                (Decoded::Prefix(n), Lies::Held(m)) => Lies::Held(n.min(m)),
                (Decoded::Prefix(n), _) => Lies::Stored(n.min(stored.len())),
            };
        }
        let result = match at {
            Lies::Out(n) if n == out.len() => return Ok(()),
            Lies::Out(n) => return Err(wrong_size(n, out.len())),
            Lies::Held(n) => &held[..n],
            Lies::Stored(n) => &stored[..n],
        };
        if result.len() != out.len() {
            return Err(wrong_size(result.len(), out.len()));
        }
        out.copy_from_slice(result);
        Ok(())
    }

    /// Encodes one chunk and returns the stored bytes and the mask of skipped filters: an optional filter that
    /// declines, or a compressor that is optional and does not shrink, is skipped with its bit set.
    ///
    /// # Errors
    /// `Unsupported` when a mandatory filter is missing or cannot encode; `InvalidArgument` when its client
    /// values or the chunk make no sense.
    pub fn encode(&self, scratch: &mut Scratch, raw: &[u8], info: &ChunkInfo) -> Result<(Vec<u8>, u32)> {
        let mut stored = Vec::new();
        let mask = self.encode_into(scratch, raw, info, &mut stored)?;
        Ok((stored, mask))
    }

    /// As [`encode`](Self::encode), into a buffer whose memory is used again and whose content is replaced. Returns
    /// the mask.
    ///
    /// # Errors
    /// As [`encode`](Self::encode); the buffer then holds anything.
    pub fn encode_into(
        &self,
        scratch: &mut Scratch,
        raw: &[u8],
        info: &ChunkInfo,
        stored: &mut Vec<u8>,
    ) -> Result<u32> {
        let Scratch { stages: [a, b], codecs } = scratch;
        // What the last filter that was not skipped made lies in `held`, once there was one.
        let (mut held, mut spare, mut filtered) = (a, b, false);
        let mut mask = 0;
        codecs.planes = 1;
        for (i, spec) in self.specs.iter().enumerate() {
            let src = if filtered { held.as_slice() } else { raw };
            let last = i + 1 == self.specs.len();
            let dst = if last { &mut *stored } else { &mut *spare };
            dst.clear();
            let result = match &self.filters[i] {
                None => Err(missing(spec)),
                Some(f) => f
                    .encode(&spec.values, info, codecs, src, dst)
                    .map_err(|e| e.context(format_args!("filter {} ({})", f.id(), f.name()))),
            };
            let grew = self.filters[i].as_ref().is_some_and(|f| f.compresses(&spec.values))
                && dst.len() >= src.len();
            match result {
                Ok(Encoded::Written) if !(grew && spec.is_optional()) => {
                    if last {
                        return Ok(mask);
                    }
                    std::mem::swap(&mut held, &mut spare);
                    filtered = true;
                }
                Err(e) if !spec.is_optional() => return Err(e),
                Ok(Encoded::Declined) if !spec.is_optional() => {
                    return Err(Error::invalid(format!(
                        "filter {} cannot encode this chunk of {} bytes and is not optional",
                        spec.id,
                        raw.len()
                    )));
                }
                Ok(_) | Err(_) => mask |= 1 << i,
            }
            // Only the filter right behind a shuffle is given planes of bytes.
            codecs.planes = if filtered && spec.id == crate::id::SHUFFLE && mask >> i & 1 == 0 {
                spec.values.first().map_or(1, |size| *size as usize)
            } else {
                1
            };
        }
        stored.clear();
        stored.extend_from_slice(if filtered { held } else { raw });
        Ok(mask)
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.specs.iter()).finish()
    }
}

/// Where an intermediate result lies, and how long it is.
#[derive(Clone, Copy)]
enum Lies {
    Stored(usize),
    Held(usize),
    Out(usize),
}

fn wrong_size(found: usize, expected: usize) -> Error {
    Error::corrupt(format!("the chunk decodes to {found} bytes, its shape needs {expected}"))
}

fn missing(spec: &FilterSpec) -> Error {
    let known = provider_of(spec.id);
    let name = known.map(|(n, _)| n).or(spec.name.as_deref()).unwrap_or("of no registered name");
    let provider = known.map_or("the software that wrote the file", |(_, p)| p);
    Error::unsupported(format!(
        "filter {} ({name}) is needed and not built in; {provider} provides it",
        spec.id
    ))
    .hint("register an implementation of your own with Registry::register")
}
