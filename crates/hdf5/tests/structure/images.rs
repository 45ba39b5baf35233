//! Damaged metadata cache images are refused, and the reason is said; the file beneath stays as it is.

use super::generated;
use std::sync::Arc;
use tensilo_core::io::MemorySource;
use tensilo_core::wire::lookup3;
use tensilo_core::{Budget, ErrorKind};
use tensilo_hdf5::space::{CacheImageState, FileSpace, SpaceOptions};
use tensilo_testkit::oracle;

/// Where the block begins and ends: it is the last thing of its kind in the file.
fn block(bytes: &[u8]) -> std::ops::Range<usize> {
    let start = bytes.windows(4).position(|w| w == b"MDCI").expect("an image");
    let len = u64::from_le_bytes(bytes[start + 6..start + 14].try_into().expect("eight bytes"));
    start..start + len as usize
}

type Damage = Box<dyn Fn(&mut [u8])>;

/// Where the fields of the first entry are in the block: its address, then its length.
const ADDRESS: usize = 18 + 14;
const LENGTH: usize = ADDRESS + 8;

#[test]
fn damaged_images_are_refused_with_the_reason() {
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    let whole = std::fs::read(folder.join("plain_image.h5")).expect("a generated file");
    let place = block(&whole);
    let end = whole.len() as u64;
    let put = |at: usize, value: u64| move |b: &mut [u8]| b[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let second = {
        // Address of the second entry, behind the first one's parents and bytes.
        let b = &whole[place.clone()];
        let parents = usize::from(u16::from_le_bytes([b[18 + 8], b[18 + 9]]));
        let len = u64::from_le_bytes(b[LENGTH..LENGTH + 8].try_into().expect("eight bytes")) as usize;
        let at = LENGTH + 8 + 8 * parents + len + 14;
        u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"))
    };
    let cases: [(&str, Damage, bool, &str); 9] = [
        ("checksum", Box::new(|b| b[40] ^= 1), false, "checksum does not match"),
        ("signature", Box::new(|b| b[0] = b'X'), true, "metadata cache image"),
        ("version", Box::new(|b| b[4] = 1), true, "version 1 is not known"),
        ("its length", Box::new(put(6, 40)), true, "says it has 40 of"),
        ("too many entries", Box::new(|b| b[14..18].fill(0xff)), true, "metadata cache image"),
        ("an entry past the end", Box::new(put(ADDRESS, end - 1)), true, "reach past the end of the file"),
        ("an entry without an address", Box::new(put(ADDRESS, u64::MAX)), true, "without an address"),
        ("two entries in one place", Box::new(put(ADDRESS, second)), true, "an entry of 0 bytes, or twice"),
        ("an endless entry", Box::new(put(LENGTH, u64::MAX)), true, "metadata cache image"),
    ];
    for (name, damage, repair, reason) in &cases {
        let mut bytes = whole.clone();
        damage(&mut bytes[place.clone()]);
        if *repair {
            let sum = lookup3(&bytes[place.start..place.end - 4]).to_le_bytes();
            bytes[place.end - 4..place.end].copy_from_slice(&sum);
        }
        let source = Arc::new(MemorySource::new(bytes));
        let e = FileSpace::open(source.clone(), Budget::default()).expect_err(name);
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{name}: {e}");
        assert!(e.to_string().contains(reason), "{name}: {e}");
        // Asked to open all the same, it says what it refused.
        let salvage = SpaceOptions { salvage: true, ..SpaceOptions::default() };
        let space = FileSpace::open_with(source, Budget::default(), &salvage).expect(name);
        match space.cache_image_state() {
            CacheImageState::Refused(e) => assert!(e.to_string().contains(reason), "{name}: {e}"),
            other => panic!("{name}: {other:?}"),
        }
        assert!(space.cache_image().is_none());
    }
}
