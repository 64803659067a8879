//! Once-keys: nobody is told to run what somebody else runs or has done, unless that attempt was abandoned.

use std::collections::{BTreeMap, BTreeSet};

use super::{NEVER, Time};

#[derive(Debug, Default)]
pub(crate) struct Once {
    keys: BTreeMap<String, Key>,
}

#[derive(Debug, Default)]
struct Key {
    attempts: BTreeSet<i64>,
    /// Attempts that were abandoned, or may have been.
    abandoned: BTreeSet<i64>,
    /// When the first acknowledged end was known.
    done: Option<Time>,
}

impl Once {
    /// A client was told to run.
    pub(crate) fn runs(&mut self, name: &str, attempt: i64, sent: Time) -> Result<(), String> {
        let key = self.keys.entry(name.to_owned()).or_default();
        key.attempts.insert(attempt);
        if sent > key.done.unwrap_or(NEVER) {
            return Err(format!("{name} runs as {attempt} after it was done"));
        }
        if key.attempts.difference(&key.abandoned).count() > 1 {
            return Err(format!("{name} runs twice: {key:?}"));
        }
        Ok(())
    }

    /// A client is about to abandon its attempt, whatever becomes of that.
    pub(crate) fn abandons(&mut self, name: &str, attempt: i64) {
        let key = self.keys.entry(name.to_owned()).or_default();
        key.abandoned.insert(attempt);
    }

    /// An end was acknowledged.
    pub(crate) fn done(&mut self, name: &str, received: Time) {
        let key = self.keys.entry(name.to_owned()).or_default();
        key.done = Some(key.done.map_or(received, |before| before.min(received)));
    }

    /// A client was told, in answer to what it sent, that nobody has done it: it was refused, or its end is unknown.
    pub(crate) fn undone(&self, name: &str, sent: Time) -> Result<(), String> {
        let done = self.keys.get(name).and_then(|key| key.done);
        match sent > done.unwrap_or(NEVER) {
            true => Err(format!("{name} was done, and is not any more")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_and_another_after_it_was_abandoned_pass() {
        let mut once = Once::default();
        assert_eq!(once.runs("a", 5, 0), Ok(()));
        // Answered again.
        assert_eq!(once.runs("a", 5, 1), Ok(()));
        once.abandons("a", 5);
        assert_eq!(once.runs("a", 9, 2), Ok(()));
        assert_eq!(once.undone("a", 3), Ok(()));
        once.done("a", 10);
        assert_eq!(once.undone("a", 9), Ok(()));
    }

    #[test]
    fn a_second_run_is_seen() {
        let mut once = Once::default();
        assert_eq!(once.runs("a", 5, 0), Ok(()));
        assert!(once.runs("a", 6, 1).is_err_and(|why| why.contains("twice")));
        let mut once = Once::default();
        once.done("a", 10);
        assert!(
            once.runs("a", 7, 11)
                .is_err_and(|why| why.contains("after"))
        );
        assert!(once.undone("a", 11).is_err());
    }
}
