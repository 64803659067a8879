//! What one replica accepts and what it ignores: coordination and agreement §5.7, rule by rule.

use super::super::alone::Alone;
use super::*;

/// Two requests that differ.
const A: Digest = Some(Command {
    client: NodeId(0),
    number: 1,
});
const B: Digest = Some(Command {
    client: NodeId(1),
    number: 1,
});

/// One of four replicas.
fn replica(id: u32) -> Alone<Pbft> {
    let config = Config {
        replicas: 4,
        f: 1,
        quorum: 3,
        delay_bound: 1,
        flaw: None,
        start: |_| None,
    };
    Alone::new(id, config)
}

/// The only number that is spoken of is 1.
fn pre_prepare(view: u32, request: Digest) -> Signed {
    Signed::PrePrepare {
        view,
        n: 1,
        request,
    }
}

fn prepare(view: u32, digest: Digest) -> Signed {
    Signed::Prepare { view, n: 1, digest }
}

fn commit(view: u32, digest: Digest) -> Signed {
    Signed::Commit { view, n: 1, digest }
}

/// Gives up all views before this one, with what was prepared for number 1.
fn change(view: u32, prepared: Option<(u32, Digest)>) -> ViewChange {
    ViewChange {
        view,
        stable: 0,
        stable_digest: digest(&[]),
        prepared: prepared
            .map(|certificate| (1, certificate))
            .into_iter()
            .collect(),
    }
}

/// The first replicas have given up what was before, each in these words.
fn new_view<const N: usize>(view: u32, changes: [ViewChange; N]) -> Signed {
    let changes = NodeId::all(N).zip(changes).collect();
    Signed::NewView { view, changes }
}

#[test]
fn only_the_first_pre_prepare_of_a_number_is_accepted() {
    let mut backup = replica(1);
    assert_eq!(backup.hear(0, pre_prepare(0, A)), [prepare(0, A)]);
    assert_eq!(backup.hear(0, pre_prepare(0, B)), []);
}

#[test]
fn commits_to_another_digest_do_not_count() {
    let mut backup = replica(1);
    backup.hear(0, pre_prepare(0, A));
    assert_eq!(backup.hear(2, prepare(0, A)), [commit(0, A)]);
    backup.hear(0, commit(0, A));
    backup.hear(2, commit(0, B));
    assert_eq!(backup.node.executed, [], "two of three");
    backup.hear(3, commit(0, A));
    assert_eq!(backup.node.executed, [A]);
}

#[test]
fn only_the_primary_orders_and_begins_its_view() {
    let mut backup = replica(3);
    assert_eq!(backup.hear(2, pre_prepare(0, A)), []);
    assert_eq!(backup.hear(0, pre_prepare(0, A)), [prepare(0, A)]);
    let changes = || [0; 3].map(|_| change(1, None));
    backup.hear(2, new_view(1, changes()));
    assert_eq!(backup.node.view, 0, "view 1 is p1's");
    backup.hear(1, new_view(1, changes()));
    assert_eq!(backup.node.view, 1);
}

#[test]
fn a_new_view_needs_a_quorum_of_view_changes() {
    let mut backup = replica(3);
    backup.hear(1, new_view(1, [0; 2].map(|_| change(1, None))));
    assert_eq!(backup.node.view, 0);
}

#[test]
fn a_new_view_does_not_follow_from_changes_to_another() {
    for other in [0, 2] {
        let mut backup = replica(3);
        let changes = [change(1, None), change(other, None), change(1, None)];
        backup.hear(1, new_view(1, changes));
        assert_eq!(backup.node.view, 0, "one gave up for view {other}");
    }
}

/// §5.7: of two certificates for one number, the later view's may have been committed.
#[test]
fn a_new_view_takes_up_what_the_latest_view_prepared() {
    for (earlier, later) in [(A, B), (B, A)] {
        let mut backup = replica(3);
        let prepared = [Some((0, earlier)), Some((1, later)), None];
        let said = backup.hear(2, new_view(2, prepared.map(|p| change(2, p))));
        assert_eq!(said, [prepare(2, later)]);
    }
}

#[test]
fn what_came_before_its_view_gives_way_to_what_the_view_begins_with() {
    let mut backup = replica(3);
    assert_eq!(backup.hear(1, pre_prepare(1, A)), [], "view 0 is not over");
    let prepared = [Some((0, B)), None, None];
    let said = backup.hear(1, new_view(1, prepared.map(|p| change(1, p))));
    assert_eq!(said, [prepare(1, B)]);
}

const K: u32 = Config::CHECKPOINT_EVERY;

fn executed() -> Vec<Digest> {
    (1..=K)
        .map(|number| {
            let client = NodeId(1);
            Some(Command { client, number })
        })
        .collect()
}

fn checkpoint(digest: StateDigest) -> Signed {
    Signed::Checkpoint { n: K, digest }
}

/// A replica that has executed nothing, when the others have come to a checkpoint.
fn left_behind() -> Alone<Pbft> {
    let mut replica = replica(3);
    for other in 0..3 {
        replica.hear(other, checkpoint(digest(&executed())));
    }
    assert_eq!(replica.node.low, K);
    replica
}

#[test]
fn a_checkpoint_is_stable_when_a_quorum_has_executed_the_same() {
    let mut replica = replica(3);
    let same = digest(&executed());
    for (other, digest) in [(0, same), (1, same), (2, !same)] {
        assert_eq!(replica.hear(other, checkpoint(digest)), []);
    }
    assert_eq!(replica.node.low, 0);
    replica.hear(3, checkpoint(same));
    assert_eq!(replica.node.low, K);
}

#[test]
fn a_state_that_is_not_the_one_of_the_checkpoint_is_refused() {
    let mut replica = left_behind();
    let truth = Signed::State {
        executed: executed(),
    };
    let lies = lies::lies(&truth, &replica.config);
    let of_its_length =
        |lie: &Signed| matches!(lie, Signed::State { executed } if executed.len() == K as usize);
    assert!(lies.iter().any(of_its_length));
    for lie in lies {
        replica.hear(2, lie);
        assert_eq!(replica.node.executed, []);
    }
    replica.hear(2, truth);
    assert_eq!(replica.node.executed, executed());
}

#[test]
fn the_digest_of_a_state_is_a_sha_256() {
    assert_eq!(format!("{:x}", digest(&[])), "e3b0c44298fc1c14");
    let sequences: [&[Digest]; 6] = [&[], &[None], &[A], &[None, A], &[A, None], &[A, B]];
    for (at, one) in sequences.iter().enumerate() {
        for other in &sequences[..at] {
            assert_ne!(digest(one), digest(other), "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_liar_leaves_out_all_that_it_prepared_or_one_of_it_or_its_checkpoint() {
    let truth = ViewChange {
        view: 1,
        stable: K,
        stable_digest: digest(&executed()),
        prepared: [(K + 1, (0, A)), (K + 2, (0, B))].into(),
    };
    let config = replica(0).config;
    let lies = lies::lies(&Signed::ViewChange(truth.clone()), &config);
    let numbers = |change: &ViewChange| change.prepared.keys().copied().collect::<Vec<u32>>();
    let told: Vec<(u32, Vec<u32>)> = lies
        .iter()
        .map(|lie| match lie {
            Signed::ViewChange(change) => (change.stable, numbers(change)),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (K, vec![]),
        (K, vec![K + 2]),
        (K, vec![K + 1]),
        (0, vec![K + 1, K + 2]),
    ];
    assert_eq!(told, expected);
    // The same of the new primary's own words in a new view, and a new view with too few words.
    let changes = NodeId::all(3).map(|node| (node, truth.clone())).collect();
    let lies = lies::lies(&Signed::NewView { view: 1, changes }, &config);
    assert_eq!(lies.len(), expected.len() + 1);
}
