//! Large memory of loaders that were closed, for the next loader of the process: the system clears new memory before it
//! is filled, which takes as long as filling it, and the first batch is waited for.
//!
//! Nobody waits for the list: who finds it in use does without. So a forked child, where a thread that is not there may
//! hold it, does without for good.

use std::sync::Mutex;
use tensilo_core::buffer::HUGE_FROM;

/// Bytes of all that is kept: one batch of 256 pictures, 224 x 224 in colours, and some more.
const MOST: usize = 64 << 20;

/// The oldest first.
static KEPT: Mutex<Vec<Vec<u128>>> = Mutex::new(Vec::new());

fn bytes(units: &[u128]) -> usize {
    size_of_val(units)
}

/// Keeps memory, if it is large, and lets older memory go for it.
pub(crate) fn keep(units: Vec<u128>) {
    let new = bytes(&units);
    if !(HUGE_FROM..=MOST).contains(&new) {
        return;
    }
    let mut gone = Vec::new();
    if let Ok(mut kept) = KEPT.try_lock() {
        while kept.iter().map(|v| bytes(v)).sum::<usize>() + new > MOST {
            gone.push(kept.remove(0));
        }
        kept.push(units);
    }
    // Giving it back to the system takes a while: not under the lock.
    drop(gone);
}

/// Memory of at least `needed` units, and at most twice as many, if there is some; its contents mean nothing.
pub(crate) fn take(needed: usize) -> Option<Vec<u128>> {
    if needed.saturating_mul(size_of::<u128>()) < HUGE_FROM {
        return None;
    }
    let mut kept = KEPT.try_lock().ok()?;
    let found = kept.iter().rposition(|v| v.len() >= needed && v.len() / 2 <= needed)?;
    Some(kept.remove(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_is_handed_on_the_newest_first_and_no_more_than_allowed() {
        // The only test of this process that has such memory.
        let n = HUGE_FROM / size_of::<u128>();
        for (at, units) in (0..20_u128).map(|k| (k, vec![k; n])) {
            keep(units);
            assert!(KEPT.lock().unwrap().iter().map(|v| bytes(v)).sum::<usize>() <= MOST);
            assert_eq!(KEPT.lock().unwrap().len() as u128, (at + 1).min((MOST / HUGE_FROM) as u128));
        }
        keep(vec![0; n - 1]);
        keep(vec![0; MOST / size_of::<u128>() + 1]);
        assert_eq!(take(n - 1), None, "small memory is nobody's concern");
        assert_eq!(take(2 * n + 2), None, "none is so large");
        assert_eq!(take(n).map(|v| v[0]), Some(19));
        assert_eq!(take(n).map(|v| v[0]), Some(18));
        keep(vec![7; 2 * n]);
        assert_eq!(take(n).map(|v| (v[0], v.len())), Some((7, 2 * n)));
        while take(n).is_some() {}
        assert!(KEPT.lock().unwrap().is_empty());
    }
}
