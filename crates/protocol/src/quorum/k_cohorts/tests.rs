//! Cohorts for k-exclusion, against the examples of the source.

use super::super::family::tests::family;
use super::super::{Cohorts, Domination, Family, Flaw, KCoterie};
use super::*;

fn listed(cohorts: &KCohorts, nodes: usize) -> Family {
    Family::new(nodes, cohorts.quorums()).expect("few")
}

#[test]
fn the_example_of_five_nodes_is_a_dominated_two_coterie() {
    let two = KCohorts::of_sizes(2, &[2, 3]).expect("cohorts");
    let quorums = listed(&two, 5);
    let printed = ["34", "35", "45", "13", "14", "15", "23", "24", "25"];
    assert!(quorums.same_sets(&family(5, &printed)));
    let coterie = KCoterie::new(quorums, 2).expect("a 2-coterie");
    assert!(matches!(coterie.domination(), Domination::Dominated(_)));
    let witness = coterie.family().improved_by(NodeSet::first(2));
    assert!(witness.dominates(coterie.family()));
    assert!(KCoterie::new(witness, 2).is_ok(), "{{1,2}} is a witness");
}

#[test]
fn the_example_of_ten_nodes_has_fifty_quorums() {
    let three = KCohorts::of_sizes(2, &[2, 3, 5]).expect("cohorts");
    let quorums = listed(&three, 10);
    assert_eq!(quorums.sets().len(), 50);
    assert_eq!(three.counts(), [0, 0, 0, 45, 5]);
    assert!(KCoterie::new(quorums, 2).is_ok());
}

#[test]
fn sizes_below_k_exist() {
    // The source says that the best case is k; with primary C_1 the size is l.
    let sizes = KCohorts::of_sizes(3, &[3, 5]).expect("cohorts").counts();
    assert!(sizes[2] > 0 && sizes[..2].iter().all(|&count| count == 0));
}

#[test]
fn p2_is_tight() {
    for (k, sizes) in [(1, [1, 1]), (2, [2, 2]), (3, [3, 4]), (4, [4, 6])] {
        assert!(KCohorts::of_sizes(k, &sizes).is_err(), "k = {k}");
        let cohorts = vec![
            NodeSet::first(sizes[0]),
            NodeSet::span(sizes[0], sizes[0] + sizes[1]),
        ];
        let forced = KCohorts { k, cohorts };
        let refused = KCoterie::new(listed(&forced, sizes.iter().sum()), k);
        assert!(
            matches!(
                refused,
                Err(Flaw::TooManyDisjoint(_) | Flaw::NoneFree(_) | Flaw::Nested(..))
            ),
            "k = {k}: {refused:?}"
        );
    }
}

#[test]
fn a_quorum_is_found_exactly_when_the_live_nodes_contain_one() {
    for (k, sizes) in [
        (1, &[1, 2, 3][..]),
        (2, &[2, 3]),
        (2, &[2, 3, 5]),
        (3, &[3, 5]),
        (2, &[2]),
    ] {
        let cohorts = KCohorts::of_sizes(k, sizes).expect("cohorts");
        let nodes = sizes.iter().sum();
        let quorums = listed(&cohorts, nodes);
        for bits in 0..1_u128 << nodes {
            let live = NodeSet::from_bits(bits);
            let found = cohorts.quorum(live);
            assert_eq!(found.is_some(), quorums.serves(live), "{live} alive");
            assert!(found.is_none_or(|set| set.is_within(live) && quorums.sets().contains(&set)));
        }
    }
}

#[test]
fn with_one_entry_they_are_jiangs_cohorts() {
    for sizes in [&[1][..], &[1, 2], &[1, 3, 3], &[1, 2, 2, 2]] {
        let one = KCohorts::of_sizes(1, sizes).expect("cohorts");
        let nodes = sizes.iter().sum();
        let jiang = Cohorts::new(one.cohorts().to_vec()).expect("cohorts");
        assert!(listed(&one, nodes).same_sets(&jiang.family(nodes).expect("few")));
        for node in 0..nodes {
            let own = one.quorum_of(node).expect("a member");
            assert!(own.contains(node) && jiang.is_quorum(own));
        }
    }
}

#[test]
fn the_usual_sizes_are_k_coteries_wherever_there_are_any() {
    let usual = |nodes, k| KCohorts::usual_sizes(nodes, k);
    assert_eq!(usual(7, 1), Ok(vec![1, 3, 3]));
    assert_eq!(usual(5, 1), Ok(vec![1, 2, 2]));
    assert_eq!(usual(10, 2), Ok(vec![2, 4, 4]));
    for k in 1..=3 {
        for nodes in 1..=12 {
            match usual(nodes, k) {
                Ok(sizes) => {
                    assert_eq!(sizes.iter().sum::<usize>(), nodes);
                    let cohorts = KCohorts::of_sizes(k, &sizes).expect("sizes that fit");
                    let found = KCoterie::new(listed(&cohorts, nodes), k);
                    assert!(found.is_ok(), "N = {nodes}, k = {k}: {found:?}");
                }
                Err(error) => assert!(error.0.contains("use"), "{error}"),
            }
        }
    }
    assert!(usual(2, 1).expect_err("no").0.contains("1 or 3"));
}

#[test]
fn counts_and_loads_agree_with_the_list() {
    for (k, sizes) in [(1, &[1, 2, 3][..]), (2, &[2, 3, 5]), (3, &[3, 5])] {
        let cohorts = KCohorts::of_sizes(k, sizes).expect("cohorts");
        let nodes = sizes.iter().sum();
        let family = listed(&cohorts, nodes);
        let count = family.sets().len();
        assert_eq!(cohorts.counts().iter().sum::<u128>(), count as u128);
        let memberships = family.memberships().into_iter();
        for (load, membership) in cohorts.loads(nodes).into_iter().zip(memberships) {
            assert!((load - membership as f64 / count as f64).abs() < 1e-12);
        }
    }
}
