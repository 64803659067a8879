//! What a person may choose about a run of an algorithm, before it is a configuration.

use std::fmt;
use std::str::FromStr;

use crate::quorum::Construction;

/// The choices. An algorithm reads those that it understands and refuses what it cannot use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The number of users, N. An algorithm may add nodes of its own (a server).
    pub users: usize,
    /// How quorums are built, where the algorithm has quorums.
    pub quorum: Option<Construction>,
    /// The tree that the nodes stand in, where the algorithm sends along a tree.
    pub tree: SpanningTree,
    /// No message is slower, in the driver's ticks; for algorithms that assume a bound.
    pub delay_bound: u64,
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
            delay_bound: 0,
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
        chosen
    }

    /// Chooses by word, as [`chosen`](Setup::chosen) says it.
    pub fn choose(&mut self, word: &str, value: &str) -> Result<(), SetupError> {
        match word {
            "quorum" => self.quorum = Some(value.parse()?),
            "tree" => self.tree = value.parse()?,
            _ => return Err(SetupError(format!("`{word}` is nothing to choose"))),
        }
        Ok(())
    }

    /// Refuses fewer users than `least`.
    pub fn at_least(&self, least: usize) -> Result<usize, SetupError> {
        if self.users < least {
            return Err(SetupError(format!(
                "{} nodes are too few: it needs at least {least}",
                self.users
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
    fn trees_by_name() {
        for tree in SpanningTree::ALL {
            assert_eq!(tree.name().parse(), Ok(tree));
        }
        let error = "ring".parse::<SpanningTree>().expect_err("not a tree");
        assert!(error.0.contains("binary, line, star"), "{error}");
    }
}
