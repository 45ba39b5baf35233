//! Identities: what is hashed, in which order, to name a source, a mask or a list of pixels (contract, 4).

use crate::digest::Sha256Sum;
use crate::sha_pair::Sha256Stream;
use std::path::Path;
use tensilo_core::io::Fingerprint;

/// Hashed first in every source identity, with a zero byte behind it.
const SOURCE_DOMAIN: &[u8] = b"live4dstem.dataset/v0.1\0";

/// Where the hash of a detector mask comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaskOrigin {
    /// The source's `pixel_mask`.
    Source,
    /// No mask in the source: all pixels admitted.
    Implicit,
}

impl MaskOrigin {
    /// The contract's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source-little-endian-u32-mask",
            Self::Implicit => "implicit-all-admitted-u32-mask",
        }
    }
}

/// The identity of a source: of the hash of its master, if there is one, and of its data files in order.
pub fn source_identity(master: Option<&Sha256Sum>, members: &[Sha256Sum]) -> Sha256Sum {
    let mut s = Sha256Stream::new();
    s.update(SOURCE_DOMAIN);
    if let Some(master) = master {
        s.update(master.to_string().as_bytes());
    }
    for member in members {
        s.update(b"\0");
        s.update(member.to_string().as_bytes());
    }
    s.finish()
}

/// The hash of a mask of `pixels` zeros.
pub fn implicit_mask_sha256(pixels: u64) -> Sha256Sum {
    let mut s = Sha256Stream::new();
    let zeros = [0; 4096];
    let mut left = pixels.saturating_mul(4);
    while left > 0 {
        let n = left.min(zeros.len() as u64);
        s.update(&zeros[..n as usize]);
        left -= n;
    }
    s.finish()
}

/// The 20 hexadecimal digits that name a dataset's folder of prepared indexes: paths and what the files are now.
pub fn dataset_id<'a>(files: impl IntoIterator<Item = (&'a Path, Fingerprint)>) -> String {
    let mut s = Sha256Stream::new();
    for (path, f) in files {
        s.update(path.as_os_str().as_encoded_bytes());
        for number in [f.device, f.inode, f.bytes, f.mtime_ns as u64] {
            s.update(&number.to_le_bytes());
        }
    }
    s.finish().to_string()[..20].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mask_is_hashed_as_zeros() {
        // detector_mask_sha256 of fixture `allzero`, 64 x 64 pixels.
        let sum = "4fe7b59af6de3b665b67788cc2f99892ab827efae3a467342b3bb4e3bc8e5bfe";
        assert_eq!(implicit_mask_sha256(64 * 64).to_string(), sum);
    }

    #[test]
    fn a_source_is_named_by_its_files_hashes() {
        let sum = |t: &str| t.parse::<Sha256Sum>().unwrap();
        // Fixtures `allzero` (no master) and `ext_96x96` (a master and one data file).
        let one = sum("0c1c685526d8a21a580871a4ddf173b04891af9913483bc0577adde09f7de073");
        let id = "002c40937768b3763255bdb3ed9bceba5193194c90bc12b10febee2c1c0cbddb";
        assert_eq!(source_identity(None, &[one]).to_string(), id);
        let master = sum("e723bcf391eb0a38c07246aaa67d9c604a82c6e685ada64a544a83621a0049e9");
        let data = sum("630a551f1f88c29258cafdd56e570166341845db6694309d54ac54deeee64c24");
        let id = "182b31d9f9f053dfd77767f041d195a4086585d6f89bf6920d40e20de77c1471";
        assert_eq!(source_identity(Some(&master), &[data]).to_string(), id);
    }
}
