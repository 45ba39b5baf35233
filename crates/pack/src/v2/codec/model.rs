//! How likely each symbol is: frequencies out of 4096, by a Poisson mean or counted in the block.

use super::bits::{BitReader, BitWriter};
use super::tuples::{ESCAPE, Tuple};
use std::sync::OnceLock;
use tensilo_core::{Error, Result};

/// Sum of the frequencies of a model.
pub(super) const SCALE: u32 = 1 << SCALE_BITS;
/// Its logarithm.
pub(super) const SCALE_BITS: u32 = 12;

/// Frequencies of the 256 symbols, [`SCALE`] together; none is [`SCALE`] itself.
pub(super) type Frequencies = [u16; 256];

/// Means of the fixed models in units of 2^-20 counts. Four to an e-fold, then finer.
pub(super) const MEANS: [u32; 47] = [
    256, 512, 1049, 1347, 1729, 2220, 2851, 3661, 4701, 6036, 7751, 9952, 12779, 16408, 21069, 27053, 34737,
    44604, 57272, 73539, 94427, 121246, 155683, 199902, 256679, 303237, 358240, 423220, 499987, 590678,
    697818, 824393, 973926, 1150583, 1359282, 1605837, 1841246, 2111164, 2420651, 2775507, 3182382, 3648903,
    4183813, 4797138, 5500374, 6307234, 7232587,
];

/// The model after the means': every pair of counts below 16 is equally likely.
pub(super) const EVEN: usize = MEANS.len();
/// Number of fixed models.
pub(super) const FIXED: usize = EVEN + 1;

/// The first model whose symbols are fours, and the first whose are pairs.
const FOURS: usize = 22;
const PAIRS: usize = 30;

/// What the symbols of a fixed model stand for.
pub(super) fn fixed_tuple(index: usize) -> Tuple {
    match index {
        0..FOURS => Tuple::Eight,
        FOURS..PAIRS => Tuple::Four,
        _ => Tuple::Two,
    }
}

/// The fixed model nearest to a mean of `sum / n` counts.
pub(super) fn nearest(sum: u64, n: u64) -> usize {
    let mean = (u128::from(sum) << 20) / u128::from(n.max(1));
    MEANS.windows(2).position(|m| mean < u128::from(m[0] + m[1]) / 2).unwrap_or(MEANS.len() - 1)
}

/// Tuples of this probability, in units of 2^-30, have a symbol in a fixed model: an eighth of 2^-12.
const LEAST_LIKELY: u64 = 1 << 15;

/// Frequencies of a fixed model. Integer arithmetic throughout: they are part of the format.
fn fixed_frequencies(index: usize) -> Frequencies {
    let mut f = [0_u16; 256];
    if index == EVEN {
        return [16; 256];
    }
    // Poisson probabilities in units of 2^-30.
    let mut weights = [0_u128; 64];
    weights[0] = 1 << 60;
    for v in 1..64 {
        weights[v] = weights[v - 1] * u128::from(MEANS[index]) / ((v as u128) << 20);
    }
    let total: u128 = weights.iter().sum();
    let p = weights.map(|w| ((w << 30) / total) as u64);
    let tuple = fixed_tuple(index);
    let mut rest = 1_u64 << 30;
    for (symbol, counts) in tuple.alphabet().tuples[..usize::from(ESCAPE)].iter().enumerate() {
        let of_tuple =
            (0..tuple.counts()).fold(1_u64 << 30, |q, i| (q * p[(counts >> (8 * i) & 255) as usize]) >> 30);
        // What is rarer than half of 2^-12 still has a symbol while an escape would cost more.
        let frequency = ((of_tuple + (1 << 17)) >> 18).max(u64::from(of_tuple >= LEAST_LIKELY));
        if frequency > 0 {
            f[symbol] = frequency as u16;
            rest -= of_tuple;
        }
    }
    f[usize::from(ESCAPE)] = (((rest + (1 << 17)) >> 18) as u16).max(1);
    balance(&mut f);
    f
}

/// Makes the sum right at the largest frequency, the first of equals.
fn balance(f: &mut Frequencies) {
    loop {
        let sum: i32 = f.iter().map(|v| i32::from(*v)).sum();
        let off = SCALE as i32 - sum;
        if off == 0 {
            return;
        }
        let mut largest = 0;
        for (i, v) in f.iter().enumerate() {
            if *v > f[largest] {
                largest = i;
            }
        }
        // Never below half, so that many roundings are shared out.
        let now = i32::from(f[largest]);
        f[largest] = (now + off).max(now / 2).max(1) as u16;
    }
}

/// Frequencies of what was counted; at least two symbols occur, and the sum is below 2^32.
pub(super) fn counted(histogram: &[u32; 256]) -> Frequencies {
    let total: u64 = histogram.iter().map(|h| u64::from(*h)).sum();
    let mut f = [0; 256];
    for (f, h) in f.iter_mut().zip(histogram) {
        if *h > 0 {
            let rounded = match (u32::try_from(total), h.checked_mul(SCALE)) {
                // Short divisions take less time.
                (Ok(total), Some(scaled)) if scaled.checked_add(total / 2).is_some() => {
                    u64::from((scaled + total / 2) / total)
                }
                _ => (u64::from(*h) * u64::from(SCALE) + total / 2) / total,
            };
            *f = (rounded as u16).clamp(1, SCALE as u16 - 1);
        }
    }
    balance(&mut f);
    f
}

/// Writes frequencies as Elias gamma codes of one more each.
pub(super) fn write_frequencies(f: &Frequencies, bits: &mut BitWriter) {
    f.iter().for_each(|v| bits.gamma(u64::from(*v) + 1));
}

/// Bits that [`write_frequencies`] takes.
pub(super) fn written_bits(f: &Frequencies) -> u64 {
    f.iter().map(|v| u64::from(2 * (u32::from(*v) + 1).ilog2() + 1)).sum()
}

/// Reads what [`write_frequencies`] wrote.
///
/// # Errors
/// `Corrupt` where their sum is not [`SCALE`], or one is.
pub(super) fn read_frequencies(bits: &mut BitReader<'_>) -> Result<Frequencies> {
    let mut f = [0; 256];
    let mut sum = 0;
    let mut at = 0;
    while at < f.len() {
        // Zeros are ones in the string; most stand in a row.
        at += bits.ones(f.len() - at)?;
        let Some(v) = f.get_mut(at) else { break };
        let value = bits.gamma()? - 1;
        sum += value.min(u64::from(SCALE) + 1);
        if value >= u64::from(SCALE) || sum > u64::from(SCALE) {
            return Err(Error::corrupt(format!("frequencies of symbols beyond {SCALE}")));
        }
        *v = value as u16;
        at += 1;
    }
    if sum != u64::from(SCALE) {
        return Err(Error::corrupt(format!("frequencies of symbols whose sum is {sum}, not {SCALE}")));
    }
    Ok(f)
}

/// What a decoder looks up by the low bits of a state: symbol, offset in the symbol's range << 8, frequency << 20.
pub(super) type Slots = [u32; SCALE as usize];

/// Fills the slots of a model.
pub(super) fn fill_slots(f: &Frequencies, slots: &mut Slots) {
    let mut at = 0;
    for (symbol, f) in f.iter().enumerate() {
        let (f, first) = (usize::from(*f), symbol as u32 | u32::from(*f) << 20);
        let slot = |offset: usize| first | (offset as u32) << 8;
        for offset in (0..f).step_by(16) {
            // Whole vectors; what is too much is written again by the next symbol.
            match slots[at + offset..].first_chunk_mut::<16>() {
                Some(slots) => *slots = std::array::from_fn(|i| slot(offset + i)),
                None => (offset..f).for_each(|i| slots[at + i] = slot(i)),
            }
        }
        at += f;
    }
}

/// What an encoder needs to know of each symbol.
#[derive(Debug)]
pub(super) struct Steps {
    /// Frequency, and the sum of those below << 16. 0: the symbol does not occur.
    pub ranges: [u32; 256],
    /// The smallest number above 1 / frequency. For states x below 2^32, x times it, rounded down, is the quotient.
    pub inverses: [f64; 256],
    /// The range in the low 32 bits; above it, as a float, the largest number that is not above 1 / frequency.
    pub pairs: [u64; 256],
}

impl Steps {
    pub fn new(f: &Frequencies) -> Self {
        let mut out = Self { ranges: [0; 256], inverses: [0.0; 256], pairs: [0; 256] };
        let mut start = 0;
        for (i, f) in f.iter().enumerate() {
            let (range, inverse) = (u32::from(*f) | start << 16, 1.0 / f64::from(*f));
            let nearest = inverse as f32;
            let below = if f64::from(nearest) > inverse { nearest.next_down() } else { nearest };
            out.ranges[i] = range;
            out.inverses[i] = inverse.next_up();
            out.pairs[i] = u64::from(range) | u64::from(below.to_bits()) << 32;
            start += u32::from(*f);
        }
        out
    }
}

/// A fixed model, made at its first use.
#[derive(Debug)]
pub(super) struct Fixed {
    pub frequencies: Frequencies,
    pub slots: Box<Slots>,
    pub steps: Box<Steps>,
}

/// The fixed model of an index below [`FIXED`].
pub(super) fn fixed(index: usize) -> &'static Fixed {
    static ALL: [OnceLock<Fixed>; FIXED] = [const { OnceLock::new() }; FIXED];
    ALL[index].get_or_init(|| {
        let frequencies = fixed_frequencies(index);
        let mut slots = Box::new([0; SCALE as usize]);
        fill_slots(&frequencies, &mut slots);
        Fixed { frequencies, slots, steps: Box::new(Steps::new(&frequencies)) }
    })
}

/// Bits that a symbol of each frequency takes, in units of 2^-16.
fn prices() -> &'static [u32; SCALE as usize + 1] {
    static PRICES: OnceLock<[u32; SCALE as usize + 1]> = OnceLock::new();
    PRICES.get_or_init(|| {
        let mut out = [0; SCALE as usize + 1];
        for (f, price) in (0_u64..).zip(&mut out).skip(1) {
            // The logarithm's bits by repeated squaring, so that every machine has the same.
            let whole = f.ilog2();
            let (mut x, mut log) = (f << (31 - whole), u32::from(whole as u16) << 16);
            for bit in (0..16).rev() {
                x = (x * x) >> 31;
                if x >= 1 << 32 {
                    x >>= 1;
                    log |= 1 << bit;
                }
            }
            *price = (SCALE_BITS << 16) - log;
        }
        out
    })
}

/// Bits that symbols so frequent take at best.
pub(super) fn entropy(histogram: &[u32; 256]) -> u64 {
    // In units of 2^-16, from the logarithms of whole numbers; rounded down, which is exact enough for a choice.
    let log = |n: u64| {
        let whole = n.ilog2();
        let top = if whole > SCALE_BITS { n >> (whole - SCALE_BITS) } else { n };
        let scaled = top.ilog2();
        u64::from(whole - scaled) * (1 << 16) + (u64::from(SCALE_BITS) << 16)
            - u64::from(prices()[top.min(u64::from(SCALE)) as usize])
    };
    let total: u64 = histogram.iter().map(|h| u64::from(*h)).sum();
    if total == 0 {
        return 0;
    }
    let all = total * log(total);
    let own: u64 = histogram.iter().filter(|h| **h > 0).map(|h| u64::from(*h) * log(u64::from(*h))).sum();
    all.saturating_sub(own) >> 16
}

/// Bits that symbols so frequent take by a model, in units of 2^-16.
pub(super) fn price(histogram: &[u32; 256], f: &Frequencies) -> u64 {
    let prices = prices();
    histogram.iter().zip(f).map(|(h, f)| u64::from(*h) * u64::from(prices[usize::from(*f)])).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_models_are_whole_and_near_their_entropy() {
        for (index, mean) in MEANS.iter().enumerate() {
            let model = fixed(index);
            assert_eq!(model.frequencies.iter().map(|f| u32::from(*f)).sum::<u32>(), SCALE);
            let mean = f64::from(*mean) / f64::from(1 << 20);
            let tuple = fixed_tuple(index);
            let mut p = vec![(-mean).exp()];
            (1..40).for_each(|v| p.push(p[v - 1] * mean / v as f64));
            let entropy: f64 = p.iter().map(|p| -p * p.log2()).sum();
            let (mut bits, mut covered) = (0.0, 0.0);
            for (f, t) in model.frequencies[..255].iter().zip(&tuple.alphabet().tuples) {
                let q: f64 = (0..tuple.counts()).map(|i| p[(t >> (8 * i) & 255) as usize]).product();
                if *f > 0 {
                    bits += q * (12.0 - f64::from(*f).log2());
                    covered += q;
                }
            }
            // An escaped tuple costs its symbol and some nibbles.
            let nibbles = if tuple == Tuple::Eight { 4.0 } else { 1.13 * tuple.counts() as f64 };
            bits += (1.0 - covered) * (12.0 - f64::from(model.frequencies[255]).log2() + 4.0 * nibbles);
            let over = bits / tuple.counts() as f64 / entropy;
            assert!(over < 1.06, "mean {mean}: {over:.4} × the entropy");
        }
    }

    #[test]
    fn counted_models_are_whole_and_written_as_they_are_read() {
        for shift in 0..24 {
            let histogram: [u32; 256] = std::array::from_fn(|i| (1_u32 << shift) >> (i % 32));
            let mut histogram = histogram;
            histogram[200] += 1;
            let f = counted(&histogram);
            assert_eq!(f.iter().map(|f| u32::from(*f)).sum::<u32>(), SCALE);
            assert!(f.iter().zip(&histogram).all(|(f, h)| (*f > 0) == (*h > 0)));
            let mut bits = BitWriter::default();
            write_frequencies(&f, &mut bits);
            let mut bytes = Vec::new();
            bits.finish(&mut bytes);
            assert_eq!(bytes.len() as u64, written_bits(&f).div_ceil(8));
            assert_eq!(read_frequencies(&mut BitReader::new(&bytes)).unwrap(), f);
        }
    }
}
