//! One face for everything that has quorums, listed or too many to list.

use std::fmt::Debug;

use super::availability::{of_lines, of_square};
use super::{Composite, Family, KCohorts, NodeSet, Votes};

/// What holds for a structure because of how it is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promise {
    /// How many entries it allows, where it is a k-coterie.
    pub k: Option<usize>,
    pub non_dominated: Option<bool>,
}

impl Promise {
    pub fn coterie(non_dominated: Option<bool>) -> Promise {
        Promise {
            k: Some(1),
            non_dominated,
        }
    }
}

/// Quorums, and what is known of them without a list.
#[derive(Clone, PartialEq, Debug)]
pub struct Structure {
    pub nodes: usize,
    pub quorums: QuorumSets,
    pub layout: Layout,
}

/// How the quorums are given.
#[derive(Clone, PartialEq, Debug)]
pub enum QuorumSets {
    Listed(Family, Option<Lines>),
    Composite(Composite),
    Cohorts(KCohorts),
    Votes(Votes),
}

/// Listed quorums for whose availability there is a formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lines {
    /// So many lines, any two of which meet in a node of their own.
    Crossing(usize),
    /// The rows and columns of a square with this side.
    Square(usize),
}

/// Where the nodes stand in a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// No place is better than another.
    Row,
    /// Rows of this many.
    Rows(usize),
    Triangle,
    Tree,
}

impl Structure {
    /// How many quorums there are of each size, from 0. A number that the type cannot hold stops at
    /// its end.
    pub fn counts(&self) -> Vec<u128> {
        match &self.quorums {
            QuorumSets::Composite(composite) => composite.counts(),
            QuorumSets::Cohorts(cohorts) => cohorts.counts(),
            QuorumSets::Votes(votes) => votes.counts(),
            QuorumSets::Listed(family, _) => {
                let mut counts = vec![0; self.nodes + 1];
                family.sets().iter().for_each(|set| counts[set.len()] += 1);
                counts
            }
        }
    }

    /// The share of all quorums that each node is in.
    pub fn loads(&self) -> Vec<f64> {
        match &self.quorums {
            QuorumSets::Composite(composite) => composite.loads(self.nodes),
            QuorumSets::Cohorts(cohorts) => cohorts.loads(self.nodes),
            QuorumSets::Votes(votes) => votes.loads(),
            QuorumSets::Listed(family, _) => {
                let all = family.sets().len() as f64;
                let share = |count: usize| count as f64 / all;
                family.memberships().into_iter().map(share).collect()
            }
        }
    }

    /// The quorums one by one, where they are at most [`Family::SETS_MAX`].
    pub fn list(&self) -> Option<Family> {
        let count = self.counts().into_iter().fold(0, u128::saturating_add);
        if count > Family::SETS_MAX as u128 {
            return None;
        }
        let sets: Vec<NodeSet> = match &self.quorums {
            QuorumSets::Listed(family, _) => return Some(family.clone()),
            QuorumSets::Composite(composite) => composite.quorums(),
            QuorumSets::Cohorts(cohorts) => cohorts.quorums(),
            QuorumSets::Votes(votes) => votes.quorums(),
        };
        Family::new(self.nodes, sets).ok()
    }

    /// The probability that a quorum is alive, by a formula, if there is one.
    pub fn formula(&self, p: f64) -> Option<f64> {
        match &self.quorums {
            QuorumSets::Composite(composite) => Some(composite.availability(p)),
            QuorumSets::Cohorts(cohorts) => Some(cohorts.availability(p)),
            QuorumSets::Votes(votes) => Some(votes.availability(p)),
            QuorumSets::Listed(_, Some(Lines::Crossing(lines))) => Some(of_lines(*lines, p)),
            QuorumSets::Listed(_, Some(Lines::Square(side))) => Some(of_square(*side, p)),
            QuorumSets::Listed(_, None) => None,
        }
    }

    pub fn promise(&self) -> Promise {
        match &self.quorums {
            QuorumSets::Composite(composite) => composite.promise(),
            QuorumSets::Cohorts(cohorts) => cohorts.promise(),
            QuorumSets::Votes(votes) => votes.promise(),
            QuorumSets::Listed(..) => Promise::default(),
        }
    }
}
