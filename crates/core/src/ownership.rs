//! Who owns what: the only code in which an owner changes. Alone, a node owns everything, by one title for all things;
//! a thing whose ownership travels on its own will have its own title, and the monitor below already watches both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fence::Epoch;
use crate::job::QueueId;
use crate::name::Name;

/// A node of the cluster.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

/// Something that has one owner at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Thing {
    /// Whatever has no title of its own.
    Everything,
    /// One gate.
    Gate(Name),
    /// One queue: who takes from it is its owner's to say.
    Queue(QueueId),
}

/// How ownership passes from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Travels {
    /// Through the replicated log: the log's order is the order of owners.
    Log,
}

/// Who owns a thing, since which epoch, and how it would pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Title {
    /// The owner.
    pub owner: NodeId,
    /// The epoch in which it became the owner. An epoch has one owner.
    pub epoch: Epoch,
    /// How ownership passes on.
    pub travels: Travels,
}

/// All titles. Part of the replicated half.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    everything: Option<Title>,
}

impl Ownership {
    /// The title that a thing is owned by. Nobody owns anything before the first node has started.
    pub fn title(&self, _thing: &Thing) -> Option<Title> {
        self.everything
    }

    /// Gives everything to one node in a new epoch. False, and no change, unless the epoch is later than the present one.
    pub(crate) fn take_everything(&mut self, owner: NodeId, epoch: Epoch) -> bool {
        if self.everything.is_some_and(|title| title.epoch >= epoch) {
            return false;
        }
        self.everything = Some(Title {
            owner,
            epoch,
            travels: Travels::Log,
        });
        true
    }
}

/// Watches that a thing has at most one owner an epoch. Show it every title that any node acts on.
#[derive(Clone, Debug, Default)]
pub struct OneOwner {
    seen: BTreeMap<(Thing, Epoch), NodeId>,
}

impl OneOwner {
    /// Shows a title; says what is wrong if another node has acted as the owner in the same epoch.
    pub fn saw(&mut self, thing: Thing, title: Title) -> Result<(), String> {
        let said = format!("{thing:?} in epoch {}", title.epoch);
        let owner = *self.seen.entry((thing, title.epoch)).or_insert(title.owner);
        if owner == title.owner {
            return Ok(());
        }
        Err(format!(
            "{said} is owned by node {} and by node {}",
            owner.0, title.owner.0
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_changes_only_with_a_later_epoch() {
        let mut ownership = Ownership::default();
        assert!(ownership.take_everything(NodeId(1), Epoch(1)));
        assert!(!ownership.take_everything(NodeId(2), Epoch(1)));
        assert!(ownership.take_everything(NodeId(2), Epoch(2)));
        let title = ownership.title(&Thing::Everything).unwrap();
        assert_eq!((title.owner, title.epoch), (NodeId(2), Epoch(2)));
    }

    #[test]
    fn two_owners_in_one_epoch_are_seen() {
        let mut monitor = OneOwner::default();
        let title = |owner, epoch| Title {
            owner: NodeId(owner),
            epoch: Epoch(epoch),
            travels: Travels::Log,
        };
        assert!(monitor.saw(Thing::Everything, title(1, 1)).is_ok());
        assert!(monitor.saw(Thing::Everything, title(2, 2)).is_ok());
        assert!(monitor.saw(Thing::Everything, title(1, 1)).is_ok());
        assert!(monitor.saw(Thing::Everything, title(2, 1)).is_err());
    }
}
