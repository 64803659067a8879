//! Command histories: sequences of commands that are equal but for the order of commands that commute.
//!
//! Source: coordination and agreement §5.5.4, the c-structs of Generalized Paxos with append, prefix, greatest lower and least
//! upper bound. A command reads or writes a key; two conflict if they have the same key and one of them writes.

use serde::{Deserialize, Serialize};

use super::user::Value;

/// How many different commands a user chooses among: a write and a read of each key.
pub(super) const COMMANDS: u32 = 2 * KEYS;

const KEYS: u32 = 2;

/// What a value means as a command: its key, and whether it writes.
fn command(value: Value) -> (u32, bool) {
    let choice = value.0.saturating_sub(1) % COMMANDS;
    (choice / 2, choice.is_multiple_of(2))
}

/// Whether the order of two commands matters.
pub(super) fn conflict(one: Value, other: Value) -> bool {
    let ((key, writes), (other_key, other_writes)) = (command(one), command(other));
    one != other && key == other_key && (writes || other_writes)
}

/// A history, as one of the orders that it stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub(super) struct History(pub(super) Vec<Value>);

/// Says whether the order of two commands matters.
pub(super) type Conflict = fn(Value, Value) -> bool;

impl History {
    pub(super) fn contains(&self, value: Value) -> bool {
        self.0.contains(&value)
    }

    /// `self • value`
    pub(super) fn append(&mut self, value: Value) {
        if !self.contains(value) {
            self.0.push(value);
        }
    }

    /// What a command comes after, because they conflict.
    fn before(&self, value: Value, conflict: Conflict) -> impl Iterator<Item = Value> + '_ {
        let earlier = self
            .0
            .iter()
            .copied()
            .take_while(move |other| *other != value);
        earlier.filter(move |other| conflict(*other, value))
    }

    /// `self ⊓ other`: the longest history that both begin with.
    pub(super) fn common(&self, other: &History, conflict: Conflict) -> History {
        let mut common = History::default();
        for &value in &self.0 {
            let begins = |history: &History, common: &History| {
                let mut before = history.before(value, conflict);
                before.all(|earlier| common.contains(earlier))
            };
            if other.contains(value) && begins(self, &common) && begins(other, &common) {
                common.0.push(value);
            }
        }
        common
    }

    /// `self ⊑ other`
    #[cfg(test)]
    pub(super) fn begins(&self, other: &History, conflict: Conflict) -> bool {
        self.common(other, conflict).0.len() == self.0.len()
    }

    /// `self ⊔ other`, of two histories that are compatible.
    pub(super) fn join(&mut self, other: &History) {
        other.0.iter().for_each(|value| self.append(*value));
    }

    /// Two commands that keep `self` and `other` from having a common continuation: `self` has the first before the
    /// second, and `other` has the second without the first before it.
    pub(super) fn clash(&self, other: &History, conflict: Conflict) -> Option<(Value, Value)> {
        let shared = self
            .0
            .iter()
            .copied()
            .filter(|value| other.contains(*value));
        shared
            .flat_map(|later| {
                self.before(later, conflict)
                    .map(move |earlier| (earlier, later))
            })
            .find(|(earlier, later)| {
                !other
                    .before(*later, conflict)
                    .any(|value| value == *earlier)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Two writes of key 0, a read of key 0, a write of key 1.
    const W0: Value = Value(1);
    const W0_AGAIN: Value = Value(5);
    const R0: Value = Value(2);
    const W1: Value = Value(3);

    fn history(values: &[Value]) -> History {
        History(values.to_vec())
    }

    #[test]
    fn commands_conflict_on_a_key_that_one_writes() {
        assert!(conflict(W0, W0_AGAIN) && conflict(W0, R0));
        assert!(!conflict(W0, W1) && !conflict(R0, Value(6)) && !conflict(W0, W0));
    }

    #[test]
    fn commuting_commands_may_swap() {
        let (one, other) = (history(&[W0, W1]), history(&[W1, W0]));
        assert!(one.begins(&other, conflict) && other.begins(&one, conflict));
        assert_eq!(one.clash(&other, conflict), None);
        assert_eq!(one.common(&other, conflict), one);
    }

    #[test]
    fn conflicting_commands_may_not() {
        let (one, other) = (history(&[W1, W0, R0]), history(&[R0, W0, W1]));
        assert_eq!(one.common(&other, conflict), history(&[W1]));
        assert_eq!(one.clash(&other, conflict), Some((W0, R0)));
        // Whoever has only the later one can never have the earlier one before it.
        assert_eq!(one.clash(&history(&[R0]), conflict), Some((W0, R0)));
        assert_eq!(one.clash(&history(&[W0]), conflict), None);
    }

    #[test]
    fn a_prefix_has_all_that_comes_before() {
        let whole = history(&[W0, W1, R0]);
        assert!(history(&[W1]).begins(&whole, conflict));
        assert!(history(&[W0, R0]).begins(&whole, conflict));
        assert!(!history(&[R0]).begins(&whole, conflict));
        let mut joined = history(&[W1]);
        joined.join(&history(&[W0, R0]));
        assert!(joined.begins(&whole, conflict) && whole.begins(&joined, conflict));
    }
}
