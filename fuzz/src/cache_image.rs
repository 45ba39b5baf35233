//! A metadata cache image: the bytes are the block of a small file whose extension names it.

use std::sync::Arc;
use tensilo_core::io::MemorySource;
use tensilo_core::wire::lookup3;
use tensilo_core::{Budget, Limits};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::space::{CacheImageState, FileSpace};

const EXTENSION: u64 = 48;
const BLOCK: u64 = EXTENSION + 40;

fn seal(bytes: &mut Vec<u8>) {
    let sum = lookup3(bytes);
    bytes.extend(sum.to_le_bytes());
}

/// Superblock and extension of a file that ends with a block of `len` bytes.
fn head(len: u64) -> Vec<u8> {
    let mut bytes = b"\x89HDF\r\n\x1a\n\x03\x08\x08\x00".to_vec();
    for address in [0, EXTENSION, BLOCK + len, BLOCK] {
        bytes.extend(address.to_le_bytes());
    }
    seal(&mut bytes);
    let mut header = b"OHDR\x02\x00".to_vec();
    let mut message = vec![24, 17, 0, 0, 0];
    message.extend(BLOCK.to_le_bytes());
    message.extend(len.to_le_bytes());
    header.push(message.len() as u8);
    header.extend(message);
    seal(&mut header);
    bytes.extend(header);
    bytes.resize(BLOCK as usize, 0);
    bytes
}

/// Opens the file and reads through the image.
pub fn cache_image(data: &[u8]) {
    let len = data.len() as u64 + 4;
    let mut bytes = head(len);
    bytes.extend(data);
    bytes.extend(lookup3(data).to_le_bytes());
    let budget = Budget::new(Limits::default().with_bytes(crate::MOST_BYTES / 4));
    let Ok(space) = FileSpace::open(Arc::new(MemorySource::new(bytes)), budget) else { return };
    if let CacheImageState::Loadable(image) = space.cache_image_state() {
        assert!(image.entries() <= data.len());
        for at in [0, 1, BLOCK - 3, BLOCK, BLOCK + len / 2] {
            if let Ok(found) = space.read(Address(at), 16, "a test") {
                assert_eq!(found.len(), 16);
            }
        }
    }
}
