//! Text of the canonical form: names as bytes, and JSON lines with their keys in a stated order.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Bytes read as UTF-8: a backslash is written as two, and each byte of an invalid sequence as `\xhh`.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(s) = std::str::from_utf8(bytes)
        && !bytes.contains(&b'\\')
    {
        return Cow::Borrowed(s);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for part in bytes.utf8_chunks() {
        for c in part.valid().chars() {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
        }
        for b in part.invalid() {
            write!(out, "\\x{b:02x}").expect("writing to a String");
        }
    }
    Cow::Owned(out)
}

/// The same, as a JSON string with its quotes.
pub(super) fn quoted(bytes: &[u8]) -> String {
    json_string(&text(bytes))
}

/// A JSON string: only `"`, `\` and characters below U+0020 are escaped.
pub(super) fn json_string(s: &str) -> String {
    serde_json::to_string(s).expect("a string is always JSON")
}

/// One JSON object under construction, keys in the order of the calls.
#[derive(Debug)]
pub(super) struct Line(String);

impl Line {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    /// Appends a string value.
    pub(super) fn string(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        self.0.push_str(&json_string(value));
        self
    }

    /// Appends a number.
    pub(super) fn number(&mut self, key: &str, value: u64) -> &mut Self {
        self.key(key);
        write!(self.0, "{value}").expect("writing to a String");
        self
    }

    /// Appends a list of numbers, `None` as `null`.
    pub(super) fn numbers(&mut self, key: &str, values: impl IntoIterator<Item = Option<u64>>) -> &mut Self {
        self.key(key);
        self.0.push_str(&list(values));
        self
    }

    /// Appends a value that is JSON already.
    pub(super) fn json(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        self.0.push_str(value);
        self
    }

    /// The finished object.
    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A JSON list of numbers, `None` as `null`.
pub(super) fn list(values: impl IntoIterator<Item = Option<u64>>) -> String {
    let mut out = "[".to_owned();
    for (i, v) in values.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        match v {
            Some(v) => write!(out, "{v}").expect("writing to a String"),
            None => out.push_str("null"),
        }
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_double_and_invalid_bytes_become_hexadecimal() {
        // Values of Python's b.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace").
        assert_eq!(text(b"plain"), "plain");
        assert_eq!(text(b"a\\b"), "a\\\\b");
        assert_eq!(text(b"caf\xe9"), "caf\\xe9");
        assert_eq!(text(b"\xe2\x82x"), "\\xe2\\x82x");
        assert_eq!(text("µ\u{0}é".as_bytes()), "µ\u{0}é");
        assert_eq!(text(b"\xed\xa0\x80"), "\\xed\\xa0\\x80");
    }

    #[test]
    fn a_line_keeps_the_order_of_its_keys() {
        let mut line = Line::new();
        line.string("path", "/a\n\"").number("n", 3).numbers("shape", [Some(1), None]).json("attrs", "[]");
        assert_eq!(line.finish(), r#"{"path":"/a\n\"","n":3,"shape":[1,null],"attrs":[]}"#);
    }
}
