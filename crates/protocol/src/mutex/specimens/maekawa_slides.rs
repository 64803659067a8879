//! Maekawa as the slides print it: a node never votes for itself, so it may enter after having
//! voted for somebody else.
//!
//! Source: coordination and agreement §2.5.2, "exactly as the slides give it", timestamps included.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::mutex::maekawa;
use crate::mutex::{Ask, Mutex, Tell};
use crate::quorum::Quorums;
use crate::{
    Algorithm, Input, LamportClock, Message, NodeId, Output, Phase, Profile, Protocol, Shape,
    Stamp, Telling, erase,
};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "maekawa-slides",
        title: "Maekawa as the slides print it",
        source: "coordination and agreement §2.5.2",
        specimen: Some("unsafe: a node that has voted for another still counts on itself"),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..maekawa::ALGORITHM.profile
    },
    machine: |setup| {
        let users = setup.at_least(2)?;
        let Quorums(sets) = Quorums::build(setup.quorum, users)?;
        Ok(erase::<Slides>(Shape::users(users), sets))
    },
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Slides {
    id: NodeId,
    clock: LamportClock,
    state: Phase,
    mine: Option<Stamp>,
    replies: usize,
    voted: bool,
    queue: VecDeque<NodeId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Ballot {
    Request(Stamp),
    Reply,
    Release,
}

impl Message for Ballot {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        if let Ballot::Request(stamp) = self {
            visit(&mut stamp.time);
        }
    }
}

impl Protocol for Slides {
    type Problem = Mutex;
    type Message = Ballot;
    type Config = Vec<Vec<NodeId>>;

    fn new(id: NodeId, _: &Self::Config) -> Self {
        Slides {
            id,
            clock: LamportClock::default(),
            state: Phase::Idle,
            mine: None,
            replies: 0,
            voted: false,
            queue: VecDeque::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, sets: &Self::Config, out: &mut Output<Self>) {
        let me = self.id;
        let others = sets[me.index()].iter().copied().filter(|&node| node != me);
        match input {
            Input::Ask(Ask::Enter) => {
                let mine = Stamp {
                    time: self.clock.tick(),
                    node: me,
                };
                (self.state, self.mine, self.replies) = (Phase::Waiting, Some(mine), 0);
                out.send_all(others, &Ballot::Request(mine));
            }
            Input::Ask(Ask::Leave) => {
                (self.state, self.mine) = (Phase::Idle, None);
                out.send_all(others, &Ballot::Release);
            }
            Input::Message {
                from,
                message: Ballot::Request(theirs),
            } => {
                self.clock.observe(theirs.time);
                let mine_first = self.state == Phase::Waiting && self.mine < Some(theirs);
                if self.state == Phase::Inside || self.voted || mine_first {
                    self.queue.push_back(from);
                } else {
                    self.voted = true;
                    out.send(from, Ballot::Reply);
                }
            }
            Input::Message {
                message: Ballot::Release,
                ..
            } => {
                let next = self.queue.pop_front();
                self.voted = next.is_some();
                out.send_all(next, &Ballot::Reply);
            }
            Input::Message {
                message: Ballot::Reply,
                ..
            } => {
                self.replies += 1;
                if self.state == Phase::Waiting && self.replies == others.count() {
                    self.state = Phase::Inside;
                    out.tell(Tell::Entered);
                }
            }
            Input::Start | Input::Timer(_) => {}
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.clock.0);
        if let Some(mine) = &mut self.mine {
            visit(&mut mine.time);
        }
    }
}
