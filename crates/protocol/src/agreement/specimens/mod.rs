//! Algorithms kept in order to be refuted: each claims what it breaks, and the checker must find
//! the schedule that shows it.

use super::Agreement;

crate::registry::family! { Agreement:
    om_three,
    om_one_round,
    sm_forged,
    paxos_any_accepted,
    paxos_forgetful,
    paxos_duel,
    multi_paxos_forgets_reports,
    cheap_paxos_alone,
    fast_paxos_small_quorums,
    generalized_paxos_blind,
    two_phase_commit_timid,
}
