//! The leader's rule, with asks and answers given by hand.

use super::*;
use crate::limits::Limits;
use crate::replicated::Stamp;

const LEASE_MS: u64 = 3_000;
const VOTERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

fn peer(node: u64, start: u64) -> Peer {
    (NodeId(node), Start(start))
}

/// A leader, node 1, and the log that it has applied.
struct Stage {
    rule: Rule,
    replicated: Replicated,
    term: u64,
    views: u64,
}

impl Stage {
    /// The leader of these members was elected at 0.
    fn new(members: &[Peer], broken: Option<Broken>) -> Stage {
        let mut rule = Rule::new(peer(1, 1), LEASE_MS);
        rule.broken = broken;
        rule.elected(0, 5);
        let mut replicated = Replicated::new(Limits::default());
        if !members.is_empty() {
            let view = Change::View {
                before: Index(0),
                members: members.to_vec(),
                generation: 0,
            };
            let _ = replicated.apply(0, &view).unwrap();
        }
        let (term, views) = (5, 0);
        Stage {
            rule,
            replicated,
            term,
            views,
        }
    }

    fn orders(&mut self, now: u64) -> Vec<Order> {
        self.rule.tick(now, &self.replicated, &VOTERS)
    }

    /// The members of the view that is proposed now, if any.
    fn proposed(&mut self, now: u64) -> Option<Vec<Peer>> {
        let orders = self.orders(now);
        orders.into_iter().find_map(|order| match order {
            Order::Propose(Change::ViewInTerm { members, .. } | Change::View { members, .. }) => {
                Some(members)
            }
            _ => None,
        })
    }

    /// These starts ask and are answered.
    fn renew(&mut self, now: u64, peers: &[Peer]) {
        for peer in peers {
            self.rule.asked(now, *peer);
            self.rule.answered(now, *peer);
        }
    }

    /// Carries out the present orders at once.
    fn obey(&mut self, now: u64) {
        for order in self.orders(now) {
            match order {
                Order::RefuseReads(peer) => self.rule.refused(peer),
                Order::AllowReads(_) => {}
                Order::Propose(change) => {
                    self.views += u64::from(matches!(change, Change::ViewInTerm { .. }));
                    let term = self.term;
                    let stamp = Stamp {
                        term,
                        ..Stamp::default()
                    };
                    let _ = self.replicated.apply(stamp, &change);
                }
            }
        }
    }

    fn members(&self) -> Vec<Peer> {
        let members = self.replicated.view().members.iter();
        members.map(|member| (member.node, member.start)).collect()
    }

    fn open(&mut self, session: u64, home: Peer) {
        let (node, start) = home;
        let members = self.replicated.view().members.iter();
        let sequence = members
            .filter(|member| member.node == node)
            .map(|member| member.sequence);
        let origin = Some(crate::ownership::Origin {
            node,
            start,
            sequence: sequence.sum::<u64>() + 1,
        });
        let open = Change::OpenSession {
            session: SessionId::opened(session),
            ttl_ms: 5_000,
            label: None,
            user: None,
        };
        let stamp = Stamp {
            origin,
            ..Stamp::default()
        };
        let _ = self.replicated.apply(stamp, &open).unwrap();
    }
}

const ALL: [Peer; 3] = [
    (NodeId(1), Start(1)),
    (NodeId(2), Start(1)),
    (NodeId(3), Start(1)),
];

#[test]
fn a_silent_start_is_left_out_after_its_lease_and_its_refusal() {
    let mut stage = Stage::new(&ALL, None);
    stage.renew(1_000, &ALL);
    stage.renew(3_000, &ALL[..2]);
    assert_eq!(stage.orders(3_999), []);
    assert_eq!(stage.orders(4_000), [Order::RefuseReads(ALL[2])]);
    assert_eq!(stage.orders(5_000), [], "the refusal is not in force yet");
    stage.rule.refused(ALL[2]);
    let view = Change::ViewInTerm {
        term: 5,
        before: Index(1),
        members: ALL[..2].to_vec(),
        generation: 0,
    };
    assert_eq!(stage.orders(5_000), [Order::Propose(view)]);
    assert_eq!(stage.orders(5_100), [], "it is under way");
}

/// The answer was given before the refusal came into force.
fn removes_who_was_answered(broken: Option<Broken>) -> bool {
    let mut stage = Stage::new(&ALL, broken);
    stage.renew(2_000, &ALL[..2]);
    let first = stage.proposed(3_000).is_some();
    stage.renew(3_010, &ALL[2..]);
    stage.rule.refused(ALL[2]);
    first || stage.proposed(3_020).is_some()
}

#[test]
fn a_start_that_is_answered_meanwhile_stays() {
    assert!(!removes_who_was_answered(None));
    assert!(removes_who_was_answered(Some(Broken::RemovalOnItsWay)));
    let mut stage = Stage::new(&ALL, None);
    stage.renew(2_000, &ALL[..2]);
    stage.orders(3_000);
    stage.renew(3_010, &ALL[2..]);
    stage.rule.refused(ALL[2]);
    assert_eq!(stage.orders(3_020), [Order::AllowReads(ALL[2])]);
    // Once a view without it is proposed, nothing brings it back.
    stage.renew(6_000, &ALL[..2]);
    assert_eq!(stage.orders(6_010), [Order::RefuseReads(ALL[2])]);
    stage.rule.refused(ALL[2]);
    assert!(stage.proposed(6_020).is_some());
    stage.rule.asked(6_030, ALL[2]);
    assert_eq!(stage.orders(6_040), []);
}

/// Whether a new leader removes a member whose lease its predecessor renewed.
fn removes_before_a_lease(broken: Option<Broken>) -> bool {
    let mut stage = Stage::new(&ALL, broken);
    stage.rule.elected(10_000, 6);
    stage.renew(12_000, &ALL[..2]);
    stage.orders(12_900);
    stage.rule.refused(ALL[2]);
    stage.proposed(12_999).is_some()
}

#[test]
fn a_new_leader_waits_for_a_whole_lease() {
    assert!(!removes_before_a_lease(None));
    assert!(removes_before_a_lease(Some(Broken::OldAnswer)));
}

/// Who is in, and who gets no answer, half a minute after a leader was held up for longer than a lease. From then on all
/// members ask once per second, and are answered unless refused.
fn after_a_leader_was_held_up(broken: Option<Broken>) -> (Vec<Peer>, BTreeSet<Peer>) {
    let mut stage = Stage::new(&ALL, broken);
    stage.renew(1_000, &ALL);
    let mut refused = BTreeSet::new();
    for now in (5_000..35_000).step_by(100) {
        for order in stage.orders(now) {
            match order {
                Order::RefuseReads(peer) => {
                    refused.insert(peer);
                    stage.rule.refused(peer);
                }
                Order::AllowReads(peer) => {
                    refused.remove(&peer);
                }
                Order::Propose(change) => panic!("everybody is there: {change:?}"),
            }
        }
        assert!(now > 5_000 || refused.len() == 2, "it has heard nobody yet");
        if now % 1_000 == 0 {
            for peer in ALL {
                stage.rule.asked(now, peer);
                if !refused.contains(&peer) {
                    stage.rule.answered(now, peer);
                }
            }
        }
    }
    (stage.members(), refused)
}

#[test]
fn a_leader_that_was_held_up_takes_its_refusals_back() {
    let (members, refused) = after_a_leader_was_held_up(None);
    assert_eq!((members, refused), (ALL.to_vec(), BTreeSet::new()));
    let (_, refused) = after_a_leader_was_held_up(Some(Broken::LeavesOutWhoAsks));
    assert_eq!(refused, BTreeSet::from([ALL[1], ALL[2]]));
}

#[test]
fn a_view_counts_in_its_term_only() {
    for (broken, counts) in [(None, false), (Some(Broken::ViewInAnyTerm), true)] {
        let mut stage = Stage::new(&ALL, broken);
        stage.renew(2_000, &ALL[..2]);
        stage.orders(3_000);
        stage.rule.refused(ALL[2]);
        let orders = stage.orders(3_010);
        let [Order::Propose(view)] = &orders[..] else {
            panic!("{orders:?}");
        };
        let late = Stamp {
            term: 6,
            ..Stamp::default()
        };
        assert_eq!(stage.replicated.apply(late, view).is_ok(), counts);
    }
}

#[test]
fn a_refusal_of_an_earlier_reign_says_nothing_of_this_one() {
    let mut stage = Stage::new(&ALL, None);
    stage.renew(2_000, &ALL[..2]);
    assert_eq!(stage.orders(3_000), [Order::RefuseReads(ALL[2])]);
    stage.rule.elected(10_000, 7);
    stage.renew(12_000, &ALL[..2]);
    assert_eq!(
        stage.orders(13_000),
        [],
        "the first order is not answered yet"
    );
    stage.rule.refused(ALL[2]);
    assert_eq!(stage.orders(13_010), [Order::AllowReads(ALL[2])]);
    assert_eq!(stage.orders(13_020), [Order::RefuseReads(ALL[2])]);
    stage.rule.refused(ALL[2]);
    assert_eq!(stage.proposed(13_030), Some(ALL[..2].to_vec()));
}

#[test]
fn a_later_start_takes_the_place_of_the_one_before_when_its_lease_is_over() {
    let mut stage = Stage::new(&ALL, None);
    let again = peer(2, 2);
    stage.renew(1_000, &ALL);
    for now in (1_500..4_000).step_by(500) {
        stage.renew(now, &[ALL[0], again, ALL[2]]);
        stage.obey(now);
        assert_eq!(stage.members(), ALL, "at {now}");
    }
    stage.obey(4_000);
    assert_eq!(stage.members(), [ALL[0], again, ALL[2]]);
    // The start that has left asks once more; it is not let in again.
    stage.renew(4_100, &ALL);
    stage.obey(8_000);
    assert!(!stage.members().contains(&ALL[1]));
}

#[test]
fn a_clean_stop_needs_no_wait() {
    let mut stage = Stage::new(&ALL, None);
    stage.renew(1_000, &ALL);
    stage.obey(1_000);
    stage.rule.gave_back(ALL[1]);
    stage.obey(1_010);
    stage.obey(1_020);
    assert_eq!(stage.members(), [ALL[0], ALL[2]]);
    let again = peer(2, 2);
    stage.renew(1_500, &[again]);
    stage.obey(1_500);
    assert_eq!(stage.members(), [ALL[0], again, ALL[2]]);
}

#[test]
fn no_view_is_without_a_majority_of_the_voters_and_no_member_without_a_vote() {
    let mut stage = Stage::new(&ALL, None);
    stage.rule.asked(3_500, peer(4, 1));
    for now in [4_000, 4_010, 9_000] {
        stage.obey(now);
    }
    assert_eq!(stage.members(), ALL, "the leader alone is no majority");
    stage.renew(9_100, &ALL[1..2]);
    stage.obey(9_200);
    assert_eq!(stage.members(), ALL[..2]);
}

#[test]
fn whoever_is_alone_rules_at_once() {
    let mut stage = Stage::new(&[], None);
    let alone = [NodeId(1)];
    let [Order::Propose(view)] = &stage.rule.tick(0, &stage.replicated, &alone)[..] else {
        panic!("no view");
    };
    let stamp = Stamp {
        term: 5,
        ..Stamp::default()
    };
    let _ = stage.replicated.apply(stamp, view).unwrap();
    assert_eq!(stage.members(), ALL[..1]);
    assert_eq!(stage.rule.tick(1, &stage.replicated, &alone), []);
    // A member that was removed from the voters may act for a lease.
    let mut stage = Stage::new(&ALL[..2], None);
    let refused = stage.rule.tick(0, &stage.replicated, &alone);
    assert_eq!(refused, [Order::RefuseReads(ALL[1])]);
    stage.rule.refused(ALL[1]);
    assert_eq!(stage.rule.tick(2_999, &stage.replicated, &alone), []);
    assert_eq!(stage.rule.tick(3_000, &stage.replicated, &alone).len(), 1);
}

/// Whether the end of an orphan that has resumed is proposed.
fn ends_who_has_resumed(broken: Option<Broken>) -> bool {
    let mut stage = Stage::new(&ALL[..2], broken);
    stage.open(7, ALL[1]);
    let members = vec![ALL[0], ALL[2]];
    let before = stage.replicated.view().index;
    let view = Change::View {
        before,
        members,
        generation: 0,
    };
    let _ = stage.replicated.apply(0, &view).unwrap();
    stage.obey(1_000);
    let session = SessionId::opened(7);
    let home = stage.replicated.session(session).unwrap().home.index;
    let resumed = Change::MoveSession { session, home };
    let _ = stage.replicated.apply(0, &resumed).unwrap();
    stage.obey(6_001);
    stage.replicated.session(session).is_none()
}

#[test]
fn an_orphan_ends_after_its_ttl_unless_it_has_resumed() {
    assert!(!ends_who_has_resumed(None));
    assert!(ends_who_has_resumed(Some(Broken::LateEnd)));
    let mut stage = Stage::new(&ALL[..2], None);
    stage.open(7, ALL[1]);
    stage.renew(0, &ALL[..2]);
    stage.rule.gave_back(ALL[1]);
    let alone = [NodeId(1)];
    stage.rule.tick(0, &stage.replicated, &alone);
    stage.rule.refused(ALL[1]);
    let orders = stage.rule.tick(10, &stage.replicated, &alone);
    let [Order::Propose(view)] = &orders[..] else {
        panic!("{orders:?}");
    };
    let stamp = Stamp {
        term: 5,
        ..Stamp::default()
    };
    let _ = stage.replicated.apply(stamp, view).unwrap();
    stage.rule.tick(20, &stage.replicated, &alone);
    assert_eq!(stage.rule.tick(5_019, &stage.replicated, &alone), []);
    let ended = stage.rule.tick(5_020, &stage.replicated, &alone);
    assert_eq!(ended.len(), 1);
    assert_eq!(stage.rule.tick(5_100, &stage.replicated, &alone), []);
    // Another leader counts anew.
    stage.rule.elected(6_000, 9);
    stage.rule.tick(6_000, &stage.replicated, &alone);
    assert_eq!(stage.rule.tick(10_999, &stage.replicated, &alone), []);
    assert_eq!(stage.rule.tick(11_000, &stage.replicated, &alone).len(), 1);
}

/// How many views ten minutes have if a node crashes half a second after it was let in, and restarts at once.
fn views_of_a_crash_loop(broken: Option<Broken>) -> u64 {
    let mut stage = Stage::new(&ALL, broken);
    let (mut start, mut entered) = (1, 0);
    for now in (0..600_000).step_by(100) {
        let looping = peer(3, start);
        stage.renew(now, &[ALL[0], ALL[1], looping]);
        stage.obey(now);
        match stage.members().contains(&looping) {
            true if now >= entered + 500 => start += 1,
            true => {}
            false => entered = now + 100,
        }
    }
    stage.views
}

#[test]
fn a_node_that_crashes_again_and_again_is_let_in_more_and_more_rarely() {
    // The returns wait for 1, 2, 4, 8, 16, 32, 60, 60 … s; after a lease there is also a view without the node.
    let views = views_of_a_crash_loop(None);
    assert!((20..=32).contains(&views), "{views}");
    let storm = views_of_a_crash_loop(Some(Broken::CrashLoop));
    assert!(storm > 100, "{storm}");
}

#[test]
fn whoever_crashed_often_is_let_in_at_once_where_there_would_be_no_majority_without_it() {
    let mut stage = Stage::new(&ALL, None);
    let mut now = 0;
    let mut pass = |stage: &mut Stage, peers: &[Peer], ms: u64| {
        for _ in 0..ms / 100 {
            now += 100;
            stage.renew(now, peers);
            stage.obey(now);
        }
    };
    // Nodes 2 and 3 crash by turns until each has to wait for 8 s.
    for start in 2..5 {
        pass(
            &mut stage,
            &[ALL[0], peer(2, start), peer(3, start - 1)],
            9_000,
        );
        pass(&mut stage, &[ALL[0], peer(2, start), peer(3, start)], 9_000);
        assert_eq!(stage.members()[1..], [peer(2, start), peer(3, start)]);
    }
    let one = [ALL[0], peer(2, 4), peer(3, 5)];
    pass(&mut stage, &one, 4_000);
    assert_eq!(stage.members(), one[..2], "it waits");
    // Now node 2 crashes, too, and is back at once. When its lease is over, both are let in.
    let all = [ALL[0], peer(2, 5), peer(3, 5)];
    pass(&mut stage, &all, LEASE_MS + 200);
    assert_eq!(stage.members(), all);
}
