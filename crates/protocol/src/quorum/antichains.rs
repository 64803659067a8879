//! Every family without nested sets, for the theorems that small cases can settle.

use super::{Family, NodeSet};

/// All of them over `nodes` nodes; few for up to five nodes, and too many for more.
pub(super) fn antichains(nodes: usize) -> Vec<Family> {
    let sets: Vec<NodeSet> = (1..1_u128 << nodes).map(NodeSet::from_bits).collect();
    let mut found = Vec::new();
    choose(&sets, &mut Vec::new(), &mut |chosen| {
        found.extend(Family::new(nodes, chosen.iter().copied()));
    });
    found
}

fn choose(rest: &[NodeSet], chosen: &mut Vec<NodeSet>, found: &mut impl FnMut(&[NodeSet])) {
    found(chosen);
    for (i, &set) in rest.iter().enumerate() {
        let nested = |other: &NodeSet| other.is_within(set) || set.is_within(*other);
        if !chosen.iter().any(nested) {
            chosen.push(set);
            choose(&rest[i + 1..], chosen, found);
            chosen.pop();
        }
    }
}

#[test]
fn there_are_as_many_as_dedekind_counted() {
    // Without the empty family, and without the family of the empty set.
    let counts: Vec<usize> = (1..=5).map(|nodes| antichains(nodes).len()).collect();
    assert_eq!(counts, [1, 4, 18, 166, 7579]);
}
