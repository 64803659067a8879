//! Chang, Singhal and Liu, 1990: the token goes from waiter to waiter, and a request finds the last of
//! them along pointers that every request bends towards itself. The core is Naimi and Trehel's.
//!
//! Source: message exclusion §4.5, figure 4.13. The token also names the one expected to hold it last, by
//! which the thesis would shorten the pointers without saying when. Adopting it wherever it arrives closes
//! a circle (`specimens::chang_adopting`), so here the field is carried and not adopted.

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::{
    Algorithm, Channels, Cost, Experiment, Figure, Input, Message, NodeId, Output, Profile,
    Protocol, Range, Shape, Telling, erase,
};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "chang",
        title: "Chang, Singhal and Liu, 1990",
        source: "message exclusion §4.5",
        channels: Channels::AnyOrder,
        costs: &[
            Cost::messages(
                "O(log N) on average: at most log2 N, and 1 for the token",
                |setup| Range::new(0, hundredths((setup.users as f64).log2()) + 1.0),
            ),
            Cost::entry_delay("0 to N", |setup| Range::new(0, setup.users as u32)),
            Cost::synchronisation_delay("1", |_| Range::exactly(1)),
        ],
        // Table 4.2. It holds for few nodes only: a request is passed on more often where there are many.
        figures: &[Figure {
            what: "messages per entry, as the thesis has it",
            formula: "3 on average",
            range: |_| Range::new(0, 3),
            sizes: &[4, 16, 64, 256],
            chosen: &[],
            experiment: Experiment::FullLoad,
        }],
        telling: Telling {
            nodes: 3,
            entries: 2,
        },
        ..Profile::PLAIN
    },
    machine: |setup| {
        let users = setup.at_least(2)?;
        let config = Config { adopts_last: false };
        Ok(erase::<Chang>(Shape::users(users), config))
    },
};

/// Rounded up to what is worth printing.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).ceil() / 100.0
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Config {
    /// Whether a node follows the token's word on who will hold it last: never, but for a specimen.
    pub(super) adopts_last: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Chang {
    id: NodeId,
    /// Whom to ask: the last known to have asked. The node itself, when it is the last.
    root: NodeId,
    /// Who gets the token from here.
    next: Option<NodeId>,
    token: bool,
    /// Waiting or inside.
    requesting: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Pass {
    /// On behalf of the node that wants in, which may not be the one that sends it.
    Request(NodeId),
    Token {
        last: NodeId,
    },
}

impl Message for Pass {}

impl Protocol for Chang {
    type Problem = Mutex;
    type Message = Pass;
    type Config = Config;

    /// The token starts at node 0.
    fn new(id: NodeId, _: &Config) -> Self {
        Chang {
            id,
            root: NodeId(0),
            next: None,
            token: id == NodeId(0),
            requesting: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter) => {
                self.requesting = true;
                if self.token {
                    out.tell(Tell::Entered);
                } else {
                    out.send(self.root, Pass::Request(self.id));
                    self.root = self.id;
                }
            }
            Input::Ask(Ask::Leave) => {
                self.requesting = false;
                if let Some(next) = self.next.take() {
                    self.pass_token(next, self.root, out);
                }
            }
            Input::Message {
                message: Pass::Request(asker),
                ..
            } => self.on_request(asker, out),
            Input::Message {
                message: Pass::Token { last },
                ..
            } => {
                self.token = true;
                if config.adopts_last && self.root != self.id {
                    self.root = last;
                }
                out.tell(Tell::Entered);
                if self.next.is_some() {
                    out.tell(Tell::Wanted);
                }
            }
            Input::Start | Input::Timer(_) => {}
        }
    }
}

impl Chang {
    fn on_request(&mut self, asker: NodeId, out: &mut Output<Self>) {
        if self.root != self.id {
            out.send(self.root, Pass::Request(asker));
        } else if self.requesting {
            self.next = Some(asker);
            if self.token {
                out.tell(Tell::Wanted);
            }
        } else {
            self.pass_token(asker, asker, out);
        }
        self.root = asker;
    }

    fn pass_token(&mut self, to: NodeId, last: NodeId, out: &mut Output<Self>) {
        self.token = false;
        out.send(to, Pass::Token { last });
    }
}
