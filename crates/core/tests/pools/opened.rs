//! Opened sessions in the random runs: they take slots, resume here and there with what they have, give it back wherever they
//! are, and end. One of them lies.

use testigo_core::pool::{Many, PoolAnswer, PoolTake, SlotClaim};
use testigo_core::{Change, Fence, Index, SessionId, Start};

use crate::{POOL, World, name};

const OPENED_MAX: usize = 4;

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
}

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
        let seated = match self.opened[which].seat {
            Seat::At(at, _) => Some(at),
            _ => None,
        };
        match (self.chance.below(20), seated) {
            (0..8, Some(at)) if !self.opened[which].lies => self.take_opened(which, at),
            (8..12, Some(at)) => self.give_opened(which, at),
            (12..19, _) => self.resume_opened(which),
            (19, _) => self.close_opened(which),
            _ => {}
        }
    }

    /// Clients hear what has become of their sessions.
    fn look_around(&mut self) {
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
                Seat::At(at, start) if nodes[at].start != start => Seat::None,
                Seat::Resuming(at, start, _) if nodes[at].start != start => Seat::None,
                Seat::Resuming(at, start, from) => match known(at) {
                    Some(home) if home.index == from => opened.seat,
                    Some(home) if (home.node, home.start) == (nodes[at].id, start) => {
                        Seat::At(at, start)
                    }
                    _ => Seat::None,
                },
                seat => seat,
            };
            true
        });
    }

    fn acts(&self, at: usize) -> bool {
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
            ttl_ms: 60_000,
            label: None,
            user: None,
        });
        self.opened.push(Opened {
            session,
            seat: Seat::Opening(at, node.start),
            past: Vec::new(),
            lies: self.chance.one_in(4),
            silent: self.chance.one_in(3),
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
        let honest = self.belief(session);
        let mut said = honest.clone();
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
        let claim = |(slot, fence): &(String, Fence)| (name(), slot.parse().unwrap(), *fence);
        let claims: Vec<SlotClaim> = said.iter().map(claim).collect();
        let node = &mut self.nodes[at];
        let (new, wrong) = node.desk.sort_claims(session, &claims, &node.replicated);
        for (slot, fence) in &honest {
            let wrong = wrong.contains(&claim(&(slot.clone(), *fence)));
            assert!(!wrong, "{session} has {slot}");
        }
        let from = home.index;
        // Whoever says nothing of its slots keeps all of them.
        let silent = self.opened[which].silent && self.chance.one_in(2);
        let moves = match silent {
            true => Change::MoveSession {
                session,
                home: from,
            },
            false => {
                node.desk.keep_only(session, &claims, &node.replicated);
                Change::MoveWithSlots {
                    session,
                    home: from,
                    claims: new,
                }
            }
        };
        // What the desk says to the log comes before.
        self.pass_on(at);
        let node = &mut self.nodes[at];
        node.under_way.push(moves);
        self.opened[which].seat = Seat::Resuming(at, node.start, from);
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
