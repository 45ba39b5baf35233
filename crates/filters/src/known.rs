//! Names and providers of registered filters, so that an error about a missing one says what would help.

/// Registered name and usual provider of a filter id; `None` for ids that we have never heard of.
///
/// ```
/// assert_eq!(tensilo_filters::provider_of(32024).unwrap().0, "SZ3");
/// ```
pub fn provider_of(id: u16) -> Option<(&'static str, &'static str)> {
    Some(match id {
        1 => ("deflate", "libhdf5"),
        2 => ("shuffle", "libhdf5"),
        3 => ("fletcher32", "libhdf5"),
        4 => ("szip", "libhdf5 with libaec"),
        5 => ("nbit", "libhdf5"),
        6 => ("scaleoffset", "libhdf5"),
        305 => ("LZO", "PyTables"),
        307 => ("bzip2", "PyTables or the Python package hdf5plugin"),
        32000 => ("LZF", "h5py"),
        32001 => ("Blosc", "the Python package hdf5plugin"),
        32002 => ("MAFISC", "the MAFISC plugin"),
        32003 => ("Snappy", "the Snappy plugin"),
        32004 => ("LZ4", "the Python package hdf5plugin"),
        32005 => ("APAX", "the APAX plugin by Samplify"),
        32006 => ("CBF", "the CBF plugin"),
        32007 => ("JPEG-XR", "the JPEG-XR plugin"),
        32008 => ("bitshuffle", "the Python package hdf5plugin"),
        32009 => ("SPDP", "the SPDP plugin"),
        32010 => ("LPC-Rice", "the LPC-Rice plugin"),
        32011 => ("CCSDS-123", "the CCSDS-123 plugin"),
        32012 => ("JPEG-LS", "the JPEG-LS plugin"),
        32013 => ("ZFP", "the Python package hdf5plugin"),
        32014 => ("Fpzip", "the fpzip plugin"),
        32015 => ("Zstandard", "the Python package hdf5plugin"),
        32016 => ("B3D", "the B3D plugin"),
        32017 => ("SZ", "the Python package hdf5plugin"),
        32018 => ("FCIDECOMP", "the Python package hdf5plugin"),
        32019 => ("JPEG", "the JPEG plugin"),
        32020 => ("VBZ", "the VBZ plugin by Oxford Nanopore"),
        32021 => ("FAPEC", "the FAPEC plugin"),
        32022 => ("BitGroom", "the Community Codec Repository (CCR)"),
        32023 => ("Granular BitRound", "the Community Codec Repository (CCR)"),
        32024 => ("SZ3", "the Python package hdf5plugin"),
        32025 => ("Delta-Rice", "the Delta-Rice plugin"),
        32026 => ("Blosc2", "the Python package hdf5plugin"),
        32027 => ("FLAC", "the FLAC plugin"),
        32028 => ("SPERR", "the Python package hdf5plugin"),
        32029 => ("TERSE/PROLIX", "the TERSE plugin"),
        32030 => ("FFMPEG", "the FFMPEG plugin"),
        32031 => ("JPEG", "the JPEG plugin of Allen Brain"),
        32032 => ("pFPC", "the pFPC plugin"),
        32033 => ("HTJ2K", "the Python package hdf5plugin"),
        _ => return None,
    })
}
