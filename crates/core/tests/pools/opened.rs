//! Opened sessions in the random runs: they take slots, resume here and there with what they have, give it back wherever they
//! are, and end. One of them lies.

use std::collections::BTreeSet;

use testigo_core::pool::{Many, NamedSlot, PoolAnswer, PoolTake};
use testigo_core::{Change, Fence, Index, SessionId, Start};

use crate::{Broken, POOL, World, name};

const OPENED_MAX: usize = 4;
/// How long a session may be silent, in steps of a run.
pub(crate) const TTL_MS: u64 = 100;
/// How long its client believes a node's answer.
const CERTAIN_MS: u64 = TTL_MS / 10 * 9;

/// A session of a client that claims what it has, and now and then what it has given back.
pub(crate) struct Opened {
    session: SessionId,
    seat: Seat,
    /// What it had before.
    past: Vec<(String, Fence)>,
    /// It never has a slot, and claims any.
    lies: bool,
    /// It moves without a word of its slots now and then, so it may be asked for one that it gives.
    silent: bool,
    /// The slots that the node of its connection owns: nobody else can give them away.
    here: BTreeSet<(String, Fence)>,
    /// How many resumes its client has sent.
    serial: u64,
    /// What the last one said.
    sent: (Option<u64>, Option<Vec<NamedSlot>>),
    /// Resumes over connections that the client gave up before they were read.
    late: Vec<Late>,
    /// It has ended, and its client does not know: it believes the node of its connection, which is cut off.
    ended: bool,
    /// When its client has lost everything at the latest.
    told_by: Option<u64>,
}

/// A resume that is read late, if its node has not been started again since.
type Late = (usize, Start, Option<u64>, Vec<NamedSlot>);

/// Where its connection is.
#[derive(Clone, Copy, PartialEq)]
enum Seat {
    Opening(usize, Start),
    At(usize, Start),
    Resuming(usize, Start, Index),
    /// It has lost it.
    None,
}

impl World {
    pub(crate) fn step_opened(&mut self) {
        self.look_around();
        if self.opened.len() < OPENED_MAX && self.chance.one_in(4) {
            return self.open_one();
        }
        if self.opened.is_empty() {
            return;
        }
        let which = self.chance.below(self.opened.len() as u64) as usize;
        let session = self.opened[which].session;
        let seated = match self.opened[which].seat {
            Seat::At(at, start) => Some((at, start)),
            _ => None,
        };
        let seated = seated.filter(|(at, start)| {
            let node = &self.nodes[*at];
            node.start == *start && node.replicated.session(session).is_some()
        });
        let seated = seated.map(|(at, _)| at);
        if self.opened[which].ended && seated.is_none() {
            return self.crash_early(which);
        }
        match (self.chance.below(24), seated) {
            (0..8, Some(at)) if !self.opened[which].lies => self.take_opened(which, at),
            (8..12, Some(at)) => self.give_opened(which, at),
            _ if self.opened[which].ended => {}
            (12..19, _) => self.resume_opened(which),
            (19, _) => self.close_opened(which),
            (20..22, _) => self.judge_opened(which),
            (22.., _) => self.read_late(which),
            _ => {}
        }
    }

    /// A node has read that a session ended, and its process crashes before the client knows.
    fn crash_early(&mut self, which: usize) {
        if let Seat::At(at, _) = self.opened[which].seat
            && !self.nodes[at].cut
            && self.chance.one_in(3)
        {
            while self.nodes[at].applied < self.log.entries.len() {
                self.apply(at);
            }
            self.restart(at);
            self.let_in(at);
        }
    }

    /// What is due now, is done.
    pub(crate) fn pass_time(&mut self) {
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            node.desk.expire(self.now, &node.replicated);
            self.pass_on(at);
        }
        for which in (0..self.opened.len()).rev() {
            let opened = &mut self.opened[which];
            let Seat::At(at, start) = opened.seat else {
                continue;
            };
            let node = &self.nodes[at];
            let known = node.start == start && node.replicated.session(opened.session).is_some();
            if opened.ended && !known {
                // Its client hears of it soon, or it does not, and does not believe any longer what it heard before.
                let due = *opened.told_by.get_or_insert(self.now + CERTAIN_MS);
                if self.now >= due || self.chance.one_in(40) {
                    self.lose_opened(which);
                }
            }
        }
    }

    fn lose_opened(&mut self, which: usize) {
        let session = self.opened.remove(which).session;
        self.clients.held.retain(|_, held| held.0 != session);
    }

    /// The majority ends a session whose home is not in the view. Its client has heard of nobody who may speak for it, for
    /// as long as it may be silent.
    fn judge_opened(&mut self, which: usize) {
        let (session, head) = (self.opened[which].session, &self.log.head);
        let Some(home) = head.session(session).map(|known| known.home) else {
            return;
        };
        if head.view().has(home.node, home.start) {
            return;
        }
        let close = Change::CloseSession {
            session,
            home: home.index,
        };
        self.log.append(None, close);
        let opened = &mut self.opened[which];
        let answered = match opened.seat {
            Seat::At(at, start) => self.nodes[at].start == start,
            _ => false,
        };
        if !answered {
            return self.lose_opened(which);
        }
        opened.ended = true;
        if self.broken != Some(Broken::AnyAnswerKeeps) {
            self.clients.held.retain(|slot, held| {
                held.0 != session || opened.here.contains(&(slot.clone(), held.1))
            });
        }
    }

    /// A node reads a resume of a connection that its client has given up.
    fn read_late(&mut self, which: usize) {
        let opened = &mut self.opened[which];
        let Some((at, start, serial, slots)) = opened.late.pop() else {
            return;
        };
        let session = opened.session;
        let node = &mut self.nodes[at];
        let home = node.replicated.session(session).map(|known| known.home);
        if let Some(home) = home.filter(|_| node.start == start) {
            node.under_way.push(Change::ResumeSession {
                session,
                home: home.index,
                serial,
                slots: Some(slots),
            });
        }
    }

    /// Clients hear what has become of their sessions.
    fn look_around(&mut self) {
        let mut again_at = Vec::new();
        let (nodes, head) = (&self.nodes, &self.log.head);
        self.opened.retain_mut(|opened| {
            let session = opened.session;
            let known = |at: usize| {
                nodes[at]
                    .replicated
                    .session(session)
                    .map(|known| known.home)
            };
            opened.seat = match opened.seat {
                Seat::Opening(at, start) if nodes[at].start != start => {
                    opened.seat = Seat::None;
                    return head.session(session).is_some();
                }
                Seat::Opening(at, start) if known(at).is_some() => Seat::At(at, start),
                seat if opened.ended => seat,
                Seat::At(at, start) if nodes[at].start != start => Seat::None,
                // It was resumed elsewhere, by a resume that came late.
                Seat::At(at, _) if known(at).is_none_or(|home| home.node != nodes[at].id) => {
                    Seat::None
                }
                Seat::Resuming(at, start, _) if nodes[at].start != start => Seat::None,
                Seat::Resuming(at, start, from) => match known(at) {
                    Some(home) if home.index == from => opened.seat,
                    // An earlier one was carried out: this one must be, too, as a node does.
                    Some(home)
                        if (home.node, home.start) == (nodes[at].id, start)
                            && nodes[at].replicated.serial(session) < opened.sent.0 =>
                    {
                        let (serial, slots) = opened.sent.clone();
                        let again = Change::ResumeSession {
                            session,
                            home: home.index,
                            serial,
                            slots,
                        };
                        again_at.push((at, again));
                        Seat::Resuming(at, start, home.index)
                    }
                    Some(home) if (home.node, home.start) == (nodes[at].id, start) => {
                        // As the node answers.
                        let own = nodes[at].desk.held_by(session, &nodes[at].replicated);
                        let own = own.into_iter().map(|(_, slot, fence)| (slot, fence));
                        opened.here = own.collect();
                        Seat::At(at, start)
                    }
                    _ => Seat::None,
                },
                seat => seat,
            };
            true
        });
        for (at, again) in again_at {
            self.nodes[at].under_way.push(again);
        }
    }

    pub(crate) fn acts(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        !node.cut && node.replicated.view().has(node.id, node.start)
    }

    fn open_one(&mut self) {
        let at = self.chance.below(3) as usize;
        if !self.acts(at) {
            return;
        }
        let session = SessionId::opened(1 + self.chance.below(1 << 40));
        let node = &mut self.nodes[at];
        node.under_way.push(Change::OpenSession {
            session,
            ttl_ms: TTL_MS,
            label: None,
            user: None,
        });
        self.opened.push(Opened {
            session,
            seat: Seat::Opening(at, node.start),
            past: Vec::new(),
            lies: self.chance.one_in(4),
            silent: self.chance.one_in(3),
            here: BTreeSet::new(),
            serial: 0,
            sent: (None, None),
            late: Vec::new(),
            ended: false,
            told_by: None,
        });
    }

    fn take_opened(&mut self, which: usize, at: usize) {
        let (session, node) = (self.opened[which].session, &mut self.nodes[at]);
        let take = PoolTake {
            pool: POOL,
            many: Many::UpTo(2),
            label: None,
            wait_ms: None,
        };
        let taken = node.desk.take(self.now, &node.replicated, session, take);
        if let Ok(PoolAnswer::Taken(taken)) = taken {
            self.clients.took(node.id, session, None, &taken);
            let past = taken.iter().map(|taken| (taken.slot.clone(), taken.fence));
            let past: Vec<(String, Fence)> = past.collect();
            self.opened[which].here.extend(past.iter().cloned());
            self.opened[which].past.extend(past);
        }
        self.pass_on(at);
    }

    /// What a session has, as far as it knows.
    fn belief(&self, session: SessionId) -> Vec<(String, Fence)> {
        let held = self.clients.held.iter();
        let held = held.filter(|(_, held)| held.0 == session);
        held.map(|(slot, held)| (slot.clone(), held.1)).collect()
    }

    fn give_opened(&mut self, which: usize, at: usize) {
        let session = self.opened[which].session;
        let held = self.belief(session);
        if held.is_empty() {
            return;
        }
        let (slot, _) = &held[self.chance.below(held.len() as u64) as usize];
        let node = &mut self.nodes[at];
        let given = node
            .desk
            .give(self.now, &node.replicated, session, POOL, &[slot]);
        let change = match given {
            Ok(change) => change,
            Err(_) if self.opened[which].silent => return,
            Err(refusal) => panic!("{session} has {slot}: {refusal}"),
        };
        node.under_way.extend(change);
        self.clients.held.remove(slot);
        self.pass_on(at);
    }

    /// As a node does: the log hears of the claims with the move.
    fn resume_opened(&mut self, which: usize) {
        let at = self.chance.below(3) as usize;
        let session = self.opened[which].session;
        let Some(home) = self.nodes[at]
            .replicated
            .session(session)
            .map(|known| known.home)
        else {
            return;
        };
        if !self.acts(at) {
            return;
        }
        let mut said = self.belief(session);
        if self.opened[which].lies {
            let last: Vec<(String, Fence)> = self.clients.last.clone().into_iter().collect();
            let any = last.get(self.chance.below(last.len() as u64) as usize);
            let beyond = self.chance.below(3);
            said.extend(any.map(|(slot, fence)| (slot.clone(), Fence(fence.0 + beyond))));
        } else if self.chance.one_in(4) {
            // It has not heard that it was given back.
            let past = &self.opened[which].past;
            let any = past.get(self.chance.below(past.len() as u64) as usize);
            let any = any.filter(|(slot, _)| said.iter().all(|(known, _)| known != slot));
            said.extend(any.cloned());
        }
        let slots = said.into_iter();
        let slots: Vec<NamedSlot> = slots.map(|(slot, fence)| (name(), slot, fence)).collect();
        let opened = &mut self.opened[which];
        opened.serial += 1;
        let serial = (self.broken != Some(Broken::Unnumbered)).then_some(opened.serial);
        let start = self.nodes[at].start;
        if self.chance.one_in(8) && !opened.silent {
            // It is not read before the client gives up and tries again. The connection before was closed already.
            opened.late.push((at, start, serial, slots));
            opened.seat = Seat::None;
            return;
        }
        // Whoever says nothing of its slots keeps all of them.
        let silent = opened.silent && self.chance.one_in(2);
        let from = home.index;
        let slots = (!silent).then_some(slots);
        opened.sent = (serial, slots.clone());
        self.nodes[at].under_way.push(Change::ResumeSession {
            session,
            home: from,
            serial,
            slots,
        });
        opened.seat = Seat::Resuming(at, start, from);
    }

    /// Its client uses nothing any more, or was silent for too long.
    fn close_opened(&mut self, which: usize) {
        let at = self.chance.below(3) as usize;
        let session = self.opened[which].session;
        let Some(home) = self.nodes[at]
            .replicated
            .session(session)
            .map(|known| known.home)
        else {
            return;
        };
        self.clients.held.retain(|_, held| held.0 != session);
        let home = home.index;
        let node = &mut self.nodes[at];
        if let Seat::At(seat, _) = self.opened[which].seat
            && seat == at
        {
            node.desk.end(session, &node.replicated);
        }
        node.under_way.push(Change::CloseSession { session, home });
        self.opened.remove(which);
        self.pass_on(at);
    }

    /// All of them end, with those whose ends were lost.
    pub(crate) fn close_all(&mut self) {
        self.opened.clear();
        self.clients.held.retain(|_, held| held.0.is_implicit());
        let sessions = self.log.head.sessions();
        let close = sessions.map(|(session, known)| Change::CloseSession {
            session,
            home: known.home.index,
        });
        let close: Vec<Change> = close.collect();
        self.nodes[0].under_way.extend(close);
        self.settle();
    }
}
