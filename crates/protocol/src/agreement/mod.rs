//! Agreement: processes propose values and decide the same one.

#[cfg(test)]
mod alone;
mod ballot;
#[cfg(test)]
mod by_hand;
mod history;
mod instances;
mod promises;
#[cfg(test)]
mod rehearsal;
mod sha256;
mod user;

pub(crate) mod commit_reveal;
pub(crate) mod pbft;
pub(crate) mod raft;
pub mod replicated_log;
pub mod specimens;
pub mod turns;

pub use promises::{Decisions, ORDERS, Promises, Validity};
pub use user::{Agreement, Ask, Instance, Tell, User, Value, commander};

crate::registry::family! { Agreement:
    om,
    sm,
    paxos,
    multi_paxos,
    cheap_paxos,
    fast_paxos,
    two_phase_commit,
    generalized_paxos,
}
