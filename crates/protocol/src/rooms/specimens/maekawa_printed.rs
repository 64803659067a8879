//! The thesis' rooms as printed: the arbiter does not remember who has its lock. It asks back from the best
//! request, which may have nothing, and takes its word for it; an answer that comes too late is believed too.
//!
//! Source: group exclusion §7, cuadros 5.9 and 5.10, with the reconstructed details of the group's own lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::mutex::{Ask, Mutex, Tell};
use crate::quorum::Quorums;
use crate::rooms::Rooms;
use crate::rooms::maekawa;
use crate::rooms::over::{Plan, rooms_over};
use crate::{Algorithm, Input, Message, NodeId, Output, Profile, Protocol, Shape, Stamp, Telling};

pub(crate) const ALGORITHM: Algorithm<Rooms> = Algorithm {
    profile: Profile {
        name: "rooms-maekawa-printed",
        title: "Rooms over Maekawa quorums as the thesis prints them",
        specimen: Some(
            "unsafe: a lock is asked back from a group that has not got it, and lent again",
        ),
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        telling_groups: Some(3),
        costs: &[],
        ..maekawa::ALGORITHM.profile
    },
    machine: |setup| {
        let mut setup = setup.clone();
        setup.groups = setup.groups.or(Some(3));
        let plan = Plan::new(&setup, 3)?;
        let Quorums(sets) = Quorums::build(setup.quorum, plan.groups)?;
        let shape = Shape::users(plan.groups);
        Ok(rooms_over::<Printed>(&shape, Arc::new(sets), plan))
    },
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Printed {
    k: NodeId,
    priori: u64,
    competing: bool,
    sc: bool,
    conj: BTreeSet<NodeId>,
    /// The best request is the first.
    lg: BTreeSet<Stamp>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Grupo {
    Req(Stamp),
    Rec,
    Rel,
    RepRel,
    Lib,
}

impl Message for Grupo {}

impl Protocol for Printed {
    type Problem = Mutex;
    type Message = Grupo;
    type Config = Vec<Vec<NodeId>>;

    fn new(k: NodeId, _: &Self::Config) -> Self {
        Printed {
            k,
            priori: 0,
            competing: false,
            sc: false,
            conj: BTreeSet::new(),
            lg: BTreeSet::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, sets: &Self::Config, out: &mut Output<Self>) {
        let quorum = &sets[self.k.index()];
        match input {
            Input::Ask(Ask::Enter) => {
                self.competing = true;
                self.conj.clear();
                self.priori += 1;
                let (time, node) = (self.priori, self.k);
                out.send_all(quorum.iter().copied(), &Grupo::Req(Stamp { time, node }));
            }
            Input::Ask(Ask::Leave) => {
                (self.competing, self.sc) = (false, false);
                out.send_all(quorum.iter().copied(), &Grupo::Lib);
            }
            Input::Message { from, message } => match message {
                Grupo::Req(stamp) => {
                    let best = self.lg.first().copied();
                    self.lg.insert(stamp);
                    match best {
                        None => out.send(from, Grupo::Rec),
                        Some(best) if stamp < best => out.send(best.node, Grupo::Rel),
                        Some(_) => {}
                    }
                }
                Grupo::Rec => {
                    self.conj.insert(from);
                    if self.competing && self.conj.len() == quorum.len() && !self.sc {
                        self.sc = true;
                        out.tell(Tell::Entered);
                    }
                }
                Grupo::Rel if self.sc => {}
                Grupo::Rel => {
                    self.conj.remove(&from);
                    out.send(from, Grupo::RepRel);
                }
                Grupo::RepRel => self.grant(out),
                Grupo::Lib => {
                    self.lg.retain(|stamp| stamp.node != from);
                    self.grant(out);
                }
            },
            Input::Start | Input::Timer(_) => {}
        }
    }
}

impl Printed {
    fn grant(&self, out: &mut Output<Self>) {
        out.send_all(self.lg.first().map(|best| best.node), &Grupo::Rec);
    }
}
