//! PBFT, Castro and Liskov 1999: a log that stands f liars among 3f+1 replicas. The primary of a view orders, the
//! replicas agree on its order in two all-to-all exchanges, and replace a primary that is silent or lies.
//!
//! Source: coordination and agreement §5.7. Decided here (§8, 22): pre-prepare is the proposal, prepare and commit are
//! the exchanges. The first 3f+1 nodes are replicas, and every node hosts a client. Messages are signed: a view change
//! carries its certificates as facts, because no lie can contain a signature that the liar does not have. A request
//! stands for its own digest. A new view is the set of view changes that it follows from, so that what it must propose is
//! computed by whoever gets it. A replica that is behind a stable checkpoint fetches the executed sequence and holds it
//! against the checkpoint's digest.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::replicated_log::{Ask, Command, LogEntry, ReplicatedLog, Tell, User};
use crate::{
    Algorithm, Channels, Cost, Faults, Input, Machine, Message, NodeId, Output, Profile, Protocol,
    Range, Setup, SetupError, Shape, Telling, Timer, erase_for,
};

mod execution;
mod labels;
mod lies;
#[cfg(test)]
mod refusals;
pub(super) mod specimens;
#[cfg(test)]
mod tests;
mod view_change;

use execution::{StateDigest, digest};
use view_change::ViewChange;

pub(crate) const ALGORITHM: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "pbft",
        title: "PBFT, 1999",
        source: "coordination and agreement §5.7",
        channels: Channels::AnyOrder,
        survives_lies: true,
        tolerates: |setup| Faults::liars(faulty(setup) as u32),
        costs: &[Cost::messages(
            "2n²−n+1 with a client of its own, and a checkpoint every 8",
            |setup| {
                let n = 3.0 * faulty(setup) as f64 + 1.0;
                let request = 2.0 * n * n - n + 1.0;
                let checkpoint = n * (n - 1.0) / f64::from(Config::CHECKPOINT_EVERY);
                // The primary's own client sends no request, and no replica sends a reply to its own.
                Range::new(request - 2.0, request + checkpoint)
            },
        )],
        telling: Telling {
            nodes: 4,
            entries: 1,
        },
        telling_proposers: Some(1),
        ..Profile::PLAIN
    },
    machine: |setup| {
        let users = setup.at_least(4)?;
        let f = faulty(setup);
        if f == 0 {
            let why = "it is made for at least 1 liar: use --faulty 1 or more";
            return Err(SetupError(why.into()));
        }
        if 3 * f + 1 > users {
            return Err(SetupError(format!(
                "{users} nodes do not stand {f} liars: use --faulty up to {}",
                (users - 1) / 3
            )));
        }
        let config = Config {
            replicas: 3 * f + 1,
            f,
            quorum: 2 * f + 1,
            delay_bound: 1,
            flaw: None,
            start: |_| None,
        };
        replicas(setup, config)
    },
};

/// f: as chosen, or as many as the nodes stand.
fn faulty(setup: &Setup) -> usize {
    setup.faulty.unwrap_or(setup.users.saturating_sub(1) / 3)
}

/// What a specimen does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    /// A request is executed when it is prepared.
    SkipsCommit,
}

fn replicas(setup: &Setup, config: Config) -> Result<Box<dyn Machine<ReplicatedLog>>, SetupError> {
    let config = Config {
        delay_bound: setup.delay_bound.max(1),
        ..config
    };
    let user = |user| User::new(user, setup);
    Ok(erase_for::<Pbft>(Shape::users(setup.users), user, config))
}

#[derive(Clone, Copy, Debug)]
struct Config {
    replicas: usize,
    f: usize,
    /// 2f+1, but for a specimen.
    quorum: usize,
    delay_bound: u64,
    flaw: Option<Flaw>,
    /// A replica in the middle of a run, where one begins there.
    start: fn(NodeId) -> Option<Pbft>,
}

impl Config {
    /// K: a checkpoint after so many requests.
    const CHECKPOINT_EVERY: u32 = 8;
    /// L: the log holds at most so many requests above the stable checkpoint.
    const LOG_MAX: u32 = 2 * Self::CHECKPOINT_EVERY;
    /// Messages of views so far ahead are not kept.
    const VIEWS_AHEAD_MAX: u32 = 64;
    /// What a client waits for its answer, and a backup for an execution, in delay bounds; a request that all goes
    /// well with takes five.
    const PATIENCE: u64 = 8;
    /// Patience doubles with every view that achieves nothing, so often at most.
    const DOUBLINGS_MAX: u32 = 10;

    fn all(&self) -> impl Iterator<Item = NodeId> + Clone + use<> {
        NodeId::all(self.replicas)
    }

    fn primary(&self, view: u32) -> NodeId {
        NodeId(view % self.replicas as u32)
    }

    fn is_replica(&self, node: NodeId) -> bool {
        node.index() < self.replicas
    }
}

/// A replica waits for its view to achieve something.
const VIEW: Timer = Timer(0);

/// A client waits for the answer to its command of this number.
fn answer(command: Command) -> Timer {
    Timer(1 + u64::from(command.number))
}

/// A request, or nothing where a new view fills a gap; it is its own digest.
type Digest = Option<Command>;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Pbft {
    id: NodeId,
    view: u32,
    /// Whether the view has begun; else it is being changed to.
    active: bool,
    /// The last number that this node gave as a primary.
    seq: u32,
    /// The last stable checkpoint, and the digest of what was executed up to it.
    low: u32,
    low_digest: StateDigest,
    /// What was heard of each number in this view and later ones.
    slots: BTreeMap<(u32, u32), Slot>,
    /// What was prepared last for each number above the checkpoint, and in which view.
    prepared: BTreeMap<u32, (u32, Digest)>,
    checkpoints: BTreeMap<u32, BTreeMap<NodeId, StateDigest>>,
    changes: BTreeMap<NodeId, ViewChange>,
    executed: Vec<Digest>,
    /// Requests that are known and not executed.
    requests: BTreeSet<Command>,
    /// What was achieved when the timer was set.
    timer: Option<(u32, bool, usize)>,
    /// Views given up since something was executed.
    given_up: u32,
    /// The command that the node's own client waits for, and where replicas say that it is.
    wish: Option<Command>,
    replies: BTreeMap<NodeId, u32>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Slot {
    pre_prepare: Option<Digest>,
    prepares: BTreeMap<NodeId, Digest>,
    commits: BTreeMap<NodeId, Digest>,
    prepared: bool,
    committed: bool,
}

impl Slot {
    fn matching(heard: &BTreeMap<NodeId, Digest>, digest: Digest) -> usize {
        heard.values().filter(|other| **other == digest).count()
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Signed {
    Request(Command),
    PrePrepare {
        view: u32,
        n: u32,
        request: Digest,
    },
    Prepare {
        view: u32,
        n: u32,
        digest: Digest,
    },
    Commit {
        view: u32,
        n: u32,
        digest: Digest,
    },
    /// To the client: where its command is in the sequence.
    Reply {
        view: u32,
        command: Command,
        index: u32,
    },
    Checkpoint {
        n: u32,
        digest: StateDigest,
    },
    ViewChange(ViewChange),
    NewView {
        view: u32,
        changes: BTreeMap<NodeId, ViewChange>,
    },
    /// What was executed up to here, please.
    Fetch {
        n: u32,
    },
    State {
        executed: Vec<Digest>,
    },
}

impl Message for Signed {}

impl Protocol for Pbft {
    type Problem = ReplicatedLog;
    type Message = Signed;
    type Config = Config;

    fn new(id: NodeId, config: &Config) -> Self {
        (config.start)(id).unwrap_or_else(|| Pbft::first(id))
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Start => self.tell_executed_from(1, out),
            Input::Ask(Ask::Propose(command)) => {
                self.wish = Some(command);
                self.replies.clear();
                out.send(config.primary(self.view), Signed::Request(command));
                out.after(self.patience(0, config), answer(command));
            }
            Input::Timer(VIEW) => self.lose_patience(config, out),
            Input::Timer(timer) => {
                if let Some(command) = self.wish.filter(|&command| answer(command) == timer) {
                    out.send_all(config.all(), &Signed::Request(command));
                    out.after(self.patience(0, config), timer);
                }
            }
            Input::Message { from, message } => {
                if config.is_replica(self.id) {
                    self.hear(from, &message, config, out);
                }
                if let Signed::Reply {
                    view,
                    command,
                    index,
                } = message
                    && config.is_replica(from)
                    && self.wish == Some(command)
                {
                    self.hear_reply(from, view, index, config, out);
                }
            }
        }
        if config.is_replica(self.id) {
            self.set_timer(config, out);
        }
    }

    fn lies(message: &Signed, config: &Config) -> Vec<Signed> {
        lies::lies(message, config)
    }
}

impl Pbft {
    fn first(id: NodeId) -> Pbft {
        Pbft {
            id,
            view: 0,
            active: true,
            seq: 0,
            low: 0,
            low_digest: digest(&[]),
            slots: BTreeMap::new(),
            prepared: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            changes: BTreeMap::new(),
            executed: Vec::new(),
            requests: BTreeSet::new(),
            timer: None,
            given_up: 0,
            wish: None,
            replies: BTreeMap::new(),
        }
    }

    /// f+1 equal replies: one of them is from a replica that does not lie.
    fn hear_reply(
        &mut self,
        from: NodeId,
        view: u32,
        index: u32,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        self.replies.insert(from, index);
        let same = self.replies.values().filter(|other| **other == index);
        if same.count() == config.f + 1
            && let Some(command) = self.wish.take()
        {
            if !config.is_replica(self.id) {
                self.view = self.view.max(view);
            }
            out.tell(Tell::Answered { index, command });
        }
    }

    fn hear(&mut self, from: NodeId, message: &Signed, config: &Config, out: &mut Output<Self>) {
        match *message {
            Signed::Request(command) => self.hear_request(from, command, config, out),
            // Who may speak for the others is checked here; all else is a replica's own word.
            Signed::PrePrepare { view, .. } | Signed::NewView { view, .. }
                if from != config.primary(view) => {}
            _ if !config.is_replica(from) => {}
            Signed::PrePrepare { view, n, request } => {
                let Some(slot) = self.slot(view, n).filter(|_| request.is_some()) else {
                    return;
                };
                // Only the first is accepted: no other digest for the same view and number.
                if slot.pre_prepare.is_none() {
                    slot.pre_prepare = Some(request);
                    self.accept(n, view, config, out);
                }
            }
            Signed::Prepare { view, n, digest } if from != config.primary(view) => {
                if let Some(slot) = self.slot(view, n) {
                    slot.prepares.entry(from).or_insert(digest);
                    self.advance(n, config, out);
                }
            }
            Signed::Commit { view, n, digest } => {
                if let Some(slot) = self.slot(view, n) {
                    slot.commits.entry(from).or_insert(digest);
                    self.advance(n, config, out);
                }
            }
            Signed::Checkpoint { n, digest } if n > self.low && n <= self.low + Config::LOG_MAX => {
                let heard = self.checkpoints.entry(n).or_default();
                heard.entry(from).or_insert(digest);
                let same = heard.values().filter(|other| **other == digest);
                if same.count() >= config.quorum {
                    self.stabilise(n, digest, config, out);
                    self.propose(config, out);
                }
            }
            Signed::ViewChange(ref change) => self.hear_change(from, change, config, out),
            Signed::NewView { view, ref changes } => {
                self.hear_new_view(view, changes, config, out);
            }
            Signed::Fetch { n } if n as usize <= self.executed.len() => {
                let executed = self.executed[..n as usize].to_vec();
                out.send(from, Signed::State { executed });
            }
            Signed::State { ref executed } => self.hear_state(executed, config, out),
            _ => {}
        }
    }

    /// What was heard of a number, where the number lies within the log and the view is not over.
    fn slot(&mut self, view: u32, n: u32) -> Option<&mut Slot> {
        let kept = self.low < n
            && n <= self.low + Config::LOG_MAX
            && self.view <= view
            && view <= self.view + Config::VIEWS_AHEAD_MAX;
        kept.then(|| self.slots.entry((view, n)).or_default())
    }

    fn hear_request(
        &mut self,
        from: NodeId,
        command: Command,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        if let Some(at) = self.executed.iter().position(|e| *e == Some(command)) {
            return self.reply(command, at as u32 + 1, out);
        }
        let is_new = self.requests.insert(command);
        let primary = config.primary(self.view);
        if primary == self.id {
            self.propose(config, out);
        } else if is_new && from == command.client {
            out.send(primary, Signed::Request(command));
        }
    }

    fn reply(&self, command: Command, index: u32, out: &mut Output<Self>) {
        let view = self.view;
        let reply = Signed::Reply {
            view,
            command,
            index,
        };
        out.send(command.client, reply);
    }

    /// The primary gives numbers to the requests that have none in this view.
    fn propose(&mut self, config: &Config, out: &mut Output<Self>) {
        let view = self.view;
        if !self.active || config.primary(view) != self.id {
            return;
        }
        let of_view = self.slots.range((view, 0)..=(view, u32::MAX));
        let proposed: BTreeSet<Digest> = of_view.filter_map(|(_, slot)| slot.pre_prepare).collect();
        for &command in &self.requests {
            let request = Some(command);
            if proposed.contains(&request) || self.seq >= self.low + Config::LOG_MAX {
                continue;
            }
            self.seq += 1;
            let n = self.seq;
            // Its own is accepted within this step, as those of the backups when they arrive.
            out.send_all(config.all(), &Signed::PrePrepare { view, n, request });
        }
    }

    /// A number has its pre-prepare, and the view is the current one: the backup prepares it.
    fn accept(&mut self, n: u32, view: u32, config: &Config, out: &mut Output<Self>) {
        let Some(Some(digest)) = self.slots.get(&(view, n)).map(|slot| slot.pre_prepare) else {
            return;
        };
        if view != self.view || !self.active {
            return;
        }
        if let Some(command) = digest
            && !self.executed.contains(&digest)
        {
            self.requests.insert(command);
        }
        if config.primary(view) != self.id {
            out.send_all(config.all(), &Signed::Prepare { view, n, digest });
        }
        self.advance(n, config, out);
    }

    /// Looks whether a number is prepared, and whether it is committed.
    fn advance(&mut self, n: u32, config: &Config, out: &mut Output<Self>) {
        let view = self.view;
        let Some(slot) = self.slots.get_mut(&(view, n)).filter(|_| self.active) else {
            return;
        };
        let Some(digest) = slot.pre_prepare else {
            return;
        };
        let backups = Slot::matching(&slot.prepares, digest);
        if !slot.prepared && backups + 1 >= config.quorum {
            slot.prepared = true;
            self.prepared.insert(n, (view, digest));
            out.tell(Tell::Prepared {
                view,
                index: n,
                command: digest,
            });
            match config.flaw {
                Some(Flaw::SkipsCommit) => slot.committed = true,
                None => out.send_all(config.all(), &Signed::Commit { view, n, digest }),
            }
        }
        let commits = Slot::matching(&slot.commits, digest);
        slot.committed |= slot.prepared && commits >= config.quorum;
        self.execute(config, out);
    }

    fn patience(&self, doublings: u32, config: &Config) -> std::ops::Range<u64> {
        let doublings = doublings.min(Config::DOUBLINGS_MAX);
        let span = (Config::PATIENCE * config.delay_bound) << doublings;
        span..span + 1
    }
}
