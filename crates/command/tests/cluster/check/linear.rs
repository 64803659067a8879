//! Linearizability: is there an order of all calls, each between its being sent and its answer, in which a plain
//! sequential thing would have answered the same? The search is Wing and Gong's, with a memory of what was tried
//! (Lowe 2017). A call without an answer may have happened at any time after it was sent, or never.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use super::{NEVER, Time};

/// The sequential thing.
pub(crate) trait Model {
    type State: Clone + Default + Eq + Hash;
    type Ask: Debug;
    type Answer: Debug;

    /// The state after a call, or nothing if it could not be answered like this. Without an answer anything goes.
    fn after(
        state: &Self::State,
        ask: &Self::Ask,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State>;
}

#[derive(Debug)]
pub(crate) struct Call<M: Model> {
    pub(crate) ask: M::Ask,
    /// Nothing if nobody knows.
    pub(crate) answer: Option<M::Answer>,
    pub(crate) sent: Time,
    pub(crate) received: Time,
}

impl<M: Model> Call<M> {
    /// A call that is under way.
    pub(crate) fn begun(ask: M::Ask, sent: Time) -> Call<M> {
        Call {
            ask,
            answer: None,
            sent,
            received: NEVER,
        }
    }
}

/// Looks for an order. The calls of one thing only: things are independent of each other.
pub(crate) fn linearizable<M: Model>(calls: &[Call<M>]) -> bool {
    let mut done = vec![0_u64; calls.len().div_ceil(64)];
    let mut tried = HashSet::new();
    search(calls, &M::State::default(), &mut done, &mut tried)
}

type Tried<S> = HashSet<(Vec<u64>, S)>;

fn search<M: Model>(
    calls: &[Call<M>],
    state: &M::State,
    done: &mut Vec<u64>,
    tried: &mut Tried<M::State>,
) -> bool {
    let missing = |at: &usize, done: &[u64]| done[at / 64] & (1 << (at % 64)) == 0;
    let open: Vec<usize> = (0..calls.len()).filter(|at| missing(at, done)).collect();
    if open.iter().all(|at| calls[*at].answer.is_none()) {
        return true;
    }
    if !tried.insert((done.clone(), state.clone())) {
        return false;
    }
    // Whoever was sent after an answer cannot come before the call that was answered.
    let first_end = open.iter().map(|at| calls[*at].received).min();
    let first_end = first_end.unwrap_or(NEVER);
    for at in open {
        let call = &calls[at];
        if call.sent > first_end {
            continue;
        }
        if let Some(next) = M::after(state, &call.ask, call.answer.as_ref()) {
            // A call without an answer that changes nothing need not be placed.
            if call.answer.is_none() && next == *state {
                continue;
            }
            done[at / 64] |= 1 << (at % 64);
            if search(calls, &next, done, tried) {
                return true;
            }
            done[at / 64] &= !(1 << (at % 64));
        }
    }
    false
}

/// What a name means: a gate's definition, or nothing.
#[derive(Debug)]
pub(crate) struct Definition;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Create(String),
    Delete,
    Show,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    NoGate,
    Found(String),
}

impl Model for Definition {
    type State = Option<String>;
    type Ask = Ask;
    type Answer = Answer;

    fn after(state: &Option<String>, ask: &Ask, answer: Option<&Answer>) -> Option<Option<String>> {
        match (ask, answer) {
            // A gate that is there with another definition stays.
            (Ask::Create(rule), None) => Some(state.clone().or(Some(rule.clone()))),
            (Ask::Create(rule), Some(Answer::Done)) => match state {
                Some(there) if there != rule => None,
                _ => Some(Some(rule.clone())),
            },
            (Ask::Delete, None) => Some(None),
            (Ask::Delete, Some(Answer::Done)) => state.is_some().then_some(None),
            (Ask::Delete | Ask::Show, Some(Answer::NoGate)) => state.is_none().then_some(None),
            (Ask::Show, Some(Answer::Found(rule))) => {
                (state.as_ref() == Some(rule)).then(|| state.clone())
            }
            (Ask::Show, None) => Some(state.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Calls = Vec<Call<Definition>>;

    fn call(ask: Ask, answer: Option<Answer>, sent: Time, received: Time) -> Call<Definition> {
        Call {
            ask,
            answer,
            sent,
            received,
        }
    }

    fn create(rule: &str, answer: Option<Answer>, sent: Time, received: Time) -> Call<Definition> {
        call(Ask::Create(rule.into()), answer, sent, received)
    }

    fn shown(rule: &str, sent: Time, received: Time) -> Call<Definition> {
        call(Ask::Show, Some(Answer::Found(rule.into())), sent, received)
    }

    fn none(sent: Time, received: Time) -> Call<Definition> {
        call(Ask::Show, Some(Answer::NoGate), sent, received)
    }

    #[test]
    fn histories_of_one_thing_have_an_order() {
        let done = || Some(Answer::Done);
        let right: [Calls; 4] = [
            vec![
                none(0, 1),
                create("A", done(), 2, 5),
                shown("A", 3, 4),
                call(Ask::Delete, done(), 6, 9),
                none(7, 8),
            ],
            // Unknown, and done much later.
            vec![
                create("A", None, 0, NEVER),
                none(1, 2),
                none(3, 4),
                shown("A", 5, 6),
            ],
            // Unknown, and never done.
            vec![create("A", None, 0, NEVER), create("B", done(), 1, 2)],
            // Two at once, and one has to be first.
            vec![
                create("A", done(), 0, 10),
                call(Ask::Delete, done(), 0, 10),
                none(11, 12),
            ],
        ];
        for (at, calls) in right.iter().enumerate() {
            assert!(linearizable(calls), "{at}");
        }
    }

    #[test]
    fn histories_that_no_order_explains_are_seen() {
        let done = || Some(Answer::Done);
        let wrong: [(&str, Calls); 6] = [
            ("lost", vec![create("A", done(), 0, 1), none(2, 3)]),
            (
                "a stale read",
                vec![
                    create("A", done(), 0, 1),
                    call(Ask::Delete, done(), 2, 3),
                    shown("A", 4, 5),
                ],
            ),
            ("from nowhere", vec![shown("A", 0, 1)]),
            (
                "seen, unseen, seen",
                vec![
                    create("A", None, 0, NEVER),
                    shown("A", 1, 2),
                    none(3, 4),
                    shown("A", 5, 6),
                ],
            ),
            (
                "created over another",
                vec![create("A", done(), 0, 1), create("B", done(), 2, 3)],
            ),
            (
                "deleted twice",
                vec![
                    create("A", done(), 0, 1),
                    call(Ask::Delete, done(), 2, 4),
                    call(Ask::Delete, done(), 3, 5),
                ],
            ),
        ];
        for (name, calls) in &wrong {
            assert!(!linearizable(calls), "{name}");
        }
    }

    /// Many clients at once, some without an answer, must not take for ever.
    #[test]
    fn a_crowded_history_is_searched_in_reasonable_time() {
        let mut calls = Vec::new();
        for round in 0..20_u64 {
            let at = round * 100;
            calls.push(create("A", None, at, NEVER));
            for client in 0..5 {
                calls.push(create("A", Some(Answer::Done), at + client, at + 90));
            }
            calls.push(shown("A", at + 91, at + 92));
            calls.push(call(Ask::Delete, Some(Answer::Done), at + 93, at + 99));
        }
        // One create without an answer may explain what is still there; a second sight needs a second one.
        assert!(linearizable(&calls));
        calls.retain(|call| call.answer.is_some());
        calls.push(shown("A", 3_000, 3_001));
        assert!(!linearizable(&calls));
    }
}
