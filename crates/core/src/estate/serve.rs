//! The owner's side: frames from homes, and from other owners.

use super::elections::forget_earlier;
use super::frame::{Ask, BranchWord, Frame};
use super::{Broken, Estate, Guest, Out, Peer};
use crate::command::{Answer, Command, Settled};
use crate::error::Refusal;
use crate::name::Name;
use crate::ownership::{Index, Number, Shard};
use crate::replicated::Replicated;
use crate::session::SessionId;

/// How the entry that a frame names compares with the log applied here.
pub(super) enum Time {
    /// The log has a later entry.
    Past,
    Present,
    /// The log here has not come that far.
    Future,
}

impl Estate {
    /// Whether a frame is about an entry that the log here has not reached.
    pub(super) fn is_early(&self, replicated: &Replicated, frame: &Frame) -> bool {
        matches!(self.time_of(replicated, frame), Time::Future)
    }

    /// Takes a frame off a link: it is carried out, or dropped because the log has overtaken it.
    pub(super) fn take_frame(
        &mut self,
        replicated: &Replicated,
        from: Peer,
        frame: Frame,
        out: &mut Out,
    ) {
        self.settle_up(replicated, out);
        if matches!(self.time_of(replicated, &frame), Time::Past) {
            return;
        }
        match frame {
            Frame::Ask(ask) => self.serve(replicated, from, ask, out),
            Frame::Cancel { ask, gate, .. } => self.cancel_guest(replicated, from, ask, &gate),
            Frame::Answer {
                ask,
                gate,
                session,
                answer,
                ..
            } => match self.table.ask(ask).is_some() {
                true => self.finish(replicated, ask, answer, out),
                false => self.give_back(replicated, from, session, &gate, &answer),
            },
            Frame::Tell {
                session,
                gate,
                fence,
                word,
                ..
            } => self.told(replicated, session, gate, fence, word, out),
            Frame::Report {
                entry,
                holds,
                takes,
            } => self.reported(replicated, from, entry, holds, &takes),
            Frame::Claims {
                session,
                home,
                claims,
            } => self.claimed(from, session, home, claims),
            Frame::Has {
                session,
                holds,
                takes,
                ..
            } => self.has(from, session, holds, &takes),
            Frame::Took { take, .. } => self.hear_of_take(from, take),
            Frame::Laid { session, taken } => {
                self.table.strike_take(session, taken);
            }
            Frame::Return { session, taken, .. } => self.returned(replicated, session, taken),
            Frame::Kept {
                session,
                gate,
                fence,
                ..
            } => self.local.set_reserved(session, &gate, fence, false),
            Frame::Look(look) => self.looked_at(replicated, from, &look),
            Frame::Seen(seen) => self.saw(replicated, from, seen, out),
            Frame::Branch {
                gate, last, word, ..
            } => self.hear_branch(replicated, from, &gate, last, word, out),
            Frame::Renew { shard, .. } => self.renew(replicated, shard),
            Frame::Ended { session } => {
                self.openings.ended(session);
                self.forget_parked_of(session);
                self.guests.retain(|_, guest| guest.session != session);
                self.local.dismiss(session, &mut self.events);
            }
        }
    }

    fn time_of(&self, replicated: &Replicated, frame: &Frame) -> Time {
        let (gate, session) = match frame {
            Frame::Ask(ask) => (Some((&ask.gate, ask.number)), Some((ask.session, ask.home))),
            Frame::Cancel { gate, number, .. } => (Some((gate, *number)), None),
            Frame::Answer {
                gate,
                number,
                session,
                home,
                ..
            }
            | Frame::Tell {
                gate,
                number,
                session,
                home,
                ..
            }
            | Frame::Kept {
                gate,
                number,
                session,
                home,
                ..
            } => (Some((gate, *number)), Some((*session, *home))),
            Frame::Has { at, .. } if *at > replicated.index() => {
                // The shard's present owner must be asked first.
                return Time::Future;
            }
            Frame::Claims { session, home, .. } | Frame::Has { session, home, .. } => {
                (None, Some((*session, *home)))
            }
            Frame::Report { entry, .. } => {
                return match *entry <= replicated.index() {
                    true => Time::Present,
                    false => Time::Future,
                };
            }
            Frame::Took { take, number } => {
                // Nothing is handed out under a title before this node has reported to it. A number that is not known here
                // yet was lifted under the same title, and the reply behind this frame does not wait.
                let known = replicated.ownership().number(take.shard).min(*number);
                let session = (take.session, take.home);
                return self.time_of_take(replicated, (take.shard, known), session);
            }
            Frame::Return {
                session,
                home,
                shard,
                number,
                ..
            } => return self.time_of_take(replicated, (*shard, *number), (*session, *home)),
            Frame::Branch {
                gate, since, word, ..
            } => return self.time_of_branch(replicated, gate, *since, word),
            Frame::Renew { shard, since } => return self.time_of_title(replicated, *shard, *since),
            Frame::Ended { .. } | Frame::Laid { .. } | Frame::Look(_) | Frame::Seen(_) => {
                return Time::Present;
            }
        };
        let gate = gate.filter(|_| {
            !(self.breaks(Broken::GrantOnItsWay) && matches!(frame, Frame::Answer { .. }))
        });
        let gate = gate.map_or(Time::Present, |(gate, number)| {
            self.time_of_number(replicated, Shard::of(gate), number)
        });
        let session =
            session.filter(|(session, _)| !session.is_implicit() && !self.breaks(Broken::OldHome));
        let session = session.map_or(Time::Present, |(session, home)| {
            self.time_of_home(replicated, session, home)
        });
        of_both(gate, session)
    }

    pub(super) fn time_of_take(
        &self,
        replicated: &Replicated,
        (shard, number): (Shard, Number),
        (session, home): (SessionId, Index),
    ) -> Time {
        let session = match session.is_implicit() {
            true => Time::Present,
            false => self.time_of_home(replicated, session, home),
        };
        of_both(self.time_of_number(replicated, shard, number), session)
    }

    fn time_of_number(&self, replicated: &Replicated, shard: Shard, number: Number) -> Time {
        match replicated.ownership().title(shard) {
            Some(title) if number > title.number => Time::Future,
            Some(title) if number >= title.since => Time::Present,
            Some(_) => Time::Past,
            None => Time::Future,
        }
    }

    /// The same for a frame about a title.
    fn time_of_title(&self, replicated: &Replicated, shard: Shard, since: Number) -> Time {
        match replicated.ownership().title(shard) {
            Some(title) if since == title.since => Time::Present,
            Some(title) if since < title.since => Time::Past,
            _ => Time::Future,
        }
    }

    /// The same for a frame about an instance, which waits until the instance has begun here.
    fn time_of_branch(
        &self,
        replicated: &Replicated,
        gate: &Name,
        since: Number,
        word: &BranchWord,
    ) -> Time {
        let begins = matches!(word, BranchWord::Begin { .. });
        let ready = match begins {
            true => self.is_spread(replicated, gate),
            false => self.has_begun(gate),
        };
        match self.time_of_title(replicated, Shard::of(gate), since) {
            Time::Present if !ready && self.breaks(Broken::EarlyToken) => Time::Past,
            Time::Present if !ready => Time::Future,
            time => time,
        }
    }

    fn time_of_home(&self, replicated: &Replicated, session: SessionId, home: Index) -> Time {
        match replicated.session(session) {
            Some(record) if record.home.index == home => Time::Present,
            Some(record) if record.home.index > home => Time::Past,
            _ if home > replicated.index() => Time::Future,
            // The instance has ended.
            _ => Time::Past,
        }
    }

    /// An ask of a home: carried out now, or when the shard opens. Releases are always taken: a claim behind one on the link
    /// may be what opens the shard.
    pub(super) fn serve(&mut self, replicated: &Replicated, home: Peer, ask: Ask, out: &mut Out) {
        let shard = Shard::of(&ask.gate);
        if self.owner_of(replicated, &ask.gate) != Ok(self.own) {
            return;
        }
        let enters = matches!(ask.command.command(), Command::Lock(_));
        if enters && self.is_spread(replicated, &ask.gate) {
            // By now its home has learned that it is to wait there.
            return;
        }
        let since = self.now.saturating_sub(ask.age_ms);
        let parks = enters && self.is_reserved(&ask.gate);
        let reserved = self.reserved.get_mut(&ask.gate).filter(|_| parks);
        match (self.openings.of_shard(shard), reserved) {
            (Some(opening), _) if enters => {
                forget_earlier(&mut opening.asks, home, &ask);
                opening.asks.push((since, home, ask));
            }
            (_, Some(reserved)) => reserved.asks.push((since, home, ask)),
            _ => self.carry_out(replicated, since, home, ask, out),
        }
    }

    /// Carries an ask out in the books. If it has to wait, it has waited since it was made.
    pub(super) fn carry_out(
        &mut self,
        replicated: &Replicated,
        since: u64,
        home: Peer,
        ask: Ask,
        out: &mut Out,
    ) {
        let Ask {
            ask,
            session,
            gate,
            command,
            reserved,
            ..
        } = ask;
        if home == self.own {
            // It may have been cancelled meanwhile.
            if self.table.ask(ask).is_none() {
                return;
            }
        } else if matches!(command.command(), Command::Lock(_)) {
            self.local.admit_guest(session);
        }
        let answer = self.local.apply(
            self.now,
            replicated,
            session,
            &command.command(),
            &mut self.events,
        );
        if let Ok(Answer::Waiting(ticket)) = answer {
            self.local.waits_since(session, ticket, since);
        }
        match (answer, home == self.own) {
            (Ok(Answer::Waiting(ticket)), true) => self.table.set_ticket(ask, Some(ticket)),
            (answer, true) => self.finish(replicated, ask, answer, out),
            (Ok(Answer::Waiting(ticket)), false) => {
                let guest = Guest {
                    home,
                    ask,
                    session,
                    gate,
                    reserved,
                };
                self.guests.insert(ticket, guest);
            }
            (answer, false) => {
                let guest = Guest {
                    home,
                    ask,
                    session,
                    gate,
                    reserved,
                };
                self.answer_guest(replicated, guest, answer);
            }
        }
    }

    pub(super) fn answer_guest(
        &mut self,
        replicated: &Replicated,
        guest: Guest,
        answer: Result<Answer, Refusal>,
    ) {
        let Guest {
            home,
            ask,
            session,
            gate,
            reserved,
        } = guest;
        if let Ok(Answer::Settled(Settled::Entered(grant))) = &answer {
            self.used(Shard::of(&gate), home);
            if reserved {
                self.local.set_reserved(session, &gate, grant.fence, true);
            }
        }
        let frame = Frame::Answer {
            ask,
            number: replicated.ownership().number(Shard::of(&gate)),
            gate,
            session,
            home: self.home_index(replicated, session),
            answer,
        };
        self.send(home, frame);
    }

    /// A home no longer wants an ask's answer. If the ask was granted, the home gives the grant back when it hears of it.
    fn cancel_guest(&mut self, replicated: &Replicated, home: Peer, ask: u64, gate: &str) {
        if let Some(opening) = self.openings.of_shard(Shard::of(gate)) {
            let other = |(_, of, asked): &(u64, Peer, Ask)| (*of, asked.ask) != (home, ask);
            opening.asks.retain(other);
        }
        self.forget_parked(|of, asked| (of, asked.ask) == (home, ask));
        let mut guests = self.guests.iter();
        let found = guests.find(|(_, guest)| (guest.home, guest.ask) == (home, ask));
        let Some((ticket, session)) = found.map(|(ticket, guest)| (*ticket, guest.session)) else {
            return;
        };
        self.guests.remove(&ticket);
        let cancel = Command::Cancel { ticket };
        let mut told = Vec::new();
        let _ = self
            .local
            .apply(self.now, replicated, session, &cancel, &mut told);
        told.retain(|event| !matches!(event, crate::event::Event::Settled { ticket: other, .. } if *other == ticket));
        self.events.extend(told);
    }
}

/// The same for a frame about two things.
fn of_both(one: Time, other: Time) -> Time {
    match (one, other) {
        (Time::Past, _) | (_, Time::Past) => Time::Past,
        (Time::Future, _) | (_, Time::Future) => Time::Future,
        _ => Time::Present,
    }
}
