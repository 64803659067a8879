//! Where a command is carried out in a cluster: by the owner of a name, by the node that received it, or by all members.
//! Locks and a connection's own session need no route: their estate asks the owners itself.

use testigo_core::estate::Peer;
use testigo_core::{JobId, Name, QueueId, SessionId, Shard};

use crate::house::{ClientId, House, Step};
use crate::http::Part;
use crate::wire::Words;

/// Where a command goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// To this node, at once.
    Here,
    /// To this node, when its log is applied as far as any node's had come.
    Read,
    /// To the owner of a shard.
    Owner(Shard, Effect),
    /// To a node.
    Node(Peer, Effect),
    /// To the owners of these queues; the first job counts.
    Take(Vec<QueueId>),
    /// To the owner of the first of these shards, once it owns all of them.
    Unit(Vec<Shard>),
    /// To all members, each for what it owns or hosts.
    All(Merge, Effect),
    /// To the members one after the other, a page at a time; this word is the cursor.
    Pages(usize),
}

impl Route {
    /// Whether the command changes nothing.
    pub(super) fn reads(&self) -> bool {
        match self {
            Route::Read | Route::Pages(_) => true,
            Route::Owner(_, effect) | Route::Node(_, effect) | Route::All(_, effect) => {
                *effect != Effect::Changes
            }
            Route::Here | Route::Take(_) | Route::Unit(_) => false,
        }
    }
}

/// What happens if a command is carried out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// Nothing, but it needs what the log says.
    ReadsLog,
    /// It may have changed something.
    Changes,
}

/// How the answers of all members are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Rows, by their first value; the word names them in the refusal of too many.
    Rows(&'static str),
    /// Numbers.
    Sum,
    /// Lines of text, one member's after another's.
    Lines,
    /// The state as JSON, at most this many rows of a kind. Missing members are named.
    State { rows_max: usize },
    /// The same for the flows.
    Flows,
    /// The statistics of a flow.
    Stats,
    /// The same everywhere, except for numbers that only owners know and others give as 0.
    Most,
    /// A gate that is spread over the nodes: the owner's answer, with the people at all nodes.
    Gate,
    /// A pool: what the log says, with the parts of all. Missing members are named.
    Pool,
    /// How many slots of a pool each member uses; if none, the pool is deleted.
    PoolUse,
    /// Whether one of them says yes.
    Any,
    /// What the members have on record, one after the other. A member that does not answer has nothing.
    Records,
    /// Jobs, oldest first: at most this many, with a cursor or without.
    Jobs { rows_max: usize, paged: bool },
}

impl Merge {
    /// Whether it shows what has come after a while, and names the missing members.
    pub(crate) fn names_missing(self) -> bool {
        matches!(
            self,
            Merge::State { .. } | Merge::Flows | Merge::Records | Merge::Pool
        )
    }
}

/// How to find the route in the words.
#[derive(Clone, Copy)]
enum Place {
    Read,
    /// The word at this position after the command is a name.
    Name(usize, Effect),
    /// It is a gate, of which each node may know a part.
    Gate(usize, Merge),
    /// It is an election.
    Election(usize),
    /// It is a queue.
    Queue(usize, Effect),
    /// It is a job.
    Job(usize, Effect),
    /// It is a session, to be served by its home.
    Session(usize),
    /// It is a connection, to be served by its node; or a machine, to be served by all nodes.
    Client(usize),
    /// It is a session that the log must know.
    Resumed(usize),
    Take,
    Exec,
    All(Merge, Effect),
    GateList,
    JobCount,
    JobFind,
    State,
    Trace,
    /// It is a pool, of which each node has a part.
    Pool,
    /// What waits at each node.
    Waits,
}

struct RouteRow {
    command: &'static str,
    /// The word after it; empty for any.
    word: &'static str,
    place: Place,
}

const fn row(command: &'static str, word: &'static str, place: Place) -> RouteRow {
    RouteRow {
        command,
        word,
        place,
    }
}

#[rustfmt::skip]
const ROUTES: &[RouteRow] = &[
    row("FENCE", "CHECK", Place::Gate(1, Merge::Any)),
    row("GATE", "CREATE", Place::Name(1, Effect::Changes)),
    row("GATE", "DELETE", Place::Name(1, Effect::Changes)),
    row("GATE", "SHOW", Place::Gate(1, Merge::Gate)),
    row("GATE", "LIST", Place::GateList),
    row("ELECT", "LEADER", Place::Election(1)),
    row("ELECT", "SHOW", Place::Election(1)),
    row("ELECT", "LIST", Place::All(Merge::Rows("elections"), Effect::Reads)),
    row("POOL", "SHOW", Place::Pool),
    row("POOL", "DELETE", Place::All(Merge::PoolUse, Effect::ReadsLog)),
    row("POOL", "LIST", Place::Read),
    row("GROUP", "MEMBERS", Place::Read),
    row("SESSION", "LIST", Place::All(Merge::Rows("sessions"), Effect::Reads)),
    row("SESSION", "END", Place::Session(1)),
    row("SESSION", "RESUME", Place::Resumed(1)),
    row("CLIENT", "LIST", Place::All(Merge::Lines, Effect::Reads)),
    row("CLIENT", "END", Place::Client(1)),
    row("CLIENT", "UNBLOCK", Place::Client(1)),
    row("FLOW", "CLIENTS", Place::All(Merge::Rows("clients"), Effect::ReadsLog)),
    row("FLOW", "SHOW", Place::All(Merge::Most, Effect::ReadsLog)),
    row("FLOW", "LIST", Place::Read),
    row("FLOW", "STATS", Place::All(Merge::Stats, Effect::ReadsLog)),
    row("JOB", "CREATE", Place::Queue(1, Effect::Changes)),
    row("JOB", "TAKE", Place::Take),
    row("JOB", "PASS", Place::Job(1, Effect::Changes)),
    row("JOB", "DELETE", Place::Job(1, Effect::Changes)),
    row("JOB", "BACK", Place::Job(1, Effect::Changes)),
    row("JOB", "MOVE", Place::Job(1, Effect::Changes)),
    row("JOB", "SHOW", Place::Job(1, Effect::ReadsLog)),
    row("JOB", "LIST", Place::Queue(1, Effect::ReadsLog)),
    row("JOB", "COUNT", Place::JobCount),
    row("JOB", "HISTORY", Place::Job(1, Effect::ReadsLog)),
    row("JOB", "FIND", Place::JobFind),
    row("QUEUE", "SHOW", Place::Queue(1, Effect::ReadsLog)),
    row("QUEUE", "LIST", Place::All(Merge::Rows("queues"), Effect::ReadsLog)),
    row("CLUSTER", "ADD", Place::Read),
    row("CLUSTER", "WAITS", Place::Waits),
    row("CLUSTER", "BACKUP", Place::Read),
    row("STATE", "", Place::State),
    row("EXEC", "", Place::Exec),
    row("TRACE", "", Place::Trace),
];

impl House {
    /// Where a command of a connection goes. A command whose words are wrong is carried out here, and refused.
    pub(super) fn route(&self, id: ClientId, command: &str, words: Words<'_>) -> Route {
        if self.services.estate().is_none() {
            return Route::Here;
        }
        let is_row = |row: &&RouteRow| {
            let mut ahead = words;
            row.command == command && (row.word.is_empty() || ahead.keyword(row.word))
        };
        let Some(row) = ROUTES.iter().find(is_row) else {
            return Route::Here;
        };
        let routed = self.routed(id, row.place, words);
        match self.connections.client(id) {
            // It has reached its destination.
            Some(client) if client.is_visit() => match routed {
                Some(
                    Route::Read
                    | Route::Owner(_, Effect::ReadsLog)
                    | Route::All(_, Effect::ReadsLog),
                ) => Route::Read,
                _ => Route::Here,
            },
            _ => self.nearest(routed.unwrap_or(Route::Here)),
        }
    }

    fn routed(&self, id: ClientId, place: Place, words: Words<'_>) -> Option<Route> {
        let word = |at: usize| words.nth_text(at);
        let queue = |text: &str| self.queue_meant(id, text);
        Some(match place {
            Place::Read => Route::Read,
            Place::Name(at, effect) => Route::Owner(Shard::of(word(at)?), effect),
            Place::Gate(at, merge) => match self.is_spread(word(at)?) {
                true => Route::All(merge, Effect::Reads),
                false => Route::Owner(Shard::of(word(at)?), Effect::Reads),
            },
            Place::Election(at) => {
                let name = Name::election(word(at)?).ok()?;
                Route::Owner(Shard::of(&name), Effect::Reads)
            }
            Place::Queue(at, effect) => match queue(word(at)?) {
                Some(queue) => Route::Owner(self.shard_of(queue)?, effect),
                None => Route::Read,
            },
            Place::Job(at, effect) => {
                let job = JobId(word(at)?.parse().ok()?);
                match self.job_shard(job) {
                    Some(shard) => Route::Owner(shard, effect),
                    None => Route::Read,
                }
            }
            Place::Session(at) => {
                let session = SessionId::from_wire(word(at)?.parse().ok()?)?;
                match self.home_of(session) {
                    Some(home) => Route::Node(home, Effect::Changes),
                    // Any node may serve an orphan; a session unknown here may have been opened elsewhere.
                    None if self.replicated().session(session).is_some() => Route::Here,
                    None => Route::Read,
                }
            }
            Place::Client(at) if word(at)?.eq_ignore_ascii_case("MACHINE") => {
                Route::All(Merge::Sum, Effect::Changes)
            }
            Place::Client(at) => match self.host_of(word(at)?.parse().ok()?) {
                Some(host) => Route::Node(host, Effect::Changes),
                None => Route::Here,
            },
            Place::Resumed(at) => {
                let session = SessionId::from_wire(word(at)?.parse().ok()?)?;
                match self.replicated().session(session) {
                    Some(_) => Route::Here,
                    None => Route::Read,
                }
            }
            Place::Take => match self.taken_queues(id, words) {
                Some(queues) => Route::Take(queues),
                // A queue that is unknown here may be in the log.
                None if words.left() > 1 => Route::Read,
                None => Route::Here,
            },
            Place::Exec => {
                let unit = self.connections.client(id)?.unit.as_ref()?;
                let mut shards: Vec<Shard> = Vec::new();
                for step in unit.steps() {
                    shards.push(self.shard_of_step(step)?);
                }
                shards.sort_unstable();
                shards.dedup();
                match shards[..] {
                    [] => Route::Here,
                    _ => Route::Unit(shards),
                }
            }
            Place::All(merge, effect) => Route::All(merge, effect),
            Place::State => {
                let part = words.nth_text(1).and_then(Part::of).unwrap_or_default();
                let rows_max = part.rows_max();
                let merge = match part.is_of_flows() {
                    true => Merge::Flows,
                    false => Merge::State { rows_max },
                };
                Route::All(merge, Effect::Reads)
            }
            // Without a majority no other node would answer, and this node's part is what matters.
            Place::Pool | Place::Waits if self.check_acts().is_err() => Route::Here,
            Place::Waits => Route::All(Merge::Records, Effect::Reads),
            Place::Pool => Route::All(Merge::Pool, Effect::ReadsLog),
            Place::Trace => match word(1) {
                None => Route::All(Merge::Records, Effect::Reads),
                Some(word) if word.eq_ignore_ascii_case("ARRIVALS") => {
                    Route::All(Merge::Records, Effect::Reads)
                }
                Some(node) => Route::Node(self.member_numbered(node.parse().ok()?)?, Effect::Reads),
            },
            Place::GateList => match cursor_at(words) {
                Some(at) => Route::Pages(at),
                None => Route::All(Merge::Rows("gates"), Effect::Reads),
            },
            Place::JobFind => self.route_find(id, words)?,
            Place::JobCount => match words.left() {
                0 | 1 => Route::All(Merge::Sum, Effect::ReadsLog),
                _ => match queue(word(1)?) {
                    Some(queue) => Route::Owner(self.shard_of(queue)?, Effect::ReadsLog),
                    None => Route::Read,
                },
            },
        })
    }

    /// `JOB FIND pattern [IN queue] [CURSOR c] [LIMIT n]`.
    fn route_find(&self, id: ClientId, mut words: Words<'_>) -> Option<Route> {
        words.next_bytes();
        words.next_bytes();
        if words.keyword("IN") {
            return Some(match self.queue_meant(id, words.text("the queue").ok()?) {
                Some(queue) => Route::Owner(self.shard_of(queue)?, Effect::ReadsLog),
                None => Route::Read,
            });
        }
        let page = self.page(&mut words, |cursor| cursor.parse().ok().map(JobId));
        let page = page.ok().filter(|_| words.left() == 0)?;
        let jobs = Merge::Jobs {
            rows_max: page.rows_max,
            paged: page.paged,
        };
        Some(Route::All(jobs, Effect::ReadsLog))
    }

    fn queue_meant(&self, id: ClientId, text: &str) -> Option<QueueId> {
        self.queue_of(id, text, crate::users::Deed::Show).ok()
    }

    fn shard_of(&self, queue: QueueId) -> Option<Shard> {
        Some(self.replicated().queue(queue)?.shard())
    }

    /// The shard whose owner has a step's job in its books: that of its present queue, or of the queue in which it is
    /// created.
    fn shard_of_step(&self, step: &Step) -> Option<Shard> {
        match step {
            Step::Create { queue, .. } => self.shard_of(*queue),
            _ => self.job_shard(step.job()?),
        }
    }

    /// The queues of a `JOB TAKE`; `None` if one of them does not exist.
    fn taken_queues(&self, id: ClientId, mut words: Words<'_>) -> Option<Vec<QueueId>> {
        words.next_bytes();
        let mut queues = Vec::new();
        while words.left() > 0 {
            let first = queues.is_empty();
            if !first && (words.keyword("NAME") || words.keyword("WAIT")) {
                break;
            }
            queues.push(self.queue_meant(id, words.text("a queue").ok()?)?);
        }
        Some(queues).filter(|queues| !queues.is_empty())
    }

    /// The node that is a session's home.
    pub(crate) fn home_of(&self, session: SessionId) -> Option<Peer> {
        let view = self.replicated().view();
        if let Some(record) = self.replicated().session(session) {
            let home = (record.home.node, record.home.start);
            return view.has(home.0, home.1).then_some(home);
        }
        let mut members = view.members.iter();
        let home = members.find(|member| session.is_of(member.node, member.start))?;
        Some((home.node, home.start))
    }
}

/// Which word of `GATE LIST [pattern] [CURSOR c [LIMIT n]]` is the cursor, counted from the command's name.
fn cursor_at(mut words: Words<'_>) -> Option<usize> {
    words.next_bytes();
    // The options come in pairs.
    let pairs = words.left().is_multiple_of(2);
    let before = match pairs {
        true => 2,
        false => {
            words.next_bytes();
            3
        }
    };
    words.keyword("CURSOR").then_some(before + 1)
}

#[cfg(test)]
mod tests {
    use super::super::table::COMMANDS;
    use super::*;

    #[test]
    fn routes_are_of_commands_that_there_are() {
        for route in ROUTES {
            let known = COMMANDS.iter().any(|row| row.name == route.command);
            assert!(known, "{}", route.command);
        }
    }
}
