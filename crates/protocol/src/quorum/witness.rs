//! The search behind every theorem about domination: a set of nodes that meets certain sets and
//! contains none of certain others. Coteries, k-coteries and k-arbiters differ only in which.

use super::NodeSet;

/// How many times a set is looked at before a search gives up.
pub const LOOKS_MAX: u64 = 300_000_000;

/// What a search came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Search {
    Found(NodeSet),
    /// There is none.
    Nothing,
    GaveUp,
}

/// A set that meets every set of `meet` and contains no set of `avoid`.
pub(super) fn find(meet: &[NodeSet], avoid: &[NodeSet]) -> Search {
    let mut finder = Finder {
        meet,
        avoid,
        looks: LOOKS_MAX,
    };
    finder.extend(NodeSet::EMPTY, NodeSet::EMPTY)
}

struct Finder<'a> {
    meet: &'a [NodeSet],
    avoid: &'a [NodeSet],
    looks: u64,
}

impl Finder<'_> {
    /// Chooses one more member, from a set that is not met yet; `barred` was tried before.
    fn extend(&mut self, chosen: NodeSet, barred: NodeSet) -> Search {
        let cost = (self.meet.len() + self.avoid.len()) as u64;
        let Some(looks) = self.looks.checked_sub(cost) else {
            return Search::GaveUp;
        };
        self.looks = looks;
        if self.avoid.iter().any(|set| set.is_within(chosen)) {
            return Search::Nothing;
        }
        let open = self.meet.iter().filter(|set| !set.meets(chosen));
        // The set with the fewest choices left, so that dead ends come early.
        let Some(narrow) = open
            .map(|set| set.minus(barred))
            .min_by_key(|set| set.len())
        else {
            return Search::Found(chosen);
        };
        let mut barred = barred;
        for node in narrow.iter() {
            match self.extend(chosen.with(node), barred) {
                Search::Nothing => barred = barred.with(node),
                end => return end,
            }
        }
        Search::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_agrees_with_trying_every_set() {
        let subsets = |n: usize| (0..1_u128 << n).map(NodeSet::from_bits);
        // A few hundred small families, each from the bits of a fixed sequence.
        let mut bits: u32 = 0x2545_f491;
        for _ in 0..400 {
            let mut draw = || {
                bits ^= bits << 13;
                bits ^= bits >> 17;
                bits ^= bits << 5;
                NodeSet::from_bits(u128::from(bits % 63 + 1))
            };
            let meet: Vec<NodeSet> = (0..4).map(|_| draw()).collect();
            let avoid: Vec<NodeSet> = (0..4).map(|_| draw()).collect();
            let good = |set: NodeSet| {
                meet.iter().all(|other| other.meets(set))
                    && !avoid.iter().any(|other| other.is_within(set))
            };
            match find(&meet, &avoid) {
                Search::Found(set) => assert!(good(set)),
                Search::Nothing => assert!(!subsets(6).any(good)),
                Search::GaveUp => panic!("six nodes are few"),
            }
        }
    }
}
