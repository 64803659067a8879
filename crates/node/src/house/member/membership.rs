//! Whether this node belongs to its cluster: what the log says of it, and what it says of itself.

use testigo_core::estate::Estate;
use testigo_core::{Change, Refusal, Word};

use crate::house::{Answers, House};
use crate::wire::refuse;

impl House {
    /// Whether the node is a voter and in the view, for which a newcomer or a returning node waits.
    pub(crate) fn check_joined(&self) -> Result<(), Refusal> {
        let Some(member) = self.member() else {
            return Ok(());
        };
        let votes = member.standing.members.voters.contains(&self.own.0.0);
        let is_in = self.services.estate().is_some_and(Estate::is_in);
        match votes && is_in {
            true => Ok(()),
            false => Err(refuse(
                Word::Unavailable,
                "this node is not a member of its cluster yet",
            )),
        }
    }

    /// The addresses of the cluster's nodes have changed, or are known for the first time.
    pub(in crate::house) fn cluster_changed(&mut self) {
        if let Some(member) = self.member()
            && let Some(peers) = &member.peers
        {
            let members = &member.standing.members;
            peers.follow(self.replicated().cluster(), |node| members.contains(node));
        }
        let cluster = self.replicated().cluster();
        let let_in = cluster.last_start(self.own.0) >= self.own.1;
        let newcomer = self.member().is_some_and(|member| member.newcomer);
        if cluster.was_removed(self.own.0) && (let_in || !newcomer) && !self.stopping {
            log::warn!("this node was removed from its cluster: it stops");
            if let Some(member) = &mut self.member {
                member.removed = true;
            }
            self.begin_stop();
        }
    }

    /// Logs this node's address, if the log has another one.
    pub(super) fn log_own_address(&mut self) {
        let Some(member) = &self.member else {
            return;
        };
        let (node, address) = (self.own.0, member.address.clone());
        let known = self.replicated().cluster().address(node);
        let removed = self.replicated().cluster().was_removed(node);
        if known == Some(&address) || removed || !self.acts() {
            return;
        }
        let address = Some(address);
        let change = Change::Address { node, address };
        let under_way = self.submissions.changes().any(|other| *other == change);
        if !under_way {
            let _ = self.submit(change, Answers::Nobody);
        }
    }
}
