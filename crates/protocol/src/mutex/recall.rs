//! The arbiter that calls its permission back, on a quorum of the nodes that are believed alive: the one
//! engine of tree quorums, cohorts, and Agrawal and Jalote's second group.
//!
//! Source: message exclusion §3.3–3.5. A permission that is asked back outside the section is always given
//! back, so nobody has to be told that it cannot win. The thesis leaves suspicion open. Here:
//! - Whoever waits long for a node probes it. One that is busy answers; one that leaves several probes
//!   unanswered, each for longer than a message there and back may take, is taken for dead.
//! - A requester then releases what it has and asks a quorum without the dead, by a new stamp. Where the
//!   living contain no quorum it waits for a node to come back.
//! - An arbiter takes back what it lent to the dead, whose user is gone with them.
//!
//! Promised: safety while no message is slower than the bound, and entries exactly while a quorum is alive.
//! A node may stop for ever, or come back with its stable storage: its clock and whom it lent its permission.
//! A node that comes back without it may lend twice. Without a bound (0) nobody is ever suspected.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::{
    Input, LamportClock, Machine, Message, NodeId, Output, Protocol, Setup, SetupError, Shape,
    Stamp, Timer, erase,
};

/// A node's quorum among the nodes that it believes alive, if they contain one.
pub(super) type Choose =
    Box<dyn Fn(NodeId, &dyn Fn(NodeId) -> bool) -> Option<Vec<NodeId>> + Send + Sync>;

pub(super) struct Config {
    nodes: usize,
    /// No message takes longer; 0 where no bound is known.
    delay_bound: u64,
    choose: Choose,
}

pub(super) fn on_living(
    setup: &Setup,
    choose: Choose,
) -> Result<Box<dyn Machine<Mutex>>, SetupError> {
    let nodes = setup.at_least(2)?;
    Ok(erase::<Recall>(
        Shape::users(nodes),
        Config {
            nodes,
            delay_bound: setup.delay_bound,
            choose,
        },
    ))
}

/// How long a node waits before it becomes suspicious, in delay bounds for each node: as long as a queue of
/// all of them takes with short sections, so that probes are rare where nobody fails.
const PATIENCE: u64 = 4;
/// Patience doubles with every answer, so that whoever waits for ever hardly disturbs the others. So often at
/// most: then a death is still noticed in a time that a run can have.
const DOUBLINGS_MAX: u32 = 10;
/// One unanswered probe proves a death while the bound holds; more forgive a probe that is lost.
const PROBES: u32 = 3;

const SUSPICIOUS: Timer = Timer(0);
const UNANSWERED: Timer = Timer(1);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Recall {
    id: NodeId,
    clock: LamportClock,
    // The requester. Without a live quorum to ask, its quorum is empty.
    mine: Option<Stamp>,
    held: bool,
    quorum: Vec<NodeId>,
    permissions: BTreeSet<NodeId>,
    // The arbiter: whom the permission is lent to, and who waits for it, oldest first.
    lock: Option<Stamp>,
    recalled: bool,
    queue: BTreeSet<Stamp>,
    // Who is taken for dead, and what a timer is set for.
    dead: BTreeSet<NodeId>,
    watch: Watch,
    doublings: u32,
    /// Whether this is a node that has crashed, before its start.
    back: bool,
}

/// What a node keeps an eye on. A wait is the node waited for and the request that it is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Watch {
    Nothing,
    /// Patience is running out on these.
    Waits(BTreeSet<(NodeId, Stamp)>),
    /// These have not answered so many probes.
    Silent {
        nodes: BTreeSet<NodeId>,
        probes: u32,
    },
}

/// Every message about a request names it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Loan {
    Request(Stamp),
    /// With the arbiter's clock: a node that nobody asks would otherwise fall behind, and its requests would
    /// look older than those that have waited for long.
    Permission(Stamp, u64),
    ReturnRequest(Stamp),
    Return(Stamp),
    Release(Stamp),
    Probe,
    Alive,
    /// From a node that has crashed and is back: what it asked for before is void, it knows of no request,
    /// and this is what it has lent.
    Back(Option<Stamp>),
}

impl Message for Loan {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        match self {
            Loan::Permission(stamp, clock) => {
                visit(&mut stamp.time);
                visit(clock);
            }
            Loan::Request(stamp)
            | Loan::ReturnRequest(stamp)
            | Loan::Return(stamp)
            | Loan::Release(stamp)
            | Loan::Back(Some(stamp)) => visit(&mut stamp.time),
            Loan::Probe | Loan::Alive | Loan::Back(None) => {}
        }
    }
}

impl Protocol for Recall {
    type Problem = Mutex;
    type Message = Loan;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        Recall {
            id,
            clock: LamportClock::default(),
            mine: None,
            held: false,
            quorum: Vec::new(),
            permissions: BTreeSet::new(),
            lock: None,
            recalled: false,
            queue: BTreeSet::new(),
            dead: BTreeSet::new(),
            watch: Watch::Nothing,
            doublings: 0,
            back: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Start if self.back => {
                self.back = false;
                out.send_all(self.id.others(config.nodes), &Loan::Back(self.lock));
            }
            Input::Start => {}
            Input::Ask(Ask::Enter) => self.request(config, out),
            Input::Ask(Ask::Leave) => self.release(out),
            Input::Message { from, message } => self.on_message(from, message, config, out),
            Input::Timer(SUSPICIOUS) => self.probe_overdue(config, out),
            Input::Timer(_) => self.judge_silent(config, out),
        }
        self.keep_watch(config, out);
    }

    /// The request is gone with the user; a permission that was lent stays lent.
    fn restart(&self, id: NodeId, config: &Config) -> Self {
        Recall {
            clock: self.clock,
            lock: self.lock.filter(|lock| lock.node != id),
            back: true,
            ..Recall::new(id, config)
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.clock.0);
        for stamp in self.mine.iter_mut().chain(&mut self.lock) {
            visit(&mut stamp.time);
        }
        let mut each = |mut stamp: Stamp| {
            visit(&mut stamp.time);
            stamp
        };
        self.queue = self.queue.iter().map(|&stamp| each(stamp)).collect();
        if let Watch::Waits(waits) = &mut self.watch {
            let shown = waits.iter().map(|&(node, stamp)| (node, each(stamp)));
            *waits = shown.collect();
        }
    }
}

impl Recall {
    fn on_message(&mut self, from: NodeId, message: Loan, config: &Config, out: &mut Output<Self>) {
        if let Watch::Silent { nodes, .. } = &mut self.watch {
            nodes.remove(&from);
        }
        match message {
            Loan::Request(stamp) => {
                if from != self.id {
                    self.clock.observe(stamp.time);
                }
                self.queue.insert(stamp);
                self.lend_or_recall(out);
            }
            Loan::Return(stamp) if self.lock == Some(stamp) => {
                self.lock = None;
                self.queue.insert(stamp);
                self.lend_or_recall(out);
            }
            Loan::Return(_) => {}
            Loan::Release(stamp) => self.forget(|queued| queued == stamp, out),
            Loan::Permission(stamp, clock) => {
                self.clock.0 = self.clock.0.max(clock);
                if self.mine == Some(stamp) {
                    self.permissions.insert(from);
                    self.enter_with_all(out);
                }
            }
            // Of a request that is over: its release is on its way.
            Loan::ReturnRequest(stamp) if self.mine != Some(stamp) => {}
            Loan::ReturnRequest(_) if self.held => out.tell(Tell::Wanted),
            Loan::ReturnRequest(stamp) => {
                if self.permissions.remove(&from) {
                    out.send(from, Loan::Return(stamp));
                }
            }
            Loan::Probe => out.send(from, Loan::Alive),
            Loan::Alive => {}
            Loan::Back(lent) => self.on_back(from, lent, config, out),
        }
        // Whoever is heard from is not dead, and may complete a quorum.
        if self.dead.remove(&from) && self.is_waiting() && self.quorum.is_empty() {
            self.ask_another_quorum(config, out);
        }
    }
}

/// The requester.
impl Recall {
    fn request(&mut self, config: &Config, out: &mut Output<Self>) {
        let mine = Stamp {
            time: self.clock.tick(),
            node: self.id,
        };
        self.mine = Some(mine);
        let living = |node: NodeId| !self.dead.contains(&node);
        self.quorum = (config.choose)(self.id, &living).unwrap_or_default();
        out.send_all(self.quorum.iter().copied(), &Loan::Request(mine));
    }

    fn enter_with_all(&mut self, out: &mut Output<Self>) {
        if !self.held && self.permissions.len() == self.quorum.len() {
            self.held = true;
            out.tell(Tell::Entered);
        }
    }

    fn release(&mut self, out: &mut Output<Self>) {
        let Some(mine) = self.mine.take() else { return };
        self.held = false;
        self.permissions.clear();
        self.doublings = 0;
        // The dead are told too: one may be back by now.
        out.send_all(self.quorum.drain(..), &Loan::Release(mine));
    }

    fn is_waiting(&self) -> bool {
        self.mine.is_some() && !self.held
    }

    fn ask_another_quorum(&mut self, config: &Config, out: &mut Output<Self>) {
        self.release(out);
        self.request(config, out);
    }
}

/// The arbiter.
impl Recall {
    /// Lends the permission to the oldest; where it is lent to a younger one, asks it back, once.
    fn lend_or_recall(&mut self, out: &mut Output<Self>) {
        match (self.lock, self.queue.first().copied()) {
            (None, Some(oldest)) => {
                self.queue.remove(&oldest);
                self.lock = Some(oldest);
                self.recalled = false;
                out.send(oldest.node, Loan::Permission(oldest, self.clock.0));
            }
            (Some(lock), Some(oldest)) if oldest < lock && !self.recalled => {
                self.recalled = true;
                out.send(lock.node, Loan::ReturnRequest(lock));
            }
            _ => {}
        }
    }

    /// Drops requests, and takes back the permission from one of them.
    fn forget(&mut self, which: impl Fn(Stamp) -> bool, out: &mut Output<Self>) {
        self.queue.retain(|&queued| !which(queued));
        if self.lock.is_some_and(which) {
            self.lock = None;
        }
        self.lend_or_recall(out);
    }
}

/// Suspicion.
impl Recall {
    /// Whom the node waits for, and about which request: members that have not given their permission, and
    /// the one who has the permission that others want.
    fn waits(&self) -> BTreeSet<(NodeId, Stamp)> {
        let mine = self.mine.filter(|_| self.is_waiting());
        let missing = self
            .quorum
            .iter()
            .filter(|member| !self.permissions.contains(member));
        let borrower = self.lock.filter(|_| !self.queue.is_empty());
        mine.into_iter()
            .flat_map(|mine| missing.clone().map(move |&member| (member, mine)))
            .chain(borrower.map(|lock| (lock.node, lock)))
            .filter(|(node, _)| *node != self.id)
            .collect()
    }

    fn keep_watch(&mut self, config: &Config, out: &mut Output<Self>) {
        if config.delay_bound == 0 || self.watch != Watch::Nothing {
            return;
        }
        let waits = self.waits();
        if waits.is_empty() {
            return;
        }
        let patience = (PATIENCE * config.nodes as u64) << self.doublings;
        let span = patience.saturating_mul(config.delay_bound);
        out.after(span..span.saturating_add(1), SUSPICIOUS);
        self.watch = Watch::Waits(waits);
    }

    /// Probes those that are still waited for, about the same request.
    fn probe_overdue(&mut self, config: &Config, out: &mut Output<Self>) {
        let Watch::Waits(watched) = std::mem::replace(&mut self.watch, Watch::Nothing) else {
            return;
        };
        let overdue: BTreeSet<NodeId> = self
            .waits()
            .intersection(&watched)
            .map(|(node, _)| *node)
            .collect();
        if overdue.is_empty() {
            self.doublings = 0;
            return;
        }
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        self.probe(overdue, 1, config, out);
    }

    fn probe(
        &mut self,
        nodes: BTreeSet<NodeId>,
        probes: u32,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        out.send_all(nodes.iter().copied(), &Loan::Probe);
        let there_and_back = config.delay_bound.saturating_mul(2).saturating_add(1);
        out.after(there_and_back..there_and_back.saturating_add(1), UNANSWERED);
        self.watch = Watch::Silent { nodes, probes };
    }

    /// Probes the silent again, and in the end takes them for dead.
    fn judge_silent(&mut self, config: &Config, out: &mut Output<Self>) {
        let Watch::Silent { nodes, probes } = std::mem::replace(&mut self.watch, Watch::Nothing)
        else {
            return;
        };
        if nodes.is_empty() {
            return;
        }
        if probes < PROBES {
            self.probe(nodes, probes + 1, config, out);
            return;
        }
        let lost_member = self.quorum.iter().any(|member| nodes.contains(member));
        self.forget(|request| nodes.contains(&request.node), out);
        self.dead.extend(nodes);
        if self.is_waiting() && lost_member {
            self.ask_another_quorum(config, out);
        }
    }

    /// A node is back, and knows only what it had lent.
    fn on_back(
        &mut self,
        from: NodeId,
        lent: Option<Stamp>,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        self.forget(|request| request.node == from, out);
        let still_inside = self.held && self.mine == lent;
        if let Some(lent) = lent.filter(|lent| lent.node == self.id && !still_inside) {
            out.send(from, Loan::Release(lent));
        }
        if self.is_waiting() && self.quorum.contains(&from) {
            self.ask_another_quorum(config, out);
        }
    }
}
