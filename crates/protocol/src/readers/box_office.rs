//! The box-office token: Ricart and Agrawala's token with three classes, query tokens that let readers of
//! several nodes in together, a counter in the token of how often queries were overtaken, and for each class
//! of writers a pointer in the token to whose turn it is.
//!
//! Source: box office §1–§6 and §10, the corrected version; the slides' own pseudo-code is a specimen. A node
//! counts its waiters by class, its gate keeps the line. A broadcast request is the recall of query tokens:
//! whoever holds one and hears it lets nobody else in. Channels need not be FIFO.

use std::collections::BTreeSet;

use super::canonical::canonical;
use super::flaw::Flaw;
use super::office::Office;
use super::seats::{BURST_DEFAULT, OVERTAKES_DEFAULT, users};
use super::token::{Table, Token};
use super::{Ask, Class, Readers, Tell};
use crate::{
    Algorithm, Channels, Claim, Cost, Input, Machine, NodeId, Output, Profile, Protocol, Range,
    Setup, SetupError, Telling, UnderWay, erase_for,
};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office",
        title: "The box-office token",
        source: "box office §1–§6, §10",
        channels: Channels::AnyOrder,
        claims: &[
            Claim::Safety,
            Claim::DeadlockFreedom,
            Claim::LockoutFreedom,
            Claim::Bypass,
        ],
        costs: &[
            Cost::messages(
                "0 with the token at hand, N for a writer, N+1 for a reader",
                |setup| Range::new(0, setup.users as u32 + 1),
            ),
            Cost::entry_delay("0 with the token at hand, else 2", |_| Range::new(0, 2)),
            Cost::synchronisation_delay(
                "0 at one node, 1 by the token, 2 after query tokens",
                |_| Range::new(0, 2),
            ),
        ],
        figures: &super::figures::FIGURES,
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| with_flaw(setup, None),
};

/// The box office, or a specimen of it.
pub(super) fn with_flaw(
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Readers>>, SetupError> {
    let (shape, first) = users(setup)?;
    let config = Config {
        nodes: setup.users,
        overtakes_max: setup.overtakes.unwrap_or(OVERTAKES_DEFAULT),
        burst_max: setup.burst.unwrap_or(BURST_DEFAULT),
        flaw,
    };
    Ok(erase_for::<BoxOffice>(
        shape,
        |user| first[user.index()],
        config,
    ))
}

pub(super) struct Config {
    nodes: usize,
    overtakes_max: u32,
    burst_max: u32,
    flaw: Option<Flaw>,
}

impl Config {
    pub(super) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct BoxOffice {
    pub(super) id: NodeId,
    /// P, the node's own column included.
    pub(super) requested: Table,
    /// The own column of A, for a node without the token.
    pub(super) served: [u32; 3],
    pub(super) token: Option<Token>,
    waiting: [u32; 3],
    writers: u32,
    readers: u32,
    /// How often the node let a writer of each class in during its turn.
    pub(super) burst: [u32; 2],
    /// Who has a query token of this node.
    out: BTreeSet<NodeId>,
    /// A query token that the node has: from whom, and A at that time.
    pub(super) lent: Option<(NodeId, Table)>,
    /// The class that entered last, for a flaw.
    pub(super) last: Class,
}

impl Protocol for BoxOffice {
    type Problem = Readers;
    type Message = Office;
    type Config = Config;

    /// The token starts at node 0.
    fn new(id: NodeId, config: &Config) -> Self {
        let none = Table(vec![[0; 3]; config.nodes]);
        BoxOffice {
            id,
            requested: none.clone(),
            served: [0; 3],
            token: (id == NodeId(0)).then_some(Token {
                served: none,
                overtakes: 0,
                turn: [NodeId(0); 2],
            }),
            waiting: [0; 3],
            writers: 0,
            readers: 0,
            burst: [0; 2],
            out: BTreeSet::new(),
            lent: None,
            last: Class::Query,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter(class)) => self.acquire(class, config, out),
            Input::Ask(Ask::Leave(Class::Query)) => self.reader_leaves(config, out),
            Input::Ask(Ask::Leave(class)) => {
                self.writers -= 1;
                if self.waiting[class.index()] == 0 {
                    self.mark_served(class);
                }
                self.schedule(config, out);
            }
            Input::Message { from, message } => self.on_message(from, message, config, out),
            Input::Start | Input::Timer(_) => {}
        }
    }

    const HAS_CANONICAL: bool = true;

    fn canonical(nodes: &mut [Self], messages: &mut Vec<UnderWay<Office>>, config: &Config) {
        canonical(nodes, messages, config);
    }
}

impl BoxOffice {
    fn acquire(&mut self, class: Class, config: &Config, out: &mut Output<Self>) {
        self.waiting[class.index()] += 1;
        let mistrusts = config.has(Flaw::AsksOthers) && class > self.last && self.writers == 0;
        if self.token.is_some() && mistrusts {
            self.ask(class, config, out);
        } else if self.token.is_some() {
            self.schedule(config, out);
        } else if class == Class::Query && self.lent.is_some() && !self.must_stop(config) {
            self.admit_readers(out);
        } else {
            self.ask(class, config, out);
        }
    }

    fn reader_leaves(&mut self, config: &Config, out: &mut Output<Self>) {
        self.readers -= 1;
        if self.token.is_some() {
            self.schedule(config, out);
        } else if self.readers == 0 || config.has(Flaw::FirstReaderReturns) {
            self.return_query_token(config, out);
        }
    }

    fn return_query_token(&mut self, config: &Config, out: &mut Output<Self>) {
        if let Some((issuer, served)) = self.lent.take() {
            out.send(issuer, Office::QueryReturn);
            if config.has(Flaw::SecondToken) {
                self.token = Some(Token {
                    served,
                    overtakes: 0,
                    turn: [self.id; 2],
                });
                self.schedule(config, out);
            }
        }
        if self.waiting[2] > 0 {
            self.ask(Class::Query, config, out);
        }
    }

    fn on_message(
        &mut self,
        from: NodeId,
        message: Office,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        match message {
            Office::Request(class, number) => {
                let known = self.requested.at(class, from);
                self.requested.set(class, from, known.max(number));
                self.schedule(config, out);
            }
            Office::Token(token, requested) => {
                if !config.has(Flaw::ForgetfulToken) {
                    self.requested.raise(&requested);
                }
                self.served = token.served.0[self.id.index()];
                if config.has(Flaw::RingFromHolder) {
                    self.burst = [0; 2];
                }
                self.token = Some(token);
                self.schedule(config, out);
            }
            Office::QueryToken(served) => {
                self.served[2] = self.served[2].max(served.at(Class::Query, self.id));
                self.lent = Some((from, served));
                self.admit_readers(out);
                if self.readers == 0 {
                    self.return_query_token(config, out);
                }
            }
            Office::QueryReturn => {
                self.out.remove(&from);
                if !config.has(Flaw::DeafToReturns) {
                    self.schedule(config, out);
                }
            }
        }
    }
}

/// Requests.
impl BoxOffice {
    /// Broadcasts a request of the class, unless one is outstanding.
    fn ask(&mut self, class: Class, config: &Config, out: &mut Output<Self>) {
        let mine = self.requested.at(class, self.id);
        if mine <= self.served[class.index()] {
            self.requested.set(class, self.id, mine + 1);
            out.send_all(
                self.id.others(config.nodes),
                &Office::Request(class, mine + 1),
            );
        }
    }

    fn mark_served(&mut self, class: Class) {
        let mine = self.requested.at(class, self.id);
        self.served[class.index()] = mine;
        if let Some(token) = &mut self.token {
            token.served.set(class, self.id, mine);
        }
    }

    /// Whether a node is known to want in; of the node itself, whether somebody waits.
    fn pends(&self, class: Class, node: NodeId) -> bool {
        let Some(token) = &self.token else {
            return false;
        };
        match node == self.id {
            true => self.waiting[class.index()] > 0,
            false => self.requested.at(class, node) > token.served.at(class, node),
        }
    }

    fn any_pends(&self, class: Class, config: &Config) -> bool {
        NodeId::all(config.nodes).any(|node| self.pends(class, node))
    }

    fn writers_pend(&self, config: &Config) -> bool {
        self.any_pends(Class::Cancel, config) || self.any_pends(Class::Reservation, config)
    }

    /// Under a query token: whether a writer has asked since it was lent.
    fn must_stop(&self, config: &Config) -> bool {
        let Some((_, served)) = &self.lent else {
            return true;
        };
        let writers = match config.flaw {
            Some(Flaw::IgnoresStop) => 0,
            Some(Flaw::StopsForCancels) => 1,
            _ => 2,
        };
        let mut asked = self.requested.0.iter().zip(&served.0);
        asked.any(|(asked, served)| (0..writers).any(|class| asked[class] > served[class]))
    }
}

/// The holder of the token.
impl BoxOffice {
    /// Lets in, lends or passes on whatever the classes allow.
    fn schedule(&mut self, config: &Config, out: &mut Output<Self>) {
        let Some(token) = &self.token else {
            return;
        };
        let overtakes = token.overtakes;
        if self.writers > 0 && !config.has(Flaw::NoLocalExclusion) {
            if config.has(Flaw::ReadersBesideWriters) {
                self.lend_query_tokens(config, out);
            }
            return;
        }
        if self.readers > 0 || !self.out.is_empty() {
            if !self.writers_pend(config) || config.has(Flaw::GrowingSession) {
                self.open_readers(config, out);
            } else if !self.out.is_empty() {
                // Closing: those who have query tokens must hear of it.
                for class in [Class::Cancel, Class::Reservation] {
                    if self.waiting[class.index()] > 0 {
                        self.ask(class, config, out);
                    }
                }
            }
            return;
        }
        let limited = overtakes >= config.overtakes_max && !config.has(Flaw::NoLimit);
        let order = match limited && self.any_pends(Class::Query, config) {
            true => [Class::Cancel, Class::Query, Class::Reservation],
            false => Class::ALL,
        };
        let Some(class) = order
            .into_iter()
            .find(|&class| self.any_pends(class, config))
        else {
            return;
        };
        match class {
            Class::Query if self.waiting[2] > 0 => {
                if let Some(token) = &mut self.token
                    && !config.has(Flaw::NeverReset)
                {
                    token.overtakes = 0;
                }
                self.open_readers(config, out);
            }
            Class::Query => {
                let next = self.next_after(self.id, class, config);
                self.pass_token(next, config, out);
            }
            _ => match self.pick(class, config) {
                me if me == self.id => self.let_writer_in(class, config, out),
                other => self.pass_token(other, config, out),
            },
        }
    }

    /// The first node behind this one on the ring that wants in; the node itself comes last.
    fn next_after(&self, node: NodeId, class: Class, config: &Config) -> NodeId {
        let mut next = node.next(config.nodes);
        while next != node && !self.pends(class, next) {
            next = next.next(config.nodes);
        }
        next
    }

    /// Whose turn it is in a class of writers.
    fn pick(&mut self, class: Class, config: &Config) -> NodeId {
        let c = class.index();
        let turn = self.token.as_ref().map_or(self.id, |token| token.turn[c]);
        let arrived = config.has(Flaw::RingFromHolder) && self.burst[c] == 0;
        let goes_on = (turn == self.id || arrived) && self.waiting[c] > 0;
        if goes_on && self.burst[c] < config.burst_max {
            return self.id;
        }
        let from = match config.has(Flaw::RingFromHolder) {
            true => self.id,
            false => turn,
        };
        let next = self.next_after(from, class, config);
        if next == self.id && turn == self.id {
            self.burst[c] = 0;
        }
        next
    }

    fn let_writer_in(&mut self, class: Class, config: &Config, out: &mut Output<Self>) {
        let c = class.index();
        let passes = class == Class::Reservation && self.any_pends(Class::Query, config);
        if let Some(token) = &mut self.token {
            if token.turn[c] != self.id {
                token.turn[c] = self.id;
                self.burst[c] = 0;
            }
            token.overtakes += u32::from(passes);
        }
        self.burst[c] += 1;
        self.waiting[c] -= 1;
        self.writers += 1;
        self.last = class;
        out.tell(Tell::Entered(class));
    }

    fn admit_readers(&mut self, out: &mut Output<Self>) {
        for _ in 0..std::mem::take(&mut self.waiting[2]) {
            self.readers += 1;
            self.last = Class::Query;
            out.tell(Tell::Entered(Class::Query));
        }
    }

    fn open_readers(&mut self, config: &Config, out: &mut Output<Self>) {
        self.admit_readers(out);
        self.mark_served(Class::Query);
        self.lend_query_tokens(config, out);
    }

    fn lend_query_tokens(&mut self, config: &Config, out: &mut Output<Self>) {
        for node in self.id.others(config.nodes) {
            if !self.pends(Class::Query, node) || self.out.contains(&node) {
                continue;
            }
            let asked = self.requested.at(Class::Query, node);
            if let Some(token) = &mut self.token {
                token.served.set(Class::Query, node, asked);
                out.send(node, Office::QueryToken(token.served.clone()));
            }
            if config.has(Flaw::ForgetfulList) {
                self.out.clear();
            }
            self.out.insert(node);
        }
    }

    /// Sends the token away; what still waits here is asked for first, so that the token knows of it.
    fn pass_token(&mut self, to: NodeId, config: &Config, out: &mut Output<Self>) {
        debug_assert!(config.flaw.is_some() || self.out.is_empty() && self.readers == 0);
        for class in Class::ALL {
            if self.waiting[class.index()] > 0 {
                self.ask(class, config, out);
            }
        }
        if let Some(token) = self.token.take() {
            out.send(to, Office::Token(token, self.requested.clone()));
        }
    }
}

/// Two nodes without a flaw, for tests.
#[cfg(test)]
pub(super) fn two_nodes() -> Config {
    Config {
        nodes: 2,
        overtakes_max: 1,
        burst_max: 1,
        flaw: None,
    }
}
