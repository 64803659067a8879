//! A token goes round a ring; who holds it may enter (Le Lann, 1977).
//!
//! Source: coordination and agreement §2.3, message exclusion §2.2. The token starts at node 0 and
//! circulates even when nobody wants it.

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::{
    Algorithm, Channels, Cost, Input, Message, NodeId, Output, Profile, Protocol, Range, Shape,
    Telling, erase,
};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "token-ring",
        title: "Token ring (Le Lann, 1977)",
        source: "coordination and agreement §2.3, message exclusion §2.2",
        channels: Channels::AnyOrder,
        idle_traffic: true,
        costs: &[
            Cost::messages("1 to N while somebody waits", |setup| {
                Range::new(1, setup.users as u32)
            }),
            Cost::entry_delay("0 to N", |setup| Range::new(0, setup.users as u32)),
            Cost::synchronisation_delay("1 to N−1", |setup| {
                Range::new(1, setup.users.max(2) as u32 - 1)
            }),
        ],
        telling: Telling {
            nodes: 3,
            entries: 2,
        },
        ..Profile::PLAIN
    },
    machine: |setup| {
        let users = setup.at_least(2)?;
        Ok(erase::<TokenRing>(Shape::users(users), users))
    },
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct TokenRing {
    id: NodeId,
    pending: bool,
    holding: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Round {
    Token,
}

impl Message for Round {}

impl Protocol for TokenRing {
    type Problem = Mutex;
    type Message = Round;
    type Config = usize;

    fn new(id: NodeId, _: &usize) -> Self {
        TokenRing {
            id,
            pending: false,
            holding: false,
        }
    }

    fn step(&mut self, input: Input<Self>, &nodes: &usize, out: &mut Output<Self>) {
        match input {
            Input::Start if self.id == NodeId(0) => out.send(self.id.next(nodes), Round::Token),
            Input::Ask(Ask::Enter) => self.pending = true,
            Input::Message {
                message: Round::Token,
                ..
            } if self.pending => {
                self.pending = false;
                self.holding = true;
                out.tell(Tell::Entered);
            }
            Input::Message {
                message: Round::Token,
                ..
            } => out.send(self.id.next(nodes), Round::Token),
            Input::Ask(Ask::Leave) => {
                self.holding = false;
                out.send(self.id.next(nodes), Round::Token);
            }
            _ => {}
        }
    }
}
