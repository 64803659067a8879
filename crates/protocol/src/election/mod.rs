//! Election: one process is chosen, the one with the largest id that lives, and everybody learns who it is.

mod user;

pub mod specimens;
#[cfg(test)]
mod tests;

pub use user::{Ask, Candidate, Election, Tell};

crate::registry::family! { Election:
    ring_election,
    bully,
}
