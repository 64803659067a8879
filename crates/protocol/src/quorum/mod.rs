//! Quorums: sets of nodes of which any two meet.

mod construction;

pub use construction::{Construction, PLANES, Quorums};
