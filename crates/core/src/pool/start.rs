//! How a desk begins, and goes on after its node was left out. What the previous process gave out is not known, so nobody gets it
//! until everybody who may have it has been heard.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use testigo_protocol::slots::{Sharer, SlotSet, SlotsPlan};

use super::counter::{Counter, by_labels, has_no_longer};
use super::desk::{Desk, DeskOut, FIRST_TICKET};
use super::records::PoolRecord;
use super::shelf::Shelf;
use super::waits::{WaitLimits, Waiting, Waits};
use super::{SlotClaim, SlotNames};
use crate::estate::Peer;
use crate::fence::Fence;
use crate::limits::Limits;
use crate::name::Name;
use crate::ownership::Index;
use crate::replicated::{Change, Replicated};
use crate::session::SessionId;

/// Sessions that are at home at an earlier start of a node, or that left one without naming their slots.
fn earlier(own: Peer, replicated: &Replicated) -> impl Iterator<Item = SessionId> {
    let sessions = replicated.sessions();
    let earlier =
        sessions.filter(move |(_, record)| record.home.node == own.0 && record.home.start < own.1);
    let left = replicated.unsaid().before(own);
    earlier.map(|(session, _)| session).chain(left)
}

impl Desk {
    /// The desk of a start that knows only what the log says.
    pub fn new(now: u64, own: Peer, replicated: &Replicated) -> Desk {
        let mut desk = Desk {
            own,
            pools: BTreeMap::new(),
            holders: FxHashMap::default(),
            names: FxHashMap::default(),
            awaited: earlier(own, replicated).collect(),
            waiting: Waiting::new(WaitLimits::of(&Limits::default())),
            ended: BTreeMap::new(),
            born: own.1,
            born_at: now,
            believed_until: None,
            waited: Index(0),
            ran_out: BTreeMap::new(),
            spoke: None,
            next_ticket: FIRST_TICKET,
            now,
            served: false,
            donations: VecDeque::new(),
            out: DeskOut::default(),
            letters: Vec::new(),
        };
        for (name, record) in replicated.pools().iter() {
            desk.open(name, record);
            desk.withhold(name, record);
        }
        desk.heed_ends(replicated);
        desk.release_unknown(replicated);
        desk
    }

    /// Goes on as the desk of the same process's next start, or after a snapshot has replaced log entries: slots in use stay in use.
    pub fn go_on_as(&mut self, now: u64, own: Peer, replicated: &Replicated, before: &Replicated) {
        self.now = self.now.max(now);
        self.go_on(own, replicated, before);
        for (name, record) in replicated.pools().iter() {
            if let Some(counter) = self.pools.get_mut(name)
                && let Some(sharer) = &mut counter.sharer
            {
                sharer.wake(&counter.plan, &mut self.letters);
            }
            self.serve(0, name, record.shelf(name, replicated));
            // A snapshot may have brought a pool that the nodes vote on.
            self.vote(name, replicated);
        }
    }

    fn go_on(&mut self, own: Peer, replicated: &Replicated, before: &Replicated) {
        // Until the log knows this start, nothing that it said or gave out counts.
        let begun = self.pools.values().all(|counter| counter.begun);
        if !self.served || !begun {
            return self.begin_anew(own, replicated);
        }
        self.own = own;
        // A connection to an earlier start is gone with it.
        let over = |session: &SessionId| match session.is_implicit() {
            true => !session.is_of(own.0, own.1),
            false => replicated.session(*session).is_none(),
        };
        let moved = |session: &SessionId| {
            let home = |known: &Replicated| Some(known.session(*session)?.home.index);
            home(before).is_some_and(|was| home(replicated).is_some_and(|is| was < is))
        };
        let holders = self.holders.keys().copied();
        let known: BTreeSet<SessionId> = holders.chain(self.waiting.sessions()).collect();
        let moved: Vec<SessionId> = known.iter().copied().filter(moved).collect();
        let over: Vec<SessionId> = known.into_iter().filter(over).collect();
        let had =
            |session: &&SessionId| !session.is_implicit() && self.holders.contains_key(*session);
        for session in over.iter().filter(had) {
            let ttl_ms = before.session(*session).map_or(0, |record| record.ttl_ms);
            let until = self.now.saturating_add(ttl_ms);
            self.ended.entry(*session).or_insert(until);
        }
        let gone: Vec<Name> = self.pools.keys().cloned().collect();
        for name in gone {
            let record = replicated.pools().get(&name);
            match record.filter(|record| record.created.0 == self.pools[&name].key) {
                None => self.close(&name, None),
                Some(record) => {
                    self.rebase(&name, record, replicated);
                    self.review_claims(&name, record, replicated);
                }
            }
        }
        for (name, record) in replicated.pools().iter() {
            if !self.pools.contains_key(name) {
                self.open(name, record);
            }
        }
        self.awaited = std::mem::take(&mut self.awaited)
            .into_iter()
            .filter(|session| self.awaits(*session, replicated))
            .collect();
        self.heed_ends(replicated);
        for session in over {
            match self.ended.get(&session) {
                Some(until) => self.end_later(session, *until, replicated),
                None => self.end(session, replicated),
            }
        }
        for session in &moved {
            self.end_waits(*session, replicated);
        }
        self.keep_what_was_said(&moved, replicated);
        self.waited = Index(0);
        self.tell_waited(replicated);
        self.ran_out
            .retain(|session, _| replicated.session(*session).is_some());
        self.speak_for_those_who_left(replicated);
        self.release_unknown(replicated);
    }

    /// Sessions have moved while a snapshot took the place of entries. Of those that have left, and whose word nobody waits for,
    /// what they have here and have not named comes back.
    fn keep_what_was_said(&mut self, moved: &[SessionId], replicated: &Replicated) {
        let (node, _) = self.own;
        let has_said = |session: &&SessionId| {
            let home = replicated.session(**session).map(|record| record.home.node);
            let left = home.is_some_and(|home| home != node);
            left && replicated.unsaid().since(**session, node).is_none()
        };
        let said = moved.iter().filter(has_said);
        let mut said: BTreeMap<SessionId, Vec<SlotClaim>> =
            said.map(|session| (*session, Vec::new())).collect();
        if said.is_empty() {
            return;
        }
        for (name, record) in replicated.pools().iter() {
            for (slot, session, fence) in record.claims() {
                if let Some(claims) = said.get_mut(&session) {
                    claims.push((name.clone(), slot, fence));
                }
            }
        }
        for (session, claims) in said {
            self.keep_only(session, &claims, replicated);
        }
    }

    pub(super) fn open(&mut self, name: &Name, record: &PoolRecord) {
        let plan = SlotsPlan {
            labels: record.definition.labelled(),
            ..record.definition.plan()
        };
        self.set_up(name, record.created.0, plan, None);
        self.take_place(name, record);
    }

    /// The node's member begins with what the log says. Somebody may have what came to it from whoever was removed.
    pub(super) fn take_place(&mut self, name: &Name, record: &PoolRecord) {
        let counter = self.pools.get_mut(name).expect("it is there");
        let (state, group) = (record.state().clone(), record.group());
        let place = record.place(self.own.0);
        counter.sharer = place.map(|place| Sharer::at(place, state, group, &counter.plan));
        if let Some(sharer) = &mut counter.sharer {
            let nothing = Sharer::new(sharer.id(), &counter.plan);
            let claimed = record.claimed_elsewhere(&nothing);
            for (slot, _) in &claimed {
                sharer.claim(*slot);
            }
            counter.hold_claimed(claimed, &mut self.holders);
        }
    }

    /// Adds a counter at which nothing is taken.
    pub(super) fn set_up(
        &mut self,
        name: &Name,
        key: u64,
        plan: SlotsPlan,
        sharer: Option<Sharer>,
    ) {
        self.names.insert(key, name.clone());
        let unknown = SlotSet::new(plan.slots);
        let counter = Counter {
            key,
            counts: vec![(0, 0); plan.slots as usize],
            by_labels: by_labels(&plan),
            plan,
            sharer,
            begun: true,
            takes: FxHashMap::default(),
            unknown,
            waits: Waits::default(),
            any_first: false,
            donated: [0, 0],
            used: [0, 0],
        };
        self.pools.insert(name.clone(), counter);
    }

    /// It is not known what the previous process gave out: nobody gets it yet.
    pub(super) fn withhold(&mut self, name: &Name, record: &PoolRecord) {
        let counter = self.pools.get_mut(name).expect("it was opened");
        counter.begun = record.has(self.own);
        if let Some(sharer) = &mut counter.sharer {
            counter.unknown.insert_all(&sharer.claim_all());
        }
    }

    pub(super) fn rebase(&mut self, name: &Name, record: &PoolRecord, replicated: &Replicated) {
        let counter = self.pools.get_mut(name).expect("it is there");
        let shelf = record.shelf(name, replicated);
        let place = record.place(self.own.0);
        match &mut counter.sharer {
            Some(sharer) if place == Some(sharer.id()) => {
                let claimed = record.claimed_elsewhere(sharer);
                sharer.rebase(record.state().clone(), record.group(), &counter.plan);
                for (slot, _) in &claimed {
                    sharer.claim(*slot);
                }
                counter.hold_claimed(claimed, &mut self.holders);
                self.drop_lost(name, shelf);
            }
            _ => {
                counter.sharer = None;
                self.drop_lost(name, shelf);
                self.take_place(name, record);
            }
        }
    }

    /// A snapshot took the place of entries: claims may have come and gone in them.
    fn review_claims(&mut self, name: &Name, record: &PoolRecord, replicated: &Replicated) {
        let takes = self.pools[name].takes.iter();
        let ended = takes.filter_map(|(slot, taken)| {
            let session = taken.session;
            if !taken.logged || self.ended.contains_key(&session) {
                return None;
            }
            let stands = record.claim_of(*slot, session) == Some(taken.fence);
            (!stands).then_some((session, *slot, taken.fence))
        });
        let mut ended: Vec<(SessionId, u32, Fence)> = ended.collect();
        ended.sort_unstable();
        for (session, slot, fence) in ended {
            let shelf = record.shelf(name, replicated);
            self.given(session, name, &[(slot, fence)], shelf);
        }
        for (slot, session, fence) in record.claims() {
            self.hear_claim(record, session, (name, slot, fence));
        }
    }

    /// Sessions lose the slots that this node no longer owns, because an operator has removed it.
    pub(super) fn drop_lost(&mut self, name: &Name, shelf: Shelf<'_>) {
        let Some(counter) = self.pools.get_mut(name) else {
            return;
        };
        let used = |slot: &u32| {
            counter
                .sharer
                .as_ref()
                .is_some_and(|sharer| sharer.used().contains(*slot))
        };
        match &counter.sharer {
            Some(sharer) => counter.unknown.retain_all(sharer.used()),
            None => counter.unknown.clear(),
        }
        let gone: Vec<u32> = counter
            .takes
            .keys()
            .filter(|slot| !used(slot))
            .copied()
            .collect();
        for slot in gone {
            let taken = counter.takes.remove(&slot).expect("it was there");
            let (session, slot_name) = (taken.session, shelf.definition.slots.name(slot));
            let lost = (session, name.clone(), slot_name, taken.fence);
            self.out.lost.push(lost);
            has_no_longer(&mut self.holders, session, (counter.key, slot));
        }
    }

    /// A pool is gone. Its slots go by their numbers if their names are no longer known.
    pub(super) fn close(&mut self, name: &Name, slots: Option<&SlotNames>) {
        let Some(counter) = self.pools.remove(name) else {
            return;
        };
        self.names.remove(&counter.key);
        for wait in counter.waits.iter() {
            self.waiting.remove(wait);
            self.out.answers.push((wait.ticket, Vec::new()));
        }
        for (slot, taken) in counter.takes {
            let session = taken.session;
            has_no_longer(&mut self.holders, session, (counter.key, slot));
            let slot = slots.map_or_else(|| slot.to_string(), |slots| slots.name(slot));
            self.out
                .lost
                .push((session, name.clone(), slot, taken.fence));
        }
    }

    /// Begins to give out what the previous process owned, once the log knows this one.
    pub(super) fn begin(&mut self, replicated: &Replicated) {
        let mut begun = false;
        for (name, counter) in &mut self.pools {
            let record = replicated.pools().get(name);
            if !counter.begun && record.is_some_and(|record| record.has(self.own)) {
                counter.begun = true;
                begun = true;
            }
        }
        if begun {
            // Some sessions may have come here while the previous process ran, in entries that this one had not read yet.
            let own = (self.own.0, self.born);
            self.awaited.extend(earlier(own, replicated));
        }
        if begun {
            self.release_unknown(replicated);
        }
    }

    /// Until this process has begun, slots that come here are withheld, too: the previous process may have given them out.
    pub(super) fn withhold_new(&mut self, name: &Name) {
        let Some(counter) = self.pools.get_mut(name).filter(|counter| !counter.begun) else {
            return;
        };
        let Some(sharer) = &mut counter.sharer else {
            return;
        };
        sharer.keep(std::iter::empty());
        if !sharer.free().is_empty() {
            counter.unknown.insert_all(&sharer.claim_all());
        }
    }

    /// Whether a session may have slots that an earlier process of this node gave out, and nobody has said which.
    pub(super) fn awaits(&self, session: SessionId, replicated: &Replicated) -> bool {
        let (node, born) = (self.own.0, self.born);
        let home = replicated.session(session).map(|record| record.home);
        let at_home = home.is_some_and(|home| home.node == node && home.start < born);
        let left = replicated.unsaid().since(session, node);
        at_home || left.is_some_and(|start| start < born)
    }

    /// Sessions may have left without naming their slots while nobody heard this node. Once per start it tells the log what they have
    /// here.
    pub(super) fn speak_for_those_who_left(&mut self, replicated: &Replicated) {
        let (node, start) = self.own;
        if self.spoke == Some(start) || !replicated.view().has(node, start) {
            return;
        }
        self.spoke = Some(start);
        let left: Vec<SessionId> = replicated.unsaid().left(node).collect();
        for session in left {
            self.claim_for(session, replicated);
        }
    }

    /// Reads from the log for how long nobody may get what the previous process gave out.
    pub(super) fn heed_ends(&mut self, replicated: &Replicated) {
        let ends = replicated.ended_elsewhere();
        let believed_ms = ends.believed_ms((self.own.0, self.born));
        let until = believed_ms.map(|ttl_ms| self.born_at.saturating_add(ttl_ms));
        // `expire` ends what is over.
        let until = until.filter(|until| self.now < *until);
        self.believed_until = self.believed_until.max(until);
    }

    /// Tells the log, unless it knows, that nobody believes any longer to have a slot that is free here.
    pub(super) fn tell_waited(&mut self, replicated: &Replicated) {
        let last = replicated.ended_elsewhere().last(self.own.0);
        let Some(last) = last.filter(|last| *last > self.waited) else {
            return;
        };
        let still = !self.ended.is_empty() || self.believed_until.is_some();
        if !still && replicated.view().has(self.own.0, self.own.1) {
            self.waited = last;
            self.out.changes.push(Change::EndsWaited { last });
        }
    }

    pub(super) fn no_longer_awaited(&mut self, session: SessionId, replicated: &Replicated) {
        if self.awaited.remove(&session) {
            self.release_unknown(replicated);
        }
    }

    /// Whether somebody may have, or believe to have, what the previous process gave out.
    pub(super) fn is_wary(&self) -> bool {
        !self.awaited.is_empty() || self.believed_until.is_some()
    }

    /// Frees what the previous process gave out, if nobody can claim it any more.
    pub(super) fn release_unknown(&mut self, replicated: &Replicated) {
        if self.is_wary() {
            return;
        }
        for (name, record) in replicated.pools().iter() {
            let Some(counter) = self.pools.get_mut(name).filter(|counter| counter.begun) else {
                continue;
            };
            if !counter.unknown.is_empty() {
                // A snapshot may have brought claims.
                let counts = |slot, fence| counter.may_be_earlier(slot, fence);
                for (slot, taken) in record.claimed_among(&counter.unknown, counts) {
                    let held = self.holders.entry(taken.session).or_default();
                    counter.hold(slot, taken, held);
                }
                let none = SlotSet::new(counter.plan.slots);
                let unknown = std::mem::replace(&mut counter.unknown, none);
                if let Some(sharer) = &mut counter.sharer {
                    sharer.give_all(&unknown, &counter.plan, &mut self.letters);
                }
            }
            self.serve(0, name, record.shelf(name, replicated));
        }
    }

    /// A session of an earlier start is back and says what it has, once: what it gives back afterwards is not its own again. Another
    /// session has nothing from before. Only for a node that is alone: its log need not be told.
    pub fn resume(
        &mut self,
        session: SessionId,
        claims: &[(Name, u32, Fence)],
        replicated: &Replicated,
    ) {
        let awaited = self.awaited.contains(&session);
        for (pool, slot, fence) in claims.iter().filter(|_| awaited) {
            let record = replicated.pools().get(pool);
            if record.is_some_and(|record| record.could_have(*slot, *fence)) {
                self.claimed(session, pool, (*slot, *fence), false);
            }
        }
        self.no_longer_awaited(session, replicated);
    }

    /// A process that has neither given out nor said anything knows only what the log says.
    fn begin_anew(&mut self, own: Peer, replicated: &Replicated) {
        let mut out = std::mem::take(&mut self.out);
        let waits = self.pools.values().flat_map(|counter| counter.waits.iter());
        let ended = waits.map(|wait| (wait.ticket, Vec::new()));
        out.answers.extend(ended);
        let donations = std::mem::take(&mut self.donations);
        let (next_ticket, limits) = (self.next_ticket, self.waiting.limits);
        *self = Desk::new(self.now, own, replicated);
        self.waiting.limits = limits;
        (self.next_ticket, self.donations) = (next_ticket, donations);
        out.changes.append(&mut self.out.changes);
        self.out = out;
    }
}
