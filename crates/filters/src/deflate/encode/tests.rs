//! Streams of every level, decoded by zlib-rs and by our inflater.

use super::codes::{LONGEST, SYMBOLS, lengths};
use super::symbols::Token;
use super::*;
use crate::deflate::Inflate;
use crate::draw::Rng;
use crate::simd::hashes::Plain;
use flate2::{Decompress, FlushDecompress};
use proptest::prelude::*;

/// One of several kinds of bytes, `n` of them.
fn family(rng: &mut Rng, kind: usize, n: usize) -> Vec<u8> {
    match kind {
        0 => rng.bytes(n, 256),
        1 => vec![rng.below(256) as u8; n],
        // Repeats at any distance, also beyond the window.
        2 => {
            let most = [4, 300, 33_000][rng.below(3)];
            let period = 1 + rng.below(most);
            let unit = rng.bytes(period, 256);
            unit.iter().copied().cycle().take(n).collect()
        }
        // Each value half as often as the one before: codes as long as may be.
        3 => (0..n).map(|_| (rng.below(1 << 31) as u32 | 1 << 30).trailing_zeros() as u8).collect(),
        // Copies of all lengths, between literals.
        4 => {
            let mut out = rng.bytes(n.min(300), 256);
            while out.len() < n {
                let length = 3 + rng.below(256);
                let from = out.len() - 1 - rng.below(out.len().min(32_768));
                (0..length).for_each(|i| out.push(out[from + i]));
                let few = rng.below(4);
                out.extend(rng.bytes(few, 256));
            }
            out.truncate(n);
            out
        }
        // Words of a small language.
        5 => {
            let words: Vec<Vec<u8>> = (0..200)
                .map(|_| {
                    let length = 1 + rng.below(9);
                    rng.bytes(length, 26).iter().map(|b| b'a' + b).chain([b' ']).collect()
                })
                .collect();
            let mut out = Vec::new();
            while out.len() < n {
                let squared = rng.below(200) * rng.below(200) / 200;
                out.extend(&words[squared]);
            }
            out.truncate(n);
            out
        }
        // Shuffled floats: planes of noise, of slow change, of runs.
        6 => {
            let values: Vec<[u8; 4]> = (0..n.div_ceil(4))
                .map(|i| ((i as f32 / 311.0).sin() + rng.below(1000) as f32 * 1e-6).to_le_bytes())
                .collect();
            (0..4).flat_map(|plane| values.iter().map(move |v| v[plane])).take(n).collect()
        }
        // Counts of two bytes.
        7 => (0..n).map(|i| if i % 2 == 0 { (rng.below(4) * rng.below(4)) as u8 } else { 0 }).collect(),
        // Noise on a slope.
        8 => (0..n).map(|i| (i / 8 + rng.below(4)) as u8).collect(),
        // A bit of everything.
        _ => {
            let mut out = Vec::new();
            while out.len() < n {
                let (kind, part) = (rng.below(9), 1 + rng.below(20_000));
                out.extend(family(rng, kind, part));
            }
            out.truncate(n);
            out
        }
    }
}

const FAMILIES: usize = 10;

fn zlib_rs(stream: &[u8], room: usize) -> Vec<u8> {
    let (mut out, mut state) = (vec![0; room + 10], Decompress::new(false));
    let end = state.decompress(stream, &mut out, FlushDecompress::Finish);
    assert!(matches!(end, Ok(Status::StreamEnd)), "{end:?}");
    assert_eq!(state.total_in() as usize, stream.len(), "bytes behind the stream");
    out.truncate(state.total_out() as usize);
    out
}

/// Encodes and expects both decoders to give the source back.
fn check(deflater: &mut Deflater, level: u32, piece: usize, src: &[u8], what: &str) -> Vec<u8> {
    let mut stream = b"ahead".to_vec();
    deflater.pieces(simd::level(), level, src, &mut stream, piece).unwrap();
    let stream = stream.strip_prefix(b"ahead").unwrap().to_vec();
    assert!(zlib_rs(&stream, src.len()) == src, "level {level}: {what}");
    let mut out = vec![0xA5; src.len()];
    assert_eq!(Inflate::default().raw(&stream, &mut out).unwrap(), src.len());
    assert!(out == src, "level {level}: {what}");
    if piece == PIECE {
        let (got, most) = (stream.len(), most(src.len()));
        assert!(got <= most, "level {level}: {what}: {got} bytes of {}, promised {most}", src.len());
    }
    stream
}

#[test]
fn every_level_gives_every_family_back_whatever_was_encoded_before() {
    let mut rng = Rng(1);
    let mut used = Deflater::default();
    for kind in 0..FAMILIES {
        for n in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 100, 257, 258, 259, 784, 8191, 8192, 8193, 32_769, 70_000]
        {
            let src = family(&mut rng, kind, n);
            for level in 0..10 {
                let what = format!("family {kind}, {n} bytes");
                let stream = check(&mut used, level, PIECE, &src, &what);
                let mut fresh = Vec::new();
                Deflater::default().raw(level, &src, &mut fresh).unwrap();
                assert!(stream == fresh, "level {level}: {what}: it matters what was encoded before");
            }
        }
    }
}

#[test]
fn large_sources_come_back_in_one_piece_or_several() {
    let mut rng = Rng(2);
    let mut used = Deflater::default();
    for round in 0..24 {
        let n = 200_000 + rng.below(400_000);
        let src = family(&mut rng, [9, 6, 2, 1][round % 4], n);
        let piece = [PIECE, 1 + rng.below(100_000)][rng.below(2)];
        check(&mut used, 1 + round as u32 % 6, piece, &src, "large");
    }
}

#[test]
fn places_start_again_where_their_numbers_end() {
    let src = family(&mut Rng(3), 5, 50_000);
    let mut used = Deflater::default();
    let first = check(&mut used, 4, PIECE, &src, "first");
    for left in [0, 40_000, 82_768, 82_769, 90_000] {
        used.finder.end = u32::MAX - left;
        for _ in 0..3 {
            assert!(check(&mut used, 4, PIECE, &src, "again") == first, "{left} places were left");
        }
    }
}

#[test]
fn copies_of_every_length_and_distance_come_back() {
    let mut rng = Rng(4);
    let mut used = Deflater::default();
    for level in 1..7 {
        for distance in [1, 2, 3, 4, 5, 7, 8, 9, 31, 255, 256, 4096, 32_767, 32_768, 32_769] {
            let mut src = rng.bytes(distance, 256);
            for length in [3, 4, 8, 10, 11, 257, 258, 259, 260, 261, 262, 516, 517, 600] {
                for _ in 0..length {
                    src.push(src[src.len() - distance]);
                }
                src.extend(rng.bytes(1, 256));
            }
            check(&mut used, level, PIECE, &src, &format!("distance {distance}"));
        }
    }
}

#[test]
fn random_bytes_and_what_hardly_shrinks_are_stored() {
    let mut rng = Rng(5);
    let random = rng.bytes(300_000, 256);
    let hardly = rng.bytes(300_000, 250);
    for level in 1..7 {
        for src in [&random, &hardly] {
            let stream = check(&mut Deflater::default(), level, PIECE, src, "stored");
            assert_eq!(stream.len(), most(src.len()), "level {level}");
        }
    }
}

#[test]
fn planes_of_shuffled_floats_get_blocks_of_their_own() {
    // Two planes of noise, then one of a value each 64 bytes, then zeros: no more than what each takes alone.
    let mut rng = Rng(6);
    let parts =
        [rng.bytes(100_000, 256), (0..50_000).map(|i| (i / 64 % 64) as u8).collect(), vec![0; 50_000]];
    for level in 1..7 {
        let whole = check(&mut Deflater::default(), level, PIECE, &parts.concat(), "planes").len();
        let alone: usize =
            parts.iter().map(|p| check(&mut Deflater::default(), level, PIECE, p, "plane").len()).sum();
        assert!(whole <= alone + alone / 100, "level {level}: {whole} bytes, {alone} alone");
    }
}

#[test]
fn streams_are_the_same_with_any_instructions() {
    let mut rng = Rng(9);
    for kind in 0..FAMILIES {
        let src = family(&mut rng, kind, 60_000);
        for level in 1..7 {
            let streams = crate::simd::levels().into_iter().map(|simd| {
                let mut stream = Vec::new();
                Deflater::default().pieces(simd, level, &src, &mut stream, PIECE).unwrap();
                stream
            });
            let streams: Vec<_> = streams.collect();
            assert!(streams.windows(2).all(|w| w[0] == w[1]), "level {level}, family {kind}");
        }
    }
}

#[test]
fn levels_beyond_nine_are_refused_and_leave_nothing() {
    for level in [10, u32::MAX] {
        let mut out = vec![1];
        let e = Deflater::default().raw(level, b"abc", &mut out).unwrap_err();
        assert!(e.message().contains("not between 0 and 9"), "{e}");
        assert_eq!(out, [1]);
    }
}

#[test]
fn tokens_say_what_the_source_holds() {
    // What is cut adds up to the source, whatever the sections.
    let mut rng = Rng(7);
    let mut finder = Finder::default();
    for kind in 0..FAMILIES {
        let src = family(&mut rng, kind, 30_000);
        for effort in &EFFORTS {
            finder.begin(src.len(), effort);
            let (mut at, mut back) = (0, Vec::new());
            while at < src.len() {
                let mut tokens = Vec::new();
                let to = src.len().min(at + 1 + rng.below(9000));
                let end = finder.parse(&src, (at, to), effort, &Plain, &mut tokens);
                for Token { literals, length, distance } in tokens {
                    let from = back.len();
                    back.extend_from_slice(&src[from..from + literals as usize]);
                    assert!(length == 0 || (3..=258).contains(&length));
                    for _ in 0..length {
                        back.push(back[back.len() - 1 - usize::from(distance)]);
                    }
                }
                assert!(end >= to && end == back.len());
                at = end;
            }
            assert!(back == src, "family {kind}");
        }
    }
}

/// The cost of the best code of limited length: package-merge, in its plainest form.
fn best_cost(counts: &[u32], most: usize) -> u64 {
    let mut leaves: Vec<u64> = counts.iter().filter(|n| **n > 0).map(|n| u64::from(*n)).collect();
    leaves.sort_unstable();
    let mut row = leaves.clone();
    for _ in 1..most {
        let mut next: Vec<u64> = row.as_chunks::<2>().0.iter().map(|[a, b]| a + b).collect();
        next.extend(&leaves);
        next.sort_unstable();
        row = next;
    }
    row[..2 * leaves.len() - 2].iter().sum()
}

#[test]
fn codes_are_complete_limited_and_the_best() {
    let mut rng = Rng(8);
    let mut worst = 1.0_f64;
    for round in 0..2000 {
        let n = 2 + rng.below(SYMBOLS - 2);
        let steep = rng.below(24);
        let counts: Vec<u32> = match round % 3 {
            // Fibonacci's numbers make the deepest trees.
            0 => {
                let mut pair = (1, 1);
                let steps = (0..n.min(30)).map(|_| {
                    pair = (pair.1, pair.0 + pair.1);
                    pair.0
                });
                steps.collect()
            }
            _ => (0..n)
                .map(|_| {
                    let bits = rng.below(steep + 1).min(22);
                    rng.below(1 << bits) as u32
                })
                .collect(),
        };
        let used = counts.iter().filter(|c| **c > 0).count();
        for most in [7, 8, 9, 11, 15] {
            if used > 1 << most {
                continue;
            }
            let mut found = vec![0xEE; counts.len()];
            let mut quick = vec![0xEE; counts.len()];
            lengths(&counts, most, true, &mut found);
            lengths(&counts, most, false, &mut quick);
            for found in [&found, &quick] {
                let sum: u32 =
                    found.iter().filter(|l| **l > 0).map(|l| 1 << (LONGEST - usize::from(*l))).sum();
                assert_eq!(sum, 1 << LONGEST, "{counts:?}");
                assert!(found.iter().all(|l| usize::from(*l) <= most));
                assert!(used < 2 || counts.iter().zip(found).all(|(c, l)| (*c > 0) == (*l > 0)));
            }
            if used > 1 {
                let cost = |lengths: &[u8]| -> u64 {
                    counts.iter().zip(lengths).map(|(c, l)| u64::from(*c) * u64::from(*l)).sum()
                };
                let best = best_cost(&counts, most);
                assert_eq!(cost(&found), best, "{most} bits: {counts:?}");
                worst = worst.max(cost(&quick) as f64 / best as f64);
            }
        }
    }
    // Such trees are nothing that a block of data has.
    assert!((1.0..1.2).contains(&worst), "the quick code is {worst} times as long as the best");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_come_back(parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), 1_usize..400), 0..30),
                           level in 0_u32..10, piece in prop_oneof![Just(PIECE), 1_usize..5000]) {
        let src: Vec<u8> = parts.iter().flat_map(|(unit, n)| unit.iter().copied().cycle().take(*n)).collect();
        check(&mut Deflater::default(), level, piece, &src, "any");
    }
}
