//! The order of the nodes on a ring, in the direction in which messages travel.

use std::fmt;
use std::str::FromStr;

use crate::{NodeId, Setup, SetupError};

/// The order of the nodes on a ring.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RingOrder {
    /// Every node sends to the next higher one, and the last to the first.
    #[default]
    Ascending,
    /// Every node sends to the next lower one, and the first to the last.
    Descending,
    /// Every node once, as they are listed.
    Listed(Vec<u32>),
}

impl RingOrder {
    const FORMS: &str = "ascending, descending or every node once, such as 0,2,1";

    /// The nodes in the order in which a message passes them.
    pub fn nodes(&self, users: usize) -> Result<Vec<NodeId>, SetupError> {
        let mut nodes: Vec<NodeId> = NodeId::all(users).collect();
        match self {
            RingOrder::Ascending => {}
            RingOrder::Descending => nodes.reverse(),
            RingOrder::Listed(listed) => nodes = listed.iter().copied().map(NodeId).collect(),
        }
        let mut sorted = nodes.clone();
        sorted.sort_unstable();
        match sorted.into_iter().eq(NodeId::all(users)) {
            true => Ok(nodes),
            false => Err(SetupError(format!(
                "the ring {self} does not have each of {users} nodes once: list the nodes 0 to {}",
                users.saturating_sub(1)
            ))),
        }
    }
}

impl FromStr for RingOrder {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<RingOrder, SetupError> {
        let bad = || SetupError(format!("`{text}` is not a ring: use {}", Self::FORMS));
        match text {
            "ascending" => Ok(RingOrder::Ascending),
            "descending" => Ok(RingOrder::Descending),
            _ => {
                let nodes = text.split(',').take(Setup::USERS_MAX + 1);
                let nodes = nodes.map(str::parse).collect::<Result<Vec<u32>, _>>();
                let nodes = nodes.map_err(|_| bad())?;
                match nodes.len() <= Setup::USERS_MAX {
                    true => Ok(RingOrder::Listed(nodes)),
                    false => Err(bad()),
                }
            }
        }
    }
}

impl fmt::Display for RingOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingOrder::Ascending => f.write_str("ascending"),
            RingOrder::Descending => f.write_str("descending"),
            RingOrder::Listed(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
                f.write_str(&nodes.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_prints_as_it_is_written() {
        for text in ["ascending", "descending", "0,4,3,2,1"] {
            let ring: RingOrder = text.parse().expect(text);
            assert_eq!(ring.to_string(), text);
            assert_eq!(ring.nodes(5).expect("five nodes").len(), 5);
        }
        for text in ["", "round", "0,,1", "0,-1", "0;1"] {
            let error = text.parse::<RingOrder>().expect_err(text);
            assert!(error.0.contains("ascending, descending"), "{error}");
        }
    }

    #[test]
    fn a_list_has_every_node_once() {
        for (listed, users) in [("0,1", 3), ("0,1,1", 3), ("0,1,3", 3), ("0,1,2,0", 3)] {
            let ring: RingOrder = listed.parse().expect(listed);
            let error = ring.nodes(users).expect_err(listed);
            assert!(error.0.contains("each of 3 nodes once"), "{error}");
        }
    }
}
