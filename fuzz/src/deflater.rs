//! Deflate. The encoder: any bytes at any level, in one scratch, through zlib-rs and through our inflater; and two raw
//! streams that are decoded in turn.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | level after `% 10` |
//! | 2 | how often the rest is repeated, 1 to 16 after `% 16 + 1`; how many bytes of it are dropped between |
//! | rest | what is encoded |

use flate2::{Decompress, FlushDecompress, Status};
use tensilo_filters::deflate::{Deflater, Inflate};

/// Encodes twice with the same scratch, and expects the same, which both decoders give back.
pub fn deflater(data: &[u8]) {
    let &[level, repeats, dropped, ref rest @ ..] = data else { return };
    let level = u32::from(level % 10);
    let mut raw = Vec::new();
    for i in 0..usize::from(repeats % 16) + 1 {
        raw.extend_from_slice(&rest[(i * usize::from(dropped)).min(rest.len())..]);
    }
    let mut deflater = Deflater::default();
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    deflater.raw(level, &raw, &mut once).expect("a level that exists");
    deflater.raw(level, &raw, &mut twice).expect("a level that exists");
    assert!(once == twice, "level {level}: it matters what was encoded before");
    assert!(
        once.len() <= raw.len() + 5 * raw.len().div_ceil(0xffff).max(1),
        "level {level}: longer than promised"
    );
    let mut out = vec![0; raw.len()];
    assert_eq!(Inflate::default().raw(&once, &mut out).ok(), Some(raw.len()), "level {level}");
    assert!(out == raw, "level {level}: our inflater");
    let (mut out, mut state) = (vec![0; raw.len() + 1], Decompress::new(false));
    let end = state.decompress(&once, &mut out, FlushDecompress::Finish);
    assert!(matches!(end, Ok(Status::StreamEnd)), "level {level}: zlib-rs: {end:?}");
    assert!(
        state.total_in() == once.len() as u64 && out[..state.total_out() as usize] == raw,
        "level {level}: zlib-rs"
    );
}

/// Two raw streams, decoded in turn and alone: each ends the same way. Bytes: the length of the first in 2 bytes, the
/// rooms of both, in 2 bytes each, counted in 48 bytes after `% 2048`; both streams.
pub fn inflate_pair(data: &[u8]) {
    let &[a, b, c, d, e, f, ref rest @ ..] = data else { return };
    let [first, room_a, room_b] = [[a, b], [c, d], [e, f]].map(|b| usize::from(u16::from_le_bytes(b)));
    let (a, b) = rest.split_at(first.min(rest.len()));
    let mut inflate = Inflate::default();
    let alone = [(a, room_a), (b, room_b)].map(|(src, room)| {
        let mut out = vec![0; 48 * (room % 2048)];
        let how = inflate.raw(src, &mut out).map_err(|e| e.to_string());
        (how, out)
    });
    let (mut x, mut y) = (vec![0; alone[0].1.len()], vec![0; alone[1].1.len()]);
    let of = inflate.raw_pair((a, &mut x), (b, &mut y));
    for ((how, out), (want, expected)) in of.into_iter().zip([x, y]).zip(alone) {
        let how = how.map_err(|e| e.to_string());
        assert_eq!(how, want);
        let n = want.unwrap_or(0);
        assert!(out[..n] == expected[..n], "other bytes");
    }
}
