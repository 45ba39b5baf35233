//! Filter pipelines: any stored bytes through any pipeline, and any raw bytes there and back.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | element size, 1 to 32 after `% 32 + 1` |
//! | 2 | elements in the chunk |
//! | 1 | filters, at most 4 after `% 5` |
//! | per filter 2 + 1 + 4 n | id, number n of client values (`% 24`), client values |
//! | 4 | filter mask |
//! | rest | the stored chunk; read a second time as raw data |

use tensilo_core::Result;
use tensilo_core::wire::FieldReader;
use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch};

/// Decodes the stored chunk, then encodes it as if it were raw and expects it back.
pub fn filters(data: &[u8]) {
    let Ok(case) = Case::parse(data) else { return };
    let Ok(pipeline) = Pipeline::new(&case.specs, &Registry::default()) else { return };
    let mut scratch = Scratch::default();
    let mut out = vec![0; case.element_size * case.elements];
    // Damaged input may be refused or, where nothing guards it, decode to something; it may not harm.
    let _ = pipeline.decode(&mut scratch, case.stored, case.mask, &mut out);

    let elements = case.stored.len() / case.element_size;
    let raw = &case.stored[..elements * case.element_size];
    let info = ChunkInfo { element_size: case.element_size, chunk_dims: vec![elements as u64] };
    if let Ok((encoded, mask)) = pipeline.encode(&mut scratch, raw, &info) {
        let mut back = vec![0; raw.len()];
        pipeline.decode(&mut scratch, &encoded, mask, &mut back).expect("what we encoded decodes");
        assert_eq!(back, raw, "{:?}", case.specs);
    }
}

struct Case<'a> {
    element_size: usize,
    elements: usize,
    specs: Vec<FilterSpec>,
    mask: u32,
    stored: &'a [u8],
}

impl<'a> Case<'a> {
    fn parse(data: &'a [u8]) -> Result<Self> {
        let mut r = FieldReader::new(data, 0, "case");
        let element_size = usize::from(r.u8()? % 32) + 1;
        let elements = usize::from(r.u16()?);
        let mut specs = Vec::new();
        for _ in 0..r.u8()? % 5 {
            let id = r.u16()?;
            let values = (0..r.u8()? % 24).map(|_| r.u32()).collect::<Result<Vec<_>>>()?;
            specs.push(FilterSpec::new(id, values));
        }
        Ok(Self { element_size, elements, specs, mask: r.u32()?, stored: r.rest() })
    }
}
