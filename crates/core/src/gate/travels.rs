//! How a gate's ownership travels between the nodes of a cluster.

use serde::{Deserialize, Serialize};

/// What a gate was created `USING`, and its `BURST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Travels {
    /// The algorithm.
    pub using: Using,
    /// How many grants a node makes per turn before it hands on, once it knows that another node waits.
    pub burst: u32,
}

impl Travels {
    /// The burst of a gate that specifies none.
    pub const BURST_DEFAULT: u32 = 4;
    /// The largest burst.
    pub const BURST_MAX: u32 = 1_000_000;
}

impl Default for Travels {
    fn default() -> Travels {
        Travels {
            using: Using::Log,
            burst: Travels::BURST_DEFAULT,
        }
    }
}

/// The ways in which ownership travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Using {
    /// The shard's owner grants to all nodes; the log names the owner.
    Log,
    /// The box-office token, with query tokens for the readers of several nodes.
    BoxOffice,
    /// Everybody's permission (Ricart and Agrawala).
    RicartAgrawala,
    /// A queue of which every node keeps a copy (Lamport).
    Lamport,
    /// The votes of a quorum (Maekawa).
    Maekawa,
    /// The votes of a quorum (Sanders).
    Sanders,
    /// A token along a tree (Raymond).
    Raymond,
    /// A token along paths that shorten themselves (Chang, Singhal and Liu).
    Chang,
    /// A server.
    Central,
    /// A token around a ring.
    TokenRing,
    /// The votes of a path through a tree (Agrawal and El Abbadi).
    TreeQuorum,
}

impl Using {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Using; 11] = [
        Using::Log,
        Using::BoxOffice,
        Using::RicartAgrawala,
        Using::Lamport,
        Using::Maekawa,
        Using::Sanders,
        Using::Raymond,
        Using::Chang,
        Using::Central,
        Using::TokenRing,
        Using::TreeQuorum,
    ];

    /// The name, which the laboratory uses, too.
    pub fn name(self) -> &'static str {
        match self {
            Using::Log => "log",
            Using::BoxOffice => "box-office",
            Using::RicartAgrawala => "ricart-agrawala",
            Using::Lamport => "lamport",
            Using::Maekawa => "maekawa",
            Using::Sanders => "sanders",
            Using::Raymond => "raymond",
            Using::Chang => "chang",
            Using::Central => "central",
            Using::TokenRing => "token-ring",
            Using::TreeQuorum => "tree-quorum",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Using> {
        let mut all = Using::ALL.into_iter();
        all.find(|using| using.name() == name)
    }

    /// What travels from node to node, in words.
    pub fn what_travels(self) -> &'static str {
        match self {
            Using::Log => "the title, in the log",
            Using::BoxOffice => "the token, and query tokens for readers",
            Using::Raymond | Using::Chang | Using::TokenRing => "the token",
            Using::Central => "the server's grant",
            Using::RicartAgrawala => "the permission of every node",
            Using::Lamport => "requests and releases, to every node",
            Using::Maekawa | Using::Sanders | Using::TreeQuorum => "the votes of a quorum",
        }
    }

    /// Whether those inside always hear that another node waits. If not, a node stays no longer than its own clients need it.
    pub(crate) fn tells_wanted(self) -> bool {
        matches!(
            self,
            Using::RicartAgrawala | Using::Lamport | Using::Raymond | Using::Chang
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_a_name_of_its_own() {
        for using in Using::ALL {
            assert_eq!(Using::named(using.name()), Some(using));
        }
        assert_eq!(Using::named("LOG"), None);
    }
}
