//! What a person may choose about a run of an algorithm, before it is a configuration.

use std::fmt;
use std::str::FromStr;

use crate::multicast::{Delivery, Over};
use crate::quorum::Construction;
use crate::readers::Classes;
use crate::ring_order::RingOrder;
use crate::rooms::Door;

/// The choices. An algorithm reads those that it understands and refuses what it cannot use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The number of users, N. An algorithm may add nodes of its own (a server).
    pub users: usize,
    /// How quorums are built, where the algorithm has quorums.
    pub quorum: Option<Construction>,
    /// The tree that the nodes stand in, where the algorithm sends along a tree.
    pub tree: SpanningTree,
    /// The order of the nodes on a ring, where the algorithm elects on one.
    pub ring: RingOrder,
    /// No message is slower, in the driver's ticks; for algorithms that assume a bound.
    pub delay_bound: u64,
    /// The users of each node and what they ask for, where there are classes.
    pub classes: Classes,
    /// How many requests are queries, where users draw lots.
    pub readers: Share,
    /// How many reservations may go before a query that is known to wait.
    pub overtakes: Option<u32>,
    /// How many of a node's writers go in one after the other while other nodes want their turn.
    pub burst: Option<u32>,
    /// How many groups there are, where users enter rooms or multicast.
    pub groups: Option<usize>,
    /// How many may be inside together, where there are permits.
    pub permits: Option<u32>,
    /// How many users propose, where users agree on something; the others listen.
    pub proposers: Option<usize>,
    /// How many faulty nodes an algorithm is made for, where that is a choice.
    pub faulty: Option<usize>,
    /// Who is let into a room that is in use.
    pub door: Door,
    /// The multicast that an order stands on.
    pub over: Over,
    /// When a multicast is delivered that comes after a gap.
    pub delivery: Delivery,
}

impl Setup {
    /// More nodes than anybody simulates; a limit, so that a slip of a finger does not take the
    /// machine's memory.
    pub const USERS_MAX: usize = 100_000;

    pub fn new(users: usize) -> Setup {
        Setup {
            users,
            quorum: None,
            tree: SpanningTree::default(),
            ring: RingOrder::default(),
            delay_bound: 0,
            classes: Classes::default(),
            readers: Share::HALF,
            overtakes: None,
            burst: None,
            groups: None,
            permits: None,
            proposers: None,
            faulty: None,
            door: Door::default(),
            over: Over::default(),
            delivery: Delivery::default(),
        }
    }

    /// What was chosen besides the users and the bound, each by its word; defaults are left out.
    pub fn chosen(&self) -> Vec<(&'static str, String)> {
        let mut chosen = Vec::new();
        if let Some(quorum) = self.quorum {
            chosen.push(("quorum", quorum.to_string()));
        }
        if self.tree != SpanningTree::default() {
            chosen.push(("tree", self.tree.to_string()));
        }
        if self.ring != RingOrder::default() {
            chosen.push(("ring", self.ring.to_string()));
        }
        if self.classes != Classes::default() {
            chosen.push(("classes", self.classes.to_string()));
        }
        if self.readers != Share::HALF {
            chosen.push(("readers", self.readers.to_string()));
        }
        let numbers = [
            ("overtakes", self.overtakes),
            ("burst", self.burst),
            ("permits", self.permits),
        ];
        for (word, number) in numbers {
            chosen.extend(number.map(|number| (word, number.to_string())));
        }
        let numbers = [
            ("groups", self.groups),
            ("proposers", self.proposers),
            ("faulty", self.faulty),
        ];
        for (word, number) in numbers {
            chosen.extend(number.map(|number| (word, number.to_string())));
        }
        if self.door != Door::default() {
            chosen.push(("door", self.door.to_string()));
        }
        if self.over != Over::default() {
            chosen.push(("over", self.over.to_string()));
        }
        if self.delivery != Delivery::default() {
            chosen.push(("delivery", self.delivery.to_string()));
        }
        chosen
    }

    /// Chooses by word, as [`chosen`](Setup::chosen) says it.
    pub fn choose(&mut self, word: &str, value: &str) -> Result<(), SetupError> {
        match word {
            "quorum" => self.quorum = Some(value.parse()?),
            "tree" => self.tree = value.parse()?,
            "ring" => self.ring = value.parse()?,
            "classes" => self.classes = value.parse()?,
            "readers" => self.readers = value.parse()?,
            "overtakes" => self.overtakes = Some(number(value)?),
            "burst" => self.burst = Some(number(value)?),
            "permits" => self.permits = Some(number(value)?),
            "groups" => self.groups = Some(number(value)? as usize),
            "proposers" => self.proposers = Some(number(value)? as usize),
            "faulty" => self.faulty = Some(number(value)? as usize),
            "door" => self.door = value.parse()?,
            "over" => self.over = value.parse()?,
            "delivery" => self.delivery = value.parse()?,
            _ => return Err(SetupError(format!("`{word}` is nothing to choose"))),
        }
        Ok(())
    }

    /// Refuses fewer users than `least`.
    pub fn at_least(&self, least: usize) -> Result<usize, SetupError> {
        if self.users < least {
            let nodes = match self.users {
                1 => "1 node is".to_owned(),
                users => format!("{users} nodes are"),
            };
            return Err(SetupError(format!(
                "{nodes} too few: it needs at least {least}"
            )));
        }
        if self.users > Self::USERS_MAX {
            return Err(SetupError(format!(
                "{} nodes are too many: at most {}",
                self.users,
                Self::USERS_MAX
            )));
        }
        Ok(self.users)
    }
}

fn number(text: &str) -> Result<u32, SetupError> {
    let number = text.parse();
    number.map_err(|_| SetupError(format!("`{text}` is not a whole number from 0")))
}

/// A share between 0 and 1, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share(pub u32);

impl Share {
    pub const HALF: Share = Share(500_000);
}

impl FromStr for Share {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Share, SetupError> {
        match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Share((share * 1e6).round() as u32)),
            _ => Err(SetupError(format!(
                "`{text}` is not a share: use a number from 0 to 1"
            ))),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f64::from(self.0) / 1e6).fmt(f)
    }
}

/// A tree over all nodes, rooted at node 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SpanningTree {
    /// Node i has the children 2i+1 and 2i+2.
    #[default]
    Binary,
    /// Every node but the last has one child.
    Line,
    /// Every node but the root is a leaf.
    Star,
}

impl SpanningTree {
    pub const ALL: [SpanningTree; 3] =
        [SpanningTree::Binary, SpanningTree::Line, SpanningTree::Star];

    pub fn name(self) -> &'static str {
        match self {
            SpanningTree::Binary => "binary",
            SpanningTree::Line => "line",
            SpanningTree::Star => "star",
        }
    }

    /// The neighbour towards the root, which is its own parent here.
    pub fn parent(self, node: usize) -> usize {
        match self {
            SpanningTree::Binary => node.saturating_sub(1) / 2,
            SpanningTree::Line => node.saturating_sub(1),
            SpanningTree::Star => 0,
        }
    }

    /// The edges on the longest path between two of so many nodes.
    pub fn diameter(self, nodes: usize) -> usize {
        let mut below = vec![0; nodes];
        let mut longest = 0;
        // A parent has a smaller number than its children, so from the last node up every subtree
        // is complete when it is joined to its parent.
        for node in (1..nodes).rev() {
            let (parent, up) = (self.parent(node), below[node] + 1);
            longest = longest.max(below[parent] + up);
            below[parent] = below[parent].max(up);
        }
        longest
    }
}

impl FromStr for SpanningTree {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<SpanningTree, SetupError> {
        let named = SpanningTree::ALL
            .into_iter()
            .find(|tree| tree.name() == text);
        named.ok_or_else(|| {
            let names = SpanningTree::ALL.map(SpanningTree::name).join(", ");
            SetupError(format!("`{text}` is not a tree: use {names}"))
        })
    }
}

impl fmt::Display for SpanningTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an algorithm cannot run with a setup, and what it could run with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetupError(pub String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SetupError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diameters_of_trees() {
        let of = |tree: SpanningTree| [1, 2, 3, 4, 7, 8, 15].map(|n| tree.diameter(n));
        assert_eq!(of(SpanningTree::Binary), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(of(SpanningTree::Line), [0, 1, 2, 3, 6, 7, 14]);
        assert_eq!(of(SpanningTree::Star), [0, 1, 2, 2, 2, 2, 2]);
        assert_eq!(SpanningTree::Binary.diameter(0), 0);
    }

    #[test]
    fn what_was_chosen_can_be_chosen_again() {
        let mut setup = Setup::new(3);
        assert!(setup.chosen().is_empty());
        for (word, value) in [
            ("quorum", "grid"),
            ("tree", "star"),
            ("ring", "0,2,1"),
            ("classes", "cancel,query/reservation"),
            ("readers", "0.125"),
            ("overtakes", "3"),
            ("burst", "1"),
            ("permits", "2"),
            ("groups", "4"),
            ("proposers", "1"),
            ("faulty", "2"),
            ("door", "open-while-uncontended"),
            ("over", "reliable"),
            ("delivery", "hold"),
        ] {
            setup.choose(word, value).expect(word);
        }
        let mut again = Setup::new(3);
        for (word, value) in setup.chosen() {
            again.choose(word, &value).expect(word);
        }
        assert_eq!(again, setup);
        for (word, value) in [("readers", "2"), ("overtakes", "-1"), ("colour", "red")] {
            assert!(again.choose(word, value).is_err(), "{word} {value}");
        }
    }

    #[test]
    fn trees_by_name() {
        for tree in SpanningTree::ALL {
            assert_eq!(tree.name().parse(), Ok(tree));
        }
        let error = "ring".parse::<SpanningTree>().expect_err("not a tree");
        assert!(error.0.contains("binary, line, star"), "{error}");
    }
}
