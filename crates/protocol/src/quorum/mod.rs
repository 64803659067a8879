//! Quorums: sets of nodes of which enough meet. Families and what holds for them (coteries,
//! k-coteries, k-arbiters, (h,k)-arbiters), the constructions of the literature, and how often a
//! quorum is alive when nodes fail.

#[cfg(test)]
mod antichains;
mod construction;
mod coterie;
mod domination;
mod family;
mod flaw;
mod hk_arbiter;
mod k_arbiter;
mod k_coterie;
mod node_set;
mod witness;

#[cfg(test)]
use antichains::antichains;
pub use construction::{Construction, PLANES, Quorums};
pub use coterie::Coterie;
pub use domination::Domination;
pub use family::{Family, FamilyError};
pub use flaw::{Flaw, STATES_MAX};
pub use hk_arbiter::{HkArbiter, critical_patterns, sizes_are_safe, uniform_size};
pub use k_arbiter::KArbiter;
pub use k_coterie::KCoterie;
pub use node_set::NodeSet;
pub use witness::LOOKS_MAX;
