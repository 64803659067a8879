//! Opened sessions that go from node to node with their slots: what they claim must not bring a slot to two of them.

use testigo_core::pool::{Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames, SlotTaken};
use testigo_core::{Change, Fence, Index, Name, NodeId, SessionId};

use crate::{POOL, World, name};

/// A session that is at home at a node, and whatever it has.
pub(super) fn open(world: &mut World, at: usize, number: u64) -> SessionId {
    let session = SessionId::opened(number);
    world.nodes[at].under_way.push(Change::OpenSession {
        session,
        ttl_ms: 60_000,
        label: None,
        user: None,
    });
    world.settle();
    session
}

pub(super) fn take(world: &mut World, at: usize, session: SessionId) -> Vec<SlotTaken> {
    let node = &mut world.nodes[at];
    let take = PoolTake {
        pool: POOL,
        many: Many::Exactly(1),
        label: None,
        wait_ms: None,
    };
    let taken = node.desk.take(world.now, &node.replicated, session, take);
    world.pass_on(at);
    world.settle();
    match taken.unwrap() {
        PoolAnswer::Taken(taken) => taken,
        PoolAnswer::Waiting(_) => unreachable!("it does not wait"),
    }
}

/// As a node does: the log hears of the claims with the move.
pub(super) fn resume(world: &mut World, at: usize, session: SessionId, has: &[&SlotTaken]) {
    let home = world.nodes[at].replicated.session(session).unwrap();
    let resumed = resumes(session, home.home.index, None, has);
    world.nodes[at].under_way.push(resumed);
    world.settle();
}

fn resumes(session: SessionId, home: Index, serial: Option<u64>, has: &[&SlotTaken]) -> Change {
    let slots = has.iter();
    let slots = slots.map(|has| (name(), has.slot.clone(), has.fence));
    Change::ResumeSession {
        session,
        home,
        serial,
        slots: Some(slots.collect()),
    }
}

fn give(world: &mut World, at: usize, session: SessionId, slot: &str) {
    let node = &mut world.nodes[at];
    let given = node
        .desk
        .give(world.now, &node.replicated, session, POOL, &[slot]);
    let change = given.unwrap();
    node.under_way.extend(change);
    world.pass_on(at);
}

pub(super) fn close(world: &mut World, at: usize, session: SessionId) {
    let node = &mut world.nodes[at];
    let home = node.replicated.session(session).unwrap().home.index;
    node.under_way.push(Change::CloseSession { session, home });
    world.settle();
}

pub(super) fn restart(world: &mut World, at: usize) {
    world.restart(at);
    world.let_in(at);
    world.settle();
}

/// Who has a slot at its node.
pub(super) fn user(world: &World, at: usize, slot: &str) -> Option<(SessionId, Fence)> {
    let node = &world.nodes[at];
    let view = node.desk.view(&node.replicated, POOL, 100).unwrap();
    let slot: u32 = slot.parse().unwrap();
    let taken = view.slots.iter().find(|taken| taken.slot == slot)?;
    Some((taken.session?, taken.fence))
}

/// A slot that one session took, gave back after it had been elsewhere, and another has now; the node is started again.
fn given_back_and_taken_by_another(settled: bool) -> (World, [SessionId; 2], SlotTaken) {
    let mut world = World::new(2, 3, 0);
    let [first, second] = [11, 12].map(|number| open(&mut world, 0, number));
    let had = take(&mut world, 0, first).remove(0);
    resume(&mut world, 1, first, &[&had]);
    resume(&mut world, 0, first, &[&had]);
    give(&mut world, 0, first, &had.slot);
    if settled {
        world.settle();
    } else {
        // It has said nothing of it to the log yet, and never will.
        world.nodes[0].under_way.clear();
    }
    let has = take_this(&mut world, second, settled);
    assert_eq!(has.slot, had.slot);
    assert!(has.fence > had.fence);
    restart(&mut world, 0);
    (world, [first, second], has)
}

fn take_this(world: &mut World, session: SessionId, settled: bool) -> SlotTaken {
    let node = &mut world.nodes[0];
    let take = PoolTake {
        pool: POOL,
        many: Many::Exactly(1),
        label: None,
        wait_ms: None,
    };
    let taken = node.desk.take(world.now, &node.replicated, session, take);
    if settled {
        world.pass_on(0);
        world.settle();
    }
    match taken.unwrap() {
        PoolAnswer::Taken(mut taken) => taken.remove(0),
        PoolAnswer::Waiting(_) => unreachable!("it does not wait"),
    }
}

#[test]
fn what_was_given_back_is_not_believed_after_a_restart() {
    for settled in [true, false] {
        let (mut world, [first, second], has) = given_back_and_taken_by_another(settled);
        resume(&mut world, 0, second, &[&has]);
        assert_eq!(user(&world, 0, &has.slot), Some((second, has.fence)));
        resume(&mut world, 0, first, &[]);
        close(&mut world, 0, first);
        let third = open(&mut world, 0, 13);
        let got = take(&mut world, 0, third);
        assert!(got.iter().all(|got| got.slot != has.slot), "{got:?}");
        assert_eq!(user(&world, 0, &has.slot), Some((second, has.fence)));
    }
}

#[test]
fn whoever_ends_before_the_true_holder_is_back_frees_nothing() {
    for settled in [true, false] {
        let (mut world, [first, second], has) = given_back_and_taken_by_another(settled);
        close(&mut world, 0, first);
        let third = open(&mut world, 0, 13);
        assert_eq!(take(&mut world, 0, third), [], "somebody is awaited");
        resume(&mut world, 0, second, &[&has]);
        assert_eq!(user(&world, 0, &has.slot), Some((second, has.fence)));
    }
}

#[test]
fn a_slot_that_its_session_gives_twice_from_elsewhere_stays_taken_when_it_takes_it_again() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let had = take(&mut world, 0, session).remove(0);
    resume(&mut world, 1, session, &[&had]);
    // Node 1 has not heard of the first when the second is given.
    give(&mut world, 1, session, &had.slot);
    give(&mut world, 1, session, &had.slot);
    let late = world.nodes[1].under_way.pop().unwrap();
    world.settle();
    resume(&mut world, 0, session, &[]);
    let has = take(&mut world, 0, session).remove(0);
    assert_eq!(has.slot, had.slot);
    world.nodes[1].under_way.push(late);
    world.settle();
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
}

#[test]
fn a_claim_to_what_another_has_counts_for_nothing() {
    for (above, restarts) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut world = World::new(2, 3, 0);
        let [holder, liar] = [11, 12].map(|number| open(&mut world, 0, number));
        let has = take(&mut world, 0, holder).remove(0);
        let forged = SlotTaken {
            slot: has.slot.clone(),
            fence: Fence(has.fence.0 + above),
        };
        // The one who has it is known in the log, at home elsewhere.
        resume(&mut world, 1, holder, &[&has]);
        if restarts {
            restart(&mut world, 0);
        }
        resume(&mut world, 2, liar, &[&forged]);
        let claims = world.log.head.pools().get(POOL).unwrap().claims();
        let liars = claims.filter(|(_, session, _)| *session == liar).count();
        assert_eq!(
            liars,
            usize::from(restarts),
            "its owner says no, if it knows"
        );
        close(&mut world, 2, liar);
        restart(&mut world, 0);
        assert_eq!(user(&world, 0, &has.slot), Some((holder, has.fence)));
        let third = open(&mut world, 0, 13);
        let got = take(&mut world, 0, third);
        assert!(got.iter().all(|got| got.slot != has.slot), "{got:?}");
    }
}

#[test]
fn a_claim_outlives_the_removal_of_a_node_that_does_not_own_the_slot() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    resume(&mut world, 1, session, &[&has]);
    // The numbers of its slots rise with its start.
    restart(&mut world, 0);
    world.log.append(
        None,
        Change::Address {
            node: NodeId(3),
            address: None,
        },
    );
    world.settle();
    restart(&mut world, 0);
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
}

#[test]
fn a_claim_of_a_deleted_pool_is_none_of_the_next_one_of_its_name() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    let definition = world.log.head.pools().get(POOL).unwrap().definition.clone();
    world.log.append(None, Change::DeletePool { pool: name() });
    world.log.append(
        None,
        Change::CreatePool {
            pool: name(),
            definition: Box::new(definition),
        },
    );
    for at in 0..3 {
        // All of it at once: there is no such pool for a while.
        world.restore(at);
    }
    resume(&mut world, 1, session, &[&has]);
    let record = world.log.head.pools().get(POOL).unwrap();
    assert_eq!(record.claims().count(), 0);
    let node = &world.nodes[1];
    let named = vec![(name(), has.slot.clone(), has.fence)];
    let lost = node.desk.lost_of(session, named.clone(), &node.replicated);
    assert_eq!(lost, named);
}

#[test]
fn what_a_session_took_and_never_heard_of_comes_back_when_it_says_what_it_has() {
    let mut world = World::new(2, 3, 0);
    let [session, other] = [11, 12].map(|number| open(&mut world, 0, number));
    // The answer was lost, and its client has gone to another node.
    let unheard = take(&mut world, 0, session).remove(0);
    resume(&mut world, 1, session, &[]);
    let got = take(&mut world, 0, other).remove(0);
    assert_eq!(got.slot, unheard.slot);
    assert!(got.fence > unheard.fence);
}

#[test]
fn a_resume_that_comes_late_counts_for_nothing() {
    for late in [8, 9] {
        let mut world = World::new(2, 3, 0);
        let session = open(&mut world, 0, 11);
        let home = world.log.head.session(session).unwrap().home.index;
        let on_time = resumes(session, home, Some(9), &[]);
        world.nodes[0].under_way.push(on_time);
        world.settle();
        let has = take(&mut world, 0, session).remove(0);
        let home = world.log.head.session(session).unwrap().home;
        // It was sent over a connection that its client gave up, and knows nothing of the slot.
        let late = resumes(session, home.index, Some(late), &[]);
        world.nodes[1].under_way.push(late);
        world.settle();
        assert_eq!(world.log.head.session(session).unwrap().home, home);
        assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
        // The next one counts.
        let next = resumes(session, home.index, Some(10), &[]);
        world.nodes[1].under_way.push(next);
        world.settle();
        assert_ne!(world.log.head.session(session).unwrap().home, home);
        assert_eq!(user(&world, 0, &has.slot), None);
    }
}

#[test]
fn a_claim_of_a_pool_that_a_node_has_not_heard_of_is_for_the_log_to_judge() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    // Node 1 has not read of the pool yet.
    let seats = Name::new("seats").unwrap();
    let definition = Box::new(PoolDefinition {
        slots: SlotNames::read(["a", "b", "c"].into_iter()),
        free_low: 0,
    });
    let pool = seats.clone();
    world
        .log
        .append(None, Change::CreatePool { pool, definition });
    world.restore(0);
    let node = &mut world.nodes[0];
    let take = PoolTake {
        pool: "seats",
        many: Many::Exactly(1),
        label: None,
        wait_ms: None,
    };
    let taken = node.desk.take(0, &node.replicated, session, take);
    let Ok(PoolAnswer::Taken(has)) = taken else {
        panic!("{taken:?}");
    };
    let node = &mut world.nodes[1];
    assert!(node.replicated.pools().get("seats").is_none());
    let home = node.replicated.session(session).unwrap().home.index;
    let named = vec![(seats, has[0].slot.clone(), has[0].fence)];
    node.under_way.push(Change::ResumeSession {
        session,
        home,
        serial: None,
        slots: Some(named.clone()),
    });
    world.settle();
    let node = &world.nodes[1];
    assert_eq!(
        node.desk.lost_of(session, named.clone(), &node.replicated),
        []
    );
    let node = &world.nodes[0];
    assert_eq!(node.desk.held_by(session, &node.replicated), named);
}

#[test]
fn what_a_session_claimed_and_names_no_longer_comes_back() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    resume(&mut world, 1, session, &[&has]);
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
    resume(&mut world, 2, session, &[]);
    assert_eq!(user(&world, 0, &has.slot), None);
    let record = world.log.head.pools().get(POOL).unwrap();
    assert_eq!(record.claims().count(), 0);
}

#[test]
fn what_a_session_names_goes_with_its_move_or_not_at_all() {
    let mut world = World::new(2, 3, 0);
    let [session, other] = [11, 12].map(|number| open(&mut world, 0, number));
    let has = take(&mut world, 0, session).remove(0);
    let home = world.log.head.session(session).unwrap().home.index;
    resume(&mut world, 1, session, &[&has]);
    resume(&mut world, 2, session, &[]);
    let late = resumes(session, home, None, &[&has]);
    world.nodes[1].under_way.push(late);
    world.settle();
    let record = world.log.head.pools().get(POOL).unwrap();
    assert_eq!(record.claims().count(), 0);
    let again = take(&mut world, 0, other).remove(0);
    assert_eq!(user(&world, 0, &again.slot), Some((other, again.fence)));
}

#[test]
fn a_slot_that_is_nobodys_or_anothers_is_not_given() {
    let mut world = World::new(2, 3, 0);
    let [session, other] = [11, 12].map(|number| open(&mut world, 0, number));
    let others = take(&mut world, 0, other).remove(0);
    resume(&mut world, 1, other, &[&others]);
    for at in 0..3 {
        for slot in ["0", "1", "2"] {
            let node = &mut world.nodes[at];
            let given = node.desk.give(0, &node.replicated, session, POOL, &[slot]);
            let refused = given.unwrap_err().to_string();
            assert!(
                refused.contains(&format!("no slot {slot} of pool")),
                "{refused}"
            );
        }
    }
}

#[test]
fn a_process_that_has_not_read_the_log_to_its_end_gives_out_nothing_of_before() {
    let mut world = World::new(2, 3, 0);
    let node = &world.nodes[0];
    let (replicated, applied) = (node.replicated.clone(), node.applied);
    let seats = Name::new("seats").unwrap();
    let definition = PoolDefinition {
        slots: SlotNames::Numbered(3),
        free_low: 0,
    };
    let create = Change::CreatePool {
        pool: seats.clone(),
        definition: Box::new(definition),
    };
    world.log.append(None, create);
    world.settle();
    let session = open(&mut world, 0, 11);
    let take_seat = |world: &mut World, session| {
        let node = &mut world.nodes[0];
        let take = PoolTake {
            pool: "seats",
            many: Many::Exactly(1),
            label: None,
            wait_ms: None,
        };
        let taken = node.desk.take(0, &node.replicated, session, take);
        taken.unwrap()
    };
    let PoolAnswer::Taken(had) = take_seat(&mut world, session) else {
        panic!("it does not wait");
    };
    assert_eq!(had.len(), 1);
    // The next process begins with what a snapshot of before says.
    (world.nodes[0].replicated, world.nodes[0].applied) = (replicated, applied);
    restart(&mut world, 0);
    let other = open(&mut world, 0, 12);
    let none = PoolAnswer::Taken(Vec::new());
    assert_eq!(take_seat(&mut world, other), none);
    let slots = vec![(seats, had[0].slot.clone(), had[0].fence)];
    let home = world.log.head.session(session).unwrap().home.index;
    let node = &mut world.nodes[0];
    node.under_way.push(Change::ResumeSession {
        session,
        home,
        serial: None,
        slots: Some(slots),
    });
    world.settle();
    assert_ne!(take_seat(&mut world, other), none.clone());
    let node = &world.nodes[0];
    let view = node.desk.view(&node.replicated, "seats", 10).unwrap();
    let users: Vec<_> = view.slots.iter().map(|taken| taken.session).collect();
    assert_eq!(users.len(), 1 + usize::from(view.used > 1));
    assert!(users.contains(&Some(session)), "{view:?}");
}

#[test]
fn a_session_that_ends_gives_back_to_the_pools_that_it_took_from() {
    let mut world = World::new(2, 3, 0);
    let seats = Name::new("seats").unwrap();
    let definition = PoolDefinition {
        slots: SlotNames::Numbered(3),
        free_low: 0,
    };
    let create = Change::CreatePool {
        pool: seats,
        definition: Box::new(definition),
    };
    world.log.append(None, create);
    world.settle();
    // From a common view on, what is said in one pool would count in the other.
    world.leave_out(1);
    world.settle();
    world.let_in(1);
    world.settle();
    let [holder, waits] = [(0, 1), (2, 2)].map(|(at, number)| {
        let node = &world.nodes[at];
        World::session(node, number)
    });
    for (at, session, count) in [(0, holder, 3), (2, waits, 1)] {
        for pool in [POOL, "seats"] {
            let node = &mut world.nodes[at];
            let take = PoolTake {
                pool,
                many: Many::Exactly(count),
                label: None,
                wait_ms: Some(600_000),
            };
            let waiting = node.desk.take(0, &node.replicated, session, take);
            assert!(waiting.is_ok());
            world.pass_on(at);
            world.settle();
        }
    }
    let used = |world: &World, at: usize, pool: &str| {
        let node = &world.nodes[at];
        let view = node.desk.view(&node.replicated, pool, 10).unwrap();
        (view.owned, view.used)
    };
    assert_eq!(
        [POOL, "seats"].map(|pool| used(&world, 0, pool)),
        [(3, 3); 2]
    );
    let node = &mut world.nodes[0];
    node.desk.end(holder, &node.replicated);
    world.pass_on(0);
    world.settle();
    for pool in [POOL, "seats"] {
        let all = [0, 1, 2].map(|at| used(&world, at, pool));
        assert_eq!(all.map(|(_, used)| used), [0, 0, 1], "{pool}");
        let owned: u32 = all.iter().map(|(owned, _)| owned).sum();
        assert_eq!(owned, 3, "{pool}");
    }
}

#[test]
fn no_more_than_sixteen_claim_one_slot() {
    let mut world = World::new(2, 3, 0);
    let [holder, liar] = [11, 12].map(|number| open(&mut world, 0, number));
    let has = take(&mut world, 0, holder).remove(0);
    // Its owner, who would say no, is away.
    world.nodes[0].cut = true;
    let claims = vec![(name(), has.slot.parse().unwrap(), has.fence)];
    for number in 100..120 {
        let session = SessionId::opened(number);
        world.log.append(
            None,
            Change::OpenSession {
                session,
                ttl_ms: 60_000,
                label: None,
                user: None,
            },
        );
        let claims = claims.clone();
        let all = false;
        let claim = Change::ClaimSlots {
            session,
            claims,
            all,
        };
        world.log.append(None, claim);
    }
    let record = world.log.head.pools().get(POOL).unwrap();
    assert_eq!(record.claims().count(), 16);
    let home = world.log.head.session(liar).unwrap().home.index;
    world.log.append(None, resumes(liar, home, None, &[&has]));
    world.restore(1);
    let node = &world.nodes[1];
    let named = vec![(name(), has.slot.clone(), has.fence)];
    let lost = node.desk.lost_of(liar, named.clone(), &node.replicated);
    assert_eq!(lost, named);
}

#[test]
fn the_owner_of_a_slot_is_heard_however_many_claim_it() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    let liars: Vec<SessionId> = (100..116).map(|n| open(&mut world, 1, n)).collect();
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[1].under_way.push(moved);
    world.submit(1);
    while world.nodes[0].applied < world.log.entries.len() {
        world.apply(0);
    }
    // What its node says of it is on its way.
    for liar in &liars {
        let home = world.log.head.session(*liar).unwrap().home.index;
        let claims = resumes(*liar, home, None, &[&has]);
        world.nodes[1].under_way.push(claims);
        world.submit(1);
    }
    world.submit(0);
    restart(&mut world, 0);
    for liar in liars {
        close(&mut world, 1, liar);
    }
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
}

#[test]
fn no_slot_is_named_twice_when_it_is_given() {
    let mut world = World::new(2, 9, 0);
    let node = &mut world.nodes[0];
    let opened = SessionId::opened(7);
    for slots in [["8", "8"], ["8", "7"]] {
        let given = node.desk.give(0, &node.replicated, opened, POOL, &slots);
        assert!(given.is_err(), "{given:?}");
    }
}
