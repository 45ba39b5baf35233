//! Global heap collections (specification III.E), encoded: the objects behind variable-length elements, region
//! references and virtual datasets.

use tensilo_core::wire::FieldWriter;

/// Least size of a collection.
pub const LEAST_SIZE: u64 = 4096;
/// Bytes in front of the first object.
pub const HEADER_SIZE: u64 = 16;
/// Bytes in front of each object's data.
pub const OBJECT_HEADER_SIZE: u64 = 16;

/// Bytes that an object of `len` bytes takes in a collection.
pub fn object_size(len: u64) -> u64 {
    OBJECT_HEADER_SIZE + len.next_multiple_of(8)
}

/// A collection being filled; its size is fixed when it is begun, so that its address is known.
#[derive(Debug, Clone)]
pub struct Collection {
    size: u64,
    objects: u16,
    bytes: FieldWriter,
}

impl Collection {
    /// Begins a collection of `size` bytes, a multiple of eight.
    pub fn new(size: u64) -> Self {
        let mut bytes = FieldWriter::new();
        bytes.bytes(b"GCOL").u8(1).zeros(3).u64(size);
        Self { size, objects: 0, bytes }
    }

    /// Adds an object and returns its index, or `None` when it does not fit.
    pub fn add(&mut self, data: &[u8]) -> Option<u16> {
        let room = self.size - self.bytes.len() as u64;
        if self.objects == u16::MAX || object_size(data.len() as u64) > room {
            return None;
        }
        self.objects += 1;
        // A reference count of 0, as libhdf5 writes it.
        self.bytes.u16(self.objects).u16(0).u32(0).u64(data.len() as u64).bytes(data).align(8);
        Some(self.objects)
    }

    /// The bytes; what is left is the free object with index 0, where it has room for its header.
    pub fn encode(mut self) -> Vec<u8> {
        let room = self.size - self.bytes.len() as u64;
        if room >= OBJECT_HEADER_SIZE {
            self.bytes.u16(0).u16(0).u32(0).u64(room);
        }
        let rest = self.size - self.bytes.len() as u64;
        self.bytes.zeros(rest as usize);
        self.bytes.finish()
    }
}
