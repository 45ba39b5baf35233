//! Streams that zlib writes with every strategy, window and level, and with flushes in between.

use tensilo_filters::{FilterSpec, Pipeline, Registry, Scratch, id};
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

fn part<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (length, behind) = rest.split_first_chunk::<4>().unwrap();
    let (part, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
    *rest = behind;
    part
}
