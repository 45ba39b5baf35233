//! Encoding profiles: how the values of a pack are stored.

use std::fmt;
use tensilo_core::{Error, Result};

/// Schema of the manifest and the receipt's `formatSchema`.
pub const FORMAT_SCHEMA: &str = "quantem.gpu.lossless-pack-format/v1";
/// Schema of the receipt.
pub const RECEIPT_SCHEMA: &str = "quantem.gpu.lossless-pack-production/v1";

/// An encoding that this crate can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// `exact-uint8-bitpacked`: 32-scan tiles of the least width, 0 to 8 bits; the counts must fit uint8.
    #[default]
    ExactUint8BitPacked,
    /// `exact-uint16-lz4`: 128-scan tiles of 0 to 16 bits, in LZ4 blocks of 128 bytes; takes any uint16.
    ExactUint16Lz4,
}

impl Profile {
    /// The contract's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactUint8BitPacked => "exact-uint8-bitpacked",
            Self::ExactUint16Lz4 => "exact-uint16-lz4",
        }
    }

    /// Finds a profile by the contract's name.
    ///
    /// # Errors
    /// `InvalidArgument` naming the profiles there are.
    pub fn parse(name: &str) -> Result<Self> {
        [Self::ExactUint8BitPacked, Self::ExactUint16Lz4].into_iter().find(|p| p.name() == name).ok_or_else(
            || {
                Error::invalid(format!(
                    "no profile {name:?}; there are exact-uint8-bitpacked and exact-uint16-lz4"
                ))
            },
        )
    }

    /// Scans of one tile.
    pub fn tile(self) -> u32 {
        match self {
            Self::ExactUint8BitPacked => 32,
            Self::ExactUint16Lz4 => 128,
        }
    }

    /// Element type of the working values.
    pub fn working_dtype(self) -> &'static str {
        match self {
            Self::ExactUint8BitPacked => "uint8",
            Self::ExactUint16Lz4 => "uint16",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The three binary flavours that a reader meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Index revision 3, header encoding 1: uint8.
    BitPacked8,
    /// Index revision 3, header encoding 2: uint16, experimental.
    BitPacked16,
    /// Index revision 1: uint16 in LZ4 blocks.
    Lz4,
}

impl Flavour {
    /// Scans of one tile.
    pub fn tile(self) -> u32 {
        match self {
            Self::BitPacked8 | Self::BitPacked16 => 32,
            Self::Lz4 => 128,
        }
    }

    /// Most bits of a tile.
    pub fn most_bits(self) -> u32 {
        match self {
            Self::BitPacked8 => 8,
            Self::BitPacked16 | Self::Lz4 => 16,
        }
    }

    /// Element type of the working values.
    pub fn working_dtype(self) -> &'static str {
        match self {
            Self::BitPacked8 => "uint8",
            Self::BitPacked16 | Self::Lz4 => "uint16",
        }
    }

    /// The manifest's schema.
    pub fn manifest_schema(self) -> &'static str {
        match self {
            Self::BitPacked8 | Self::BitPacked16 => "quantem.gpu.packed-detector-h5/v3",
            Self::Lz4 => "quantem.gpu.packed-detector-h5/v1",
        }
    }
}

/// Who does the work. Only `cpu-reference` exists here; the others are refused before anything is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// This machine's processor cores.
    #[default]
    CpuReference,
    /// Apple GPUs.
    Metal,
    /// NVIDIA GPUs.
    Cuda,
    /// Any GPU with Vulkan.
    Vulkan,
    /// A browser's GPU.
    WebGpu,
}

impl Backend {
    const ALL: [Self; 5] = [Self::CpuReference, Self::Metal, Self::Cuda, Self::Vulkan, Self::WebGpu];

    /// The contract's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuReference => "cpu-reference",
            Self::Metal => "metal",
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
            Self::WebGpu => "webgpu",
        }
    }

    /// Finds a backend by the contract's name.
    ///
    /// # Errors
    /// `InvalidArgument` naming the backends there are.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|b| b.name() == name).ok_or_else(|| {
            Error::invalid(format!(
                "no backend {name:?}; the names are cpu-reference, metal, cuda, vulkan, webgpu"
            ))
        })
    }

    /// Refuses a backend that is not built in; nothing falls back to another.
    ///
    /// # Errors
    /// `Unsupported`, naming it.
    pub fn require(self) -> Result<()> {
        match self {
            Self::CpuReference => Ok(()),
            other => Err(Error::unsupported(format!("execution backend {} is not available", other.name()))
                .hint("use cpu-reference; nothing falls back by itself")),
        }
    }
}
