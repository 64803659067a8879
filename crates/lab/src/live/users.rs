//! The users of a live run. A node asks for its clients and is told for them; in a trace each ask is that of a user.

use testigo_protocol::{NodeId, RecordedInput, RecordedStep, Shape, UserId};

use crate::trace::{AskKind, TellKind};

/// Who of the users does what, so that the line of each node is kept.
pub(super) struct Users {
    shape: Shape,
    states: Vec<State>,
    /// Those who wait, in the order of asking.
    line: Vec<UserId>,
}

#[derive(Clone, PartialEq, Eq)]
enum State {
    Idle,
    /// With what the ask carries: a class.
    Waiting(String),
    Inside(String),
}

/// What an ask or a tell carries: `(Query)` of `Enter(Query)`.
fn carried(what: &str) -> &str {
    what.find('(').map_or("", |at| &what[at..])
}

impl Users {
    pub(super) fn new(shape: Shape) -> Users {
        Users {
            states: vec![State::Idle; shape.users],
            shape,
            line: Vec::new(),
        }
    }

    fn at(&self, node: NodeId, state: &State) -> Option<UserId> {
        let mut users = self.shape.users_at(node);
        users.find(|user| self.states[user.index()] == *state)
    }

    /// Whose ask this is. A user alone at its node asks everything, whether or not it may.
    pub(super) fn ask(&mut self, node: NodeId, what: &str) -> Option<UserId> {
        let class = carried(what).to_owned();
        let (from, to) = match AskKind::read(what) {
            AskKind::Requests => (State::Idle, State::Waiting(class)),
            AskKind::Leaves | AskKind::Says => (State::Inside(class), State::Idle),
        };
        let alone = match self.shape.is_shared() {
            true => None,
            false => self.shape.users_at(node).next(),
        };
        let user = self.at(node, &from).or(alone)?;
        if self.shape.is_shared() && matches!(to, State::Waiting(_)) {
            self.line.push(user);
        }
        self.states[user.index()] = to;
        Some(user)
    }

    /// Who is told this: the first in the line of its node that waits for it.
    pub(super) fn tell(&mut self, node: NodeId, what: &str) -> Option<UserId> {
        if !self.shape.is_shared() {
            let user = self.shape.users_at(node).next()?;
            if TellKind::read(what) == TellKind::Enters {
                self.states[user.index()] = State::Inside(carried(what).to_owned());
            }
            return Some(user);
        }
        let class = carried(what).to_owned();
        let waits = State::Waiting(class.clone());
        let hears =
            |user: &UserId| self.shape.home(*user) == node && self.states[user.index()] == waits;
        let place = self.line.iter().position(hears)?;
        let user = self.line.remove(place);
        self.states[user.index()] = State::Inside(class);
        Some(user)
    }
}

/// The users that each node needs, as many as were busy there together: the choice of `classes`.
pub(super) fn classes<'a>(nodes: usize, steps: impl Iterator<Item = &'a RecordedStep>) -> String {
    let (mut busy, mut most) = (vec![0_usize; nodes], vec![1_usize; nodes]);
    for step in steps {
        let node = step.member.index();
        if let RecordedInput::Ask(what) = &step.input {
            match AskKind::read(what) {
                AskKind::Requests => busy[node] += 1,
                AskKind::Leaves | AskKind::Says => busy[node] = busy[node].saturating_sub(1),
            }
        }
        most[node] = most[node].max(busy[node]);
    }
    let lists: Vec<String> = most
        .iter()
        .map(|&users| vec!["any"; users].join(","))
        .collect();
    lists.join("/")
}
