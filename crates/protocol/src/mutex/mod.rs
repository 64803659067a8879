//! Mutual exclusion: at most one user inside, everybody who asks gets in.

mod arbiter;
mod recall;
mod user;

pub mod specimens;

pub use user::{Ask, Mutex, Tell, User};

crate::registry::family! { Mutex:
    central,
    token_ring,
    lamport,
    ricart_agrawala,
    maekawa,
    sanders,
    raymond,
    chang,
    tree_quorum,
    cohort_quorum,
    agrawal_jalote,
}
