//! Filter 32013, ZFP: one ZFP stream per chunk, its header in the client values.
//!
//! Client values: 0 versions, then the ZFP header (magic, element type and dimensions, mode) as little-endian words.
//! Streams of little-endian machines are read and written, as all current writers make them.

use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use bytemuck::Pod;
use tensilo_core::{Error, Result};
use zfp_rs::{ZfpBitStream, ZfpConfig, ZfpField, ZfpFieldMut, ZfpHeaderMask, ZfpScalar, ZfpScalarType};

/// The ZFP filter.
#[derive(Debug)]
pub struct Zfp;

/// The header in the client values.
struct Setup {
    config: ZfpConfig,
    scalar: ZfpScalarType,
    dims: [usize; 4],
    bytes: usize,
}

impl Setup {
    fn new(values: &[u32]) -> Result<Self> {
        let header: Vec<u8> = values.iter().skip(1).flat_map(|v| v.to_le_bytes()).collect();
        let mut stream = ZfpBitStream::from_bytes(&header).map_err(|e| Error::limit(format!("ZFP: {e}")))?;
        let header = stream
            .read_header(ZfpHeaderMask::FULL)
            .map_err(|e| Error::corrupt(format!("ZFP's client values hold no header: {e}")).with_source(e))?;
        let (Some(config), Some(field)) = (header.config, header.metadata) else {
            return Err(Error::corrupt("ZFP's client values hold no whole header"));
        };
        let bytes = field
            .dims
            .iter()
            .take_while(|n| **n > 0)
            .try_fold(field.scalar_type.size(), |n, d| n.checked_mul(*d))
            .ok_or_else(|| Error::corrupt("ZFP states a size beyond memory"))?;
        Ok(Self { config, scalar: field.scalar_type, dims: field.dims, bytes })
    }
}

impl Filter for Zfp {
    fn id(&self) -> u16 {
        id::ZFP
    }

    fn name(&self) -> &str {
        "ZFP"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        // Reversible streams of noise and word-aligned rates can exceed the data; blocks are padded to 4 in each
        // dimension.
        raw.saturating_mul(2).saturating_add(65536)
    }

    fn decode(&self, values: &[u32], _codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let setup = Setup::new(values)?;
        let room = dst.len();
        let Some(dst) = dst.get_mut(..setup.bytes) else {
            return Err(Error::corrupt(format!(
                "ZFP states {} bytes, at most {room} are possible",
                setup.bytes
            )));
        };
        match setup.scalar {
            ZfpScalarType::I32 => decode::<i32>(&setup, src, dst),
            ZfpScalarType::I64 => decode::<i64>(&setup, src, dst),
            ZfpScalarType::F32 => decode::<f32>(&setup, src, dst),
            ZfpScalarType::F64 => decode::<f64>(&setup, src, dst),
        }?;
        Ok(Decoded::Written(setup.bytes))
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        _codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let setup = Setup::new(values).map_err(|e| Error::invalid(e.message()))?;
        if src.len() != setup.bytes {
            return Err(Error::invalid(format!(
                "ZFP is set up for {} bytes, not {}",
                setup.bytes,
                src.len()
            )));
        }
        match setup.scalar {
            ZfpScalarType::I32 => encode::<i32>(&setup, src, dst),
            ZfpScalarType::I64 => encode::<i64>(&setup, src, dst),
            ZfpScalarType::F32 => encode::<f32>(&setup, src, dst),
            ZfpScalarType::F64 => encode::<f64>(&setup, src, dst),
        }?;
        Ok(Encoded::Written)
    }
}

fn decode<T: ZfpScalar + Pod>(setup: &Setup, src: &[u8], dst: &mut [u8]) -> Result<()> {
    let mut stream = ZfpBitStream::from_bytes(src).map_err(|e| Error::limit(format!("ZFP: {e}")))?;
    let mut run = |data: &mut [T]| -> Result<()> {
        let mut field = ZfpFieldMut::new(data, setup.dims)
            .map_err(|e| Error::corrupt(format!("ZFP's client values: {e}")).with_source(e))?;
        stream
            .decompress(&setup.config, &mut field)
            .map_err(|e| Error::corrupt(format!("damaged ZFP stream: {e}")).with_source(e))?;
        Ok(())
    };
    if let Ok(data) = bytemuck::try_cast_slice_mut(dst) {
        return run(data);
    }
    let mut data = vec![T::default(); dst.len() / size_of::<T>()];
    run(&mut data)?;
    dst.copy_from_slice(bytemuck::cast_slice(&data));
    Ok(())
}

fn encode<T: ZfpScalar + Pod>(setup: &Setup, src: &[u8], dst: &mut Vec<u8>) -> Result<()> {
    let mut data = vec![T::default(); src.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut data).copy_from_slice(src);
    let failed = |e: String| Error::invalid(format!("ZFP: {e}"));
    let field = ZfpField::new(&data, setup.dims).map_err(|e| failed(e.to_string()))?;
    let most = setup.config.maximum_size(setup.scalar, setup.dims);
    let most = most.ok_or_else(|| failed("the mode does not fit the data".into()))?;
    let mut stream = ZfpBitStream::new(most).map_err(|e| failed(e.to_string()))?;
    let n = stream.compress(&setup.config, &field).map_err(|e| failed(e.to_string()))?;
    dst.extend_from_slice(&stream.as_bytes()[..n]);
    Ok(())
}
