//! The ring of Chang and Roberts, 1979: ids travel round, larger ones replace smaller ones, and the id that comes
//! home has won.
//!
//! Source: coordination and agreement §3.2. "24 multicasts" of the source is "24 sends to its neighbour". It stands no
//! crash on the ring during an election.

use serde::{Deserialize, Serialize};

use super::{Ask, Candidate, Election, Tell};
use crate::{
    Algorithm, Cost, Input, Machine, Message, NodeId, Output, Profile, Protocol, Range, Setup,
    SetupError, Shape, Telling, erase_for,
};

pub(crate) const ALGORITHM: Algorithm<Election> = Algorithm {
    profile: PROFILE,
    machine: |setup| with(setup, Flaw::None),
};

pub(super) const PROFILE: Profile = Profile {
    name: "ring-election",
    title: "Election on a ring, Chang and Roberts, 1979",
    source: "coordination and agreement §3.2",
    costs: &[Cost::messages("at most 3N-1", |setup| {
        Range::new(0, 3.0 * setup.users as f64 - 1.0)
    })],
    telling: Telling {
        nodes: 3,
        entries: 2,
    },
    ..Profile::PLAIN
};

/// What a specimen does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    None,
    /// A participant passes smaller ids on, too.
    ForwardsSmaller,
    /// The winner keeps it to itself.
    TellsNobody,
}

pub(super) fn with(setup: &Setup, flaw: Flaw) -> Result<Box<dyn Machine<Election>>, SetupError> {
    let users = setup.at_least(2)?;
    Ok(on(setup.ring.nodes(users)?, flaw))
}

/// The nodes in the order in which messages travel.
fn on(ring: Vec<NodeId>, flaw: Flaw) -> Box<dyn Machine<Election>> {
    let mut next = ring.clone();
    for (at, node) in ring.iter().enumerate() {
        next[node.index()] = ring[(at + 1) % ring.len()];
    }
    let shape = Shape::users(ring.len());
    let users = Candidate::of(true);
    erase_for::<RingElection>(shape, users, Config { next, flaw })
}

#[derive(Clone, Debug)]
struct Config {
    /// The successor of each node.
    next: Vec<NodeId>,
    flaw: Flaw,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct RingElection {
    i: NodeId,
    participant: bool,
    e: Option<NodeId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Ring {
    Election(NodeId),
    Elected(NodeId),
}

impl Message for Ring {}

impl Protocol for RingElection {
    type Problem = Election;
    type Message = Ring;
    type Config = Config;

    fn new(i: NodeId, _: &Config) -> Self {
        RingElection {
            i,
            participant: false,
            e: None,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        let next = config.next[self.i.index()];
        match input {
            Input::Ask(Ask::Call | Ask::CallWithout(_)) => {
                // Who takes part already learns the result of the election that goes on.
                if !self.participant {
                    self.participate(out);
                    out.send(next, Ring::Election(self.i));
                }
            }
            Input::Message { message, .. } => match message {
                Ring::Election(x) if x > self.i => {
                    self.participate(out);
                    out.send(next, Ring::Election(x));
                }
                Ring::Election(x) if x < self.i => {
                    if !self.participant {
                        self.participate(out);
                        out.send(next, Ring::Election(self.i));
                    } else if config.flaw == Flaw::ForwardsSmaller {
                        out.send(next, Ring::Election(x));
                    }
                }
                Ring::Election(_) => {
                    self.elected(self.i, out);
                    if config.flaw != Flaw::TellsNobody {
                        out.send(next, Ring::Elected(self.i));
                    }
                }
                Ring::Elected(x) if x != self.i => {
                    self.elected(x, out);
                    out.send(next, Ring::Elected(x));
                }
                Ring::Elected(_) => {}
            },
            Input::Start | Input::Timer(_) => {}
        }
    }
}

impl RingElection {
    fn participate(&mut self, out: &mut Output<Self>) {
        if !self.participant || self.e.is_some() {
            out.tell(Tell::Participates);
        }
        (self.participant, self.e) = (true, None);
    }

    fn elected(&mut self, x: NodeId, out: &mut Output<Self>) {
        (self.participant, self.e) = (false, Some(x));
        out.tell(Tell::Elected(x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::tests::Play;

    fn messages(ring: &[u32], callers: &[u32]) -> [u64; 2] {
        let ring: Vec<NodeId> = ring.iter().map(|&node| NodeId(node)).collect();
        let largest = ring.iter().copied().max();
        let mut play = Play::new(&*on(ring, Flaw::None), &[]);
        callers.iter().for_each(|&node| play.ask(node, Ask::Call));
        play.finish();
        assert!(play.elected().iter().all(|elected| *elected == largest));
        ["Election", "Elected"].map(|kind| play.sent(kind))
    }

    /// §3.2: 1, 15, 9, 4, 3, 17, 24 in travel order, by rank; only 1 notices.
    #[test]
    fn the_example_of_the_source_has_20_messages() {
        assert_eq!(messages(&[0, 4, 3, 2, 1, 5, 6], &[0]), [13, 7]);
    }

    #[test]
    fn the_worst_case_of_one_caller_is_3n_minus_1() {
        for n in 2..=8 {
            let ring: Vec<u32> = (0..n).collect();
            let totals = ring.iter().map(|&caller| messages(&ring, &[caller]));
            let totals: Vec<u64> = totals.map(|kinds| kinds.iter().sum()).collect();
            assert_eq!(totals.iter().max(), Some(&(3 * u64::from(n) - 1)));
            assert_eq!(totals[0], 3 * u64::from(n) - 1, "the largest is behind it");
            assert_eq!(totals.iter().min(), Some(&(2 * u64::from(n))));
        }
    }

    #[test]
    fn decreasing_ids_that_all_call_are_the_worst_of_all() {
        for (n, total) in [(7, 35), (8, 44)] {
            let ring: Vec<u32> = (0..n).rev().collect();
            let [election, elected] = messages(&ring, &ring);
            assert_eq!(election, u64::from(n * (n + 1) / 2));
            assert_eq!(election + elected, total);
        }
    }
}
