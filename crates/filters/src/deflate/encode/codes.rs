//! Huffman codes of limited length.

/// Most symbols of a code.
pub(super) const SYMBOLS: usize = 288;
/// Longest code of any kind.
pub(super) const LONGEST: usize = 15;

/// Chooses the length of each symbol's code, 0 for symbols that do not occur. The code is complete, and has at least
/// two symbols, as some decoders want it; no code is longer than `most`. A symbol may occur 2^23 - 1 times. The code is
/// the best one if `best`, and always where none of the best would be longer.
pub(super) fn lengths(counts: &[u32], most: usize, best: bool, lengths: &mut [u8]) {
    lengths.fill(0);
    // Sorted by how often they occur, then by their number.
    let mut room = [0_u32; SYMBOLS];
    let mut n = 0;
    for (symbol, count) in counts.iter().enumerate() {
        room[n.min(SYMBOLS - 1)] = count << 9 | symbol as u32;
        n += usize::from(*count > 0);
    }
    if n < 2 {
        // The lone symbol, or the first, and a neighbour.
        let lone = if n == 1 { (room[0] & 511) as usize } else { 0 };
        lengths[lone] = 1;
        lengths[usize::from(lone == 0)] = 1;
        return;
    }
    let sorted = &mut room[..n];
    sorted.sort_unstable();
    let (mut of_length, deeper) = depths(sorted, most);
    if deeper && best {
        of_length = limited(sorted, most);
    } else if deeper {
        lift(&mut of_length, most);
    }
    // The rarest have the longest codes.
    let mut rest = &*sorted;
    for length in (1..=most).rev() {
        let (these, others) = rest.split_at((of_length[length] as usize).min(rest.len()));
        for symbol in these {
            lengths[(symbol & 511) as usize] = length as u8;
        }
        rest = others;
    }
}

/// How many leaves of the Huffman tree are how deep, and whether some are deeper than `most`; those count as `most`.
fn depths(sorted: &[u32], most: usize) -> ([u32; LONGEST + 1], bool) {
    let n = sorted.len();
    // Inner nodes come into being in the order of their weights, so that two queues suffice.
    let mut weights = [0_u32; SYMBOLS];
    let mut leaf_parents = [0_u16; SYMBOLS];
    let mut parents = [0_u16; SYMBOLS];
    let (mut leaf, mut inner) = (0, 0);
    for made in 0..n - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            let from_leaves = leaf < n && (inner == made || sorted[leaf] >> 9 <= weights[inner]);
            if from_leaves {
                weight += sorted[leaf] >> 9;
                leaf_parents[leaf] = made as u16;
                leaf += 1;
            } else {
                weight += weights[inner];
                parents[inner] = made as u16;
                inner += 1;
            }
        }
        weights[made] = weight;
    }
    // The root is the last one; parents stand behind their children.
    let mut depths = [0_u16; SYMBOLS];
    for node in (0..n - 2).rev() {
        depths[node] = depths[usize::from(parents[node])] + 1;
    }
    let mut of_length = [0; LONGEST + 1];
    let mut deeper = false;
    for parent in &leaf_parents[..n] {
        let depth = usize::from(depths[usize::from(*parent)]) + 1;
        deeper |= depth > most;
        of_length[depth.min(most)] += 1;
    }
    (of_length, deeper)
}

/// Makes room for the leaves that were deeper than `most`: again and again the deepest other leaf goes down a level and
/// takes one of them for a neighbour. Next to the best where few are deeper, and found at once.
fn lift(of_length: &mut [u32; LONGEST + 1], most: usize) {
    let taken: u32 = (1..=most).map(|length| of_length[length] << (most - length)).sum();
    for _ in 1 << most..taken {
        let Some(length) = (1..most).rev().find(|length| of_length[*length] > 0) else { return };
        of_length[most] -= 1;
        of_length[length] -= 1;
        of_length[length + 1] += 2;
    }
}

/// How many codes of each length are best where none may be longer than `most`: package-merge.
///
/// There is a row for each length. It holds all leaves and the pairs of the row before, sorted by weight. Of the last row
/// twice as many are taken as pairs are needed to join all leaves; what pairs are among them says how many of the
/// row before are, and so on. A leaf's length is the number of rows in which it is taken.
fn limited(sorted: &[u32], most: usize) -> [u32; LONGEST + 1] {
    let n = sorted.len();
    let mut leaf_at = [[false; 2 * SYMBOLS]; LONGEST];
    let (mut row, mut next) = ([0_u64; 2 * SYMBOLS], [0_u64; 2 * SYMBOLS]);
    let mut len = 0;
    for is_leaf in &mut leaf_at[..most] {
        let (mut leaf, mut pair) = (0, 0);
        let mut at = 0;
        while leaf < n || pair < len / 2 {
            let of_pair = row[2 * pair] + row[2 * pair + 1];
            is_leaf[at] = pair == len / 2 || leaf < n && u64::from(sorted[leaf] >> 9) <= of_pair;
            if is_leaf[at] {
                next[at] = u64::from(sorted[leaf] >> 9);
                leaf += 1;
            } else {
                next[at] = of_pair;
                pair += 1;
            }
            at += 1;
        }
        len = at;
        std::mem::swap(&mut row, &mut next);
    }
    let mut taken_of_row = [0; LONGEST];
    let mut taken = 2 * n - 2;
    for (leaves, is_leaf) in taken_of_row.iter_mut().zip(&leaf_at[..most]).rev() {
        *leaves = is_leaf[..taken].iter().filter(|l| **l).count();
        taken = 2 * (taken - *leaves);
    }
    let mut of_length = [0; LONGEST + 1];
    for leaf in 0..n {
        of_length[taken_of_row.iter().filter(|taken| **taken > leaf).count()] += 1;
    }
    of_length
}

/// A code's bits, as they stand in the stream, above its length in bits, of which there are 8.
pub(super) type Code = u32;

/// The codes that follow from their lengths.
pub(super) fn codes(lengths: &[u8], codes: &mut [Code]) {
    let mut next = [0_u16; LONGEST + 2];
    for length in lengths.iter().filter(|l| **l > 0) {
        next[usize::from(*length) + 1] += 1;
    }
    for length in 1..=LONGEST {
        next[length + 1] = next[length + 1].wrapping_add(next[length]) << 1;
    }
    for (code, length) in codes.iter_mut().zip(lengths) {
        *code = 0;
        if *length > 0 {
            let bits = &mut next[usize::from(*length)];
            let reversed = bits.reverse_bits() >> (16 - u32::from(*length));
            *bits = bits.wrapping_add(1);
            *code = u32::from(reversed) << 8 | u32::from(*length);
        }
    }
}
