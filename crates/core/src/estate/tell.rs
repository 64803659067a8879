//! Passes on what the books report: to clients here, and to the homes of other sessions.

use super::frame::{Frame, TellWord};
use super::{Estate, Out, Tell};
use crate::command::{Answer, Command, Settled, Taken};
use crate::event::{Event, Loss};
use crate::fence::Fence;
use crate::name::Name;
use crate::ownership::{Shard, Span};
use crate::replicated::{Change, Replicated};
use crate::session::SessionId;
use crate::wait::Ticket;

impl Estate {
    /// Passes on what the books reported, to clients here and to the homes of other sessions.
    pub(super) fn pass_on(&mut self, replicated: &Replicated, out: &mut Out) {
        while !self.events.is_empty() {
            for event in std::mem::take(&mut self.events) {
                self.pass_on_one(replicated, event, out);
            }
        }
        for laid in self.local.take_laid() {
            if let Some(home) = self.home(replicated, laid.session) {
                let (session, job, attempt) = (laid.session, laid.job, laid.attempt);
                let taken = Taken { job, attempt };
                self.send(home, Frame::Laid { session, taken });
            }
        }
    }

    fn pass_on_one(&mut self, replicated: &Replicated, event: Event, out: &mut Out) {
        match event {
            Event::Settled {
                session,
                ticket,
                settled,
            } => self.settled(replicated, session, ticket, settled, out),
            Event::Wanted {
                session,
                gate,
                fence,
            } => self.tell(replicated, session, gate, fence, TellWord::Wanted, out),
            Event::Lost {
                session,
                gate,
                fence,
                loss,
            } => {
                let word = match loss {
                    Loss::Lease => TellWord::Expired,
                    Loss::Claim => TellWord::Overruled,
                };
                self.tell(replicated, session, gate, fence, word, out);
            }
            Event::RunOut { session } => {
                let home = self.home_index(replicated, session);
                let asked = false;
                // What it said while the node could not act was no sign of life.
                let believes = self.now < self.believed_until(replicated, session);
                out.changes.push(match believes {
                    true => Change::EndSession {
                        session,
                        home,
                        asked,
                    },
                    false => Change::CloseSession { session, home },
                });
            }
            Event::FencesLow { shard } if !self.owns(replicated, shard) => {
                self.renew(replicated, shard);
            }
            Event::FencesLow { shard } => {
                let span = Span::of(shard, replicated.ownership().number(shard));
                out.changes.push(Change::Titles {
                    shards: vec![span],
                    taker: self.own.0,
                    start: self.own.1,
                });
            }
            Event::Died { jobs } => {
                let jobs = self.lost(replicated, &jobs);
                out.tells.push(Tell::Died { jobs });
            }
            other => out.events.push(other),
        }
    }

    /// A wait in the books ended.
    fn settled(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        ticket: Ticket,
        settled: Settled,
        out: &mut Out,
    ) {
        if let Some(guest) = self.guests.remove(&ticket) {
            let answer = Ok(Answer::Settled(settled));
            return self.answer_guest(replicated, guest, answer);
        }
        if let Some(home) = self.takers.remove(&ticket) {
            return self.take_settled(replicated, home, (session, ticket), settled, out);
        }
        if let Some(ask) = self.table.of_ticket(ticket) {
            return self.finish(replicated, ask, Ok(Answer::Settled(settled)), out);
        }
        // Nobody waits for it any more: it was granted just as it was cancelled.
        let fences = match settled {
            Settled::Entered(grant) => vec![grant.fence],
            Settled::EnteredAll(grants) => grants.iter().map(|grant| grant.fence).collect(),
            Settled::Taken(_) | Settled::Ended(_) => return,
        };
        if !self.table.hosts(session) {
            return;
        }
        let holds = self.local.holds_of(session).into_iter();
        for hold in holds.filter(|hold| fences.contains(&hold.fence)) {
            let command = Command::Unlock {
                gate: &hold.gate,
                fence: Some(hold.fence),
            };
            let events = &mut self.events;
            // If the hold is over already, there is nothing to give back.
            let _ = (self.local).apply(self.now, replicated, session, &command, events);
        }
    }

    /// Tells a holder something, directly or through its home.
    fn tell(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        gate: Name,
        fence: Fence,
        word: TellWord,
        out: &mut Out,
    ) {
        let Some(home) = self.home(replicated, session) else {
            return;
        };
        if home == self.own {
            return self.told(replicated, session, gate, fence, word, out);
        }
        let frame = Frame::Tell {
            session,
            home: self.home_index(replicated, session),
            number: replicated.ownership().number(Shard::of(&gate)),
            gate,
            fence,
            word,
        };
        self.send(home, frame);
    }

    /// Tells a holder whose home this is.
    pub(super) fn told(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        gate: Name,
        fence: Fence,
        word: TellWord,
        out: &mut Out,
    ) {
        let loss = match word {
            TellWord::Wanted => {
                if self.reserved_is_wanted(session, &gate, fence) {
                    return;
                }
                out.tells.push(Tell::Wanted {
                    session,
                    gate,
                    fence,
                });
                return;
            }
            TellWord::Expired => Loss::Lease,
            TellWord::Overruled => Loss::Claim,
        };
        self.table.lose(session, &gate, fence);
        if self.reserved_is_lost(replicated, session, &gate, fence, out) {
            return;
        }
        out.tells.push(Tell::Lost {
            session,
            gate,
            fence,
            loss,
        });
    }
}
