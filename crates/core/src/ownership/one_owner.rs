//! The monitor of ownership: under one number, a shard has one owner and one start of that owner.

use std::collections::BTreeMap;

use super::{NodeId, Number, Shard, Start, Title};

/// Checks that a shard has at most one owner per number. Show it every title that any node acts on.
#[derive(Clone, Debug, Default)]
pub struct OneOwner {
    seen: BTreeMap<(Shard, Number), (NodeId, Start)>,
}

impl OneOwner {
    /// Shows a title; says what is wrong if another node, or another start of it, has acted as the owner under the same
    /// number.
    pub fn saw(&mut self, shard: Shard, title: Title) -> Result<(), String> {
        let own = (title.owner, title.start);
        let seen = self.seen.entry((shard, title.number)).or_insert(own);
        if *seen == own {
            return Ok(());
        }
        let (node, start) = *seen;
        Err(format!(
            "shard {shard} under number {} is owned by node {node}, start {start}, and by node {}, start {}",
            title.number, title.owner, title.start
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last two are the specimens: two nodes under one number, and a node that restarted before anybody noticed.
    #[test]
    fn two_owners_under_one_number_are_seen() {
        let mut monitor = OneOwner::default();
        let title = |owner, start, number| Title {
            owner: NodeId(owner),
            start: Start(start),
            number: Number(number),
            since: Number(number),
        };
        let mut saw = |shard, title| monitor.saw(Shard(shard), title).is_ok();
        assert!(saw(1, title(1, 1, 64)));
        assert!(saw(1, title(2, 1, 65)));
        assert!(saw(2, title(2, 1, 64)), "another shard");
        assert!(saw(1, title(1, 1, 64)), "the same again");
        assert!(!saw(1, title(2, 1, 64)));
        assert!(!saw(1, title(1, 2, 64)));
    }
}
