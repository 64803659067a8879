//! What operators see and do in a cluster: its members, who owns what, and how that moves.

mod moves;
mod status;
mod waits;

pub(crate) use moves::Moves;
pub(crate) use status::{ClusterStatus, Link, Standing, Title};
pub(crate) use waits::{Times, Wait};
