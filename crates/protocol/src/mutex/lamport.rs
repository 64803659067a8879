//! Lamport, 1978: everybody keeps the queue of requests; who is first in it, and knows that no
//! older request can still come, enters.
//!
//! Source: message exclusion §2.3. Links must be FIFO: an acknowledgement that overtook an older
//! request would hide it.

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::{
    Algorithm, Claim, Cost, Input, LamportClock, Message, NodeId, Output, Profile, Protocol, Range,
    Shape, Stamp, erase,
};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "lamport",
        title: "Lamport, 1978",
        source: "message exclusion §2.3",
        claims: &[
            Claim::Safety,
            Claim::DeadlockFreedom,
            Claim::LockoutFreedom,
            Claim::Order,
        ],
        costs: &[
            Cost::messages("3(N−1)", |setup| {
                Range::exactly(3 * (setup.users as u32 - 1))
            }),
            Cost::entry_delay("2", |_| Range::exactly(2)),
            Cost::synchronisation_delay("1", |_| Range::exactly(1)),
        ],
        ..Profile::PLAIN
    },
    machine: |setup| {
        let nodes = setup.at_least(2)?;
        Ok(erase::<Lamport>(Shape::users(nodes), nodes))
    },
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lamport {
    id: NodeId,
    clock: LamportClock,
    /// The outstanding request of every node.
    hist: Vec<Option<u64>>,
    /// The largest time received from every node.
    last: Vec<u64>,
    inside: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Stamped {
    Try(u64),
    Ack(u64),
    Exit(u64),
}

impl Message for Stamped {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        let (Stamped::Try(time) | Stamped::Ack(time) | Stamped::Exit(time)) = self;
        visit(time);
    }
}

impl Lamport {
    fn stamp(&self, node: NodeId) -> Option<Stamp> {
        self.hist[node.index()].map(|time| Stamp { time, node })
    }

    fn wanted_by_others(&self) -> bool {
        self.id
            .others(self.hist.len())
            .any(|other| self.stamp(other).is_some())
    }

    fn enter_if_first(&mut self, out: &mut Output<Self>) {
        let Some(mine) = self.stamp(self.id) else {
            return;
        };
        let mut others = self.id.others(self.hist.len());
        let first = others.all(|other| {
            // Nothing older can still come: what was last heard from there is already younger.
            let heard = Stamp {
                time: self.last[other.index()],
                node: other,
            };
            heard > mine && self.stamp(other).is_none_or(|theirs| theirs > mine)
        });
        if first && !self.inside {
            self.inside = true;
            out.tell(Tell::Entered);
            if self.wanted_by_others() {
                out.tell(Tell::Wanted);
            }
        }
    }
}

impl Protocol for Lamport {
    type Problem = Mutex;
    type Message = Stamped;
    type Config = usize;

    fn new(id: NodeId, &nodes: &usize) -> Self {
        Lamport {
            id,
            clock: LamportClock::default(),
            hist: vec![None; nodes],
            last: vec![0; nodes],
            inside: false,
        }
    }

    fn step(&mut self, input: Input<Self>, &nodes: &usize, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter) => {
                let time = self.clock.tick();
                self.hist[self.id.index()] = Some(time);
                out.send_all(self.id.others(nodes), &Stamped::Try(time));
            }
            Input::Ask(Ask::Leave) => {
                self.inside = false;
                self.hist[self.id.index()] = None;
                out.send_all(self.id.others(nodes), &Stamped::Exit(self.clock.tick()));
            }
            Input::Message { from, message } => {
                let (Stamped::Try(time) | Stamped::Ack(time) | Stamped::Exit(time)) = message;
                self.clock.observe(time);
                let last = &mut self.last[from.index()];
                *last = time.max(*last);
                match message {
                    Stamped::Try(time) => {
                        if self.inside && !self.wanted_by_others() {
                            out.tell(Tell::Wanted);
                        }
                        self.hist[from.index()] = Some(time);
                        out.send(from, Stamped::Ack(self.clock.tick()));
                    }
                    Stamped::Exit(_) => self.hist[from.index()] = None,
                    Stamped::Ack(_) => {}
                }
                self.enter_if_first(out);
            }
            Input::Start | Input::Timer(_) => {}
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.clock.0);
        self.hist.iter_mut().flatten().for_each(&mut *visit);
        // A node hears nothing from itself: its own entry stays as it began.
        let me = self.id.index();
        self.last
            .iter_mut()
            .enumerate()
            .filter(|(node, _)| *node != me)
            .for_each(|(_, time)| visit(time));
    }
}
