//! Raft with one rule broken, kept in order to be refuted: coordination and agreement §5.6, negative tests.

use super::{Command, Disk, Flaw, LogEntry, ReplicatedLog, servers};
use crate::{Algorithm, Faults, NodeId, Profile, Telling};

/// The schedule needs four terms, so it begins after two of them: p0 led in term 2 and p2 in term 3, and each wrote
/// an entry that nobody else has.
pub(crate) const OLD_TERM: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "raft-old-term",
        title: "Raft that commits entries of earlier terms by counting",
        source: "coordination and agreement §5.6, negative test 1",
        specimen: Some(
            "unsafe: an entry of term 2 that a majority holds in term 4 is overwritten in term 5",
        ),
        tolerates: |_| Faults::NONE,
        telling_proposers: Some(0),
        ..super::ALGORITHM.profile
    },
    machine: |setup| servers(setup, Some(Flaw::CountsOldTerms), two_terms_later),
};

pub(super) fn two_terms_later(server: NodeId) -> Option<Disk> {
    let written = |term| LogEntry {
        term,
        command: Some(Command {
            client: server,
            number: 0,
        }),
    };
    let (voted_for, log) = match server.0 {
        0 => (None, vec![written(2)]),
        1 => (Some(NodeId(2)), Vec::new()),
        2 => (Some(NodeId(2)), vec![written(3)]),
        _ => return None,
    };
    Some(Disk {
        term: 3,
        voted_for,
        log,
    })
}

pub(crate) const NO_LOG_CHECK: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "raft-no-log-check",
        title: "Raft that votes without looking at logs",
        source: "coordination and agreement §5.6, negative test 2",
        specimen: Some("unsafe: a server that lacks a committed entry is elected"),
        tolerates: |_| Faults::NONE,
        telling_proposers: Some(1),
        ..super::ALGORITHM.profile
    },
    machine: |setup| servers(setup, Some(Flaw::NoLogCheck), |_| None),
};

pub(crate) const FORGETS_VOTE: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "raft-forgets-vote",
        title: "Raft whose votes are not on stable storage",
        source: "coordination and agreement §5.6, negative test 3",
        specimen: Some("unsafe: a server that comes back votes again, and two lead in one term"),
        telling_proposers: Some(0),
        ..super::ALGORITHM.profile
    },
    machine: |setup| servers(setup, Some(Flaw::ForgetsVote), |_| None),
};

pub(crate) const FIXED_TIMEOUT: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "raft-fixed-timeout",
        title: "Raft with the same timeout everywhere",
        source: "coordination and agreement §5.6, negative test 4",
        specimen: Some("never decides: two servers stand at the same time, for ever"),
        tolerates: |_| Faults::NONE,
        needs_delay_bound: true,
        telling_timeouts: Some(2),
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..super::ALGORITHM.profile
    },
    machine: |setup| servers(setup, Some(Flaw::FixedTimeout), |_| None),
};
