//! Two raw deflate streams, decoded in turn.
//!
//! Decoding is waiting: where a symbol begins is known only when the one before was looked up. Two streams wait for
//! nothing of each other, so the processor looks up the symbols of one while the other's are on their way.

use super::inflate::{AHEAD, Bits, Fast, ROOM, begin, block};
use super::tables::{LITERAL, Tables};
use crate::simd::copies::{Copy, Decode, with_copy};
use crate::simd::{Level, level};
use tensilo_core::Result;

/// A stream, and where its data go.
pub(super) type Job<'a> = (&'a [u8], &'a mut [u8]);

/// Decodes two streams, each as [`raw`](super::inflate::raw) does.
pub(super) fn raw<'a>(tables: [&'a mut Tables; 2], a: Job<'a>, b: Job<'a>) -> [Result<usize>; 2] {
    raw_at(level(), tables, a, b)
}

fn raw_at<'a>(
    level: Level,
    [first, second]: [&'a mut Tables; 2],
    a: Job<'a>,
    b: Job<'a>,
) -> [Result<usize>; 2] {
    let (mut a, mut b) = (Lane::new(first, a), Lane::new(second, b));
    a.advance(level);
    b.advance(level);
    while let (At::Block { .. }, At::Block { .. }) = (&a.at, &b.at) {
        let mut stopped = [!a.tables.mostly_literals(), !b.tables.mostly_literals()];
        if stopped == [false; 2] {
            // What goes wrong is kept in its lane.
            let both = Both { a: &mut a, b: &mut b, stopped: &mut stopped };
            let _ = with_copy(level, both, &[], &mut []);
        }
        // Few literals in a row are decoded faster alone.
        if stopped[0] {
            a.advance(level);
        }
        if stopped[1] {
            b.advance(level);
        }
    }
    [a, b].map(|lane| lane.finish(level))
}

/// One of the two streams.
struct Lane<'a> {
    tables: &'a mut Tables,
    bits: Bits<'a>,
    dst: &'a mut [u8],
    op: usize,
    at: At,
}

/// Where a stream is.
enum At {
    /// Before a block.
    Begin,
    /// In a compressed block, the last or not.
    Block {
        last: bool,
    },
    End(Result<()>),
}

impl<'a> Lane<'a> {
    fn new(tables: &'a mut Tables, (src, dst): Job<'a>) -> Self {
        Self { tables, bits: Bits::new(src), dst, op: 0, at: At::Begin }
    }

    /// Decodes what is left of a compressed block and goes on into the next, or to the end.
    fn advance(&mut self, level: Level) {
        let Self { tables, bits, dst, op, at } = self;
        let done = with_copy(level, Advance { level, tables, bits, op: *op, at }, &[], dst);
        match done {
            Ok(end) => *op = end,
            Err(e) => *at = At::End(Err(e)),
        }
    }

    /// Decodes what is left of the stream.
    fn finish(mut self, level: Level) -> Result<usize> {
        while let At::Block { .. } = self.at {
            self.advance(level);
        }
        match self.at {
            At::End(Err(e)) => Err(e),
            _ => Ok(self.op),
        }
    }
}

/// Decodes what is left of a compressed block and goes on into the next, or to the end; the result is where the output
/// ends.
struct Advance<'l, 'a> {
    level: Level,
    tables: &'l mut Tables,
    bits: &'l mut Bits<'a>,
    op: usize,
    at: &'l mut At,
}

impl Decode for Advance<'_, '_> {
    #[inline(always)]
    fn decode(self, _src: &[u8], dst: &mut [u8], copy: impl Copy) -> Result<usize> {
        let Self { level, tables, bits, mut op, at } = self;
        if let At::Block { last } = *at {
            op = block(level, tables.meant(), bits, dst, op, &copy)?;
            *at = At::after(last);
        }
        while let At::Begin = at {
            *at = match begin(tables, bits, dst, op)? {
                (last, None) => At::Block { last },
                (last, Some(end)) => {
                    op = end;
                    At::after(last)
                }
            };
        }
        Ok(op)
    }
}

impl At {
    /// Behind a block.
    fn after(last: bool) -> Self {
        if last { Self::End(Ok(())) } else { Self::Begin }
    }
}

/// Decodes both while neither is at the end of the block that it is in; says who stopped there, or lacks room for more.
struct Both<'l, 'a> {
    a: &'l mut Lane<'a>,
    b: &'l mut Lane<'a>,
    stopped: &'l mut [bool; 2],
}

impl Decode for Both<'_, '_> {
    #[inline(always)]
    fn decode(self, _src: &[u8], _dst: &mut [u8], copy: impl Copy) -> Result<usize> {
        let Self { a, b, stopped } = self;
        *stopped = [true; 2];
        let (Some(last_a), Some(last_b)) = (a.dst.len().checked_sub(ROOM), b.dst.len().checked_sub(ROOM))
        else {
            return Ok(0);
        };
        let (mut x, mut y) = (Fast::new(a.tables, &a.bits, a.op)?, Fast::new(b.tables, &b.bits, b.op)?);
        let (mut of_a, mut of_b) = (Ok(false), Ok(false));
        if x.goes_on(last_a) && y.goes_on(last_b) {
            x.start(a.tables);
            y.start(b.tables);
        }
        while x.goes_on(last_a) && y.goes_on(last_b) {
            literals((&mut x, a.tables, a.dst, last_a), (&mut y, b.tables, b.dst, last_b));
            while x.entry & LITERAL == 0 && x.goes_on(last_a) && matches!(of_a, Ok(false)) {
                of_a = x.round::<true>(a.tables, a.dst, &copy);
            }
            while y.entry & LITERAL == 0 && y.goes_on(last_b) && matches!(of_b, Ok(false)) {
                of_b = y.round::<true>(b.tables, b.dst, &copy);
            }
            if !matches!((&of_a, &of_b), (Ok(false), Ok(false))) {
                break;
            }
        }
        *stopped = [a.stopped(&x, of_a, last_a), b.stopped(&y, of_b, last_b)];
        Ok(0)
    }
}

impl<'a> Lane<'a> {
    /// Takes what was done and how the last round went; says whether there can be no other.
    fn stopped(&mut self, fast: &Fast<'a>, round: Result<bool>, last_op: usize) -> bool {
        self.op = fast.leave(&mut self.bits);
        match round {
            Ok(false) => return !fast.goes_on(last_op),
            Ok(true) => {
                if let At::Block { last } = self.at {
                    self.at = At::after(last);
                }
            }
            Err(e) => self.at = At::End(Err(e)),
        }
        true
    }
}

/// Literals that 56 bits hold for sure, with an index behind them.
const LITERALS: usize = 4;

/// Decodes literals of both while there are any on both sides.
#[inline(always)]
fn literals(
    (x, tables_x, dst_x, last_x): (&mut Fast<'_>, &Tables, &mut [u8], usize),
    (y, tables_y, dst_y, last_y): (&mut Fast<'_>, &Tables, &mut [u8], usize),
) {
    let (start_x, start_y) = (x.op, y.op);
    // Room for four where there is room for a round.
    let (Some(out_x), Some(out_y)) =
        (dst_x.get_mut(start_x..last_x + LITERALS), dst_y.get_mut(start_y..last_y + LITERALS))
    else {
        return;
    };
    let fours = out_x.as_chunks_mut::<LITERALS>().0.iter_mut().zip(out_y.as_chunks_mut::<LITERALS>().0);
    let mut done = 0;
    for (out_x, out_y) in fours {
        if x.rest.len() < AHEAD || y.rest.len() < AHEAD {
            break;
        }
        for (to_x, to_y) in out_x.iter_mut().zip(out_y) {
            if x.entry & y.entry & LITERAL == 0 {
                (x.op, y.op) = (start_x + done, start_y + done);
                x.refill();
                y.refill();
                return;
            }
            *to_x = (x.entry >> 16) as u8;
            *to_y = (y.entry >> 16) as u8;
            done += 1;
            x.take(x.entry);
            y.take(y.entry);
            x.entry = x.symbol(tables_x);
            y.entry = y.symbol(tables_y);
        }
        x.refill();
        y.refill();
    }
    (x.op, y.op) = (start_x + done, start_y + done);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deflate::{Deflater, inflate};
    use crate::draw::Rng;
    use crate::simd::levels;
    use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

    /// A stream and the room for its data.
    type Case = (Vec<u8>, usize);

    fn zlib_rs(raw: &[u8], level: u32) -> Vec<u8> {
        let mut out = vec![0; raw.len() + raw.len() / 4 + 1000];
        let mut state = Compress::new(Compression::new(level), false);
        assert_eq!(state.compress(raw, &mut out, FlushCompress::Finish).unwrap(), Status::StreamEnd);
        out.truncate(state.total_out() as usize);
        out
    }

    fn ours(raw: &[u8], level: u32) -> Vec<u8> {
        let mut out = Vec::new();
        Deflater::default().raw(level, raw, &mut out).unwrap();
        out
    }

    /// What zlib-rs makes of a stream.
    fn twin((src, room): &Case) -> Option<Vec<u8>> {
        let mut out = vec![0; *room];
        let mut state = Decompress::new(false);
        match state.decompress(src, &mut out, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) => {
                out.truncate(state.total_out() as usize);
                Some(out)
            }
            _ => None,
        }
    }

    /// Rows of literals, between them now and then a run or a copy.
    fn rows(rng: &mut Rng, len: usize) -> Vec<u8> {
        let values = [2, 40, 96, 200][rng.below(4)];
        let mut raw = Vec::new();
        while raw.len() < len {
            let row = 1 + rng.below(900);
            raw.extend((0..row).map(|_| rng.below(values) as u8));
            match rng.below(3) {
                0 => raw.resize(raw.len() + rng.below(700), 0),
                1 => {
                    let from = raw.len() - 1 - rng.below(raw.len().min(32_768));
                    (0..rng.below(300)).for_each(|i| raw.push(raw[from + i]));
                }
                _ => {}
            }
        }
        raw.truncate(len);
        raw
    }

    /// Streams of every kind, whole and damaged.
    fn cases(rng: &mut Rng, count: usize) -> Vec<Case> {
        let mut all = vec![
            (vec![], 0),
            (vec![], 100),
            (vec![3, 0], 0),
            (vec![7], 50),
            (vec![1, 2, 0, 0xfd, 0xff, b'h', b'i'], 2),
        ];
        while all.len() < count {
            let len = [0, 1, 100, 2000, 9000, 60_000][rng.below(6)];
            let raw = match rng.below(4) {
                // Codes as long as may be.
                0 => (0..len).map(|_| (rng.below(1 << 30) as u32 | 1 << 20).trailing_zeros() as u8).collect(),
                _ => rows(rng, len),
            };
            let level = rng.below(10) as u32;
            let mut stream = if rng.below(2) == 0 { zlib_rs(&raw, level) } else { ours(&raw, level) };
            let room = match rng.below(6) {
                0 => raw.len().saturating_sub(1 + rng.below(50)),
                1 => raw.len() + rng.below(500),
                _ => raw.len(),
            };
            match rng.below(4) {
                0 => stream.truncate(rng.below(stream.len() + 1)),
                1 => {
                    let near = if rng.below(2) == 0 { stream.len().min(120) } else { stream.len() };
                    stream[rng.below(near)] ^= 1 << rng.below(8);
                }
                2 => stream.extend((0..rng.below(40)).map(|_| rng.below(256) as u8)),
                _ => {}
            }
            all.push((stream, room));
        }
        all
    }

    /// How a stream ends, and its data.
    type End = std::result::Result<Vec<u8>, String>;

    fn end(how: Result<usize>, out: &[u8]) -> End {
        how.map(|n| out[..n].to_vec()).map_err(|e| e.to_string())
    }

    fn alone(tables: &mut Tables, (src, room): &Case) -> End {
        let mut out = vec![0xEE; *room];
        end(inflate::raw(tables, src, &mut out), &out)
    }

    /// Decodes two in one buffer, with bytes around either that must stay.
    fn together(level: Level, tables: &mut [Tables; 2], a: &Case, b: &Case) -> [End; 2] {
        const GUARD: usize = 64;
        let mut all = vec![0xA5; a.1 + b.1 + 3 * GUARD];
        let (front, back) = all.split_at_mut(GUARD + a.1 + GUARD);
        let (out_a, out_b) = (&mut front[GUARD..GUARD + a.1], &mut back[..b.1]);
        let [first, second] = tables;
        let [of_a, of_b] = raw_at(level, [first, second], (&a.0, out_a), (&b.0, out_b));
        let ends = [end(of_a, out_a), end(of_b, out_b)];
        let (start_b, end_b) = (a.1 + 2 * GUARD, a.1 + 2 * GUARD + b.1);
        for guard in [0..GUARD, GUARD + a.1..start_b, end_b..all.len()] {
            assert!(all[guard].iter().all(|byte| *byte == 0xA5), "bytes of nobody were written");
        }
        ends
    }

    #[test]
    fn each_of_two_streams_ends_as_it_does_alone_and_in_zlib_rs() {
        let mut rng = Rng(21);
        let (mut one, mut two) = (Tables::default(), [Tables::default(), Tables::default()]);
        let cases = cases(&mut rng, 400);
        let ends: Vec<End> = cases.iter().map(|case| alone(&mut one, case)).collect();
        for (case, end) in cases.iter().zip(&ends) {
            assert!(twin(case) == end.clone().ok(), "{end:?}");
        }
        let whole = ends.iter().filter(|e| e.is_ok()).count();
        assert!(whole > 100 && whole < 300, "{whole} streams are whole");
        for (i, a) in cases.iter().enumerate() {
            for _ in 0..4 {
                let j = rng.below(cases.len());
                for level in levels() {
                    let found = together(level, &mut two, a, &cases[j]);
                    assert!(found[0] == ends[i] && found[1] == ends[j], "{i} and {j}, {level:?}");
                }
            }
        }
    }

    #[test]
    fn a_stream_that_ends_anywhere_leaves_the_other_as_it_is() {
        let mut rng = Rng(22);
        let (mut one, mut two) = (Tables::default(), [Tables::default(), Tables::default()]);
        let noise =
            |rng: &mut Rng, len: usize| -> Vec<u8> { (0..len).map(|_| rng.below(90) as u8).collect() };
        let (x, y) = (noise(&mut rng, 1500), noise(&mut rng, 2500));
        let other = (ours(&y, 1), y.len());
        let whole = ours(&x, 1);
        let level = level();
        let mut checked = 0;
        let mut check = |case: &Case| {
            let want = alone(&mut one, case);
            for (at, pair) in [(0, [case, &other]), (1, [&other, case])] {
                let found = together(level, &mut two, pair[0], pair[1]);
                assert!(found[at] == want, "{:?} instead of {want:?}", found[at]);
                assert!(found[1 - at].as_ref() == Ok(&y));
                checked += 1;
            }
        };
        for cut in 0..whole.len() {
            check(&(whole[..cut].to_vec(), x.len()));
        }
        for room in 0..x.len() {
            check(&(whole.clone(), room));
        }
        for bit in (0..8 * whole.len()).step_by(7) {
            let mut hurt = whole.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            check(&(hurt, x.len()));
        }
        assert!(checked > 6000, "{checked}");
    }

    #[test]
    fn blocks_of_literals_are_decoded_in_turn() {
        // Otherwise the other tests say nothing of it.
        let raw: Vec<u8> = {
            let mut rng = Rng(23);
            (0..20_000).map(|_| rng.below(96) as u8).collect()
        };
        let stream = ours(&raw, 1);
        let (mut first, mut second) = (Tables::default(), Tables::default());
        let (mut x, mut y) = (vec![0; raw.len()], vec![0; raw.len()]);
        let (mut a, mut b) =
            (Lane::new(&mut first, (&stream, &mut x)), Lane::new(&mut second, (&stream, &mut y)));
        a.advance(level());
        b.advance(level());
        assert!(a.tables.mostly_literals() && matches!(a.at, At::Block { .. }));
        let mut stopped = [false; 2];
        let both = Both { a: &mut a, b: &mut b, stopped: &mut stopped };
        with_copy(level(), both, &[], &mut []).unwrap();
        // Nothing but the last bytes is left.
        assert!(a.op > raw.len() - 400 && b.op > raw.len() - 400, "{} and {}", a.op, b.op);
        assert!(a.finish(level()).unwrap() == raw.len() && b.finish(level()).unwrap() == raw.len());
        assert!(x == raw && y == raw);
    }
}
