//! Raymond, 1989: the token travels along a tree. Every node knows the neighbour towards the token and
//! keeps a queue of neighbours that want it; it asks for all of them once.
//!
//! Source: message exclusion §4.4, figures 4.11 and 4.12. The thesis describes how requests are handled;
//! the rest is Raymond's. The token starts at node 0, the root of the tree that the setup names.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::{
    Algorithm, Channels, Cost, Experiment, Figure, Input, Message, NodeId, Output, Profile,
    Protocol, Range, Setup, Shape, Telling, erase,
};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "raymond",
        title: "Raymond's tree, 1989",
        source: "message exclusion §4.4",
        channels: Channels::AnyOrder,
        costs: &[
            Cost::messages("0 to 2D", |setup| Range::new(0, 2 * diameter(setup))),
            Cost::entry_delay("0 to 2D", |setup| Range::new(0, 2 * diameter(setup))),
            Cost::synchronisation_delay("up to D", |setup| Range::new(0, diameter(setup))),
        ],
        figures: &[
            most("messages of the costliest entry, binary tree", "2D", &[]),
            most(
                "messages of the costliest entry, line",
                "2(N−1)",
                &[("tree", "line")],
            ),
            most(
                "messages of the costliest entry, star",
                "2D",
                &[("tree", "star")],
            ),
            Figure {
                what: "messages per entry at high load",
                formula: "about 4: within a tenth",
                range: |_| Range::new(3.6, 4.4),
                sizes: &[16, 64, 256],
                chosen: &[],
                experiment: Experiment::FullLoad,
            },
        ],
        telling: Telling {
            nodes: 3,
            entries: 2,
        },
        ..Profile::PLAIN
    },
    machine: |setup| {
        let users = setup.at_least(2)?;
        let towards_root = |node: NodeId| NodeId(setup.tree.parent(node.index()) as u32);
        let towards_token = NodeId::all(users).map(towards_root).collect();
        Ok(erase::<Raymond>(Shape::users(users), towards_token))
    },
};

/// D: the longest path that a request or the token can take.
const fn most(
    what: &'static str,
    formula: &'static str,
    chosen: &'static [(&'static str, &'static str)],
) -> Figure {
    Figure {
        what,
        formula,
        range: |setup| Range::exactly(2 * diameter(setup)),
        sizes: &[4, 8, 15],
        chosen,
        experiment: Experiment::LoneEntryMost,
    }
}

fn diameter(setup: &Setup) -> u32 {
    setup.tree.diameter(setup.users) as u32
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Raymond {
    id: NodeId,
    /// The neighbour towards the token, or the node itself where the token is here.
    holder: NodeId,
    using: bool,
    /// Whether the holder has been asked; once is enough for all that wait here.
    asked: bool,
    /// Neighbours that want the token, and the node itself: each at most once.
    request_q: VecDeque<NodeId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Along {
    Request,
    Privilege,
}

impl Message for Along {}

impl Protocol for Raymond {
    type Problem = Mutex;
    type Message = Along;
    /// Every node's neighbour towards the token; itself, for the node that has it.
    type Config = Vec<NodeId>;

    fn new(id: NodeId, towards_token: &Vec<NodeId>) -> Self {
        Raymond {
            id,
            holder: towards_token[id.index()],
            using: false,
            asked: false,
            request_q: VecDeque::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, _: &Vec<NodeId>, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter) => self.request_q.push_back(self.id),
            Input::Ask(Ask::Leave) => self.using = false,
            Input::Message { from, message } => match message {
                Along::Request => {
                    if self.using && self.request_q.is_empty() {
                        out.tell(Tell::Wanted);
                    }
                    self.request_q.push_back(from);
                }
                Along::Privilege => self.holder = self.id,
            },
            Input::Start | Input::Timer(_) => return,
        }
        self.assign_privilege(out);
        self.make_request(out);
    }
}

impl Raymond {
    /// Hands the token to the first in the queue, which may be the node itself.
    fn assign_privilege(&mut self, out: &mut Output<Self>) {
        if self.holder != self.id || self.using {
            return;
        }
        let Some(first) = self.request_q.pop_front() else {
            return;
        };
        self.holder = first;
        self.asked = false;
        if first != self.id {
            out.send(first, Along::Privilege);
            return;
        }
        self.using = true;
        out.tell(Tell::Entered);
        if !self.request_q.is_empty() {
            out.tell(Tell::Wanted);
        }
    }

    fn make_request(&mut self, out: &mut Output<Self>) {
        if self.holder != self.id && !self.request_q.is_empty() && !self.asked {
            self.asked = true;
            out.send(self.holder, Along::Request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, Effects, Slot};

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);
    const C: NodeId = NodeId(2);
    const D: NodeId = NodeId(3);
    const E: NodeId = NodeId(4);
    const F: NodeId = NodeId(5);

    /// Figure 4.11: edges A–B, A–C, A–D, D–E, D–F, and the token at E.
    struct Figure {
        cluster: Box<dyn Cluster<Mutex>>,
        under_way: VecDeque<(NodeId, NodeId, Slot)>,
        carried: Vec<(NodeId, NodeId, String)>,
        entered: Vec<NodeId>,
    }

    impl Figure {
        fn new() -> Figure {
            let towards_token = vec![D, A, A, E, E, D];
            Figure {
                cluster: erase::<Raymond>(Shape::users(6), towards_token).cluster(),
                under_way: VecDeque::new(),
                carried: Vec::new(),
                entered: Vec::new(),
            }
        }

        fn ask(&mut self, node: NodeId, ask: Ask) {
            let mut effects = Effects::default();
            self.cluster.ask(node, ask, &mut effects);
            self.absorb(node, effects);
        }

        /// Delivers all that is under way, in the order of sending.
        fn settle(&mut self) -> String {
            while let Some((from, to, slot)) = self.under_way.pop_front() {
                self.carried.push((from, to, self.cluster.label(slot)));
                let mut effects = Effects::default();
                self.cluster.deliver(from, to, slot, &mut effects);
                self.absorb(to, effects);
            }
            let letter = |node: NodeId| char::from(b'A' + node.0 as u8);
            let one = |(from, to, label): (NodeId, NodeId, String)| {
                format!("{} {}>{}", label, letter(from), letter(to))
            };
            let carried: Vec<String> = self.carried.drain(..).map(one).collect();
            carried.join(", ")
        }

        fn absorb(&mut self, node: NodeId, effects: Effects<Mutex>) {
            for (to, slot) in effects.sends {
                self.under_way.push_back((node, to, slot));
            }
            if effects.tells.contains(&Tell::Entered) {
                self.entered.push(node);
            }
        }
    }

    #[test]
    fn an_idle_holder_sends_the_token_along_the_path_of_the_request() {
        let mut figure = Figure::new();
        figure.ask(B, Ask::Enter);
        let path = "Request B>A, Request A>D, Request D>E, \
                    Privilege E>D, Privilege D>A, Privilege A>B";
        assert_eq!(figure.settle(), path, "2D messages, D = 3");
        assert_eq!(figure.entered, [B]);
    }

    #[test]
    fn a_node_asks_once_for_all_that_wait_at_it() {
        let mut figure = Figure::new();
        figure.ask(E, Ask::Enter);
        assert_eq!(figure.entered, [E], "the token is here: no message");
        for node in [B, C, F] {
            figure.ask(node, Ask::Enter);
        }
        let asked = "Request B>A, Request C>A, Request F>D, Request A>D, Request D>E";
        assert_eq!(figure.settle(), asked, "A and D ask once each");
        figure.ask(E, Ask::Leave);
        figure.settle();
        assert_eq!(figure.entered, [E, F], "first in the queue of D");
        figure.ask(F, Ask::Leave);
        let on = "Privilege F>D, Privilege D>A, Privilege A>B, Request A>B";
        assert_eq!(figure.settle(), on, "C still waits at A");
        figure.ask(B, Ask::Leave);
        assert_eq!(figure.settle(), "Privilege B>A, Privilege A>C");
        assert_eq!(figure.entered, [E, F, B, C]);
    }
}
