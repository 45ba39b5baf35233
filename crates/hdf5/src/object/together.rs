//! Structures that are needed in any case are asked for in one round, where the bytes are yet to be fetched.

use tensilo_core::{Error, ErrorKind, Result};

/// A result; when bytes are missing, with those that `also` misses. Nothing of `also` is done otherwise.
pub(super) fn together<T>(result: Result<T>, also: impl FnOnce() -> Result<()>) -> Result<T> {
    match result {
        Err(e) if e.kind() == ErrorKind::Missing => match also() {
            Err(other) if other.kind() == ErrorKind::Missing => {
                Err(Error::missing([e.missing_ranges(), other.missing_ranges()].concat()))
            }
            _ => Err(e),
        },
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_asked_for_at_once() {
        let missing = |range| Err::<(), _>(Error::missing(vec![range]));
        let e = together(missing(0..4), || missing(8..9)).unwrap_err();
        assert_eq!(e.missing_ranges(), [0..4, 8..9]);
        let e = together(missing(0..4), || Err(Error::corrupt("not asked about"))).unwrap_err();
        assert_eq!(e.missing_ranges().iter().map(|r| r.end).collect::<Vec<_>>(), [4]);
        let other: Result<()> = Err(Error::corrupt("an answer"));
        assert_eq!(together(other, || missing(0..4)).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(together(Ok(5), || missing(0..4)).unwrap(), 5);
    }
}
