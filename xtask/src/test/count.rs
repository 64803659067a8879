//! Reads how many tests ran from the summary lines of nextest and of cargo's own runner.

use std::ops::AddAssign;

/// Tests that passed, and tests that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The number of tests in a whole run, or `None` where the run did not get as far as to say it.
pub(super) fn read(output: &str) -> Option<Count> {
    // nextest sums up once, but repeats what failed tests wrote: cargo's own lines may be among that.
    if let Some(count) = output.lines().rev().find_map(nextest) {
        return Some(count);
    }
    let (mut sum, mut open) = (None, 0);
    for line in output.lines() {
        if line.starts_with("running ") && line.ends_with(['t', 's']) {
            open += 1;
        } else if let Some(count) = libtest(line) {
            open -= 1;
            *sum.get_or_insert_default() += count;
        }
    }
    // A program that died has no result, however many others have.
    sum.filter(|_| open == 0)
}

/// `Summary [   0.8s] 3 tests run: 1 passed (1 slow), 1 failed, 1 timed out, 0 skipped`
fn nextest(line: &str) -> Option<Count> {
    let rest = line.trim_start().strip_prefix("Summary [")?;
    let (_, verdicts) = rest.split_once(" run: ")?;
    Some(sum(verdicts.split(", ")))
}

/// `test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn libtest(line: &str) -> Option<Count> {
    let rest = line.strip_prefix("test result: ")?;
    let (_, verdicts) = rest.split_once(". ")?;
    Some(sum(verdicts.split("; ")))
}

/// Adds verdicts such as `3 passed`; whatever ran and did not pass has failed.
fn sum<'a>(verdicts: impl Iterator<Item = &'a str>) -> Count {
    let mut count = Count::default();
    for verdict in verdicts {
        let Some((number, what)) = verdict.split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        // nextest adds remarks in parentheses: `2 passed (1 slow, 1 flaky)`.
        match what.split(" (").next() {
            Some("passed") => count.passed += number,
            Some("failed" | "timed out" | "exec failed") => count.failed += number,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(passed: u64, failed: u64) -> Option<Count> {
        Some(Count { passed, failed })
    }

    #[test]
    fn nextest_is_read() {
        let one = "     Summary [   0.005s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(read(one), count(1, 0));
        let mixed = "Summary [ 9.1s] 9 tests run: 4 passed (1 slow, 2 flaky), 2 failed, \
                     2 timed out, 1 exec failed, 3 skipped";
        assert_eq!(read(mixed), count(4, 5));
    }

    #[test]
    fn the_results_of_all_test_programs_are_added() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            running 5 tests\n\
            test result: FAILED. 1 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(read(output), count(3, 3));
    }

    #[test]
    fn what_failed_tests_wrote_is_not_counted_again() {
        let output = "running 1 test\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\
            Summary [ 0.2s] 5 tests run: 4 passed, 1 failed, 0 skipped\nerror: test run failed";
        assert_eq!(read(output), count(4, 1));
    }

    #[test]
    fn a_program_that_died_leaves_no_count() {
        let output = "running 1 test\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\
            running 2 tests\nerror: test failed (signal: 6, SIGABRT: process abort signal)";
        assert_eq!(read(output), None);
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            read("error: could not compile\n3 passed, 1 failed\nSummary"),
            None
        );
    }
}
