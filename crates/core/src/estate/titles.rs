//! What a new title means. The former owner forgets its books; every member reports to the new owner what its sessions hold
//! there and repeats its unanswered asks; the new owner opens the shard when it has heard from everybody.

use std::collections::{BTreeMap, BTreeSet};

use super::frame::{Frame, Held, InHand};
use super::opening::Opening;
use super::table::What;
use super::takes::TableTake;
use super::{Broken, Estate, Out, Peer};
use crate::command::{Answer, Taken};
use crate::local::{HoldCopy, TakeCopy};
use crate::ownership::{Index, Ownership, Shard, Title};
use crate::replicated::Replicated;
use crate::session::SessionId;

impl Estate {
    /// Follows the log's last entry, which was a view or titles.
    pub(super) fn retitle(&mut self, replicated: &Replicated, out: &mut Out) {
        let entry = replicated.index();
        let titles = std::mem::replace(&mut self.titles, replicated.ownership().clone());
        let before = self.follow_members(replicated);
        let viewed = replicated.view().index == entry;
        let members = &self.members;
        self.outbox.retain(|(to, _)| members.contains(to));
        self.joined |= self.is_member();
        if !self.is_member() {
            self.lease.end();
            return self.suspend(replicated, out);
        }
        let left: Vec<Peer> = before
            .iter()
            .filter(|peer| !self.members.contains(peer))
            .copied()
            .collect();
        self.local.raise_fences(replicated.ownership());
        let moved = moved(&titles, replicated);
        let lost: BTreeSet<Shard> = of(&moved, |from, _| from == Some(self.own));
        self.end_instances(replicated);
        self.openings.give_away(|shard| lost.contains(&shard));
        self.reserved
            .retain(|gate, _| !lost.contains(&Shard::of(gate)));
        self.forget_links();
        self.lose_shards(replicated, &lost, |shard| moved.contains_key(&shard), out);
        if !left.is_empty() {
            self.walks.end();
        }
        for peer in left {
            self.peer_left(replicated, peer, out);
        }
        let gained: BTreeSet<Shard> = of(&moved, |_, to| to == self.own);
        if !viewed {
            let stayed = |shard: &Shard| gained.contains(shard) && lost.contains(shard);
            let went = lost.iter().filter(|shard| !stayed(shard)).copied();
            let came = gained.iter().filter(|shard| !stayed(shard)).copied();
            let (went, came): (BTreeSet<Shard>, BTreeSet<Shard>) = (went.collect(), came.collect());
            self.note_moves(&came, &went);
        }
        if moved.is_empty() {
            // Shards under a new number of the same owner: some requests may have waited for that.
            self.local.renewed(replicated, &mut self.events);
        }
        if !gained.is_empty() {
            // A member that joins with this very view had no sessions before it.
            let heard = match viewed {
                true => before,
                false => self.members.clone(),
            };
            self.gain_shards(replicated, entry, gained, &heard);
        }
        self.report(replicated, entry, &moved, out);
        self.set_lines(replicated);
    }

    /// These shards now belong to others. What sessions of this home hold there, or wait for, goes into the table; so do the
    /// holds kept here at spread gates, in all shards with a new title.
    fn lose_shards(
        &mut self,
        replicated: &Replicated,
        lost: &BTreeSet<Shard>,
        moved: impl Fn(Shard) -> bool,
        out: &mut Out,
    ) {
        if lost.is_empty() && !replicated.has_spread() {
            return;
        }
        let (holds, waits) = self.local.vacate(moved, &mut self.events);
        for hold in holds {
            if self.table.hosts(hold.session) {
                self.table.write_down(hold);
            } else if !lost.contains(&Shard::of(&hold.gate)) {
                self.spread.strays.push(hold);
            }
        }
        let (takes, takers) = self
            .local
            .vacate_lines(replicated, |shard| lost.contains(&shard));
        for take in takes {
            if self.table.hosts(take.session) {
                self.table.write_take(TableTake {
                    take,
                    at: replicated.index(),
                    from: self.own,
                    told: true,
                });
            }
        }
        self.takes_moved(takers, out);
        for (_, ticket) in waits {
            self.guests.remove(&ticket);
            if let Some(ask) = self.table.of_ticket(ticket) {
                self.table.set_ticket(ask, None);
            }
        }
    }

    /// A start has left. Its implicit sessions ended with it; its opened ones keep what they hold, and nobody speaks for
    /// them.
    fn peer_left(&mut self, replicated: &Replicated, peer: Peer, out: &mut Out) {
        let sessions = replicated.sessions();
        let orphans = sessions.filter(|(_, record)| (record.home.node, record.home.start) == peer);
        let orphans: Vec<SessionId> = orphans.map(|(session, _)| session).collect();
        self.table.drop_untold(peer);
        for &orphan in &orphans {
            let takes = self.local.forget_takes(orphan);
            self.takes_moved(takes.into_iter().map(|ticket| (orphan, ticket)), out);
        }
        for held in self.openings.left(peer, &orphans) {
            self.install(held);
        }
        self.early.retain(|(from, _)| *from != peer);
        self.forget_parked(|home, _| home == peer);
        let waits: Vec<_> = self
            .guests
            .iter()
            .filter(|(_, guest)| guest.home == peer)
            .map(|(ticket, guest)| (*ticket, guest.session))
            .collect();
        for (ticket, session) in waits {
            self.guests.remove(&ticket);
            if !session.is_implicit() {
                self.local.forget_waits(session, &mut self.events);
            }
        }
        for session in self.local.session_list() {
            let gone = session.is_implicit() && session.is_of(peer.0, peer.1);
            if gone && !self.table.hosts(session) {
                self.openings.ended(session);
                if self.breaks(Broken::FreedByView) {
                    self.free_all(replicated, session);
                }
                self.local.dismiss(session, &mut self.events);
            }
        }
        for resuming in self.resuming.values_mut() {
            resuming.missing.remove(&peer);
        }
    }

    /// These shards now belong to this node. It knows at once what its own sessions hold there.
    fn gain_shards(
        &mut self,
        replicated: &Replicated,
        entry: Index,
        shards: BTreeSet<Shard>,
        heard: &[Peer],
    ) {
        let missing = heard.iter().filter(|peer| self.members.contains(peer));
        let missing = missing.filter(|peer| **peer != self.own).copied().collect();
        let sessions = replicated.sessions();
        let orphans = sessions.filter(|(_, record)| replicated.is_orphan(record));
        let orphans = orphans.map(|(session, _)| session).collect();
        let mut holds = self.table.holds_in(|shard| shards.contains(&shard));
        for hold in &holds {
            self.table.strike_out(hold.session, &hold.gate);
        }
        holds.extend(self.claims_in(|shard| shards.contains(&shard)));
        for take in self.table.takes_in(|shard| shards.contains(&shard)) {
            let TakeCopy { job, attempt, .. } = take;
            self.table.strike_take(take.session, Taken { job, attempt });
            self.local.install_take(replicated, &take);
        }
        let strays = std::mem::take(&mut self.spread.strays);
        let (mine, others) = strays
            .into_iter()
            .partition(|hold| shards.contains(&Shard::of(&hold.gate)));
        self.spread.strays = others;
        let mine: Vec<HoldCopy> = mine;
        holds.extend(mine);
        self.openings.add(Opening {
            entry,
            shards,
            missing,
            orphans,
            moved: BTreeMap::new(),
            undecided: BTreeSet::new(),
            asks: Vec::new(),
        });
        for hold in holds {
            self.install_copy(&hold);
        }
    }

    /// Puts a session inside a gate of a shard that is not open yet.
    pub(super) fn install(&mut self, held: Held) {
        let hold = self.as_copy(held);
        self.install_copy(&hold);
    }

    fn install_copy(&mut self, hold: &HoldCopy) {
        if !self.local.install(hold, &mut self.events)
            && let Some(opening) = self.openings.of_shard(Shard::of(&hold.gate))
        {
            opening.undecided.insert(hold.gate.clone());
        }
    }

    /// Tells every new owner what the sessions of this home hold in its new shards, and repeats the unanswered asks.
    fn report(
        &mut self,
        replicated: &Replicated,
        entry: Index,
        moved: &BTreeMap<Shard, (Option<Title>, Title)>,
        out: &mut Out,
    ) {
        let owner = |shard: Shard| moved.get(&shard).map(|(_, to)| (to.owner, to.start));
        let takers: BTreeSet<Peer> = moved.values().map(|(_, to)| (to.owner, to.start)).collect();
        let own = self.own;
        for &taker in takers.iter().filter(|taker| **taker != own) {
            let mut holds = self.table.holds_in(|shard| owner(shard) == Some(taker));
            if self.breaks(Broken::ReservedUnreported) {
                holds.retain(|hold| !hold.reserved);
            }
            holds.extend(self.claims_in(|shard| owner(shard) == Some(taker)));
            let strays = self.spread.strays.iter();
            let strays = strays.filter(|hold| owner(Shard::of(&hold.gate)) == Some(taker));
            holds.extend(strays.cloned());
            let holds = holds.iter().map(|hold| self.as_held(replicated, hold));
            let holds: Vec<Held> = holds.collect();
            let takes = self.table.takes_in(|shard| owner(shard) == Some(taker));
            let takes = takes.iter().map(|take| self.as_in_hand(replicated, take));
            let takes: Vec<InHand> = takes.collect();
            let report = Frame::Report {
                entry,
                holds,
                takes,
            };
            self.send(taker, report);
        }
        self.spread.strays.clear();
        for ask in self.table.asks_in(|shard| moved.contains_key(&shard)) {
            let Some(asked) = self.table.ask(ask) else {
                continue;
            };
            if matches!(asked.what, What::Enter(_)) && self.is_spread(replicated, &asked.gate) {
                // It waits for the instance.
                continue;
            }
            match asked.what {
                // Nobody has reported it, so it counts as given back.
                What::Leave => self.finish(replicated, ask, Ok(Answer::Done), out),
                _ => {
                    if let Ok(owner) = self.owner_of(replicated, &asked.gate.clone()) {
                        self.repeat_ask(replicated, owner, ask);
                    }
                }
            }
        }
        self.ask_new_owners(replicated, &takers);
    }

    /// What the sessions that are being resumed here claim. It is reported until everybody has said what they have.
    fn claims_in(&self, shards: impl Fn(Shard) -> bool) -> Vec<HoldCopy> {
        let here = self
            .resuming
            .iter()
            .filter(|(session, _)| self.table.hosts(**session));
        let claims = here.flat_map(|(_, resuming)| &resuming.claims);
        let there = claims.filter(|hold| shards(Shard::of(&hold.gate)));
        there.cloned().collect()
    }

    pub(super) fn as_held(&self, replicated: &Replicated, hold: &HoldCopy) -> Held {
        Held {
            session: hold.session,
            home: self.home_index(replicated, hold.session),
            gate: hold.gate.clone(),
            mode: hold.mode.clone(),
            fence: hold.fence,
            left_ms: hold.until.map(|until| until.saturating_sub(self.now)),
            proven: hold.proven,
            reserved: hold.reserved,
            held_ms: self.now.saturating_sub(hold.since),
            reason: hold.reason.clone(),
        }
    }

    pub(super) fn as_copy(&self, held: Held) -> HoldCopy {
        HoldCopy {
            session: held.session,
            gate: held.gate,
            mode: held.mode,
            fence: held.fence,
            until: held.left_ms.map(|left| self.now.saturating_add(left)),
            proven: held.proven,
            reserved: held.reserved,
            since: self.now.saturating_sub(held.held_ms),
            reason: held.reason,
        }
    }

    /// A member has reported what its sessions hold in the shards that an entry gave to this node.
    pub(super) fn reported(
        &mut self,
        replicated: &Replicated,
        from: Peer,
        entry: Index,
        holds: Vec<Held>,
        takes: &[InHand],
    ) {
        let Some(opening) = self.openings.of_entry(entry) else {
            return;
        };
        opening.missing.remove(&from);
        opening.moved.retain(|_, (home, _)| *home != from);
        let shards = opening.shards.clone();
        // A report may be older than the end of a session that it names.
        let is_over = |session: SessionId| {
            let over = !session.is_implicit() && replicated.session(session).is_none();
            over && !self.breaks(Broken::ReportOfDead)
        };
        let holds: Vec<Held> = holds
            .into_iter()
            .filter(|held| shards.contains(&Shard::of(&held.gate)) && !is_over(held.session))
            .collect();
        let takes: Vec<&InHand> = takes
            .iter()
            .filter(|take| shards.contains(&take.shard) && !is_over(take.session))
            .collect();
        for held in holds {
            self.install(held);
        }
        for take in takes {
            let take = self.as_take(take);
            self.local.install_take(replicated, &take);
        }
        self.set_lines(replicated);
    }
}

/// The shards that have another owner, or another start of it, with both titles.
fn moved(before: &Ownership, replicated: &Replicated) -> BTreeMap<Shard, (Option<Title>, Title)> {
    let mut moved = BTreeMap::new();
    for (shards, to) in replicated.ownership().runs() {
        let mut at = *shards.start();
        loop {
            // Up to where the former title ends.
            let from = before.title(Shard(at));
            let last = before.last_of_run(Shard(at)).0.min(*shards.end());
            let stays = from.is_some_and(|from| {
                (from.owner, from.start, from.since) == (to.owner, to.start, to.since)
            });
            if !stays {
                moved.extend((at..=last).map(|shard| (Shard(shard), (from, to))));
            }
            if last == *shards.end() {
                break;
            }
            at = last + 1;
        }
    }
    moved
}

fn of(
    moved: &BTreeMap<Shard, (Option<Title>, Title)>,
    is: impl Fn(Option<Peer>, Peer) -> bool,
) -> BTreeSet<Shard> {
    let peer = |title: &Title| (title.owner, title.start);
    let found = moved
        .iter()
        .filter(|(_, (from, to))| is(from.as_ref().map(peer), peer(to)));
    found.map(|(shard, _)| *shard).collect()
}
