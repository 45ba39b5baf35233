//! Streams that zlib writes with every strategy, window and level, and with flushes in between; and ours, read by zlib.

use crate::hostile::Rng;
use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch, id};
use tensilo_testkit::oracle;

/// Writes pairs of raw bytes and stream, each behind its length.
const SCRIPT: &str = r#"
import random, struct, sys, zlib
r = random.Random(20260803)
def raw():
    out = bytearray()
    for _ in range(r.randrange(1, 6)):
        n = r.randrange(1, 6000)
        k = r.randrange(5)
        if k == 0: out += r.randbytes(n)
        elif k == 1: out += bytes([r.randrange(256)]) * n
        elif k == 2: out += bytes(r.choices(range(40), k=n))
        elif k == 3: out += (r.randbytes(r.randrange(1, 300)) * n)[:n]
        else: out += bytes(min(255, int(r.expovariate(0.5))) for _ in range(n))
    return bytes(out)
for i in range(2500):
    data = raw()
    z = zlib.compressobj(r.randrange(10), zlib.DEFLATED, r.randrange(9, 16), r.randrange(1, 10), r.randrange(5))
    stream = b""
    if i % 3 == 0:
        cut = r.randrange(len(data))
        stream = z.compress(data[:cut]) + z.flush(r.choice([zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_PARTIAL_FLUSH]))
        stream += z.compress(data[cut:]) + z.flush()
    else:
        stream = z.compress(data) + z.flush()
    for part in data, stream:
        sys.stdout.buffer.write(struct.pack("<I", len(part)) + part)
"#;

#[test]
fn streams_of_every_strategy_of_zlib_inflate() {
    if oracle::python().is_none() {
        return oracle::skip("Python", 1);
    }
    let made = oracle::run_python(SCRIPT, [] as [&str; 0], b"");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let pipeline = Pipeline::new(&[FilterSpec::new(id::DEFLATE, vec![6])], &Registry::default()).unwrap();
    let mut scratch = Scratch::default();
    let mut rest = &made.stdout[..];
    let mut streams = 0;
    while !rest.is_empty() {
        let (raw, stream) = (part(&mut rest), part(&mut rest));
        let mut out = vec![0xA5; raw.len()];
        pipeline.decode(&mut scratch, stream, 0, &mut out).unwrap();
        assert!(out == raw, "stream {streams}");
        let mut short = vec![0; raw.len() - 1];
        assert!(pipeline.decode(&mut scratch, stream, 0, &mut short).is_err(), "stream {streams}");
        streams += 1;
    }
    assert_eq!(streams, 2500);
}

/// Reads pairs of raw bytes and stream, each behind its length, and says how many there were and which are wrong.
const CHECK: &str = r#"
import struct, sys, zlib
all, at, parts = sys.stdin.buffer.read(), 0, []
while at < len(all):
    n, = struct.unpack_from("<I", all, at)
    parts.append(all[at + 4 : at + 4 + n])
    at += 4 + n
pairs = list(zip(parts[::2], parts[1::2]))
def right(raw, stream):
    z = zlib.decompressobj()
    return z.decompress(stream) == raw and z.eof and not z.unused_data
print(len(pairs), [i for i, (raw, stream) in enumerate(pairs) if not right(raw, stream)])
"#;

#[test]
fn zlib_reads_streams_of_every_level() {
    if oracle::python().is_none() {
        return oracle::skip("Python", 1);
    }
    let mut rng = Rng(41);
    let mut scratch = Scratch::default();
    let mut given = Vec::new();
    const STREAMS: u32 = 600;
    for i in 0..STREAMS {
        let pipeline =
            Pipeline::new(&[FilterSpec::new(id::DEFLATE, vec![i % 10])], &Registry::default()).unwrap();
        let mut raw = Vec::new();
        for _ in 0..1 + rng.below(5) {
            let n = rng.below([20, 3000, 40_000][i as usize % 3]);
            let unit = 1 + rng.below(400);
            match rng.below(5) {
                0 => raw.extend((0..n).map(|_| rng.below(256) as u8)),
                1 => raw.resize(raw.len() + n, rng.below(256) as u8),
                2 => raw.extend((0..n).map(|_| (rng.below(16) * rng.below(16)) as u8)),
                3 => raw.extend((0..n).map(|j| (j % unit * 7) as u8)),
                _ => raw.extend((0..n).map(|j| (j / 8 + rng.below(4)) as u8)),
            }
        }
        let info = ChunkInfo { element_size: 1, chunk_dims: vec![raw.len() as u64] };
        let (stream, mask) = pipeline.encode(&mut scratch, &raw, &info).unwrap();
        assert_eq!(mask, 0);
        for part in [&raw, &stream] {
            given.extend((part.len() as u32).to_le_bytes());
            given.extend_from_slice(part);
        }
    }
    let said = oracle::run_python(CHECK, [] as [&str; 0], &given);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), format!("{STREAMS} []"));
}

fn part<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (length, behind) = rest.split_first_chunk::<4>().unwrap();
    let (part, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
    *rest = behind;
    part
}
