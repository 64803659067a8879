//! A start that waits to be let into its cluster.

use testigo_core::estate::{Estate, Rule};

use super::House;

/// What a node that waits for a view is told.
pub(crate) const RETURNS: &str = "a node that keeps crashing is let in after 1, 2, 4 … 60 s";

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
