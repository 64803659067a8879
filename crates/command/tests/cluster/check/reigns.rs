//! One leader per term, and one owner per shard and number, whichever node is asked and whenever.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Reigns {
    leaders: BTreeMap<i64, i64>,
    owners: BTreeMap<(i64, i64), i64>,
    /// The highest number that was seen of a shard.
    numbers: BTreeMap<i64, i64>,
}

impl Reigns {
    /// A node says who leads.
    pub(crate) fn leads(&mut self, term: i64, node: i64) -> Result<(), String> {
        match *self.leaders.entry(term).or_insert(node) {
            first if first == node => Ok(()),
            first => Err(format!("term {term} has two leaders: {first} and {node}")),
        }
    }

    /// A node says who owns a shard.
    pub(crate) fn owns(&mut self, shard: i64, number: i64, node: i64) -> Result<(), String> {
        let highest = self.numbers.entry(shard).or_default();
        *highest = number.max(*highest);
        match *self.owners.entry((shard, number)).or_insert(node) {
            first if first == node => Ok(()),
            first => Err(format!(
                "shard {shard} has two owners under number {number}: {first} and {node}"
            )),
        }
    }

    /// How many terms and titles were seen.
    pub(crate) fn seen(&self) -> (usize, usize) {
        (self.leaders.len(), self.owners.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_leaders_of_a_term_and_two_owners_under_a_number_are_seen() {
        let mut reigns = Reigns::default();
        for (term, node) in [(1, 1), (2, 3), (1, 1)] {
            assert_eq!(reigns.leads(term, node), Ok(()));
        }
        for (shard, number, node) in [(7, 1, 1), (7, 2, 3), (8, 1, 2), (7, 1, 1)] {
            assert_eq!(reigns.owns(shard, number, node), Ok(()));
        }
        assert!(reigns.leads(2, 1).is_err_and(|why| why.contains("leaders")));
        assert!(
            reigns
                .owns(7, 2, 1)
                .is_err_and(|why| why.contains("owners"))
        );
        assert_eq!(reigns.seen(), (2, 3));
    }
}
