//! Two-phase commit whose coordinator always aborts (coordination and agreement §5.8): it never disagrees with itself, and never does
//! what everybody voted for.

use super::super::two_phase_commit::{TWO_PHASE_COMMIT, machine};
use super::super::user::Agreement;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "two-phase-commit-timid",
        title: "Two-phase commit that always aborts",
        specimen: Some("the coordinator aborts although everybody has voted yes in time"),
        ..TWO_PHASE_COMMIT
    },
    machine: |setup| machine(setup, true),
};
