//! What nodes can know of requests, in a state of the checker: a bit for every user whose request has not
//! been served, at every node and with every message. It says which entries pass a request knowingly.

use testigo_protocol::{NodeId, Problem, UserId, WordOf};

use super::state::{Draft, View};

/// In place of a count: once more than promised.
const TOO_OFTEN: u32 = u32::MAX;

/// What is known in a state in the making.
pub(crate) struct Knowledge;

impl Knowledge {
    /// One bit a user.
    pub(crate) const USERS_MAX: usize = 32;

    /// A user has asked.
    pub(crate) fn asked(draft: &mut Draft, home: NodeId, user: UserId) {
        if let Some(known) = draft.known.get_mut(home.index()) {
            *known |= 1 << user.0;
        }
    }

    /// A message at this place is taken: what it brings word of.
    pub(crate) fn delivered(draft: &mut Draft, to: NodeId, place: usize) {
        if place < draft.word_of.len() {
            let word_of = draft.word_of.remove(place);
            draft.known[to.index()] |= word_of;
        }
    }

    /// A message is put at this place; `own` are the sender's users that have a request of a kind.
    pub(crate) fn sent(
        draft: &mut Draft,
        from: NodeId,
        place: usize,
        word_of: WordOf,
        own: impl Fn(&Draft, u32) -> u32,
    ) {
        let Some(&known) = draft.known.get(from.index()) else {
            return;
        };
        let told = match word_of {
            WordOf::All => known,
            WordOf::Own(kind) => known & own(draft, kind),
            WordOf::Nothing => 0,
        };
        draft.word_of.insert(place, told);
    }

    /// Whether a node, or a message, that has this word knows of a user's request.
    pub(crate) fn of(known: u32) -> impl Fn(UserId) -> bool {
        move |user| known & 1 << user.0 != 0
    }

    /// Somebody who was passed too often, if anybody was.
    pub(crate) fn violation(view: &View<'_>) -> Option<String> {
        let victim = view.passed.iter().position(|&passed| passed == TOO_OFTEN)?;
        Some(format!(
            "p{victim} was passed more often than promised, by entries that could know of it"
        ))
    }

    /// A user has entered: its own request is over, and others may have been passed once too often.
    pub(crate) fn entered<Q: Problem>(
        draft: &mut Draft,
        home: NodeId,
        entered: UserId,
        users: &[Q::User],
    ) {
        let known = draft.known[home.index()];
        let gone = !(1 << entered.0);
        draft.known.iter_mut().for_each(|known| *known &= gone);
        draft.word_of.iter_mut().for_each(|known| *known &= gone);
        draft.passed[entered.index()] = 0;
        for waiting in UserId::all(users.len()) {
            if known & gone & 1 << waiting.0 == 0 {
                continue;
            }
            if let Some(most) = Q::bypass_max(users, entered, waiting) {
                let passed = &mut draft.passed[waiting.index()];
                *passed = match *passed {
                    passed if passed < most => passed + 1,
                    _ => TOO_OFTEN,
                };
            }
        }
    }
}
