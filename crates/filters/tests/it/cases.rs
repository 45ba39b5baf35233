//! Reads the case files that `oracle.py` writes and makes the replies it checks.

use tensilo_filters::{ChunkInfo, FilterSpec};

/// One chunk as h5py stored it.
pub struct Case {
    pub label: String,
    pub specs: Vec<FilterSpec>,
    pub mask: u32,
    pub info: ChunkInfo,
    /// Elements of the chunk that are inside the dataset, along each dimension.
    pub inside: Vec<u64>,
    /// Their bytes.
    pub raw: Vec<u8>,
    pub stored: Vec<u8>,
}

/// Reads a case file; its layout is stated in `oracle.py`.
pub fn read(bytes: &[u8]) -> Vec<Case> {
    let mut r = Reader(bytes);
    (0..r.u32()).map(|_| case(&mut r)).collect()
}

fn case(r: &mut Reader) -> Case {
    let label = String::from_utf8(r.sized()).expect("labels are text");
    let specs = (0..r.u16())
        .map(|_| {
            let (id, flags, values) = (r.u16(), r.u16(), r.u16());
            FilterSpec { id, name: None, flags, values: (0..values).map(|_| r.u32()).collect() }
        })
        .collect();
    let mask = r.u32();
    let element_size = r.u32() as usize;
    let rank = r.take(1)[0];
    let mut dims = || (0..rank).map(|_| u64::from(r.u32())).collect();
    let (chunk_dims, inside) = (dims(), dims());
    let info = ChunkInfo { element_size, chunk_dims };
    Case { label, specs, mask, info, inside, raw: r.sized(), stored: r.sized() }
}

impl Case {
    /// Bytes of the whole chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.info.chunk_dims.iter().product::<u64>() as usize * self.info.element_size
    }

    /// Cuts the part inside the dataset out of a whole chunk.
    pub fn cut(&self, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.raw.len());
        let size = self.info.element_size;
        for (i, element) in chunk.chunks_exact(size).enumerate() {
            let mut rest = i as u64;
            let inside = self.info.chunk_dims.iter().zip(&self.inside).rev().all(|(n, m)| {
                let place = rest % n;
                rest /= n;
                place < *m
            });
            if inside {
                out.extend_from_slice(element);
            }
        }
        out
    }
}

/// A reply file: case number, mask and stored bytes of each chunk that we encoded.
pub fn replies(chunks: &[(usize, u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = (chunks.len() as u32).to_le_bytes().to_vec();
    for (case, mask, stored) in chunks {
        for n in [*case as u32, *mask, stored.len() as u32] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(stored);
    }
    out
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take(2).try_into().expect("2 bytes"))
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("4 bytes"))
    }

    fn sized(&mut self) -> Vec<u8> {
        let n = self.u32() as usize;
        self.take(n).to_vec()
    }
}
