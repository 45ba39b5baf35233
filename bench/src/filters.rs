//! Every filter, both ways, over one chunk; peers decode and encode the same bytes.

use crate::data;
use crate::measure::Contestant;
use crate::report::Report;
use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch, id};

/// Encodes and decodes a 512 × 512 frame of counts and a MiB of floats.
pub fn run() -> Result<Report, String> {
    let mut report = Report::default();
    for (what, size, raw) in
        [("u16", 2, data::detector_counts(512, 512)), ("f32", 4, data::float_field(1 << 18))]
    {
        for (name, specs) in pipelines(size) {
            one(&mut report, &format!("{what} {name}"), size, &raw, &specs);
        }
    }
    Ok(report)
}

/// The pipelines that are compared; those whose filters are not built in are left out.
fn pipelines(size: u32) -> Vec<(&'static str, Vec<FilterSpec>)> {
    let spec = |id, values: &[u32]| FilterSpec::new(id, values.to_vec());
    let all = vec![
        ("shuffle", vec![spec(id::SHUFFLE, &[size])]),
        ("fletcher32", vec![spec(id::FLETCHER32, &[])]),
        ("deflate 4", vec![spec(id::DEFLATE, &[4])]),
        ("shuffle + deflate 4", vec![spec(id::SHUFFLE, &[size]), spec(id::DEFLATE, &[4])]),
        ("lzf", vec![spec(id::LZF, &[4, 0, 0])]),
        ("lz4", vec![spec(id::LZ4, &[1 << 18])]),
        ("bitshuffle", vec![spec(id::BITSHUFFLE, &[0, 4, size, 0, 0])]),
        ("bitshuffle + lz4", vec![spec(id::BITSHUFFLE, &[0, 4, size, 0, 2])]),
        ("bitshuffle + zstd 3", vec![spec(id::BITSHUFFLE, &[0, 4, size, 0, 3, 3])]),
        ("zstd 3", vec![spec(id::ZSTD, &[3])]),
    ];
    let registry = Registry::default();
    all.into_iter().filter(|(_, specs)| specs.iter().all(|s| registry.get(s.id).is_some())).collect()
}

fn one(report: &mut Report, name: &str, size: u32, raw: &[u8], specs: &[FilterSpec]) {
    let pipeline = Pipeline::new(specs, &Registry::default()).expect("a short pipeline");
    let elements = raw.len() as u64 / u64::from(size);
    let info = ChunkInfo { element_size: size as usize, chunk_dims: vec![elements] };
    let mut scratch = Scratch::default();
    let Ok((stored, mask)) = pipeline.encode(&mut scratch, raw, &info) else { return };
    let ratio = raw.len() as f64 / stored.len() as f64;
    let mut out = vec![0; raw.len()];
    let (mut encoder, mut decoder) = (Scratch::default(), Scratch::default());

    let mut encode = vec![Contestant::new("tensilo", || {
        pipeline.encode(&mut encoder, raw, &info).expect("it was encoded before");
    })];
    encode.extend(peers::encoders(specs, raw));
    report.compare(format!("{name} encode ({ratio:.2}:1)"), raw.len() as u64, encode);

    let mut decode = vec![Contestant::new("tensilo", || {
        pipeline.decode(&mut decoder, &stored, mask, &mut out).expect("we encoded it");
    })];
    decode.extend(peers::decoders(specs, &stored, raw.len()));
    report.compare(format!("{name} decode"), raw.len() as u64, decode);
}

/// C libraries for the pipelines of one filter that have one.
#[cfg(feature = "peers")]
mod peers {
    use super::*;
    use libdeflater::{CompressionLvl, Compressor, Decompressor};

    pub fn encoders<'a>(specs: &[FilterSpec], raw: &'a [u8]) -> Vec<Contestant<'a>> {
        match specs {
            [one] if one.id == id::DEFLATE => {
                let mut c = Compressor::new(CompressionLvl::new(4).expect("a level"));
                let mut out = vec![0; c.zlib_compress_bound(raw.len())];
                vec![Contestant::new("libdeflate", move || {
                    c.zlib_compress(raw, &mut out).expect("it fits its bound");
                })]
            }
            [one] if one.id == id::LZ4 => vec![Contestant::new("liblz4", move || {
                for block in raw.chunks(1 << 18) {
                    lz4::block::compress(block, None, false).expect("it fits its bound");
                }
            })],
            _ => Vec::new(),
        }
    }

    pub fn decoders<'a>(specs: &[FilterSpec], stored: &'a [u8], raw: usize) -> Vec<Contestant<'a>> {
        match specs {
            [one] if one.id == id::DEFLATE => {
                let (mut d, mut out) = (Decompressor::new(), vec![0; raw]);
                vec![Contestant::new("libdeflate", move || {
                    d.zlib_decompress(stored, &mut out).expect("a zlib stream");
                })]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(not(feature = "peers"))]
mod peers {
    use super::*;

    pub fn encoders<'a>(_specs: &[FilterSpec], _raw: &'a [u8]) -> Vec<Contestant<'a>> {
        Vec::new()
    }

    pub fn decoders<'a>(_specs: &[FilterSpec], _stored: &'a [u8], _raw: usize) -> Vec<Contestant<'a>> {
        Vec::new()
    }
}
