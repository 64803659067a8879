//! Cohorts for k entries: all but k−1 of one cohort and one member of each later one.
//!
//! Source: message exclusion §1.5 and §6.2, figure 4.14 (Jiang and Huang). Where the figure says "more
//! than" for the members that a primary cohort needs, "at least" is meant. With k = 1 these are the
//! cohorts of figure 4.5 that share no node.

use super::construction::nearest;
use super::{NodeSet, Promise};
use crate::SetupError;

/// Coh(k,l) = (C_1 … C_l), which share no node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KCohorts {
    k: usize,
    cohorts: Vec<NodeSet>,
}

impl KCohorts {
    /// P1: the first cohort has k members. P2: every later one has more than max(2k−2, k).
    pub fn new(k: usize, cohorts: Vec<NodeSet>) -> Result<KCohorts, SetupError> {
        let refuse = |why: String| Err(SetupError(why));
        let mut taken = NodeSet::EMPTY;
        for (i, &cohort) in cohorts.iter().enumerate() {
            if cohort.meets(taken) {
                return refuse(format!("cohort {cohort} shares a node with an earlier one"));
            }
            taken = taken.union(cohort);
            let least = if i == 0 { k } else { Self::later_size_min(k) };
            if cohort.len() < least || (i == 0 && cohort.len() > k) {
                return refuse(format!(
                    "cohort {cohort} has {} members: the first needs {k}, a later one at least {}",
                    cohort.len(),
                    Self::later_size_min(k)
                ));
            }
        }
        match k == 0 || cohorts.is_empty() {
            true => refuse("there must be at least one cohort, and k at least 1".into()),
            false => Ok(KCohorts { k, cohorts }),
        }
    }

    /// Cohorts of these sizes, of successive nodes.
    pub fn of_sizes(k: usize, sizes: &[usize]) -> Result<KCohorts, SetupError> {
        let mut from: usize = 0;
        let mut cohorts = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let until = from.saturating_add(size);
            if until > NodeSet::NODES_MAX {
                let most = NodeSet::NODES_MAX;
                return Err(SetupError(format!(
                    "the cohorts have more than {most} nodes"
                )));
            }
            cohorts.push(NodeSet::span(from, until));
            from = until;
        }
        KCohorts::new(k, cohorts)
    }

    /// Cohorts of about equal size behind the first, one larger than they must be where that fits:
    /// with one entry and nodes that are mostly alive, this is close to the best.
    pub fn usual_sizes(nodes: usize, k: usize) -> Result<Vec<usize>, SetupError> {
        let least = Self::later_size_min(k);
        let fits = |nodes: usize| k > 0 && (nodes == k || nodes >= k + least);
        if !fits(nodes) {
            return Err(nearest(&format!("cohorts with k = {k}"), nodes, fits));
        }
        let others = nodes - k;
        let mut later = others.div_ceil(least + 1);
        while later > 0 && others / later < least {
            later -= 1;
        }
        let size = |i: usize| others / later + usize::from(i >= later - others % later);
        Ok(std::iter::once(k).chain((0..later).map(size)).collect())
    }

    fn later_size_min(k: usize) -> usize {
        (2 * k).saturating_sub(2).max(k) + 1
    }

    pub fn cohorts(&self) -> &[NodeSet] {
        &self.cohorts
    }

    /// How many members of a cohort make it the primary one.
    fn primary_size(&self, cohort: NodeSet) -> usize {
        cohort.len() - (self.k - 1)
    }

    /// A quorum of live nodes, if the live nodes contain one: `Get_Quorum`.
    pub fn quorum(&self, live: NodeSet) -> Option<NodeSet> {
        let mut kept = NodeSet::EMPTY;
        for &cohort in self.cohorts.iter().rev() {
            let alive = cohort.intersection(live);
            let primary = self.primary_size(cohort);
            // The order of the tests matters: of the first cohort one member is enough.
            if alive.len() >= primary {
                return Some(kept.union(alive.take(primary)));
            }
            if alive.is_empty() {
                return None;
            }
            kept = kept.union(alive.take(1));
        }
        None
    }

    /// A quorum with a certain member, with the member's cohort as the primary one.
    pub fn quorum_of(&self, node: usize) -> Option<NodeSet> {
        let place = self
            .cohorts
            .iter()
            .position(|cohort| cohort.contains(node))?;
        let cohort = self.cohorts[place];
        let others = cohort.without(node).take(self.primary_size(cohort) - 1);
        let own = others.with(node);
        // Support comes from everybody in turn.
        let support = |cohort: &NodeSet| cohort.iter().nth(node % cohort.len());
        Some((self.cohorts[place + 1..].iter()).fold(own, |set, cohort| {
            support(cohort).map_or(set, |member| set.with(member))
        }))
    }

    /// All quorums; ask [`KCohorts::counts`] how many they are.
    pub fn quorums(&self) -> Vec<NodeSet> {
        let mut found = Vec::new();
        for (i, &primary) in self.cohorts.iter().enumerate() {
            let mut open: Vec<NodeSet> = primary.subsets(self.primary_size(primary)).collect();
            for cohort in &self.cohorts[i + 1..] {
                let support = |set: NodeSet| cohort.iter().map(move |node| set.with(node));
                open = open.into_iter().flat_map(support).collect();
            }
            found.extend(open);
        }
        found
    }

    /// How many quorums have each cohort as the primary one.
    fn by_primary(&self) -> Vec<u128> {
        let count = |i: usize| {
            let cohort = self.cohorts[i];
            let supports = self.cohorts[i + 1..]
                .iter()
                .map(|later| later.len() as u128);
            supports.fold(binomial(cohort.len(), self.k - 1), u128::saturating_mul)
        };
        (0..self.cohorts.len()).map(count).collect()
    }

    /// How many quorums there are of each size, from 0.
    pub fn counts(&self) -> Vec<u128> {
        let last = self.cohorts.len() - 1;
        let size = |i: usize| self.primary_size(self.cohorts[i]) + last - i;
        let most = (0..=last).map(size).max().unwrap_or(0);
        let mut counts = vec![0_u128; most + 1];
        for (i, count) in self.by_primary().into_iter().enumerate() {
            counts[size(i)] = counts[size(i)].saturating_add(count);
        }
        counts
    }

    /// The share of all quorums that each of the first `nodes` nodes is in.
    pub fn loads(&self, nodes: usize) -> Vec<f64> {
        let by_primary: Vec<f64> = self
            .by_primary()
            .iter()
            .map(|&count| count as f64)
            .collect();
        let total: f64 = by_primary.iter().sum();
        let mut loads = vec![0.0; nodes];
        let mut earlier = 0.0;
        for (&cohort, &primary) in self.cohorts.iter().zip(&by_primary) {
            let members = cohort.len() as f64;
            let as_primary = primary * self.primary_size(cohort) as f64 / members;
            for node in cohort.iter() {
                loads[node] = (as_primary + earlier / members) / total;
            }
            earlier += primary;
        }
        loads
    }

    /// The probability that a quorum is alive, when each node is with probability `p`.
    pub fn availability(&self, p: f64) -> f64 {
        self.cohorts.iter().fold(0.0, |earlier, cohort| {
            let none = (1.0 - p).powi(cohort.len() as i32);
            let primary =
                super::availability::at_least(cohort.len(), self.primary_size(*cohort), p);
            primary + (1.0 - primary - none) * earlier
        })
    }

    pub fn promise(&self) -> Promise {
        match self.k {
            1 => Promise::coterie(Some(true)),
            k => Promise {
                k: Some(k),
                non_dominated: None,
            },
        }
    }
}

/// The number of ways to leave out `rest` of `all`.
fn binomial(all: usize, rest: usize) -> u128 {
    (0..rest as u128).fold(1_u128, |product, i| {
        product.saturating_mul(all as u128 - i) / (i + 1)
    })
}

#[cfg(test)]
mod tests;
