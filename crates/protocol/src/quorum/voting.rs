//! Weighted voting: a quorum is a set of nodes with more than half of all votes.
//!
//! Source: message exclusion §1.1, where the wheel {12, 13, 14, 234} is the majority of votes 2, 1, 1, 1.

use std::cmp::Reverse;

use super::{NodeSet, Promise};
use crate::SetupError;

/// How many votes each node has, and how many a quorum needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Votes {
    votes: Vec<usize>,
    need: usize,
}

impl Votes {
    /// More votes in all than this make tables that nobody waits for.
    pub const TOTAL_MAX: usize = 4_096;

    /// More than half of these votes.
    pub fn new(votes: Vec<usize>) -> Result<Votes, SetupError> {
        let most = votes.iter().max().copied().unwrap_or(0);
        let total = match most > Self::TOTAL_MAX || votes.len() > NodeSet::NODES_MAX {
            true => usize::MAX,
            false => votes.iter().sum(),
        };
        match total {
            0 => Err(SetupError("there must be at least one vote".into())),
            total if total > Self::TOTAL_MAX => Err(SetupError(format!(
                "there are too many votes: at most {} in all, and {} nodes",
                Self::TOTAL_MAX,
                NodeSet::NODES_MAX
            ))),
            total => Ok(Votes {
                votes,
                need: total / 2 + 1,
            }),
        }
    }

    /// One vote each, and one more for node 0 where the number of nodes is even: no tie is possible.
    pub fn without_ties(nodes: usize) -> Result<Votes, SetupError> {
        let casting = usize::from(nodes.is_multiple_of(2));
        Votes::new(
            (0..nodes)
                .map(|i| if i == 0 { 1 + casting } else { 1 })
                .collect(),
        )
    }

    pub fn nodes(&self) -> usize {
        self.votes.len()
    }

    /// Whether these nodes have more than half of the votes.
    pub fn serves(&self, set: NodeSet) -> bool {
        let votes = set.iter().filter_map(|node| self.votes.get(node));
        votes.sum::<usize>() >= self.need
    }

    /// The nodes from this one on until they are a quorum, without those that it is one without.
    pub fn quorum_of(&self, node: usize) -> NodeSet {
        let mut set = NodeSet::single(node);
        for other in (node + 1..self.nodes()).chain(0..node) {
            if self.serves(set) {
                break;
            }
            set = set.with(other);
        }
        set.without(node).iter().fold(set, |kept, other| {
            let fewer = kept.without(other);
            if self.serves(fewer) { fewer } else { kept }
        })
    }

    /// The nodes with votes, most votes first. In this order a set is a minimal quorum exactly when
    /// its last member completes it.
    fn ordered(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = (0..self.nodes()).collect();
        nodes.retain(|&node| self.votes[node] > 0);
        nodes.sort_by_key(|&node| (Reverse(self.votes[node]), node));
        nodes
    }

    /// All minimal quorums; ask [`Votes::counts`] how many they are.
    pub fn quorums(&self) -> Vec<NodeSet> {
        let order = self.ordered();
        let mut left: usize = self.votes.iter().sum();
        let mut open = vec![(NodeSet::EMPTY, 0)];
        let mut found = Vec::new();
        for node in order {
            left -= self.votes[node];
            let mut next = Vec::new();
            for (set, sum) in open {
                let more = sum + self.votes[node];
                match more >= self.need {
                    true => found.push(set.with(node)),
                    false if more + left >= self.need => next.push((set.with(node), more)),
                    false => {}
                }
                if sum + left >= self.need {
                    next.push((set, sum));
                }
            }
            open = next;
        }
        found
    }

    /// How many minimal quorums there are of each size, from 0.
    pub fn counts(&self) -> Vec<u128> {
        let mut found = vec![0_u128; self.nodes() + 1];
        // By the sum of votes so far and the number of nodes that cast them.
        let mut open = vec![vec![0_u128; self.nodes()]; self.need];
        open[0][0] = 1;
        for node in self.ordered() {
            for sum in (0..self.need).rev() {
                for size in 0..self.nodes() {
                    let ways = open[sum][size];
                    let place = match open.get_mut(sum + self.votes[node]) {
                        Some(sizes) => sizes.get_mut(size + 1),
                        None => found.get_mut(size + 1),
                    };
                    if let Some(place) = place {
                        *place = place.saturating_add(ways);
                    }
                }
            }
        }
        found
    }

    /// How many minimal quorums a node with votes is in.
    fn memberships(&self, member: usize) -> f64 {
        let mut found = 0.0;
        let mut open = vec![0.0; self.need];
        open[0] = 1.0;
        for node in self.ordered() {
            if node == member {
                // Whatever was complete before it came does not have it.
                found = 0.0;
            }
            for sum in (0..self.need).rev() {
                let ways = open[sum];
                if node == member {
                    open[sum] = 0.0;
                }
                *open.get_mut(sum + self.votes[node]).unwrap_or(&mut found) += ways;
            }
        }
        found
    }

    /// The share of all minimal quorums that each node is in.
    pub fn loads(&self) -> Vec<f64> {
        let total: f64 = self.counts().iter().map(|&count| count as f64).sum();
        let share = |node| match self.votes[node] {
            0 => 0.0,
            _ => self.memberships(node) / total,
        };
        (0..self.nodes()).map(share).collect()
    }

    /// The probability that a quorum is alive, when each node is with probability `p`.
    pub fn availability(&self, p: f64) -> f64 {
        let mut alive = vec![0.0; self.need + 1];
        alive[0] = 1.0;
        for &votes in self.votes.iter().filter(|votes| **votes > 0) {
            for sum in (0..self.need).rev() {
                let up = alive[sum] * p;
                alive[sum] -= up;
                alive[self.need.min(sum + votes)] += up;
            }
        }
        alive[self.need]
    }

    /// Any two majorities meet; without ties, every set or the rest has one.
    pub fn promise(&self) -> Promise {
        let odd = self.votes.iter().sum::<usize>() % 2 == 1;
        Promise::coterie(odd.then_some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::tests::family;
    use super::super::{Composite, Coterie, Domination, Family};
    use super::*;

    fn listed(votes: &Votes) -> Family {
        Family::new(votes.nodes(), votes.quorums()).expect("few sets")
    }

    #[test]
    fn the_wheel_is_a_vote_of_two_against_one_each() {
        let wheel = Votes::new(vec![2, 1, 1, 1]).expect("votes");
        assert!(listed(&wheel).same_sets(&family(4, &["12", "13", "14", "234"])));
        assert_eq!(wheel.loads(), [0.75, 0.5, 0.5, 0.5]);
        assert_eq!(Votes::without_ties(4), Ok(wheel));
    }

    #[test]
    fn without_ties_every_vote_is_non_dominated() {
        for votes in [
            vec![1],
            vec![3, 1, 1],
            vec![1, 1, 1, 2, 2],
            vec![4, 3, 2, 1, 1],
            vec![0, 1, 1, 1, 0],
            vec![5, 4, 3, 3, 2, 1, 1],
        ] {
            let votes = Votes::new(votes).expect("votes");
            let coterie = Coterie::new(listed(&votes)).expect("a coterie");
            assert_eq!(coterie.domination(), Domination::NonDominated, "{votes:?}");
            assert_eq!(votes.promise().non_dominated, Some(true));
        }
    }

    #[test]
    fn counts_and_loads_agree_with_the_list() {
        for votes in [
            vec![1; 7],
            vec![3, 1, 2, 2, 1, 0],
            vec![2, 2, 2, 1, 1, 1, 1, 4],
        ] {
            let votes = Votes::new(votes).expect("votes");
            let family = listed(&votes);
            let counts: u128 = votes.counts().iter().sum();
            assert_eq!(counts, family.sets().len() as u128);
            let share = |count: usize| count as f64 / family.sets().len() as f64;
            let loads: Vec<f64> = family.memberships().into_iter().map(share).collect();
            assert_eq!(votes.loads(), loads, "{votes:?}");
        }
    }

    #[test]
    fn equal_votes_are_a_majority() {
        let seven = Votes::without_ties(7).expect("votes");
        let majority = Composite::majority(NodeSet::first(7));
        assert!((seven.availability(0.9) - majority.availability(0.9)).abs() < 1e-12);
        assert_eq!(seven.counts().iter().sum::<u128>(), 35);
    }

    #[test]
    fn votes_out_of_bounds_are_refused() {
        assert!(Votes::new(vec![]).is_err() && Votes::new(vec![0, 0]).is_err());
        assert!(Votes::new(vec![usize::MAX, usize::MAX]).is_err());
        assert!(Votes::new(vec![1; 129]).is_err());
        assert!(Votes::new(vec![32; 128]).is_ok());
    }
}
