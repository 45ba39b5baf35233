//! As much of Rust's grammar as the layer check needs: tokens without comments, strings and test modules, and the
//! paths that begin at the crate's root.

use std::collections::BTreeMap;

/// The identifiers and punctuation of a source text, in order; everything else is left out.
pub fn tokens(source: &str) -> Vec<&str> {
    let b = source.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < b.len() {
        let rest = &source[at..];
        let c = b[at];
        let end = if rest.starts_with("//") {
            rest.find('\n').map_or(b.len(), |n| at + n)
        } else if rest.starts_with("/*") {
            block_comment_end(source, at)
        } else if let Some(end) = string_end(b, at) {
            end
        } else if c == b'\'' {
            quote_end(source, at)
        } else if c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80 {
            let word = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_' || *c >= 0x80;
            let end = at + b[at..].iter().take_while(|c| word(c)).count();
            out.push(&source[at..end]);
            end
        } else if rest.starts_with("::") {
            out.push("::");
            at + 2
        } else {
            if !c.is_ascii_whitespace() {
                out.push(&source[at..at + 1]);
            }
            at + 1
        };
        at = end;
    }
    out
}

/// Behind a block comment; they nest.
fn block_comment_end(source: &str, start: usize) -> usize {
    let b = source.as_bytes();
    let (mut at, mut depth) = (start, 0);
    while at < b.len() {
        if b[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if b[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    b.len()
}

/// Behind a string of any kind, when one begins here: `"…"`, `b"…"`, `r#"…"#`, `br"…"`, `c"…"`.
fn string_end(b: &[u8], start: usize) -> Option<usize> {
    let prefix = b[start..].iter().take_while(|c| matches!(c, b'b' | b'r' | b'c')).take(2).count();
    let raw = b[start..start + prefix].contains(&b'r');
    let hashes = if raw { b[start + prefix..].iter().take_while(|c| **c == b'#').count() } else { 0 };
    let open = start + prefix + hashes;
    if b.get(open) != Some(&b'"') {
        return None;
    }
    let mut at = open + 1;
    while at < b.len() {
        match b[at] {
            b'\\' if !raw => at += 2,
            b'"' if b[at + 1..].iter().take_while(|c| **c == b'#').take(hashes).count() == hashes => {
                return Some(at + 1 + hashes);
            }
            _ => at += 1,
        }
    }
    Some(b.len())
}

/// Behind a character literal, or behind the quote of a lifetime.
fn quote_end(source: &str, start: usize) -> usize {
    let mut chars = source[start + 1..].char_indices();
    match chars.next() {
        Some((_, '\\')) => {
            let escaped = chars.next().map_or(1, |(_, c)| 1 + c.len_utf8());
            let from = start + 1 + escaped;
            source[from..].find('\'').map_or(source.len(), |n| from + n + 1)
        }
        Some((_, _)) => match chars.next() {
            Some((n, '\'')) => start + 1 + n + 1,
            _ => start + 1,
        },
        None => source.len(),
    }
}

/// Removes items behind `#[cfg(test)]`: tests may reach up.
pub fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&mark) {
            out.push(tokens[at]);
            at += 1;
            continue;
        }
        let mut depth = 0;
        at += mark.len();
        while at < tokens.len() {
            match tokens[at] {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            let ends = depth == 0 && matches!(tokens[at], "}" | ";");
            at += 1;
            if ends {
                break;
            }
        }
    }
    out
}

/// The first names of all paths that start at the crate's root (`crate::a`, `crate::{a, b::c}`, and `super` chains that
/// climb there) in a file whose module is `depth` levels below the root.
pub fn root_names<'a>(tokens: &[&'a str], depth: usize) -> Vec<&'a str> {
    let mut out = Vec::new();
    for at in 0..tokens.len() {
        if at > 0 && tokens[at - 1] == "::" {
            continue;
        }
        let mut next = at;
        if tokens[at] == "crate" {
            next += 1;
        } else {
            let mut climbed = 0;
            while tokens.get(next) == Some(&"super") && (climbed == 0 || tokens[next - 1] == "::") {
                climbed += 1;
                next += if tokens.get(next + 2) == Some(&"super") { 2 } else { 1 };
            }
            if climbed == 0 || climbed != depth {
                continue;
            }
        }
        if tokens.get(next) == Some(&"::") {
            out.extend(branch_names(&tokens[next + 1..]));
        }
    }
    out
}

/// The first name of a path, or of every branch of a `{…}`.
fn branch_names<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    if tokens.first() != Some(&"{") {
        return tokens.first().copied().into_iter().collect();
    }
    let mut out = Vec::new();
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            name if depth == 1 && matches!(tokens[at - 1], "{" | ",") => out.push(name),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    out
}

/// What `lib.rs` re-exports: name → the module it comes from.
pub fn reexports<'a>(tokens: &[&'a str]) -> BTreeMap<&'a str, &'a str> {
    let mut out = BTreeMap::new();
    for at in 0..tokens.len() {
        let (["pub", "use"], rest) = tokens[at..].split_at(2.min(tokens.len() - at)) else { continue };
        let statement: Vec<&str> = rest.iter().take_while(|t| **t != ";").copied().collect();
        let Some(module) = statement.iter().find(|t| !matches!(**t, "crate" | "self" | "::")) else {
            continue;
        };
        for name in statement.iter().filter(|t| t.starts_with(|c: char| c.is_alphabetic())) {
            out.insert(*name, *module);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_hold_no_tokens() {
        let source =
            "a // crate::x\n/* b /* c */ d */ \"crate::\\\" y\" r#\"\" z\"# 'q' '\\'' <'life> br\"v\" e";
        assert_eq!(tokens(source), ["a", "<", "life", ">", "e"]);
    }

    #[test]
    fn test_modules_are_left_out() {
        let source = "use a; #[cfg(test)] mod tests { fn x() { crate::up() } } #[cfg(test)] mod t; use b;";
        assert_eq!(without_tests(&tokens(source)), ["use", "a", ";", "use", "b", ";"]);
    }

    #[test]
    fn paths_from_the_root_are_found_in_every_spelling() {
        let source = "use crate::{format::{x, y}, read, E as F}; fn f() { crate::index::g(); my::crate_; }
            use super::super::write::W; use super::near;";
        assert_eq!(root_names(&tokens(source), 2), ["format", "read", "E", "index", "write"]);
        assert_eq!(root_names(&tokens("super::near"), 1), ["near"]);
        assert_eq!(root_names(&tokens("pub(crate) fn f() {} pub(super) x"), 1), [""; 0]);
    }

    #[test]
    fn reexported_names_lead_to_their_module() {
        let names = reexports(&["pub", "use", "read", "::", "{", "File", ",", "Group", "}", ";"]);
        assert_eq!(names.get("Group"), Some(&"read"));
    }
}
