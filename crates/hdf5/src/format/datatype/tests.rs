//! Datatype messages as `H5Tencode` of libhdf5 2.0.0 (through h5py 3.16) makes them.

use super::Datatype;
use tensilo_core::ErrorKind;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

const ENCODED: [(&str, &str); 11] = [
    ("i32le", "100800000400000000002000"),
    ("f64be", "11213f000800000000004000340b0034ff030000"),
    ("str5:nullpad:ascii", "1301000005000000"),
    ("vstr:nullterm:utf8", "1901010008000000100000000100000000000800"),
    (
        "enum(i16le){\"GREEN\"=-3,\"RED\"=0}",
        "1802000002000000100800000200000000001000475245454e0000005245440000000000fdff0000",
    ),
    (
        "{\"a\":u8,\"b\":array[2,3](f32le)}",
        "26020000190000006100000000000000000000001000000001000000000008006200000000000000010000002a000000180000000200\
         00000200000003000000000000000100000011201f000400000000002000170800177f000000",
    ),
    ("vlen(u16le)", "1900000010000000100000000200000000001000"),
    ("ref(object)", "1700000008000000"),
    (
        "enum(i8){\"FALSE\"=0,\"TRUE\"=1}",
        "180200000100000010080000010000000000080046414c534500000054525545000000000001",
    ),
    ("opaque7:\"tag\"", "15080000070000007461670000000000"),
    ("complex(f32le)", "5b0100000800000011201f000400000000002000170800177f000000"),
];

#[test]
fn types_encoded_by_libhdf5_are_named_as_their_text() {
    for (text, hex) in ENCODED {
        assert_eq!(Datatype::parse(&bytes(hex), 0).unwrap().to_string(), text);
    }
}

#[test]
fn every_truncation_of_a_type_is_corrupt_and_no_change_of_a_byte_panics() {
    for (text, hex) in ENCODED {
        let whole = bytes(hex);
        // The tag of an opaque type and the type beneath a variable string may be cut without harm to the text.
        for len in 0..whole.len() {
            if let Err(e) = Datatype::parse(&whole[..len], 100) {
                assert_eq!(e.kind(), ErrorKind::Corrupt, "{text} cut to {len}");
                assert!(e.offset().is_some_and(|o| (100..100 + whole.len() as u64 + 1).contains(&o)));
            } else {
                panic!("{text} cut to {len} bytes is accepted");
            }
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Ok(t) = Datatype::parse(&changed, 0) {
                    assert!(t.size > 0, "{t}");
                }
            }
        }
    }
}

#[test]
fn types_nested_too_deeply_are_refused() {
    let mut message = Vec::new();
    for _ in 0..5000 {
        message.extend([0x19, 0, 0, 0, 16, 0, 0, 0]); // variable-length sequence of…
    }
    message.extend(bytes(ENCODED[0].1));
    assert_eq!(Datatype::parse(&message, 0).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn impossible_types_are_corrupt() {
    let bad = [
        ("000800000400000000002000", "version 0"),
        ("600800000400000000002000", "version 6"),
        ("1f0800000400000000002000", "class 15"),
        ("100800000000000000002000", "0 bytes"),
        ("100800000400000000002100", "33 bits in 4 bytes"),
        ("100800000400000000000000", "no significant bit"),
        ("11213f000800000000004000340c0034ff030000", "exponent over sign"),
        ("11303f000800000000004000340b0034ff030000", "normalization 3"),
        ("1600000004000000", "compound without members"),
        ("1702000008000000", ""),
        ("1705000008000000", "reference type 5"),
        ("4b0100000800000011201f000400000000002000170800177f000000", "complex in version 4"),
    ];
    for (hex, why) in bad {
        let found = Datatype::parse(&bytes(hex), 0);
        if why.is_empty() {
            assert_eq!(found.unwrap().to_string(), "ref(std)");
        } else {
            assert_eq!(found.expect_err(why).kind(), ErrorKind::Corrupt, "{why}");
        }
    }
}
