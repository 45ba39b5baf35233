"""Decodes one block of pack format 2 as docs/formats/pack-v2-codec.md describes it, one count after the other.

Arguments: bytes of a count, pixels, scans. The block is standard input, the counts are standard output.
"""
import sys

MEANS = [
    256, 512, 1049, 1347, 1729, 2220, 2851, 3661, 4701, 6036, 7751, 9952, 12779, 16408, 21069, 27053, 34737, 44604,
    57272, 73539, 94427, 121246, 155683, 199902, 256679, 303237, 358240, 423220, 499987, 590678, 697818, 824393,
    973926, 1150583, 1359282, 1605837, 1841246, 2111164, 2420651, 2775507, 3182382, 3648903, 4183813, 4797138,
    5500374, 6307234, 7232587,
]
COUNTS = [8, 4, 2]
ESCAPE = 255


def ranked(n, most, base):
    """The 255 first tuples of n counts up to most."""
    tuples = [()]
    for _ in range(n):
        tuples = [t + (v,) for t in tuples for v in range(most + 1) if sum(t) + v <= 8]

    def rank(t):
        product = base ** sum(t)
        for v in t:
            for i in range(2, v + 1):
                product *= i
        return product, sum(v * (most + 1) ** i for i, v in enumerate(t))

    return sorted(tuples, key=rank)[:255]


TUPLES = [ranked(8, 3, 8), ranked(4, 15, 2), [(s % 16, s // 16) for s in range(255)]]


def frequencies(model):
    if model == len(MEANS):
        return 2, [16] * 256
    tuple_kind = 0 if model < 22 else 1 if model < 30 else 2
    w = [2**60]
    for v in range(1, 64):
        w.append(w[-1] * MEANS[model] // (v * 2**20))
    p = [x * 2**30 // sum(w) for x in w]
    f, rest = [0] * 256, 2**30
    for symbol, counts in enumerate(TUPLES[tuple_kind]):
        q = 2**30
        for v in counts:
            q = q * p[v] // 2**30
        f[symbol] = (q + 2**17) // 2**18 or int(q >= 2**15)
        if f[symbol]:
            rest -= q
    f[ESCAPE] = max(1, (rest + 2**17) // 2**18)
    while sum(f) != 4096:
        largest = f.index(max(f))
        f[largest] = max(f[largest] + 4096 - sum(f), f[largest] // 2, 1)
    return tuple_kind, f


class Bits:
    def __init__(self, data):
        self.value, self.at = int.from_bytes(data, "little"), 0

    def take(self, n):
        out = self.value >> self.at & (1 << n) - 1
        self.at += n
        return out

    def gamma(self):
        n = 0
        while not self.take(1):
            n += 1
        return 1 << n | self.take(n)

    def signed(self):
        n = self.gamma() - 1
        return n // 2 if n % 2 == 0 else -(n + 1) // 2


class Nibbles(Bits):
    def number(self):
        mark = self.take(4)
        return mark if mark < 13 else self.take({13: 8, 14: 16, 15: 32}[mark])


def decode(data, width, pixels, scans):
    if data[0] == 0:
        return data[1:]
    assert data[0] == 1
    at = 1

    def byte():
        nonlocal at
        at += 1
        return data[at - 1]

    def length():
        n = shift = 0
        while True:
            b = byte()
            n |= (b & 127) << shift
            shift += 7
            if b < 128:
                return n

    flags, n = byte(), byte()
    segment = 1 << (flags & 15)
    classes = []
    for _ in range(n):
        model, shift = byte(), byte()
        constant = byte() if model >= 0xC0 else None
        kind, f = (model & 63, None) if model >= 0x80 else frequencies(model)
        classes.append([kind, shift & 127, shift >= 128, f, constant])
    string, escapes = length(), length()
    bits = Bits(data[at : at + string])
    at += string
    nibbles = Nibbles(data[at : at + escapes])
    at += escapes
    groups, segments = -(-pixels // 8), -(-scans // segment)
    units, before = [], 0
    for _ in range(groups * segments):
        if n > 1:
            before += bits.signed()
        units.append(before)
    bases, before = [], 0
    for unit in units:
        _, shift, based, _, _ = classes[unit]
        if based:
            before = ((before >> shift) + bits.signed()) << shift
        bases.append(before if based else 0)
    for c in classes:
        if c[3] is None and c[4] is None:
            c[3] = [bits.gamma() - 1 for _ in range(256)]
            assert sum(c[3]) == 4096

    # Raw bits: (scan, group) to eight numbers.
    raw = {}
    for scan in range(scans):
        for group in range(groups):
            shift = classes[units[scan // segment * groups + group]][1]
            low = [0] * 8
            for i in range(shift // 8):
                low = [v | b << (8 * i) for v, b in zip(low, data[at : at + 8])]
                at += 8
            rest = int.from_bytes(data[at : at + shift % 8], "little")
            at += shift % 8
            for i in range(8):
                low[i] |= (rest >> (shift % 8 * i) & (1 << shift % 8) - 1) << (shift // 8 * 8)
            raw[scan, group] = low

    coded = any(c[4] is None for c in classes)
    states = []
    if coded:
        for _ in range(32 if flags & 32 else 4):
            states.append(int.from_bytes(data[at : at + 4], "little"))
            at += 4
    counts = {}
    for number, (kind, shift, based, f, constant) in enumerate(classes):
        slots = [(s, c) for s, n in enumerate(f or []) for c in range(n)]
        i = 0
        for scan in range(scans):
            for group in range(groups):
                if units[scan // segment * groups + group] != number:
                    continue
                values = []
                base = bases[scan // segment * groups + group]
                for _ in range(8 // COUNTS[kind]):
                    if constant is None:
                        x = states[i % len(states)]
                        symbol, offset = slots[x % 4096]
                        x = f[symbol] * (x >> 12) + offset
                        if x < 2**16:
                            x = x << 16 | int.from_bytes(data[at : at + 2], "little")
                            at += 2
                        states[i % len(states)] = x
                        i += 1
                    else:
                        symbol = constant
                    if symbol == ESCAPE and kind == 0:
                        for _ in range(2):
                            half = nibbles.take(8)
                            values += TUPLES[1][half] if half != ESCAPE else [nibbles.number() for _ in range(4)]
                    elif symbol == ESCAPE:
                        values += [nibbles.number() for _ in range(COUNTS[kind])]
                    else:
                        low = raw[scan, group][len(values) :]
                        values += [(base + (v << shift | b)) for v, b in zip(TUPLES[kind][symbol], low)]
                counts[scan, group] = values
    assert at == len(data) and all(x == 2**16 for x in states)
    out = bytearray()
    for scan in range(scans):
        row = [v for group in range(groups) for v in counts[scan, group]][:pixels]
        out += b"".join(v.to_bytes(width, "little") for v in row)
    return bytes(out)


if __name__ == "__main__":
    shape = [int(n) for n in sys.argv[1:]]
    sys.stdout.buffer.write(decode(sys.stdin.buffer.read(), *shape))
