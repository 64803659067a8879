//! What the node says: answers, matched to the oldest command without one, and pushes, matched by their ticket, gate or
//! channel.

use std::time::{Duration, Instant};

use super::link::Link;
use super::question::{Granted, Of, Question, Sent, What};
use super::{CallId, Effect, Entered, Hold, HoldId, Machine, Session};
use crate::contact::{Contact, certain};
use crate::news::{Grant, Limit, News, Resumed};
use crate::refusal::{NotDone, Refusal, Word};
use crate::request::{Mode, words};
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
        match sent.of {
            Of::Greeting => self.greeted(now, value),
            Of::Resume(claims) => self.resumed(now, sent.at, &claims, value),
            Of::Nothing => self.confirm(sent.at),
            Of::Limit(call, at) => {
                self.confirm(sent.at);
                self.limit_shown(sent.at, call, at, &value);
            }
            Of::Question(call) => {
                self.confirm(sent.at);
                self.question_answered(now, sent.at, call, value);
            }
        }
    }

    /// The node has heard the session not before `sent`.
    fn confirm(&mut self, sent: Instant) {
        if let Some(session) = self.session.as_mut().filter(|s| s.over.is_none()) {
            session.contact.confirm(sent);
            self.tell_session();
        }
    }

    fn greeted(&mut self, now: Instant, value: Value) {
        if let Value::Error(refusal) = value {
            // A node that does not take this client will not take it later either.
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

    /// A hold that the node knows of and nobody here: its caller has left.
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
        let line = words(["UNLOCK", gate, &fence.to_string()]);
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
            (What::Lock { .. }, value) => match value.number() {
                Some(ticket) => self.ticket(now, call, ticket),
                None => {
                    self.questions.remove(&call);
                    let why = NotDone::Unknown("the node answered a lock without a ticket".into());
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
            over: None,
        };
        self.session = Some(Session {
            id,
            contact,
            over: None,
            told,
        });
        self.questions.remove(&call);
        self.effects.push_back(Effect::Opened(call, id, told));
    }

    /// A writer is a reader now, with the fence of the readers that join it.
    fn downgraded(&mut self, id: HoldId, grant: Option<Grant>) {
        if let (Some(hold), Some(grant)) = (self.holds.get_mut(&id), grant) {
            hold.mode = Mode::Shared;
            hold.standing.fence = grant.fence;
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
            News::Subscribed { channel } => self.subscribed(&channel),
            News::Published { channel, text } => {
                self.effects.push_back(Effect::Published(channel, text));
            }
        }
    }

    /// A subscription is answered by a push, in the place of its answer.
    fn subscribed(&mut self, channel: &str) {
        let Some(sent) = self.sent.pop_front() else {
            return;
        };
        self.confirm(sent.at);
        if let Of::Question(call) = sent.of {
            self.answer(call, Ok(Value::Text(channel.to_owned())));
        }
    }

    /// Changes how a hold stands, also one that nobody was told of yet.
    fn change_hold(&mut self, gate: &str, fence: u64, change: impl FnOnce(&mut HoldStanding)) {
        let mut holds = self.holds.iter_mut();
        if let Some((id, hold)) =
            holds.find(|(_, hold)| hold.gate == gate && hold.standing.fence == fence)
        {
            change(&mut hold.standing);
            self.effects.push_back(Effect::Hold(*id, hold.standing));
            return;
        }
        for question in self.questions.values_mut() {
            let What::Lock { lock, .. } = &question.what else {
                continue;
            };
            let granted = lock.gates.iter().zip(&mut question.granted);
            let mut granted = granted
                .filter(|((name, _), granted)| name == gate && granted.standing.fence == fence);
            if let Some((_, granted)) = granted.next() {
                change(&mut granted.standing);
                return;
            }
        }
    }

    fn lose(&mut self, id: HoldId, loss: Loss) {
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.standing.over.get_or_insert(loss);
            let standing = hold.standing;
            self.effects.push_back(Effect::Hold(id, standing));
        }
    }

    /// The gates of a lock are entered. Whether they have a hold limit must be known before anybody relies on them.
    fn granted(&mut self, now: Instant, call: CallId, grants: Vec<Grant>) {
        let Some(question) = self.questions.get_mut(&call) else {
            return;
        };
        let What::Lock { lock, .. } = &question.what else {
            return;
        };
        let gates: Vec<String> = lock.gates.iter().map(|(gate, _)| gate.clone()).collect();
        if grants.len() != gates.len() {
            self.drop_connection(now, "the node granted other gates than those asked for");
            return;
        }
        if question.cancelled {
            self.questions.remove(&call);
            for (gate, grant) in gates.iter().zip(grants) {
                self.unlock(now, gate, grant.fence);
            }
            return;
        }
        let granted = |Grant { fence, receipt }| Granted {
            standing: HoldStanding {
                fence,
                ..HoldStanding::default()
            },
            receipt,
            settled: false,
        };
        question.granted = grants.into_iter().map(granted).collect();
        for (at, gate) in gates.iter().enumerate() {
            match self.limitless.contains(gate, now) {
                true => self.limit_known(call, at, |_| {}),
                false => self.send(now, &words(["GATE", "SHOW", gate]), Of::Limit(call, at)),
            }
        }
    }

    fn limit_shown(&mut self, sent: Instant, call: CallId, at: usize, shown: &Value) {
        let Some(question) = self.questions.get(&call) else {
            return;
        };
        let What::Lock { lock, .. } = &question.what else {
            return;
        };
        let Some(((gate, _), granted)) = lock.gates.get(at).zip(question.granted.get(at)) else {
            return;
        };
        let limit = Limit::read(shown, granted.standing.fence);
        if limit == Limit::None {
            self.limitless.note(gate, sent);
        }
        self.limit_known(call, at, |standing| match limit {
            // The node counted what is left when it heard the question, which was not before it was sent.
            Limit::Left(left) => standing.until = Some(sent + certain(left)),
            Limit::Over => standing.over = Some(Loss::Told),
            Limit::None | Limit::Untold => {}
        });
    }

    fn limit_known(&mut self, call: CallId, at: usize, change: impl FnOnce(&mut HoldStanding)) {
        let Some(question) = self.questions.get_mut(&call) else {
            return;
        };
        if let Some(granted) = question.granted.get_mut(at) {
            change(&mut granted.standing);
            granted.settled = true;
        }
        if question.granted.iter().all(|granted| granted.settled)
            && let Some(question) = self.questions.remove(&call)
        {
            self.entered(call, question);
        }
    }

    fn entered(&mut self, call: CallId, question: Question) {
        let What::Lock { lock, .. } = question.what else {
            return;
        };
        let mut entered = Vec::new();
        for ((gate, mode), granted) in lock.gates.into_iter().zip(question.granted) {
            self.next_hold += 1;
            let hold = self.next_hold;
            let standing = granted.standing;
            entered.push(Entered {
                hold,
                gate: gate.clone(),
                standing,
            });
            let held = Hold {
                gate,
                mode,
                standing,
                receipt: granted.receipt,
            };
            self.holds.insert(hold, held);
        }
        self.effects.push_back(Effect::Entered(call, entered));
    }
}

fn is_not_held(refusal: &Refusal) -> bool {
    matches!(refusal.word, Word::NotHeld | Word::Stale | Word::NoGate)
}
