//! How far a node has come in joining its cluster.

use super::House;

impl House {
    /// What a joining node waits for; `None` if the node is alone, is a voter in a view, or is stopping.
    pub(crate) fn joining(&self) -> Option<String> {
        let member = self.member().filter(|_| !self.is_stopping())?;
        let own = self.own.0.0;
        let standing = member.standing();
        let votes = standing.members.voters.contains(&own);
        let is_in = self.services.estate().is_some_and(|estate| estate.is_in());
        let waits = match standing.leader {
            _ if votes && is_in && self.acts() => return None,
            _ if votes && is_in => "this node is in the view, and waits for its lease".into(),
            _ if standing.behind => "this directory is an older copy of this node's and has lost what the node acknowledged; \
                 remove the node, and let it join again with an empty directory"
                .into(),
            None => "nobody leads; a majority of the voters must be there".into(),
            Some(leader) if votes => format!("node {leader} leads, and will let this start in"),
            Some(leader) if standing.members.learners.contains(&own) => {
                format!("node {leader} leads; this node learns before it votes")
            }
            Some(leader) => format!("node {leader} leads, and has not let this node in yet"),
        };
        Some(waits)
    }
}
