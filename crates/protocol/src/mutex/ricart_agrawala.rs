//! Ricart and Agrawala, 1981: ask everybody; whoever wants the section more urgently answers late.
//!
//! Source: coordination and agreement §2.4, message exclusion §2.4. Messages may overtake each other.
//! The course claims that entries follow happened-before; with replies that carry no time they do
//! not, because a chain of replies can outrun a slow request. Here a reply carries the clock too.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::{
    Algorithm, Channels, Claim, Cost, Input, LamportClock, Message, NodeId, Output, Profile,
    Protocol, Range, Shape, Stamp, Telling, erase,
};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "ricart-agrawala",
        title: "Ricart and Agrawala, 1981",
        source: "coordination and agreement §2.4, message exclusion §2.4",
        channels: Channels::AnyOrder,
        claims: &[
            Claim::Safety,
            Claim::DeadlockFreedom,
            Claim::LockoutFreedom,
            Claim::Order,
        ],
        costs: &[
            Cost::messages("2(N−1)", |setup| {
                Range::exactly(2 * (setup.users as u32 - 1))
            }),
            Cost::entry_delay("2", |_| Range::exactly(2)),
            Cost::synchronisation_delay("1", |_| Range::exactly(1)),
        ],
        telling: Telling {
            nodes: 3,
            entries: 2,
        },
        ..Profile::PLAIN
    },
    machine: |setup| {
        let nodes = setup.at_least(2)?;
        Ok(erase::<RicartAgrawala>(
            Shape::users(nodes),
            Config {
                nodes,
                updates_clock: true,
            },
        ))
    },
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) nodes: usize,
    /// False only in the specimen.
    pub(super) updates_clock: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RicartAgrawala {
    id: NodeId,
    clock: LamportClock,
    state: State,
    /// Those who are answered after the next exit.
    deferred: BTreeSet<NodeId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Released,
    Wanted { mine: Stamp, replies: usize },
    Held,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Permission {
    Request(Stamp),
    Reply(u64),
}

impl Message for Permission {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        match self {
            Permission::Request(stamp) => visit(&mut stamp.time),
            Permission::Reply(time) => visit(time),
        }
    }
}

impl Protocol for RicartAgrawala {
    type Problem = Mutex;
    type Message = Permission;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        RicartAgrawala {
            id,
            clock: LamportClock::default(),
            state: State::Released,
            deferred: BTreeSet::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter) => {
                let mine = Stamp {
                    time: self.clock.tick(),
                    node: self.id,
                };
                self.state = State::Wanted { mine, replies: 0 };
                out.send_all(self.id.others(config.nodes), &Permission::Request(mine));
            }
            Input::Message {
                from,
                message: Permission::Request(theirs),
            } => {
                if config.updates_clock {
                    self.clock.observe(theirs.time);
                }
                match &self.state {
                    State::Held => {
                        if self.deferred.is_empty() {
                            out.tell(Tell::Wanted);
                        }
                        self.deferred.insert(from);
                    }
                    State::Wanted { mine, .. } if *mine < theirs => {
                        self.deferred.insert(from);
                    }
                    _ => out.send(from, Permission::Reply(self.clock.0)),
                }
            }
            Input::Message {
                message: Permission::Reply(time),
                ..
            } => {
                if config.updates_clock {
                    self.clock.0 = self.clock.0.max(time);
                }
                if let State::Wanted { replies, .. } = &mut self.state {
                    *replies += 1;
                    if *replies == config.nodes - 1 {
                        self.state = State::Held;
                        out.tell(Tell::Entered);
                        if !self.deferred.is_empty() {
                            out.tell(Tell::Wanted);
                        }
                    }
                }
            }
            Input::Ask(Ask::Leave) => {
                self.state = State::Released;
                out.send_all(
                    std::mem::take(&mut self.deferred),
                    &Permission::Reply(self.clock.0),
                );
            }
            Input::Start | Input::Timer(_) => {}
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.clock.0);
        if let State::Wanted { mine, .. } = &mut self.state {
            visit(&mut mine.time);
        }
    }
}
