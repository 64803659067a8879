//! Decisions: of all values proposed under a name, the first in log order is decided, and everybody is told that one. The log
//! is the consensus; this is only its memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::job::Body;
use crate::limits::Limits;
use crate::name::Name;

/// What was decided, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decisions(BTreeMap<Name, Body>);

impl Decisions {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn after(&self, name: Bound<&Name>) -> impl Iterator<Item = (&Name, &Body)> {
        self.0.range::<Name, _>((name, Bound::Unbounded))
    }

    /// Whether a value could be proposed. A name that is already decided needs no room.
    pub(super) fn check(&self, name: &Name, value: &Body) -> Result<(), Refusal> {
        if value.len() > Limits::VALUE_BYTES {
            return Err(Refusal::new(
                Word::BadArg,
                format!(
                    "the value has {} bytes; at most {} are allowed",
                    value.len(),
                    Limits::VALUE_BYTES
                ),
            ));
        }
        if self.0.contains_key(name) || self.0.len() < Limits::DECISIONS {
            return Ok(());
        }
        Err(Refusal::new(
            Word::Limit,
            format!(
                "{} decisions are on record, and the limit decisions is {}; forget some",
                self.0.len(),
                Limits::DECISIONS
            ),
        ))
    }

    /// Decides on a value unless there is a decision; returns the decided value.
    pub(super) fn decide(&mut self, name: &Name, value: &Body) -> Body {
        let decided = self.0.entry(name.clone());
        decided.or_insert_with(|| value.clone()).clone()
    }

    /// Forgets a decision; says whether there was one.
    pub(super) fn forget(&mut self, name: &Name) -> bool {
        self.0.remove(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> Name {
        Name::new(&format!("d{number}")).unwrap()
    }

    fn value(text: &str) -> Body {
        Body::from(text.as_bytes())
    }

    #[test]
    fn the_first_value_is_decided_until_it_is_forgotten() {
        let mut decisions = Decisions::default();
        assert_eq!(decisions.decide(&name(1), &value("one")), value("one"));
        assert_eq!(decisions.decide(&name(1), &value("two")), value("one"));
        assert_eq!(decisions.decide(&name(2), &value("")), value(""));
        assert_eq!(decisions.decide(&name(2), &value("late")), value(""));
        assert!(decisions.forget(&name(1)));
        assert!(!decisions.forget(&name(1)));
        assert_eq!(decisions.decide(&name(1), &value("two")), value("two"));
    }

    #[test]
    fn a_decision_beyond_the_limit_is_refused_and_an_earlier_one_is_not() {
        let mut decisions = Decisions::default();
        for number in 0..Limits::DECISIONS {
            decisions.decide(&name(number), &value("x"));
        }
        let beyond = name(Limits::DECISIONS);
        let refused = decisions.check(&beyond, &value("x")).unwrap_err();
        assert_eq!(refused.word, Word::Limit);
        assert!(refused.sentence.contains("limit decisions is 100000"));
        assert_eq!(decisions.check(&name(7), &value("y")), Ok(()));
        decisions.forget(&name(7));
        assert_eq!(decisions.check(&beyond, &value("x")), Ok(()));
        let long = Body::from(&[0; Limits::VALUE_BYTES + 1][..]);
        let refused = decisions.check(&beyond, &long).unwrap_err();
        assert_eq!(refused.word, Word::BadArg);
        assert!(refused.sentence.contains("4097 bytes; at most 4096"));
        let longest = Body::from(&[0; Limits::VALUE_BYTES][..]);
        assert_eq!(decisions.check(&beyond, &longest), Ok(()));
    }
}
