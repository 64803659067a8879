//! What the node says: answers, matched to the oldest command without one, and pushes, matched by ticket, gate or channel.

use std::time::{Duration, Instant};

use super::link::Link;
use super::question::{Of, Sent, What};
use super::{CallId, Effect, Entered, Hold, HoldId, Machine, Session};
use crate::contact::{Contact, certain};
use crate::election::release_line;
use crate::news::{Grant, News, Resumed};
use crate::pool::{inner_name, slot_of};
use crate::refusal::{NotDone, Refusal, Word};
use crate::request::{How, Mode};
use crate::standing::{HoldStanding, Loss, SessionStanding};
use crate::value::{Received, Value};

impl Machine {
    /// A frame has arrived.
    pub(crate) fn received(&mut self, now: Instant, received: Received) {
        self.tick(now);
        if !matches!(self.link, Link::Greeting | Link::Up) {
            return;
        }
        match received {
            Received::Push(values) => self.push(now, &values),
            Received::Answer(value) => match self.sent.pop_front() {
                Some(sent) => self.answered(now, sent, value),
                None => self.drop_connection(now, "the node answered what nobody asked"),
            },
        }
    }

    fn answered(&mut self, now: Instant, sent: Sent, value: Value) {
        let cannot_serve = matches!(&value, Value::Error(refusal) if refusal.cannot_serve());
        match sent.of {
            Of::Greeting => self.greeted(now, value),
            Of::Resume(claims) => self.resumed(now, sent.at, &claims, value),
            // A node that cannot serve does not speak for the session, which may have ended elsewhere.
            Of::Nothing if cannot_serve => {
                self.confirm_here(sent.at);
                self.turn_away(now);
            }
            Of::Nothing => self.confirm(sent.at),
            Of::Question(call) if cannot_serve => {
                self.confirm_here(sent.at);
                self.turned_away(now, sent.at, call, value);
            }
            Of::Question(call) => {
                let question = self.questions.get(&call);
                match question.is_none_or(|question| question.what.needs_no_majority()) {
                    true => self.confirm_here(sent.at),
                    false => self.confirm(sent.at),
                }
                self.question_answered(now, sent.at, call, value);
            }
        }
        self.leave_when_answered(now);
    }

    /// The node cannot serve, so nothing has changed: the question goes to the next node, and to each of them once.
    fn turned_away(&mut self, now: Instant, sent: Instant, call: CallId, value: Value) {
        let others = self.nodes - 1;
        match self.questions.get_mut(&call) {
            Some(question) if question.turned_away < others => {
                question.turned_away += 1;
                question.sent = false;
            }
            _ => self.question_answered(now, sent, call, value),
        }
        self.turn_away(now);
    }

    /// The node has heard the session at `sent` or later.
    fn confirm(&mut self, sent: Instant) {
        if let Some(session) = self.session.as_mut().filter(|s| s.over.is_none()) {
            session.contact.confirm(sent);
            session.suspect = false;
            session.only_here = false;
        }
        self.confirm_here(sent);
    }

    /// A node that answers, with a majority or without, has not given away the slots that it owns. It does not know about
    /// other nodes' slots: if the majority has ended the session, their owners have given them to others.
    fn confirm_here(&mut self, sent: Instant) {
        if let Some(session) = self.session.as_mut().filter(|s| s.over.is_none()) {
            session.here.confirm(sent);
            self.tell_session();
        }
    }

    fn greeted(&mut self, now: Instant, value: Value) {
        if let Value::Error(refusal) = value {
            if refusal.cannot_serve() && self.failed + 1 < self.nodes {
                self.drop_connection(now, &refusal.to_string());
                return;
            }
            // A node that does not accept this client will not accept it later either.
            let calls: Vec<CallId> = self.questions.keys().copied().collect();
            for call in calls {
                self.answer(call, Err(NotDone::Refused(refusal.clone())));
            }
            self.drop_connection(now, &refusal.to_string());
        } else if !self.session_lives() {
            self.up(now);
        }
    }

    fn resumed(&mut self, now: Instant, sent: Instant, claims: &[HoldId], value: Value) {
        match Resumed::read(&value) {
            Ok(answer) => {
                self.confirm(sent);
                for (hold, held) in claims.iter().zip(answer.held) {
                    if !held {
                        self.lose(*hold, Loss::Told);
                    }
                }
                self.sort_slots(&answer.slots);
                self.up(now);
                for (gate, fence) in answer.holds {
                    self.return_if_unwanted(now, gate, fence);
                }
            }
            Err(refusal) if refusal.word == Word::Stale => {
                self.end_session(now, Loss::SessionOver);
            }
            Err(refusal) => self.drop_connection(now, &refusal.to_string()),
        }
    }

    /// The node has said which of the session's slots it owns.
    fn sort_slots(&mut self, own: &[(String, u64)]) {
        for (id, hold) in &mut self.holds {
            let fence = hold.standing.fence;
            let here = own
                .iter()
                .any(|(slot, of)| (slot, *of) == (&hold.gate, fence));
            if hold.standing.here != here {
                hold.standing.here = here;
                self.effects.push_back(Effect::Hold(*id, hold.standing));
            }
        }
    }

    /// A hold that the node knows and this client does not: its caller has left.
    fn return_if_unwanted(&mut self, now: Instant, gate: String, fence: u64) {
        let lives = |hold: &Hold| hold.gate == gate && hold.standing.over.is_none();
        let held = self.holds.values().any(lives);
        let asked = self
            .questions
            .values()
            .any(|question| match &question.what {
                What::Lock { lock, .. } => lock.gates.iter().any(|(name, _)| *name == gate),
                What::Release { gate: name, .. } => *name == gate,
                _ => false,
            });
        if !held && !asked {
            self.unlock(now, &gate, fence);
        }
    }

    fn unlock(&mut self, now: Instant, gate: &str, fence: u64) {
        let line = release_line(gate, fence);
        self.send(now, &line, Of::Nothing);
    }

    fn question_answered(&mut self, now: Instant, sent: Instant, call: CallId, value: Value) {
        let Some(question) = self.questions.get(&call) else {
            return;
        };
        match (&question.what, value) {
            (What::Release { .. }, Value::Error(refusal))
                if question.doubtful && is_not_held(&refusal) =>
            {
                self.answer(call, Ok(Value::Null));
            }
            (What::Close, Value::Error(refusal)) if refusal.word != Word::Stale => {
                self.answer(call, Err(NotDone::told(refusal)));
            }
            (What::Close, _) => {
                self.answer(call, Ok(Value::Null));
                self.end_session(now, Loss::SessionOver);
            }
            (_, Value::Error(refusal)) => self.answer(call, Err(NotDone::told(refusal))),
            (What::Open { ttl, .. }, value) => {
                let ttl = *ttl;
                self.opened(sent, call, ttl, &value);
            }
            (What::Downgrade { hold, .. }, value) => {
                let hold = *hold;
                self.downgraded(hold, Grant::read(&value));
                self.answer(call, Ok(value));
            }
            (What::Lock { .. } | What::Take { .. }, value) => match value.number() {
                Some(ticket) => self.ticket(now, call, ticket),
                None => {
                    self.questions.remove(&call);
                    let why = NotDone::Unknown("the node answered without a ticket".into());
                    self.effects.push_back(Effect::Answer(call, Err(why)));
                }
            },
            (_, value) => self.answer(call, Ok(value)),
        }
    }

    fn opened(&mut self, sent: Instant, call: CallId, ttl: Duration, value: &Value) {
        let Some(id) = value.number() else {
            let why = "the node opened a session without a number";
            self.answer(call, Err(NotDone::Unknown(why.into())));
            return;
        };
        let contact = Contact::new(ttl, sent);
        let told = SessionStanding {
            connected: true,
            deadline: contact.deadline(),
            here_deadline: contact.deadline(),
            here_connected: true,
            links: self.links,
            over: None,
        };
        self.session = Some(Session {
            id,
            here: contact.clone(),
            contact,
            only_here: false,
            over: None,
            suspect: false,
            told,
        });
        self.questions.remove(&call);
        self.effects.push_back(Effect::Opened(call, id, told));
    }

    /// A writer has become a reader, with the fence of the readers that join it.
    fn downgraded(&mut self, id: HoldId, grant: Option<Grant>) {
        let until = grant.as_ref().and_then(|grant| self.until(grant));
        if let (Some(hold), Some(grant)) = (self.holds.get_mut(&id), grant) {
            hold.how = How::Gate(Mode::Shared);
            hold.standing.fence = grant.fence;
            hold.standing.until = until;
            hold.receipt = grant.receipt;
            let standing = hold.standing;
            self.effects.push_back(Effect::Hold(id, standing));
        }
    }

    fn ticket(&mut self, now: Instant, call: CallId, ticket: u64) {
        self.tickets.insert(ticket, call);
        if self
            .questions
            .get(&call)
            .is_some_and(|question| question.cancelled)
        {
            self.cancel_ticket(now, ticket);
        }
    }

    fn push(&mut self, now: Instant, values: &[Value]) {
        let Some(news) = News::read(values) else {
            return;
        };
        match news {
            News::Granted { ticket, grants } => {
                if let Some(call) = self.tickets.remove(&ticket) {
                    self.granted(now, call, grants);
                }
            }
            News::Slots { ticket, taken } => {
                if let Some(call) = self.tickets.remove(&ticket) {
                    self.took(now, call, taken);
                }
            }
            News::LostSlot { slot, fence } => {
                let is_it = |hold: &Hold| {
                    let name = slot_of(&hold.gate).map(|(pool, slot)| format!("{pool}/{slot}"));
                    name.as_ref() == Some(&slot) && hold.standing.fence == fence
                };
                let found = self.holds.iter().find(|(_, hold)| is_it(hold));
                if let Some((id, _)) = found {
                    self.lose(*id, Loss::Told);
                }
            }
            News::Gone { ticket } => {
                if let Some(call) = self.tickets.remove(&ticket) {
                    self.answer(call, Ok(Value::Null));
                }
            }
            News::Wanted { gate, fence } => {
                self.change_hold(&gate, fence, |standing| standing.wanted = true);
            }
            News::Lost { gate, fence } => {
                self.change_hold(&gate, fence, |standing| {
                    standing.over.get_or_insert(Loss::Told);
                });
            }
            News::Ended { session } => {
                if self.session.as_ref().is_some_and(|s| s.id == session) {
                    self.end_session(now, Loss::SessionOver);
                }
            }
            News::Suspect { session } => {
                if self.session.as_ref().is_some_and(|s| s.id == session) {
                    self.turn_away(now);
                }
            }
            News::Subscribed { channel } => self.subscribed(&channel),
            News::Published { channel, line } => {
                self.effects.push_back(Effect::Published(channel, line));
            }
        }
    }

    /// A subscription is answered by a push, in place of its answer.
    fn subscribed(&mut self, channel: &str) {
        let Some(sent) = self.sent.pop_front() else {
            return;
        };
        self.confirm(sent.at);
        if let Of::Question(call) = sent.of {
            self.answer(call, Ok(Value::Text(channel.to_owned())));
        }
    }

    fn change_hold(&mut self, gate: &str, fence: u64, change: impl FnOnce(&mut HoldStanding)) {
        let mut holds = self.holds.iter_mut();
        if let Some((id, hold)) =
            holds.find(|(_, hold)| hold.gate == gate && hold.standing.fence == fence)
        {
            change(&mut hold.standing);
            self.effects.push_back(Effect::Hold(*id, hold.standing));
        }
    }

    pub(super) fn lose(&mut self, id: HoldId, loss: Loss) {
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.standing.over.get_or_insert(loss);
            let standing = hold.standing;
            self.effects.push_back(Effect::Hold(id, standing));
        }
    }

    /// The session now has these slots.
    fn took(&mut self, now: Instant, call: CallId, taken: Vec<(String, u64)>) {
        let Some(question) = self.questions.remove(&call) else {
            return;
        };
        let What::Take { take } = question.what else {
            return;
        };
        let mut entered = Vec::new();
        for (slot, fence) in taken {
            let gate = inner_name(&take.pool, &slot);
            if question.cancelled {
                self.unlock(now, &gate, fence);
                continue;
            }
            // A node gives out only slots that it owns.
            let standing = HoldStanding {
                fence,
                here: true,
                ..HoldStanding::default()
            };
            entered.push(self.hold(gate, How::Slot, standing, (None, None)));
        }
        if !question.cancelled {
            self.effects.push_back(Effect::Entered(call, entered));
        }
    }

    fn hold(
        &mut self,
        gate: String,
        how: How,
        standing: HoldStanding,
        (receipt, reason): (Option<String>, Option<String>),
    ) -> Entered {
        self.next_hold += 1;
        let hold = self.next_hold;
        let entered = Entered {
            hold,
            gate: gate.clone(),
            standing,
        };
        let held = Hold {
            gate,
            how,
            standing,
            receipt,
            reason,
        };
        self.holds.insert(hold, held);
        entered
    }

    /// The session is inside the gates of a lock.
    fn granted(&mut self, now: Instant, call: CallId, grants: Vec<Grant>) {
        let Some(question) = self.questions.get(&call) else {
            return;
        };
        let What::Lock { lock, .. } = &question.what else {
            return;
        };
        let (gates, cancelled) = (lock.gates.clone(), question.cancelled);
        let reason = lock.reason.clone();
        if grants.len() != gates.len() {
            self.drop_connection(now, "the node granted other gates than those asked for");
            return;
        }
        self.questions.remove(&call);
        let mut entered = Vec::new();
        for ((gate, how), grant) in gates.into_iter().zip(grants) {
            if cancelled {
                self.unlock(now, &gate, grant.fence);
                continue;
            }
            let standing = HoldStanding {
                fence: grant.fence,
                until: self.until(&grant),
                ..HoldStanding::default()
            };
            entered.push(self.hold(gate, how, standing, (grant.receipt, reason.clone())));
        }
        if !cancelled {
            self.effects.push_back(Effect::Entered(call, entered));
        }
    }

    /// When the hold limit may have ended a grant. The node counts from the last command that it has heard, which is the last
    /// one that it has answered, or a later one.
    fn until(&self, grant: &Grant) -> Option<Instant> {
        let ends = Duration::from_millis(grant.ends_ms?);
        let session = self.session.as_ref()?;
        Some(session.contact.confirmed() + certain(ends))
    }
}

fn is_not_held(refusal: &Refusal) -> bool {
    matches!(
        refusal.word,
        Word::NotHeld | Word::Stale | Word::NoGate | Word::NoPool
    )
}
