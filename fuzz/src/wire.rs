//! Field reader, field writer and checksums of `core::wire`.

use tensilo_core::Result;
use tensilo_core::wire::{FieldReader, FieldWriter, fletcher32_be_words, lookup3};

/// Reads the fields that the input itself asks for. A field that could be read must be written back the same.
pub fn wire(data: &[u8]) {
    let mut script = FieldReader::new(data, u64::MAX - 8, "script");
    let mut fields = FieldReader::new(data, 0, "fields");
    while let Ok(op) = script.u8() {
        let before = fields.position();
        let mut back = FieldWriter::new();
        let read = read_and_write(op, data, &mut fields, &mut back);
        match read {
            Ok(()) => assert_eq!(back.as_slice(), &data[before..fields.position()]),
            Err(e) => assert!(e.offset().is_some(), "{e}"),
        }
    }
    lookup3(data);
    fletcher32_be_words(data);
}

/// Reads one field, and writes what was read.
fn read_and_write(op: u8, data: &[u8], fields: &mut FieldReader<'_>, back: &mut FieldWriter) -> Result<()> {
    let width = usize::from(op >> 4);
    match op % 9 {
        0 => back.u8(fields.u8()?),
        1 => back.u16(fields.u16()?),
        2 => back.u24(fields.u24()?),
        3 => back.u32(fields.u32()?),
        4 => back.u64(fields.u64()?),
        5 => back.uint(fields.uint(width)?, width),
        6 => back.bytes(fields.bytes(usize::from(op))?),
        7 => {
            let start = &data[..data.len().min(4)];
            fields.signature(start)?;
            back.bytes(start)
        }
        _ => return fields.skip(usize::MAX - width),
    };
    Ok(())
}
