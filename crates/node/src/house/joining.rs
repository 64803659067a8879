//! How far a node has come in joining its cluster.

use testigo_core::estate::{Estate, Rule};

use super::House;

/// What a node that waits for a view is told.
const RETURNS: &str = "a node that keeps crashing is let in after 1, 2, 4 … 60 s";

/// Whether this start waits to be let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pause {
    #[default]
    None,
    /// Since then.
    Since(u64),
    /// The log says so.
    Told,
}

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
            Some(leader) if votes => {
                format!("node {leader} leads, and will let this start in; {RETURNS}")
            }
            Some(leader) if standing.members.learners.contains(&own) => {
                format!("node {leader} leads; this node learns before it votes")
            }
            Some(leader) => format!("node {leader} leads, and has not let this node in yet"),
        };
        Some(waits)
    }

    /// Says once, in the log, that this start is not let in at once, and why that may be.
    pub(super) fn tell_of_the_pause(&mut self) {
        let is_in = self.services.estate().is_some_and(Estate::is_in);
        let (own, now) = (self.own.0.0, self.now);
        let Some(member) = &mut self.member else {
            return;
        };
        let standing = member.standing();
        let waits = !is_in && standing.leader.is_some() && standing.members.voters.contains(&own);
        member.pause = match member.pause {
            _ if is_in => Pause::None,
            Pause::None if waits => Pause::Since(now),
            Pause::Since(since) if now >= since + Rule::RETURN_MS_MIN => {
                log::info!("this node waits to be let into its cluster; {RETURNS}");
                Pause::Told
            }
            pause => pause,
        };
    }
}
