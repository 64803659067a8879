//! Sanders, 1987: exclusion by information structure. Node i asks its request set R_i and informs
//! its inform set I_i; by default both are Maekawa's quorums.
//!
//! Source: message exclusion §3.2, with the settle rule of coordination and agreement §2.5.4. The
//! thesis' text deadlocks (`specimens::sanders_printed`).

use super::Mutex;
use super::arbiter::{Rules, on_quorums, per_member};
use crate::{Algorithm, Claim, Cost, Profile, Range};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "sanders",
        title: "Sanders, 1987",
        source: "message exclusion §3.2, coordination and agreement §2.5.4",
        // The course claims order too; two requests whose quorums meet in one slow voter break it.
        claims: &[
            Claim::Safety,
            Claim::DeadlockFreedom,
            Claim::LockoutFreedom,
            Claim::Order,
        ],
        costs: &[
            Cost::messages("3(K−1) to 7(K−1)", |setup| per_member(setup, 3, 7)),
            Cost::entry_delay("2", |_| Range::exactly(2)),
            Cost::synchronisation_delay("2, or 1 by a vote of its own", |_| Range::new(1, 2)),
        ],
        ..Profile::PLAIN
    },
    machine: |setup| on_quorums(setup, Rules::Repaired),
};
