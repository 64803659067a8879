//! How far a node is on its way into its cluster.

use super::House;

impl House {
    /// What a node that joins a cluster waits for; nothing for one that is alone, is a voter in a view, or stops.
    pub(crate) fn joining(&self) -> Option<String> {
        None
    }
}
