//! Quorums: sets of nodes of which enough meet. Families and what holds for them (coteries,
//! k-coteries, k-arbiters, (h,k)-arbiters), the constructions of the literature, and how often a
//! quorum is alive when nodes fail.

pub mod availability;

mod agrawal_jalote;
#[cfg(test)]
mod antichains;
mod blueprint;
mod cohorts;
mod composite;
mod construction;
mod coterie;
mod curve;
mod domination;
mod family;
mod flaw;
mod grid;
mod hk_arbiter;
mod k_arbiter;
mod k_cohorts;
mod k_coterie;
mod k_voting;
mod node_set;
mod plane;
mod structure;
mod study;
mod tree;
mod triangle;
mod voting;
mod witness;

pub use agrawal_jalote::AgrawalJalote;
#[cfg(test)]
use antichains::antichains;
pub use blueprint::{Blueprint, Demand};
pub use cohorts::Cohorts;
pub use composite::Composite;
pub use construction::{Construction, Quorums};
pub use coterie::Coterie;
pub use curve::Curve;
pub use domination::Domination;
pub use family::{Family, FamilyError};
pub use flaw::{Flaw, STATES_MAX};
pub use hk_arbiter::{HkArbiter, critical_patterns, sizes_are_safe, uniform_size};
pub use k_arbiter::KArbiter;
pub use k_cohorts::KCohorts;
pub use k_coterie::KCoterie;
pub use k_voting::{joined_majorities, maj_k, maj_k_size, maj_r};
pub use node_set::NodeSet;
pub use plane::PLANES;
pub use structure::{Layout, Lines, Promise, QuorumSets, Structure};
pub use study::{JUDGED_MAX, Load, PROBABILITIES, Point, Sizes, Study, Verdict};
pub use tree::Tree;
pub use triangle::Triangle;
pub use voting::Votes;
pub use witness::LOOKS_MAX;
