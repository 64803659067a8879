//! Sessions that move. The new home asks every member what the session has, sends along what the client claims, and answers
//! the client when all have replied. A session whose home is gone is an orphan until then; shards where it may hold something
//! and nobody can report stay shut.

use std::collections::{BTreeMap, BTreeSet};

use super::frame::{Frame, Held, InHand};
use super::takes::TableTake;
use super::{Broken, Estate, Out, Peer, Tell};
use crate::command::{Answer, Claim, ClaimEnd, Resumed};
use crate::error::{Refusal, Word};
use crate::gate::Definition;
use crate::local::{HoldCopy, check_reason, name_asked};
use crate::name::Name;
use crate::ownership::{Index, Shard};
use crate::pool::Said;
use crate::replicated::{Change, Replicated, no_gate};
use crate::session::SessionId;
use crate::wait::Ticket;

/// A session that is being resumed at its new home.
#[derive(Debug)]
pub(super) struct Resuming {
    /// What its client says it holds.
    pub(super) claims: Vec<HoldCopy>,
    /// Its claims that cannot be valid or are over: their positions among all claims, and what becomes of them.
    settled: Vec<(usize, ClaimEnd)>,
    /// Members that have not yet said what the session has, and how often each was asked: after a new title the new owner is
    /// asked again.
    pub(super) missing: BTreeMap<Peer, u32>,
    /// The ticket with which the client waits.
    pub(super) ticket: Ticket,
    /// What else its client says.
    said: Said,
    begun: bool,
}

/// What an owner owes the new home of a session: an answer, once the shards that were shut are open or can no longer reveal
/// anything of the session.
#[derive(Debug)]
pub(super) struct Owed {
    to: Peer,
    pub(super) session: SessionId,
    home: Index,
    pub(super) behind: BTreeSet<Index>,
    pub(super) claims: Vec<Doubt>,
}

/// Where a session claims to be, and whether it has proved that.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) gate: Name,
    pub(super) proven: bool,
}

impl Estate {
    /// A client resumes its session here, and may say more than what it holds. The change is for the log; the answer comes
    /// when everybody has said what the session has.
    pub fn resume(
        &mut self,
        now: u64,
        replicated: &Replicated,
        session: SessionId,
        claims: &[Claim<'_>],
        said: Option<Said>,
        out: &mut Out,
    ) -> Option<Ticket> {
        self.now = self.now.max(now);
        let record = replicated
            .session(session)
            .filter(|_| self.acts(self.now))?;
        let (mut known, mut settled) = (Vec::new(), Vec::new());
        for (at, claim) in claims.iter().enumerate() {
            match claimed(self.now, replicated, session, claim) {
                Ok(hold) if hold.until.is_none_or(|until| until > self.now) => known.push(hold),
                Ok(_) => settled.push((at, ClaimEnd::Lost)),
                Err(refusal) => settled.push((at, ClaimEnd::Refused(refusal.sentence))),
            }
        }
        let ticket = self.table.fresh_ticket();
        let resuming = Resuming {
            claims: known,
            settled,
            missing: BTreeMap::new(),
            ticket,
            said: said.clone().unwrap_or_default(),
            begun: false,
        };
        if let Some(before) = self.resuming.insert(session, resuming) {
            out.tells.push(Tell::Answered {
                session,
                ticket: before.ticket,
                answer: Err(stale("the session is resumed by another connection")),
            });
        }
        let home = record.home.index;
        out.changes.push(match said {
            None => Change::MoveSession { session, home },
            Some(said) => resumed_with(session, home, said),
        });
        Some(ticket)
    }

    /// The log has refused to move a session here, for which [`Estate::resume`] had asked. The session has ended only if it
    /// no longer exists: this start may have been left out, or an earlier try of the same client may have succeeded
    /// meanwhile.
    pub fn not_moved(
        &mut self,
        replicated: &Replicated,
        (session, serial): (SessionId, Option<u64>),
        mut refusal: Refusal,
        out: &mut Out,
    ) {
        let home = replicated.session(session).map(|record| record.home);
        if home.is_some() {
            refusal.word = Word::Unavailable;
        }
        // If it has begun, an earlier try has moved it, and this one gets the same answer.
        let resuming = self.resuming.get(&session);
        let Some(resuming) = resuming.filter(|resuming| !resuming.begun) else {
            return;
        };
        let here = home.filter(|home| (home.node, home.start) == self.own);
        let said = &resuming.said;
        if let Some(home) = here
            && said.serial > replicated.serial(session)
        {
            // An earlier try has brought it here. This one is the client's last and must count, because others may arrive
            // late.
            if said.serial == serial {
                let again = resumed_with(session, home.index, said.clone());
                out.changes.push(again);
            }
            return;
        }
        self.end_resume(session, refusal, out);
    }

    fn end_resume(&mut self, session: SessionId, refusal: Refusal, out: &mut Out) {
        if let Some(resuming) = self.resuming.remove(&session) {
            out.tells.push(Tell::Answered {
                session,
                ticket: resuming.ticket,
                answer: Err(refusal),
            });
        }
    }

    /// The log has given a session another home.
    pub(super) fn session_moved(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        from: Peer,
        out: &mut Out,
    ) {
        self.openings.moved(session, from);
        let home = self.home(replicated, session);
        // The old home forgets it, and asks again for what it waited for.
        let was_here = self.table.hosts(session);
        self.table.forget(session);
        self.guests.retain(|_, guest| guest.session != session);
        self.local.forget_waits(session, &mut self.events);
        let takes = self.local.forget_takes(session);
        self.takes_moved(takes.into_iter().map(|ticket| (session, ticket)), out);
        for opening in self.openings.all() {
            opening.asks.retain(|(_, _, ask)| ask.session != session);
        }
        self.forget_parked_of(session);
        if was_here && home != Some(self.own) {
            out.tells.push(Tell::Closed { session });
        }
        if home != Some(self.own) {
            self.local.see_off(session);
            self.see_off_spread(replicated, session);
            let mut refusal = stale("the session was resumed elsewhere");
            // Perhaps because of an earlier try of the same client, which may still arrive here.
            if self.resuming.get(&session).is_some_and(|it| !it.begun) {
                refusal.word = Word::Unavailable;
            }
            self.end_resume(session, refusal, out);
            return;
        }
        self.table
            .host(session, self.home_index(replicated, session));
        self.local.welcome(session, replicated);
        let index = self.home_index(replicated, session);
        let Some(resuming) = self.resuming.get_mut(&session) else {
            return;
        };
        // An earlier try of the same client; its last one follows.
        if resuming.said.serial.is_some() && resuming.said.serial != replicated.serial(session) {
            return;
        }
        resuming.begun = true;
        resuming.missing = self.members.iter().map(|peer| (*peer, 1)).collect();
        let claims = self.claims_of(replicated, session);
        for peer in self.members.clone() {
            let frame = Frame::Claims {
                session,
                home: index,
                claims: claims.clone(),
            };
            match peer == self.own {
                true => self.early.push((peer, frame)),
                false => self.send(peer, frame),
            }
        }
    }

    fn claims_of(&self, replicated: &Replicated, session: SessionId) -> Vec<Held> {
        let resuming = self.resuming.get(&session);
        let claims = resuming.map_or(&[][..], |resuming| &resuming.claims);
        let claims = claims.iter().map(|hold| self.as_held(replicated, hold));
        claims.collect()
    }

    /// After a new title, the new owner is asked, too.
    pub(super) fn ask_new_owners(&mut self, replicated: &Replicated, takers: &BTreeSet<Peer>) {
        let begun = self.resuming.iter().filter(|(_, resuming)| resuming.begun);
        let sessions: Vec<SessionId> = begun.map(|(session, _)| *session).collect();
        for session in sessions {
            let home = self.home_index(replicated, session);
            let claims = self.claims_of(replicated, session);
            for &taker in takers {
                let resuming = self.resuming.get_mut(&session).expect("it is there");
                // What it said before was about other shards.
                *resuming.missing.entry(taker).or_default() += 1;
                let frame = Frame::Claims {
                    session,
                    home,
                    claims: claims.clone(),
                };
                match taker == self.own {
                    true => self.early.push((taker, frame)),
                    false => self.send(taker, frame),
                }
            }
        }
    }

    /// The new home of a session sends its client's claims. A claim counts only where nobody else could report.
    pub(super) fn claimed(
        &mut self,
        from: Peer,
        session: SessionId,
        home: Index,
        claims: Vec<Held>,
    ) {
        let mut believed = Vec::new();
        let doubts = claims.iter().map(|held| Doubt {
            gate: held.gate.clone(),
            proven: held.proven,
        });
        let doubts = doubts.collect();
        for opening in self.openings.all() {
            let shards = &opening.shards;
            let here = claims
                .iter()
                .filter(|held| shards.contains(&Shard::of(&held.gate)));
            if opening.orphans.remove(&session) {
                believed.extend(here.cloned());
            } else if let Some((_, kept)) = opening.moved.get_mut(&session) {
                *kept = Some(here.cloned().collect());
            }
        }
        for held in believed {
            self.install(held);
        }
        self.owed.push(Owed {
            to: from,
            session,
            home,
            behind: self.openings.entries(),
            claims: doubts,
        });
    }

    /// An owner says what a session has there.
    pub(super) fn has(
        &mut self,
        from: Peer,
        session: SessionId,
        holds: Vec<Held>,
        takes: &[InHand],
    ) {
        let first = self.breaks(Broken::EarlierAnswer);
        let Some(resuming) = self.resuming.get_mut(&session) else {
            return;
        };
        if let Some(asked) = resuming.missing.get_mut(&from) {
            *asked -= 1;
            if *asked == 0 || first {
                resuming.missing.remove(&from);
            }
        }
        // Recorded at once, so that it is reported if the shard gets another owner.
        for held in holds {
            let hold = self.as_copy(held);
            let owner = self.titles.title(Shard::of(&hold.gate));
            if owner.is_some_and(|title| (title.owner, title.start) == from) && from != self.own {
                self.table.write_down(hold);
            }
        }
        for in_hand in takes {
            let owner = self.titles.title(in_hand.shard);
            if owner.is_some_and(|title| (title.owner, title.start) == from) && from != self.own {
                self.table.write_take(TableTake {
                    take: self.as_take(in_hand),
                    at: in_hand.at,
                    from,
                    told: true,
                });
            }
        }
    }

    /// Answers the homes that asked what a session has, as soon as the shards that were shut are open; and the clients of
    /// sessions on which everybody has replied.
    pub(super) fn answer_resumed(&mut self, replicated: &Replicated, out: &mut Out) -> bool {
        let away = self.owed.iter().filter(|owed| owed.to != self.own);
        let strays = away.flat_map(|owed| self.stray_shards(replicated, owed.session));
        let strays: Vec<Shard> = strays.collect();
        for shard in strays {
            self.renew(replicated, shard);
        }
        let early = self.breaks(Broken::AnswerBeforeReports);
        let (ready, owed): (Vec<Owed>, Vec<Owed>) = std::mem::take(&mut self.owed)
            .into_iter()
            .partition(|owed| {
                // What is kept here for another home goes there with the next title.
                let strays = self.stray_shards(replicated, owed.session);
                !self.openings.hold_up(owed, early) && (owed.to == self.own || strays.is_empty())
            });
        self.owed = owed;
        let mut any = !ready.is_empty();
        for owed in ready {
            if self.home_index(replicated, owed.session) != owed.home {
                continue;
            }
            let holds = self.local.holds_of(owed.session);
            let holds = holds.iter().map(|hold| self.as_held(replicated, hold));
            let holds: Vec<Held> = holds.collect();
            let takes = self.local.takes_of(replicated, owed.session);
            let takes = takes.iter().map(|take| self.as_in_hand(replicated, take));
            let takes: Vec<InHand> = takes.collect();
            match owed.to == self.own {
                true => self.has(owed.to, owed.session, Vec::new(), &[]),
                false => self.send(
                    owed.to,
                    Frame::Has {
                        session: owed.session,
                        home: owed.home,
                        holds,
                        takes,
                        at: replicated.index(),
                    },
                ),
            }
        }
        let done = self.resuming.iter();
        let done = done.filter(|(_, resuming)| resuming.begun && resuming.missing.is_empty());
        let done: Vec<SessionId> = done.map(|(session, _)| *session).collect();
        for session in done {
            any = true;
            self.answer_resume(replicated, session, out);
        }
        any
    }

    fn answer_resume(&mut self, replicated: &Replicated, session: SessionId, out: &mut Out) {
        let Some(resuming) = self.resuming.remove(&session) else {
            return;
        };
        self.sort_reserved(replicated, session, |gate, fence| {
            let mut claims = resuming.claims.iter();
            claims.any(|claim| (&claim.gate, claim.fence) == (gate, fence))
        });
        let here = self.local.holds_of(session);
        let elsewhere = self.table.holds_of(session).cloned();
        let holds: Vec<HoldCopy> = here.into_iter().chain(elsewhere).collect();
        let end = |claim: &HoldCopy| {
            let same = |hold: &HoldCopy| (&hold.gate, hold.fence) == (&claim.gate, claim.fence);
            match holds.iter().any(same) {
                true => ClaimEnd::Held,
                false => ClaimEnd::Lost,
            }
        };
        let mut claims: Vec<ClaimEnd> = resuming.claims.iter().map(end).collect();
        for (at, end) in resuming.settled {
            claims.insert(at, end);
        }
        let resumed = Resumed {
            claims,
            holds: holds
                .iter()
                .map(|hold| (hold.gate.clone(), hold.fence))
                .collect(),
        };
        out.tells.push(Tell::Answered {
            session,
            ticket: resuming.ticket,
            answer: Ok(Answer::Resumed(resumed)),
        });
    }

    /// The log has ended a session.
    pub(super) fn session_closed(&mut self, session: SessionId, out: &mut Out) {
        if self.table.hosts(session) {
            out.tells.push(Tell::Closed { session });
        }
        self.table.forget(session);
        self.end_resume(session, stale("the session has ended"), out);
        self.openings.ended(session);
        self.forget_parked_of(session);
        self.guests.retain(|_, guest| guest.session != session);
        self.local.dismiss(session, &mut self.events);
    }
}

fn resumed_with(session: SessionId, home: Index, said: Said) -> Change {
    let Said { serial, slots } = said;
    Change::ResumeSession {
        session,
        home,
        serial,
        slots,
    }
}

fn stale(why: &str) -> Refusal {
    Refusal::new(Word::Stale, why)
}

/// A claim as a hold, if it can be valid.
fn claimed(
    now: u64,
    replicated: &Replicated,
    session: SessionId,
    claim: &Claim<'_>,
) -> Result<HoldCopy, Refusal> {
    check_reason(claim.reason)?;
    let gate = name_asked(claim.gate, claim.ask)?;
    let implicit = Definition::implicit(claim.ask);
    let created = replicated.gate(&gate);
    let known = created.or(implicit.as_ref());
    let known = known.ok_or_else(|| no_gate(&gate))?;
    Ok(HoldCopy {
        session,
        mode: known.mode(&gate, created.is_none(), claim.ask)?,
        gate,
        fence: claim.fence,
        until: claim.until,
        proven: claim.proven,
        reserved: false,
        since: claim.since.unwrap_or(now),
        reason: claim.reason.map(Box::from),
    })
}
