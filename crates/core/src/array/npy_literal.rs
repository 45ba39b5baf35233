//! Python literals, as far as headers of `.npy` files hold them.

/// Deepest nesting of lists that is read.
const DEEPEST: usize = 16;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal {
    /// A string.
    Text(String),
    /// An unsigned integer.
    Number(u64),
    /// True or False.
    Bool(bool),
    /// A tuple or a list.
    List(Vec<Literal>),
}

/// Reads literals front to back.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    left: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { left: text }
    }

    /// What is left, without white space in front.
    pub(super) fn left(&mut self) -> &'a str {
        self.left = self.left.trim_start();
        self.left
    }

    /// Passes a token if it comes next.
    pub(super) fn pass(&mut self, token: &str) -> bool {
        match self.left().strip_prefix(token) {
            Some(rest) => {
                self.left = rest;
                true
            }
            None => false,
        }
    }

    /// The next value; `None` for what is none of these.
    pub(super) fn value(&mut self) -> Option<Literal> {
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> Option<Literal> {
        if self.pass("True") {
            return Some(Literal::Bool(true));
        }
        if self.pass("False") {
            return Some(Literal::Bool(false));
        }
        for (open, close) in [("(", ")"), ("[", "]")] {
            if self.pass(open) {
                return (depth < DEEPEST).then(|| self.items(close, depth + 1)).flatten().map(Literal::List);
            }
        }
        for quote in ['\'', '"'] {
            if self.left().starts_with(quote) {
                return self.text(quote).map(Literal::Text);
            }
        }
        let digits = self.left().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.left.len());
        let (number, rest) = self.left.split_at(digits);
        self.left = rest;
        // NumPy wrote long integers of Python 2 as 3L.
        self.pass("L");
        number.parse().ok().map(Literal::Number)
    }

    fn items(&mut self, close: &str, depth: usize) -> Option<Vec<Literal>> {
        let mut items = Vec::new();
        while !self.pass(close) {
            items.push(self.nested(depth)?);
            if !self.pass(",") {
                return self.pass(close).then_some(items);
            }
        }
        Some(items)
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.left.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.left = &self.left[at + 1..];
                    return Some(text);
                }
                '\\' => text.push(escaped(&mut chars)?),
                _ => text.push(c),
            }
        }
        None
    }
}

/// What the characters behind a backslash stand for.
fn escaped(chars: &mut impl Iterator<Item = (usize, char)>) -> Option<char> {
    let digits = match chars.next()?.1 {
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        c @ ('\\' | '\'' | '"') => return Some(c),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let mut code = 0;
    for _ in 0..digits {
        code = code * 16 + chars.next()?.1.to_digit(16)?;
    }
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_and_others_refused() {
        use Literal::{Bool, List, Number, Text};
        let text = |s: &str| Text(s.to_owned());
        let cases = [
            ("(2, 3,)", Some(List(vec![Number(2), Number(3)]))),
            ("( )", Some(List(vec![]))),
            (
                "[('a', '<i2'), (\"b'\", '<f4', (2,))]",
                Some(List(vec![
                    List(vec![text("a"), text("<i2")]),
                    List(vec![text("b'"), text("<f4"), List(vec![Number(2)])]),
                ])),
            ),
            ("'\\xe9\\u4e2d\\n\\\\'", Some(text("é中\n\\"))),
            ("True", Some(Bool(true))),
            ("3L", Some(Number(3))),
            ("-1", None),
            ("(1 2)", None),
            ("('a", None),
            ("'\\ud800'", None),
            ("None", None),
            ("99999999999999999999", None),
        ];
        for (from, expected) in cases {
            assert_eq!(Reader::new(from).value(), expected, "{from}");
        }
        assert_eq!(Reader::new(&"(".repeat(1 << 20)).value(), None);
    }
}
