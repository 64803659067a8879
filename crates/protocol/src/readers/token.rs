//! What travels between the nodes of a box office: the token, and the tables of requests.

use serde::{Deserialize, Serialize};

use super::Class;
use crate::NodeId;

/// A number for every node and class. As P, the highest request heard of; as A, the last one served.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Table(pub(super) Vec<[u32; 3]>);

impl Table {
    pub(super) fn at(&self, class: Class, node: NodeId) -> u32 {
        self.0[node.index()][class.index()]
    }

    pub(super) fn set(&mut self, class: Class, node: NodeId, number: u32) {
        self.0[node.index()][class.index()] = number;
    }

    pub(super) fn raise(&mut self, other: &Table) {
        for (mine, theirs) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *mine = (*mine).max(*theirs);
        }
    }
}

/// What there is one of.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Token {
    /// A: the last request of each node and class that was served.
    pub(super) served: Table,
    /// How many reservations went before queries that were known to wait.
    pub(super) overtakes: u32,
    /// The node that was let in last, for each class of writers.
    pub(super) turn: [NodeId; 2],
}
