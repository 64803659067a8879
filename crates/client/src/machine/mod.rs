//! One connection to a node, and the session that lives on it, as a state machine without input, output or clock: calls,
//! received frames, broken connections and the passing of time go in; bytes to send and [`Effect`]s come out.

mod link;
mod question;
mod receive;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::backoff::Backoff;
use crate::contact::Contact;
use crate::election::election_of;
use crate::pool::{Take, slot_of};
use crate::refusal::{Call, NotDone, Word};
use crate::request::{How, Lock, words};
use crate::standing::{HoldStanding, Loss, SessionStanding};
use crate::target::Credentials;
use crate::value::{Value, encode};
use link::Link;
pub(crate) use question::Again;
use question::{Question, Sent, What};

/// A call, numbered by the driver of the machine.
pub(crate) type CallId = u64;
/// A hold of the session.
pub(crate) type HoldId = u64;

/// Cap on open calls; more are refused.
pub(crate) const CALLS_MAX: usize = 10_000;
/// How long an answer may take before the connection counts as broken.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// The longest that a single attempt to connect, or a node's greeting, may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// How many answers to `ID`s a node keeps per session: an older request must not be repeated.
const IDS_KEPT: u64 = 64;

/// What the driver of the machine has to do or to report.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Connect now, and report the result.
    Connect,
    /// Close the connection.
    Disconnect,
    /// A call has ended.
    Answer(CallId, Call<Value>),
    /// A session is open.
    Opened(CallId, u64, SessionStanding),
    /// A lock is entered.
    Entered(CallId, Vec<Entered>),
    /// The session's standing has changed.
    Session(SessionStanding),
    /// A hold's standing has changed.
    Hold(HoldId, HoldStanding),
    /// Something was published on a subscribed channel.
    Published(String, Vec<u8>),
}

/// A gate that the session is now inside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entered {
    pub(crate) hold: HoldId,
    pub(crate) gate: String,
    pub(crate) standing: HoldStanding,
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Machine {
    credentials: Option<Credentials>,
    /// The name of its connections for others.
    name: Option<String>,
    /// How many nodes there are to connect to.
    nodes: usize,
    /// Failed attempts to connect since the last success, or since the last pause.
    failed: usize,
    /// Whether this node cannot serve: once it has answered what it was asked, the next one is tried.
    leaving: bool,
    link: Link,
    /// How many times a connection has come up.
    links: u64,
    backoff: Backoff,
    session: Option<Session>,
    /// How many times it has asked to resume its session.
    resumes: u64,
    /// Calls without an answer, oldest first.
    questions: BTreeMap<CallId, Question>,
    /// Commands that were sent on this connection and are not answered yet, oldest first.
    sent: VecDeque<Sent>,
    /// Which lock each ticket stands for, on this connection.
    tickets: HashMap<u64, CallId>,
    holds: BTreeMap<HoldId, Hold>,
    next_hold: HoldId,
    /// How many locks were requested so far.
    locks: u64,
    channels: Vec<String>,
    transmit: BytesMut,
    effects: VecDeque<Effect>,
}

#[derive(Debug)]
struct Session {
    id: u64,
    contact: Contact,
    /// The last contact with the node that owns the slots that are `here`.
    here: Contact,
    /// No node has spoken for the session in time: everything is lost except the slots that are `here`.
    only_here: bool,
    over: Option<Loss>,
    /// The node says that it may not speak for the session now: until it does again, nothing is certain.
    suspect: bool,
    /// What was last reported.
    told: SessionStanding,
}

#[derive(Debug)]
struct Hold {
    gate: String,
    how: How,
    standing: HoldStanding,
    /// The proof for the node after a crash.
    receipt: Option<String>,
    /// Why, for those who look at the gate after its node was lost.
    reason: Option<String>,
}

impl Machine {
    /// Greets under this name.
    pub(crate) fn named(self, name: Option<String>) -> Machine {
        Machine { name, ..self }
    }

    pub(crate) fn new(credentials: Option<Credentials>, seed: u64, nodes: usize) -> Machine {
        Machine {
            credentials,
            name: None,
            nodes,
            failed: 0,
            leaving: false,
            link: Link::Idle,
            links: 0,
            backoff: Backoff::new(seed),
            session: None,
            resumes: 0,
            questions: BTreeMap::new(),
            sent: VecDeque::new(),
            tickets: HashMap::new(),
            holds: BTreeMap::new(),
            next_hold: 0,
            locks: 0,
            channels: Vec::new(),
            transmit: BytesMut::new(),
            effects: VecDeque::new(),
        }
    }

    /// The next thing to do or to report.
    pub(crate) fn effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The bytes to send; the sender takes them out.
    pub(crate) fn transmit(&mut self) -> &mut BytesMut {
        &mut self.transmit
    }

    /// Whether nothing is open, so that the connection can be given up without loss.
    pub(crate) fn is_quiet(&self) -> bool {
        self.questions.is_empty()
    }

    /// A command with a plain answer.
    pub(crate) fn ask(&mut self, now: Instant, call: CallId, line: Vec<String>, again: Again) {
        self.pose(now, call, What::Line { line, again });
    }

    /// A command of any bytes. It is not repeated, because that could do it twice.
    pub(crate) fn say(&mut self, now: Instant, call: CallId, line: Vec<Vec<u8>>) {
        self.pose(now, call, What::Bytes { line });
    }

    /// Opens the session of this connection.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        call: CallId,
        ttl: Duration,
        label: Option<String>,
    ) {
        let opening = |question: &Question| matches!(question.what, What::Open { .. });
        if self.session.is_some() || self.questions.values().any(opening) {
            let why = "this connection has its session already; connect once more for another";
            self.refuse(call, Word::BadArg, why);
            return;
        }
        self.pose(now, call, What::Open { ttl, label });
    }

    /// Asks to enter a gate or a set.
    pub(crate) fn lock(&mut self, now: Instant, call: CallId, lock: Lock) {
        let Some(session) = &self.session else {
            self.refuse(call, Word::BadArg, "a lock needs a session; open one first");
            return;
        };
        if session.over.is_some() {
            self.refuse(call, Word::Stale, "the session is over; connect again");
            return;
        }
        self.locks += 1;
        let serial = self.locks;
        self.pose(now, call, What::Lock { lock, serial });
    }

    /// Asks for slots of a pool.
    pub(crate) fn take(&mut self, now: Instant, call: CallId, take: Take) {
        let Some(session) = &self.session else {
            return self.refuse(call, Word::BadArg, "a slot needs a session; open one first");
        };
        if session.over.is_some() {
            return self.refuse(call, Word::Stale, "the session is over; connect again");
        }
        self.pose(now, call, What::Take { take });
    }

    /// Nobody waits for the answer to a lock or a take any more.
    pub(crate) fn cancel(&mut self, now: Instant, call: CallId) {
        let Some(question) = self.questions.get_mut(&call) else {
            return;
        };
        question.cancelled = true;
        if !question.sent {
            self.questions.remove(&call);
        } else if let Some((ticket, _)) = self.tickets.iter().find(|(_, of)| **of == call) {
            let ticket = *ticket;
            self.cancel_ticket(now, ticket);
        }
    }

    /// Gives a hold back. Without a call nobody waits for the answer.
    pub(crate) fn release(&mut self, now: Instant, call: CallId, hold: HoldId) {
        let Some(held) = self.holds.remove(&hold) else {
            self.refuse(call, Word::NotHeld, "it is given back already");
            return;
        };
        let (gate, fence) = (held.gate, held.standing.fence);
        let over = self.session.as_ref().is_none_or(|s| s.over.is_some());
        if over || held.standing.over.is_some() {
            let what = match (election_of(&gate), slot_of(&gate)) {
                (None, None) => format!("gate {gate}"),
                _ => gate.replace('\n', " of "),
            };
            self.refuse(call, Word::NotHeld, format!("{what} was lost before"));
            return;
        }
        self.pose(now, call, What::Release { gate, fence });
    }

    /// From writer to reader, without leaving.
    pub(crate) fn downgrade(&mut self, now: Instant, call: CallId, hold: HoldId) {
        let over = self.session.as_ref().is_none_or(|s| s.over.is_some());
        match self.holds.get(&hold) {
            Some(held) if !over && held.standing.over.is_none() => {
                let gate = held.gate.clone();
                self.pose(now, call, What::Downgrade { hold, gate });
            }
            _ => self.refuse(call, Word::NotHeld, "it was lost before"),
        }
    }

    /// Changes what a leader says of itself, and what it claims from now on.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        call: CallId,
        hold: HoldId,
        rank: i64,
        value: String,
    ) {
        let over = self.session.as_ref().is_none_or(|s| s.over.is_some());
        let held = self.holds.get_mut(&hold);
        let Some(held) = held.filter(|held| !over && held.standing.over.is_none()) else {
            return self.refuse(call, Word::NotHeld, "it was lost before");
        };
        let Some(election) = election_of(&held.gate) else {
            let why = format!("{} is a gate; only a leader has a value", held.gate);
            return self.refuse(call, Word::BadArg, why);
        };
        let rank_word = rank.to_string();
        let line = words([
            "ELECT", "CAMPAIGN", election, &value, "RANK", &rank_word, "WAIT", "0",
        ]);
        held.how = How::Lead { rank, value };
        let again = Again::InSession;
        self.pose(now, call, What::Line { line, again });
    }

    /// Closes the session, which gives everything back.
    pub(crate) fn close(&mut self, now: Instant, call: CallId) {
        self.pose(now, call, What::Close);
    }

    /// Listens to a channel from now on, over all later connections, too.
    pub(crate) fn subscribe(&mut self, now: Instant, call: CallId, channel: String) {
        if !self.channels.contains(&channel) {
            self.channels.push(channel.clone());
        }
        let line = vec!["SUBSCRIBE".into(), channel];
        let again = Again::Always;
        self.pose(now, call, What::Line { line, again });
    }

    /// All handles are gone: the session is closed if the node can still be told, and nothing is tried again.
    pub(crate) fn leave(&mut self, now: Instant, call: CallId) {
        self.tick(now);
        match self.link {
            Link::Up if self.session_lives() => self.close(now, call),
            Link::Up => {}
            _ => {
                self.questions.clear();
                self.link = Link::Idle;
            }
        }
    }

    fn pose(&mut self, now: Instant, call: CallId, what: What) {
        if self.questions.len() >= CALLS_MAX && !matches!(what, What::Release { .. }) {
            let why = format!("{CALLS_MAX} calls are open, which is the most");
            self.refuse(call, Word::Limit, why);
            return;
        }
        let question = Question {
            asked: now,
            what,
            sent: false,
            cancelled: false,
            doubtful: false,
            turned_away: 0,
        };
        self.questions.insert(call, question);
        match self.link {
            Link::Up if self.leaving => {}
            Link::Up => self.send_question(now, call),
            Link::Idle => self.connect(),
            Link::Connecting | Link::Greeting | Link::Down { .. } => {}
        }
    }

    fn send_question(&mut self, now: Instant, call: CallId) {
        let Some(question) = self.questions.get_mut(&call) else {
            return;
        };
        question.sent = true;
        let waited = now.duration_since(question.asked);
        let line = question.what.line(waited);
        self.send(now, &line, question::Of::Question(call));
    }

    fn send<W: AsRef<[u8]>>(&mut self, now: Instant, line: &[W], of: question::Of) {
        encode(line, &mut self.transmit);
        self.sent.push_back(Sent { at: now, of });
    }

    /// Gives up a wait; its end comes as a push all the same.
    fn cancel_ticket(&mut self, now: Instant, ticket: u64) {
        let line = words(["CANCEL", &ticket.to_string()]);
        self.send(now, &line, question::Of::Nothing);
    }

    fn answer(&mut self, call: CallId, end: Call<Value>) {
        self.questions.remove(&call);
        self.effects.push_back(Effect::Answer(call, end));
    }

    fn refuse(&mut self, call: CallId, word: Word, why: impl Into<String>) {
        self.answer(call, Err(NotDone::refused(word, why)));
    }
}
