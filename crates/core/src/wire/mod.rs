//! Bounds-checked reading and writing of on-disk fields, and the checksums that guard them.

mod checksum;
mod field_reader;
mod field_writer;

pub use checksum::{fletcher32_be_words, lookup3, lookup3_from};
pub use field_reader::FieldReader;
pub use field_writer::FieldWriter;
