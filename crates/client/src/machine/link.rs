//! The connection: how it comes up, breaks, and is tried again while the session lives, and what happens as time passes.

use std::time::{Duration, Instant};

use super::question::{Again, Of, Sent, What};
use super::{ANSWER_PATIENCE, CONNECT_PATIENCE, CallId, Effect, HoldId, Machine};
use crate::election::election_of;
use crate::pool::slot_of;
use crate::refusal::{NotDone, Word};
use crate::request::words;
use crate::standing::{HoldStanding, Loss, SessionStanding};
use crate::target::Credentials;

/// How far the connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none and nothing needs one.
    Idle,
    Connecting,
    /// Connected; the node has not greeted back, or has not resumed the session.
    Greeting,
    /// Ready for commands.
    Up,
    /// Broken; to be tried again at this time.
    Down {
        again_at: Instant,
    },
}

impl Machine {
    pub(super) fn connect(&mut self) {
        self.link = Link::Connecting;
        self.effects.push_back(Effect::Connect);
    }

    /// The connection that was requested is there.
    pub(crate) fn connected(&mut self, now: Instant) {
        self.tick(now);
        if self.link != Link::Connecting {
            self.effects.push_back(Effect::Disconnect);
            return;
        }
        self.link = Link::Greeting;
        let mut hello = words(["HELLO", "3"]);
        if let Some(Credentials { user, password }) = &self.credentials {
            hello.extend(words(["AUTH", user, password]));
        }
        if let Some(name) = &self.name {
            hello.extend(words(["SETNAME", name]));
        }
        self.send(now, &hello, Of::Greeting);
        if let Some((line, claims)) = self.resume_line(now) {
            self.send(now, &line, Of::Resume(claims));
        }
    }

    fn resume_line(&mut self, now: Instant) -> Option<(Vec<String>, Vec<HoldId>)> {
        let session = self.session.as_ref().filter(|s| s.over.is_none())?;
        // With its serial number the node can refuse a late resume, over a connection that was given up, which knows nothing
        // of what the session has got since.
        self.resumes += 1;
        let (id, serial) = (session.id.to_string(), self.resumes.to_string());
        let mut line = words(["SESSION", "RESUME", &id, "SERIAL", &serial]);
        let alive = self.holds.iter().filter(|(_, hold)| {
            let standing = &hold.standing;
            standing.over.is_none() && standing.until.is_none_or(|until| now < until)
        });
        let mut claims = Vec::new();
        let mut claimed = Vec::new();
        let (mut receipts, mut reasons) = (words(["RECEIPTS"]), words(["REASONS"]));
        let mut slots = Vec::new();
        for (id, hold) in alive {
            if let Some((pool, slot)) = slot_of(&hold.gate) {
                let fence = hold.standing.fence.to_string();
                slots.extend([pool.to_owned(), slot.to_owned(), fence]);
                continue;
            }
            claims.push(*id);
            let name = election_of(&hold.gate).unwrap_or(&hold.gate);
            claimed.extend([name.to_owned(), hold.standing.fence.to_string()]);
            hold.how.append_to(&mut claimed);
            receipts.push(hold.receipt.clone().unwrap_or_else(|| "-".into()));
            reasons.push(hold.reason.clone().unwrap_or_else(|| "-".into()));
        }
        if !claims.is_empty() {
            line.extend(words(["HOLDING", &claims.len().to_string()]));
            line.extend(claimed);
            line.extend(receipts);
            if reasons[1..].iter().any(|reason| reason != "-") {
                line.extend(reasons);
            }
        }
        // Without this list, even an empty one, the slots of the node that the session has left would stay unusable for
        // others after a crash.
        line.extend(words(["SLOTS", &(slots.len() / 3).to_string()]));
        line.extend(slots);
        Some((line, claims))
    }

    /// Greeted, and the session resumed: asks everything that is open, in order.
    pub(super) fn up(&mut self, now: Instant) {
        self.link = Link::Up;
        self.links += 1;
        self.failed = 0;
        self.backoff.reset();
        self.tell_session();
        for channel in self.channels.clone() {
            let asked = |what: &What| matches!(what, What::Line { line, .. } if line.get(1) == Some(&channel));
            if !self
                .questions
                .values()
                .any(|question| asked(&question.what))
            {
                self.send(now, &["SUBSCRIBE", &channel], Of::Nothing);
            }
        }
        let calls: Vec<CallId> = self.questions.keys().copied().collect();
        for call in calls {
            self.send_question(now, call);
        }
    }

    /// No node answers at the address.
    pub(crate) fn unreachable(&mut self, now: Instant, why: &str) {
        self.tick(now);
        if self.link == Link::Connecting {
            self.fail(now, why);
        }
    }

    /// The connection is gone.
    pub(crate) fn broken(&mut self, now: Instant, why: &str) {
        self.sent.clear();
        self.tickets.clear();
        self.transmit.clear();
        self.leaving = false;
        // Nobody can speak any more for slots that only this connection spoke for.
        if let Some(session) = &mut self.session {
            session.here = session.contact.clone();
        }
        let alive = self.session_lives();
        let mut unknown = Vec::new();
        for (call, question) in &mut self.questions {
            if question.sent {
                question.doubtful = true;
                match question.what.again(self.locks) {
                    Again::Always => {}
                    Again::InSession if alive => {}
                    Again::InSession | Again::Never => unknown.push(*call),
                }
            }
        }
        for call in unknown {
            self.answer(call, Err(NotDone::Unknown(why.to_owned())));
        }
        let was_up = self.link == Link::Up;
        self.link = Link::Idle;
        self.tick(now);
        match was_up {
            _ if !self.session_lives() && self.questions.is_empty() => {}
            true => self.connect(),
            false => self.fail(now, why),
        }
        self.tell_session();
    }

    /// An attempt to connect failed: the next node is tried at once. When all have failed, the next attempt comes after a
    /// pause; without a session there is none.
    fn fail(&mut self, now: Instant, why: &str) {
        self.failed += 1;
        if self.failed < self.nodes {
            self.connect();
            return;
        }
        self.failed = 0;
        if self.session_lives() {
            let again_at = now + self.backoff.pause();
            self.link = Link::Down { again_at };
        } else {
            self.link = Link::Idle;
            self.give_up(why);
        }
    }

    /// Ends everything that is open, because nobody will answer it.
    fn give_up(&mut self, why: &str) {
        let calls: Vec<(CallId, bool)> = self
            .questions
            .iter()
            .map(|(call, question)| (*call, question.sent))
            .collect();
        for (call, sent) in calls {
            match sent {
                true => self.answer(call, Err(NotDone::Unknown(why.to_owned()))),
                false => self.refuse(call, Word::Unavailable, why),
            }
        }
    }

    pub(super) fn session_lives(&self) -> bool {
        self.session.as_ref().is_some_and(|s| s.over.is_none())
    }

    /// Closes a connection that says what no node says, or nothing.
    pub(super) fn drop_connection(&mut self, now: Instant, why: &str) {
        self.effects.push_back(Effect::Disconnect);
        self.broken(now, why);
    }

    /// This node cannot serve now. If there are others, the connection goes to the next once everything that was sent here is
    /// answered; if not, the session is suspect until the node speaks for it again.
    pub(super) fn turn_away(&mut self, now: Instant) {
        if let Some(session) = &mut self.session {
            session.suspect = true;
        }
        self.tell_session();
        if self.nodes > 1 && !self.has_only_here() {
            self.leaving = true;
            self.leave_when_answered(now);
        }
    }

    pub(super) fn leave_when_answered(&mut self, now: Instant) {
        if self.leaving && self.sent.is_empty() && self.link == Link::Up {
            self.drop_connection(now, "the node cannot serve now");
        }
    }

    /// The session has ended. What it held is lost, and its waits have ended.
    pub(super) fn end_session(&mut self, now: Instant, loss: Loss) {
        let Some(session) = self.session.as_mut().filter(|s| s.over.is_none()) else {
            return;
        };
        session.over = Some(loss);
        let locks: Vec<(CallId, bool)> = self
            .questions
            .iter()
            .filter(|(_, question)| matches!(question.what, What::Lock { .. } | What::Take { .. }))
            .map(|(call, question)| (*call, question.sent))
            .collect();
        let why = match loss {
            Loss::Silence => "the node was silent for as long as the session may live",
            _ => "the session is over",
        };
        for (call, sent) in locks {
            match sent {
                true => self.answer(call, Err(NotDone::Unknown(why.to_owned()))),
                false => self.refuse(call, Word::Unavailable, why),
            }
        }
        match (self.link, loss) {
            // The node may still count on the session: tells it not to, so that others need not wait.
            (Link::Up, Loss::Silence) => self.send(now, &words(["SESSION", "CLOSE"]), Of::Nothing),
            (Link::Up | Link::Idle, _) => {}
            (Link::Connecting | Link::Greeting | Link::Down { .. }, _) => {
                if self.link == Link::Greeting {
                    self.effects.push_back(Effect::Disconnect);
                }
                self.sent.clear();
                self.transmit.clear();
                self.link = Link::Idle;
                self.give_up(why);
            }
        }
        self.tell_session();
    }

    /// Advances time. Deadlines come first: what arrives after a deadline changes nothing.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.session_end().is_some_and(|end| now >= end) {
            self.be_silent(now);
        }
        match self.link {
            Link::Down { again_at } if now >= again_at => self.connect(),
            Link::Up | Link::Greeting => {
                let oldest = self.sent.front().map(|sent| self.overdue(sent));
                if oldest.is_some_and(|overdue| now >= overdue) {
                    self.drop_connection(now, "no answer in time");
                    return;
                }
                if self.renew_at().is_some_and(|due| now >= due) {
                    self.send(now, &words(["PING"]), Of::Nothing);
                }
            }
            _ => {}
        }
    }

    /// When the session ends, or all of it except the slots that are `here`, if nothing more is heard.
    fn session_end(&self) -> Option<Instant> {
        let session = self.session.as_ref().filter(|s| s.over.is_none())?;
        Some(match session.only_here {
            true => session.here.deadline(),
            false => session.contact.deadline(),
        })
    }

    /// No node has spoken for the session in time. Slots owned by the connected node live on with it.
    fn be_silent(&mut self, now: Instant) {
        let any_here = self.any_here();
        let Some(session) = self.session.as_mut() else {
            return;
        };
        if !any_here || now >= session.here.deadline() {
            return self.end_session(now, Loss::Silence);
        }
        session.only_here = true;
        let others = self.holds.iter().filter(|(_, hold)| !hold.standing.here);
        let others: Vec<HoldId> = others.map(|(id, _)| *id).collect();
        for other in others {
            self.lose(other, Loss::Silence);
        }
    }

    fn any_here(&self) -> bool {
        let mut alive = self.alive();
        alive.any(|standing| standing.here)
    }

    /// Whether the session has slots of this node, and nothing that another node could speak for.
    fn has_only_here(&self) -> bool {
        let mut alive = self.alive();
        self.any_here() && self.questions.is_empty() && alive.all(|standing| standing.here)
    }

    fn alive(&self) -> impl Iterator<Item = &HoldStanding> {
        let standings = self.holds.values().map(|hold| &hold.standing);
        standings.filter(|standing| standing.over.is_none())
    }

    /// When the machine next needs to know the time, if nothing happens before.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let end = self.session_end();
        let next = match self.link {
            Link::Down { again_at } => Some(again_at),
            Link::Up | Link::Greeting => {
                let oldest = self.sent.front().map(|sent| self.overdue(sent));
                oldest.or(self.renew_at())
            }
            Link::Idle | Link::Connecting => None,
        };
        [end, next].into_iter().flatten().min()
    }

    /// When a sign of life is due: only if nothing under way will be one.
    fn renew_at(&self) -> Option<Instant> {
        let session = self.session.as_ref().filter(|s| s.over.is_none())?;
        let idle = self.sent.is_empty() && self.link == Link::Up;
        let contact = match self.any_here() {
            true => &session.here,
            false => &session.contact,
        };
        idle.then(|| contact.renew_at())
    }

    /// From when on an answer is too late.
    fn overdue(&self, sent: &Sent) -> Instant {
        let session = self.session.as_ref().filter(|s| s.over.is_none());
        sent.at
            + match (&sent.of, session) {
                // Any node that is there greets at once.
                (Of::Greeting, _) if self.nodes > 1 => self.connect_patience(),
                (Of::Resume(_), Some(session)) => session.contact.resume_patience(),
                _ => self.patience(),
            }
    }

    /// How long an attempt to connect, or a greeting, may take: if there are other nodes to try, no longer than an answer.
    pub(crate) fn connect_patience(&self) -> Duration {
        match self.nodes {
            1 => CONNECT_PATIENCE,
            _ => CONNECT_PATIENCE.min(self.patience()),
        }
    }

    /// How long an answer may take: short enough to reconnect and resume before the session's deadline.
    fn patience(&self) -> Duration {
        let session = self.session.as_ref().filter(|s| s.over.is_none());
        let bound = session.map(|session| session.contact.patience());
        bound.unwrap_or(ANSWER_PATIENCE).min(ANSWER_PATIENCE)
    }

    /// Reports the session's standing, if that has changed.
    pub(super) fn tell_session(&mut self) {
        let up = self.link == Link::Up;
        let Some(session) = &mut self.session else {
            return;
        };
        let standing = SessionStanding {
            connected: up && !session.suspect,
            deadline: session.contact.deadline(),
            here_deadline: session.here.deadline(),
            here_connected: up,
            links: self.links,
            over: session.over,
        };
        if standing != session.told {
            session.told = standing;
            self.effects.push_back(Effect::Session(standing));
        }
    }
}
