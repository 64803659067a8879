//! The desk of a node: what its sessions have taken from the pools, and the takes that wait there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use testigo_protocol::slots::{Change as Turn, Delivery, Letter, Sharer, SlotSet, SlotsMessage};

use super::counter::{Counter, Holders, Many};
use super::donation::{DONATIONS_MAX, Donation};
use super::records::no_pool;
use super::shelf::{Shelf, Shelves};
use super::waits::{PoolWait, WaitLimits, Waiting};
use crate::error::{Refusal, Word};
use crate::estate::Peer;
use crate::fence::Fence;
use crate::limits::Limits;
use crate::name::Name;
use crate::ownership::{Index, Start};
use crate::replicated::{Applied, Change, Outcome, Replicated, no_session};
use crate::session::SessionId;
use crate::wait::Ticket;

/// A slot's fence is its number, followed by this many bits that count its takes under that number: below 2^53 in all.
pub(super) const COUNT_BITS: u32 = 20;
/// From this count on, a slot that comes back is given its next number. A view may come first and undo that; then the slot is taken
/// again under the old number, with the counts that are left.
pub(super) const COUNT_FULL: u32 = 1 << (COUNT_BITS - 1);
/// Tickets of a desk are above those of the books and below those that the node makes.
pub(super) const FIRST_TICKET: u64 = 1 << 51;

/// What a node's sessions have of the pools.
#[derive(Debug)]
pub struct Desk {
    pub(super) own: Peer,
    pub(super) pools: BTreeMap<Name, Counter>,
    pub(super) holders: Holders,
    /// The pools' names by their keys.
    pub(super) names: FxHashMap<u64, Name>,
    /// The takes that wait, at all pools.
    pub(super) waiting: Waiting,
    /// Sessions of earlier starts of this node. Nobody gets slots that these have not claimed before they have ended or moved.
    pub(super) awaited: BTreeSet<SessionId>,
    /// Sessions that ended while this node was cut off. Their clients may have believed its answers, and may believe until the
    /// given time that they have what they took here: nobody else gets it earlier.
    pub(super) ended: BTreeMap<SessionId, u64>,
    /// The first start of this process: its own sessions are not awaited.
    pub(super) born: Start,
    /// When this process began. Any answer of the previous process was heard earlier.
    pub(super) born_at: u64,
    /// Until when clients may believe the previous process, because their sessions ended without its knowledge. Nobody gets what
    /// it had given out earlier than that.
    pub(super) believed_until: Option<u64>,
    /// The last such end that the log was told to forget.
    pub(super) waited: Index,
    /// Sessions that ran out, and whose ends are on their way to the log: they get nothing more, because somebody else would get it
    /// once they end. With each, until when its client may believe what this node answered while it was cut off.
    pub(super) ran_out: BTreeMap<SessionId, u64>,
    /// The start that has told the log what sessions have here that left without a word.
    pub(super) spoke: Option<Start>,
    pub(super) next_ticket: u64,
    /// The latest time that the desk was told.
    pub(super) now: u64,
    /// Whether anything was given out or said here. Until then only the log counts.
    pub(super) served: bool,
    /// The latest donations between any members.
    pub(super) donations: VecDeque<Donation>,
    pub(super) out: DeskOut,
    pub(super) letters: Vec<Letter>,
}

/// What a desk wants done.
#[derive(Clone, Debug, Default)]
pub struct DeskOut {
    /// Changes for the log.
    pub changes: Vec<Change>,
    /// Takes that have waited, and what they got; nothing if they got none in time.
    pub answers: Vec<(Ticket, Vec<SlotTaken>)>,
    /// Slots that sessions no longer have.
    pub lost: Vec<(SessionId, Name, String, Fence)>,
}

/// `POOL TAKE name [COUNT c | UPTO c] [WAIT ms]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTake<'a> {
    /// From which pool.
    pub pool: &'a str,
    /// How many.
    pub many: Many,
    /// With which label; `None` for any slots.
    pub label: Option<&'a str>,
    /// How long to wait; `None` not to wait.
    pub wait_ms: Option<u64>,
}

/// A slot that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTaken {
    /// Its name.
    pub slot: String,
    /// Its fence.
    pub fence: Fence,
}

/// The answer to a take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolAnswer {
    /// It got these; none if there were not enough.
    Taken(Vec<SlotTaken>),
    /// It waits.
    Waiting(Ticket),
}

impl Desk {
    /// Sets how many takes may wait here in all, and of one session, as in queues.
    pub fn set_limits(&mut self, limits: &Limits) {
        self.waiting.limits = WaitLimits::of(limits);
    }

    /// The node and start that it belongs to.
    pub fn own(&self) -> Peer {
        self.own
    }

    /// What has become due since the last call.
    pub fn take_out(&mut self) -> DeskOut {
        std::mem::take(&mut self.out)
    }

    /// Whether anything is to be done.
    pub fn has_out(&self) -> bool {
        let DeskOut {
            changes,
            answers,
            lost,
        } = &self.out;
        !(changes.is_empty() && answers.is_empty() && lost.is_empty())
    }

    /// Whether a session has slots here, or waits for some.
    pub fn has(&self, session: SessionId) -> bool {
        self.holders.contains_key(&session) || self.waiting.has(session)
    }

    /// How many slots a session has here.
    pub fn held_count(&self, session: SessionId) -> usize {
        self.holders.get(&session).map_or(0, FxHashSet::len)
    }

    /// Whether no session is known to have a slot here.
    pub fn is_unused(&self) -> bool {
        self.holders.is_empty()
    }

    /// Takes in an applied entry of the log. `acts` says whether the node may act or is catching up.
    pub fn follow(&mut self, now: u64, acts: bool, replicated: &Replicated, applied: &Applied) {
        self.now = self.now.max(now);
        match applied.outcome() {
            Outcome::PoolCreated { pool } => {
                if let Some(record) = replicated.pools().get(pool) {
                    self.open(pool, record);
                    // The previous process may have read this too, and given slots out.
                    if !replicated.view().has(self.own.0, self.own.1) {
                        self.withhold(pool, record);
                    }
                }
            }
            Outcome::PoolClosing { pool } => self.vote(pool, replicated),
            Outcome::PoolDeleted { pool, definition } => {
                self.close(pool, Some(&definition.slots));
            }
            Outcome::SessionClosed { session, record } => {
                // It may have ended earlier than its client, connected to an earlier start of this process, can know.
                let starts = self.born..self.own.1;
                let left_behind =
                    record.home.node == self.own.0 && starts.contains(&record.home.start);
                let until = match acts && !left_behind {
                    true => self.ran_out.get(session).copied().unwrap_or(0),
                    false => now.saturating_add(record.ttl_ms),
                };
                match until > now {
                    true => self.end_later(*session, until, replicated),
                    false => self.end(*session, replicated),
                }
                self.heed_ends(replicated);
                self.no_longer_awaited(*session, replicated);
                self.tell_waited(replicated);
            }
            Outcome::Viewed => {
                self.tell_waited(replicated);
                self.speak_for_those_who_left(replicated);
            }
            Outcome::EndsWaited { node }
                if *node == self.own.0 && replicated.ended_elsewhere().last(*node).is_none() =>
            {
                self.believed_until = None;
                self.release_unknown(replicated);
            }
            Outcome::SessionMoved { session, slots, .. } => {
                self.ran_out.remove(session);
                // Its client asks again where it is now, and would never hear what these waits bring.
                self.end_waits(*session, replicated);
                match slots {
                    Some(claims) => {
                        self.keep_only(*session, claims, replicated);
                        self.hear_claims(*session, claims, replicated);
                    }
                    None => self.claim_for(*session, replicated),
                }
                if !self.awaits(*session, replicated) {
                    self.no_longer_awaited(*session, replicated);
                }
            }
            Outcome::SlotsClaimed { session, claims } => {
                self.hear_claims(*session, claims, replicated);
                // The previous process may have said it.
                if !self.awaits(*session, replicated) {
                    self.no_longer_awaited(*session, replicated);
                }
            }
            Outcome::SlotsGiven {
                session,
                pool,
                slots,
                lost,
            } => {
                if let Some(shelf) = replicated.shelf(pool) {
                    self.given(*session, pool, slots, shelf);
                    let lost = slots.iter().filter(|_| *lost);
                    let names = &shelf.definition.slots;
                    let lost = lost
                        .map(|(slot, fence)| (*session, pool.clone(), names.name(*slot), *fence));
                    self.out.lost.extend(lost);
                }
            }
            _ => {}
        }
        for (name, delivery) in replicated.delivered() {
            if let Some(shelf) = replicated.shelf(name)
                && !self.has_begun_with(name, delivery)
            {
                self.deliver(now, shelf, name, delivery);
            }
        }
        if !replicated.delivered().is_empty() {
            self.begin(replicated);
        }
        for name in replicated.reopened() {
            if let Some(shelf) = replicated.shelf(name) {
                self.serve(now, name, shelf);
            }
        }
    }

    /// Whether a pool's member already knows this view. An entry may bring several views, and a member that comes in with it begins
    /// with the outcome of all of them.
    fn has_begun_with(&self, name: &str, delivery: &Delivery) -> bool {
        let sharer = self.sharer(name);
        match delivery {
            Delivery::View { group, .. } => {
                sharer.is_some_and(|sharer| sharer.group().view >= group.view)
            }
            Delivery::Letter { .. } => false,
        }
    }

    /// Takes in what was delivered to the members of a pool.
    pub(super) fn deliver(&mut self, now: u64, shelf: Shelf<'_>, name: &Name, delivery: &Delivery) {
        let Some(counter) = self.pools.get_mut(name) else {
            return;
        };
        if let (Some(record), Some(sharer)) = (shelf.record, &counter.sharer)
            && record.place(self.own.0) != Some(sharer.id())
        {
            // It was removed. Whoever comes next may get its place, and be somebody else.
            counter.sharer = None;
            self.drop_lost(name, shelf);
        }
        let counter = self.pools.get_mut(name).expect("it is there");
        match &mut counter.sharer {
            // It comes in with this delivery, and begins with its outcome.
            None => {
                if let Some(record) = shelf.record {
                    self.take_place(name, record);
                }
            }
            Some(sharer) => {
                if let Delivery::Letter { from, letter } = delivery
                    && let SlotsMessage::Donate { to, slots, .. } = &letter.message
                    && letter.view == sharer.group().view
                    && from != to
                    && !slots.is_empty()
                {
                    let moved = slots.len() as u64;
                    counter.donated[0] += if *to == sharer.id() { moved } else { 0 };
                    counter.donated[1] += if *from == sharer.id() { moved } else { 0 };
                    if let (Some(from), Some(to)) = (shelf.node(*from), shelf.node(*to)) {
                        self.donations.truncate(DONATIONS_MAX - 1);
                        self.donations.push_front(Donation {
                            at: now,
                            pool: name.clone(),
                            from,
                            to,
                            slots: slots.len() as u32,
                        });
                    }
                }
                let claimed = match delivery {
                    Delivery::View {
                        change: Turn::Departed(_) | Turn::Returned(_),
                        ..
                    } => shelf.record.map(|record| record.claimed_elsewhere(sharer)),
                    _ => None,
                };
                let claimed = claimed.unwrap_or_default();
                let slots: Vec<u32> = claimed.iter().map(|(slot, _)| *slot).collect();
                sharer.deliver_in_use(delivery, &slots, &counter.plan, &mut self.letters);
                counter.hold_claimed(claimed, &mut self.holders);
            }
        }
        let begun = self.pools.get(name).is_some_and(|counter| counter.begun);
        if matches!(delivery, Delivery::View { .. }) || !begun {
            self.drop_lost(name, shelf);
        }
        self.withhold_new(name);
        self.serve(now, name, shelf);
    }

    /// This node's member of a pool.
    pub(super) fn sharer(&self, name: &str) -> Option<&Sharer> {
        self.pools.get(name)?.sharer.as_ref()
    }

    pub(super) fn sharer_mut(&mut self, name: &str) -> Option<&mut Sharer> {
        self.pools.get_mut(name)?.sharer.as_mut()
    }

    pub(super) fn sharers_mut(&mut self) -> impl Iterator<Item = &mut Sharer> {
        let counters = self.pools.values_mut();
        counters.filter_map(|counter| counter.sharer.as_mut())
    }

    /// The member of a pool begins with what all have agreed on. It has used nothing before.
    pub(super) fn replace_sharer(
        &mut self,
        now: u64,
        shelf: Shelf<'_>,
        name: &Name,
        sharer: Sharer,
    ) {
        if let Some(counter) = self.pools.get_mut(name) {
            counter.sharer = Some(sharer);
            self.serve(now, name, shelf);
        }
    }

    /// Takes slots, at once or after a wait.
    pub fn take(
        &mut self,
        now: u64,
        shelves: &dyn Shelves,
        session: SessionId,
        take: PoolTake<'_>,
    ) -> Result<PoolAnswer, Refusal> {
        let PoolTake {
            pool,
            many,
            label,
            wait_ms,
        } = take;
        if self.ran_out.contains_key(&session) {
            return Err(no_session(session));
        }
        let shelf = shelves.shelf(pool).ok_or_else(|| no_pool(pool))?;
        let known = self.pools.get_key_value(pool);
        let name = known.map(|(name, _)| name.clone());
        let name = name.ok_or_else(|| no_pool(pool))?;
        let counter = self.pools.get_mut(&name).expect("it is there");
        let slots = counter.plan.slots;
        let at_once = Limits::SLOTS_AT_ONCE as u32;
        if many.least() > at_once && many.least() <= slots {
            let why = format!(
                "a take of {} slots; the limit slots_at_once is {at_once}: take them in parts",
                many.least()
            );
            return Err(Refusal::new(Word::Limit, why));
        }
        let many = match many {
            Many::UpTo(count) => Many::UpTo(count.min(at_once)),
            exactly => exactly,
        };
        let bad = match many.most() {
            0 => Some(format!(
                "a take of 0 slots of pool {pool}; it needs at least 1"
            )),
            _ if many.least() > slots => Some(format!(
                "cannot take {} slots of pool {pool}: it has {slots}",
                many.most()
            )),
            _ => None,
        };
        if let Some(why) = bad {
            return Err(Refusal::new(Word::BadArg, why));
        }
        if shelf.closing {
            let why = format!("pool {pool} is being deleted; try again");
            return Err(Refusal::new(Word::Busy, why));
        }
        if counter.sharer.is_none() {
            let why = format!("this node has no part of pool {pool} yet; try again");
            return Err(Refusal::new(Word::Unavailable, why));
        }
        let label = label.map(|label| counter.label(shelf, pool, label, many));
        let label = label.transpose()?;
        if counter.waits.is_empty()
            && let Some(taken) = counter.grant(
                now,
                session,
                (many, label),
                &SlotSet::default(),
                &mut self.letters,
            )
        {
            let held = self.holders.entry(session).or_default();
            held.extend(taken.iter().map(|(slot, _)| (counter.key, *slot)));
            let taken = named(shelf, taken);
            self.served = true;
            self.post(&name, shelf);
            return Ok(PoolAnswer::Taken(taken));
        }
        let wait_ms = wait_ms.unwrap_or(0);
        if wait_ms == 0 && !counter.has_labels() {
            counter.want(many.least(), &mut self.letters);
            counter.want(0, &mut self.letters);
            self.post(&name, shelf);
            return Ok(PoolAnswer::Taken(Vec::new()));
        }
        if wait_ms > 0 {
            self.waiting.check(session)?;
        }
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        let wait = PoolWait {
            ticket,
            session,
            many,
            label,
            since: now,
            deadline: now.saturating_add(wait_ms),
        };
        counter.wait(wait, &mut self.waiting);
        // With labels, a slot may serve it that serves none of the takes before it.
        self.serve(now, &name, shelf);
        let answers = &mut self.out.answers;
        if let Some(at) = answers.iter().position(|(served, _)| *served == ticket) {
            return Ok(PoolAnswer::Taken(answers.swap_remove(at).1));
        }
        if wait_ms == 0 {
            let counter = self.pools.get_mut(&name).expect("it is there");
            counter.wait_over(ticket, &mut self.waiting);
            self.serve(now, &name, shelf);
            return Ok(PoolAnswer::Taken(Vec::new()));
        }
        Ok(PoolAnswer::Waiting(ticket))
    }

    /// Serves waiting takes in their order, as far as the slots go. While the pool is being deleted, they go on waiting.
    pub(super) fn serve(&mut self, now: u64, name: &Name, shelf: Shelf<'_>) {
        if shelf.closing {
            return self.post(name, shelf);
        }
        let Some(counter) = self.pools.get_mut(name) else {
            return;
        };
        // The end of a session brings slots back without saying when.
        let now = now.max(self.now);
        if let Some(sharer) = &mut counter.sharer {
            sharer.keep(std::iter::empty());
        }
        let (mut round, nothing) = (counter.round(), SlotSet::default());
        loop {
            let next = match counter.has_labels() {
                true => counter.next_served(&mut round),
                false => counter.waits.first_of(None).map(|wait| (wait.ticket, true)),
            };
            let wait = next.and_then(|(ticket, _)| counter.waits.get(ticket).copied());
            let (Some((ticket, leaves_kept)), Some(wait)) = (next, wait) else {
                break;
            };
            let kept = if leaves_kept { &round.kept } else { &nothing };
            let (session, wanted) = (wait.session, (wait.many, wait.label));
            let taken = counter.grant(now, session, wanted, kept, &mut self.letters);
            let Some(taken) = taken else {
                break;
            };
            counter.wait_over(ticket, &mut self.waiting);
            counter.any_first = wait.label.is_some();
            match (wait.label, &mut counter.sharer) {
                (Some(label), Some(sharer)) => sharer.served_labelled(label),
                (None, Some(sharer)) => sharer.served(),
                (_, None) => {}
            }
            self.served = true;
            let held = self.holders.entry(session).or_default();
            held.extend(taken.iter().map(|(slot, _)| (counter.key, *slot)));
            self.out.answers.push((ticket, named(shelf, taken)));
        }
        match counter.has_labels() {
            true => counter.want_all(round, &mut self.letters),
            false => counter.want(0, &mut self.letters),
        }
        if let Some(sharer) = &mut counter.sharer {
            sharer.pass_turn(&mut self.letters);
        }
        self.post(name, shelf);
    }

    /// Hands what the member has said to the engine.
    pub(super) fn post(&mut self, name: &Name, shelf: Shelf<'_>) {
        let created: Index = shelf.created;
        // Letters of an earlier view would not count.
        let view = shelf.view;
        self.served |= !self.letters.is_empty();
        let letters = self
            .letters
            .drain(..)
            .filter(|letter| Some(letter.view) == view);
        self.out
            .changes
            .extend(letters.map(|letter| Change::PoolLetter {
                pool: name.clone(),
                created,
                letter,
            }));
    }
}

fn named(shelf: Shelf<'_>, taken: Vec<(u32, Fence)>) -> Vec<SlotTaken> {
    let slots = &shelf.definition.slots;
    let named = taken.into_iter().map(|(slot, fence)| SlotTaken {
        slot: slots.name(slot),
        fence,
    });
    named.collect()
}
