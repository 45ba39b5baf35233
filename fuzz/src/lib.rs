//! What is fuzzed: one function per target, each taking any bytes at all.
//!
//! A target may return early, never panic, hang or allocate without bound. `cargo fuzz run TARGET --features libfuzzer`
//! drives one with libFuzzer; `cargo test` replays the seeds in `corpus/` and simple mutations of them.

mod cache_image;
mod decoders;
mod deflater;
mod filters;
mod hdf5;
mod messages;
mod pack;
mod pack2;
mod pack_blocks;
mod records;
mod structures;
mod wire;

pub use cache_image::cache_image;
pub use decoders::*;
pub use deflater::{deflater, inflate_pair};
pub use filters::filters;
pub use hdf5::hdf5;
pub use messages::*;
pub use pack::pack;
pub use pack_blocks::pack_blocks;
pub use pack2::pack2;
pub use records::{records, zrecord};
pub use structures::*;
pub use wire::wire;

/// A target's name, which is that of its folder in `corpus/`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("wire", wire),
    ("filters", filters),
    ("hdf5", hdf5),
    ("pack", pack),
    ("records", records),
    ("zrecord", zrecord),
    ("pack2", pack2),
    ("pack_blocks", pack_blocks),
    ("deflate", deflate),
    ("deflater", deflater),
    ("inflate_pair", inflate_pair),
    ("fletcher32", fletcher32),
    ("szip", szip),
    ("nbit", nbit),
    ("scaleoffset", scaleoffset),
    ("bzip2", bzip2),
    ("lzf", lzf),
    ("blosc", blosc),
    ("lz4", lz4),
    ("bitshuffle", bitshuffle),
    ("zfp", zfp),
    ("zstandard", zstandard),
    ("vbz", vbz),
    ("blosc2", blosc2),
    ("superblock", superblock),
    ("object_header", object_header),
    ("datatype", datatype),
    ("btree_v1", btree_v1),
    ("symbol_entry", symbol_entry),
    ("btree_v2", btree_v2),
    ("local_heap", local_heap),
    ("global_heap", global_heap),
    ("fractal_heap", fractal_heap),
    ("chunk_node", chunk_node),
    ("chunk_record", chunk_record),
    ("fixed_array", fixed_array),
    ("extensible_array", extensible_array),
    ("shared_messages", shared_messages),
    ("free_space", free_space),
    ("selection", selection),
    ("virtual_block", virtual_block),
    ("message_dataspace", message_dataspace),
    ("message_data_layout", message_data_layout),
    ("message_filter_pipeline", message_filter_pipeline),
    ("message_fill_value", message_fill_value),
    ("message_link", message_link),
    ("message_attribute", message_attribute),
    ("message_external_files", message_external_files),
    ("message_group", message_group),
    ("message_shared", message_shared),
    ("message_file", message_file),
    ("cache_image", cache_image),
];

/// Bytes that one target may have allocated at a time.
pub const MOST_BYTES: u64 = 64 << 20;
