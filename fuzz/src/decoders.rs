//! Decoders, one target each: any stored bytes, with any client values, into a chunk of any size.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | element size, 1 to 32 after `% 32 + 1` |
//! | 2 | elements in the chunk |
//! | 1 + 4 n | number n of client values (`% 24`), client values |
//! | rest | the stored chunk |

use tensilo_core::Result;
use tensilo_core::wire::FieldReader;
use tensilo_filters::{FilterSpec, Pipeline, Registry, Scratch, id};

/// Decodes twice with the same scratch, and expects the same.
fn decode(id: u16, data: &[u8]) {
    let Ok((len, values, stored)) = parse(data) else { return };
    let Ok(pipeline) = Pipeline::new(&[FilterSpec::new(id, values)], &Registry::default()) else { return };
    let mut scratch = Scratch::default();
    let (mut once, mut twice) = (vec![0x5A; len], vec![0xA5; len]);
    let first = pipeline.decode(&mut scratch, stored, 0, &mut once);
    let second = pipeline.decode(&mut scratch, stored, 0, &mut twice);
    assert_eq!(first.is_ok(), second.is_ok(), "filter {id} is inconsistent");
    assert!(first.is_err() || once == twice, "filter {id} leaves bytes unwritten");
}

fn parse(data: &[u8]) -> Result<(usize, Vec<u32>, &[u8])> {
    let mut r = FieldReader::new(data, 0, "case");
    let element_size = usize::from(r.u8()? % 32) + 1;
    let len = element_size * usize::from(r.u16()?);
    let values = (0..r.u8()? % 24).map(|_| r.u32()).collect::<Result<Vec<_>>>()?;
    Ok((len, values, r.rest()))
}

macro_rules! decoders {
    ($($name:ident: $id:ident;)*) => { $(
        #[doc = concat!("The decoder `", stringify!($id), "`.")]
        pub fn $name(data: &[u8]) {
            decode(id::$id, data);
        }
    )* };
}

decoders! {
    deflate: DEFLATE;
    fletcher32: FLETCHER32;
    szip: SZIP;
    nbit: NBIT;
    scaleoffset: SCALE_OFFSET;
    bzip2: BZIP2;
    lzf: LZF;
    blosc: BLOSC;
    lz4: LZ4;
    bitshuffle: BITSHUFFLE;
    zfp: ZFP;
    zstandard: ZSTD;
    vbz: VBZ;
    blosc2: BLOSC2;
}
