//! Test counts, read from the lines with which the runners close.

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that ran and passed.
    pub passed: u64,
    /// Tests that failed, and errors outside tests.
    pub failed: u64,
}

impl Counts {
    /// Adds the counts of one line of output, if it closes a run of libtest or pytest.
    pub fn add_line(&mut self, line: &str) {
        let line = line.trim();
        let body = if let Some(rest) = line.strip_prefix("test result: ") {
            rest.split_once(". ").map_or("", |(_, counts)| counts)
        } else {
            let inner = line.trim_matches('=').trim();
            match inner.rsplit_once(" in ") {
                Some((counts, time)) if time.starts_with(|c: char| c.is_ascii_digit()) => counts,
                _ => "",
            }
        };
        for part in body.split([',', ';']) {
            let Some((n, word)) = part.trim().split_once(' ') else { continue };
            let Ok(n) = n.parse::<u64>() else { continue };
            match word {
                "passed" => self.passed += n,
                "failed" | "error" | "errors" => self.failed += n,
                _ => {}
            }
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> (u64, u64) {
        let mut counts = Counts::default();
        lines.iter().for_each(|l| counts.add_line(l));
        (counts.passed, counts.failed)
    }

    #[test]
    fn lines_of_libtest_are_summed() {
        assert_eq!(
            of(&[
                "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.02s",
                "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
            ]),
            (8, 2)
        );
    }

    #[test]
    fn lines_of_pytest_are_summed() {
        assert_eq!(of(&["======= 1 failed, 12 passed, 3 skipped, 2 errors in 0.31s ======="]), (12, 3));
        assert_eq!(of(&["4 passed in 0.01s", "===== 1 passed in 61.40s (0:01:01) ====="]), (5, 0));
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            of(&["test a ... ok", "running 5 tests", "2 failed, 1 passed", "built in 3 passed"]),
            (0, 0)
        );
    }
}
