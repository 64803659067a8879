//! Raft, Ongaro and Ousterhout 2014, as a study object: a leader is elected by a majority for a term, orders the
//! commands in its log, and commits what a majority holds.
//!
//! Source: coordination and agreement §5.6. Decided here: who notices first is elected only if a majority
//! votes for it and its log is as complete as theirs (§8, 21). Every node hosts a client; one that does not lead
//! forwards its command to the leader, and again until it sees it applied. A leader appends a forwarded command that an
//! earlier term left uncommitted once more, because only an entry of its own term lets it commit; the state
//! machine answers the first of the two. Instead of a timer that is reset, a timer fires every T to 2T and looks whether
//! a leader was heard since it last fired, so a silent leader is replaced after T to 4T.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::replicated_log::{Ask, Command, LogEntry, ReplicatedLog, Tell, User};
use crate::{
    Algorithm, Channels, Faults, Input, Machine, Message, NodeId, Output, Profile, Protocol, Setup,
    SetupError, Shape, Telling, Timer, erase_for,
};

mod labels;
mod leader;
pub(super) mod specimens;
#[cfg(test)]
mod tests;

pub(crate) const ALGORITHM: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "raft",
        title: "Raft, 2014",
        source: "coordination and agreement §5.6",
        channels: Channels::AnyOrder,
        survives_crashes: true,
        keeps_storage: true,
        tolerates: |setup| {
            let minority = (setup.users as u32).saturating_sub(1) / 2;
            Faults {
                crashes: minority,
                restarts: minority,
                ..Faults::NONE
            }
        },
        idle_traffic: true,
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| servers(setup, None, |_| None),
};

/// What a specimen does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    /// A leader commits whatever a majority holds, also entries of earlier terms.
    CountsOldTerms,
    /// A vote is given without looking at the candidate's log.
    NoLogCheck,
    /// The vote of a term is forgotten in a crash.
    ForgetsVote,
    /// Every election timeout is the same.
    FixedTimeout,
}

/// What a server has on its disk when a run begins in the middle.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Disk {
    term: u32,
    voted_for: Option<NodeId>,
    log: Vec<LogEntry>,
}

/// As many servers as users, each with what `disk` gives it.
fn servers(
    setup: &Setup,
    flaw: Option<Flaw>,
    disk: fn(NodeId) -> Option<Disk>,
) -> Result<Box<dyn Machine<ReplicatedLog>>, SetupError> {
    let servers = setup.at_least(1)?;
    let config = Config {
        servers,
        delay_bound: setup.delay_bound.max(1),
        flaw,
        disk,
    };
    let user = |user| User::new(user, setup);
    Ok(erase_for::<Raft>(Shape::users(servers), user, config))
}

#[derive(Clone, Copy, Debug)]
struct Config {
    servers: usize,
    delay_bound: u64,
    flaw: Option<Flaw>,
    disk: fn(NodeId) -> Option<Disk>,
}

impl Config {
    /// T, in delay bounds: several times the round trip of an election.
    const ELECTION: u64 = 10;
    /// Between two heartbeats: several fit into T, so that a lost one does no harm.
    const HEARTBEAT: u64 = 3;

    fn majority(&self) -> usize {
        self.servers / 2 + 1
    }
}

const ELECTION: Timer = Timer(0);
const HEARTBEAT: Timer = Timer(1);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Raft {
    id: NodeId,
    // On stable storage.
    term: u32,
    voted_for: Option<NodeId>,
    log: Vec<LogEntry>,
    // Lost in a crash.
    commit: usize,
    applied: usize,
    role: Role,
    /// Who leads in this term, as far as known.
    leader: Option<NodeId>,
    /// Whether a leader or a candidate that got the vote was heard since the election timer last fired.
    heard: bool,
    /// Whether the heartbeat timer is set.
    beats: bool,
    /// The command that the node's own client waits for.
    wish: Option<Command>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Role {
    Follower,
    Candidate {
        votes: BTreeSet<NodeId>,
    },
    Leader {
        /// For each server, the index of the next entry to send, and how much of its log is known to match.
        next: Vec<usize>,
        matches: Vec<usize>,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Rpc {
    /// From a client's node to the leader.
    Forward(Command),
    RequestVote {
        term: u32,
        last_index: u32,
        last_term: u32,
    },
    Vote {
        term: u32,
        granted: bool,
    },
    AppendEntries {
        term: u32,
        prev_index: u32,
        prev_term: u32,
        entries: Vec<LogEntry>,
        commit: u32,
    },
    /// How much of the log matches; on failure, the index at which it does not.
    Appended {
        term: u32,
        success: bool,
        index: u32,
    },
}

impl Message for Rpc {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        // Nothing else is sent before somebody has led; the terms of entries in an empty log are none.
        if let Rpc::RequestVote { term, .. } | Rpc::Vote { term, .. } = self {
            visit_term(term, visit);
        }
    }
}

fn visit_term(term: &mut u32, visit: &mut dyn FnMut(&mut u64)) {
    let mut time = u64::from(*term);
    visit(&mut time);
    *term = time as u32;
}

impl Protocol for Raft {
    type Problem = ReplicatedLog;
    type Message = Rpc;
    type Config = Config;

    fn new(id: NodeId, config: &Config) -> Self {
        let disk = (config.disk)(id).unwrap_or(Disk {
            term: 0,
            voted_for: None,
            log: Vec::new(),
        });
        Raft::from_disk(id, disk)
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit_term(&mut self.term, visit);
    }

    fn restart(&self, id: NodeId, config: &Config) -> Self {
        let forgets = config.flaw == Some(Flaw::ForgetsVote);
        Raft::from_disk(
            id,
            Disk {
                term: self.term,
                voted_for: self.voted_for.filter(|_| !forgets),
                log: self.log.clone(),
            },
        )
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Start => {
                self.tell_log_from(1, out);
                self.set_election_timer(config, out);
            }
            Input::Ask(Ask::Propose(command)) => {
                self.wish = Some(command);
                self.forward(config, out);
            }
            Input::Timer(ELECTION) => {
                self.set_election_timer(config, out);
                if self.is_leader() {
                    return;
                }
                match std::mem::take(&mut self.heard) {
                    true => self.forward(config, out),
                    false => self.stand(config, out),
                }
            }
            Input::Timer(_) => {
                self.beats = self.is_leader();
                if self.beats {
                    self.set_heartbeat_timer(config, out);
                    self.append_at_all(config, out);
                }
            }
            Input::Message { from, message } => self.hear(from, message, config, out),
        }
    }
}

impl Raft {
    fn from_disk(id: NodeId, disk: Disk) -> Raft {
        Raft {
            id,
            term: disk.term,
            voted_for: disk.voted_for,
            log: disk.log,
            commit: 0,
            applied: 0,
            role: Role::Follower,
            leader: None,
            heard: false,
            beats: false,
            wish: None,
        }
    }

    fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader { .. })
    }

    fn set_election_timer(&self, config: &Config, out: &mut Output<Self>) {
        let least = Config::ELECTION * config.delay_bound;
        let most = match config.flaw {
            Some(Flaw::FixedTimeout) => least,
            _ => 2 * least,
        };
        out.after(least..most + 1, ELECTION);
    }

    fn set_heartbeat_timer(&self, config: &Config, out: &mut Output<Self>) {
        let span = Config::HEARTBEAT * config.delay_bound;
        out.after(span..span + 1, HEARTBEAT);
    }

    /// Index and term of the last entry; 0 and 0 where there is none.
    fn last(&self) -> (u32, u32) {
        (self.log.len() as u32, self.term_at(self.log.len()))
    }

    fn term_at(&self, index: usize) -> u32 {
        match index {
            0 => 0,
            _ => self.log.get(index - 1).map_or(0, |entry| entry.term),
        }
    }

    /// Tells the user of the entries from this index on.
    fn tell_log_from(&self, first: usize, out: &mut Output<Self>) {
        for (at, &entry) in self.log.iter().enumerate().skip(first - 1) {
            let index = at as u32 + 1;
            out.tell(Tell::Wrote { index, entry });
        }
    }

    /// Brings the own client's command to the leader.
    fn forward(&mut self, config: &Config, out: &mut Output<Self>) {
        let Some(command) = self.wish else { return };
        if self.is_leader() {
            self.propose(command, config, out);
        } else if let Some(leader) = self.leader {
            out.send(leader, Rpc::Forward(command));
        }
    }

    fn stand(&mut self, config: &Config, out: &mut Output<Self>) {
        self.term += 1;
        self.voted_for = Some(self.id);
        self.leader = None;
        let votes = BTreeSet::from([self.id]);
        self.role = Role::Candidate { votes };
        let (last_index, last_term) = self.last();
        let request = Rpc::RequestVote {
            term: self.term,
            last_index,
            last_term,
        };
        out.send_all(self.id.others(config.servers), &request);
        self.count_votes(config, out);
    }

    fn count_votes(&mut self, config: &Config, out: &mut Output<Self>) {
        match &self.role {
            Role::Candidate { votes } if votes.len() >= config.majority() => {}
            _ => return,
        }
        self.role = Role::Leader {
            next: vec![self.log.len() + 1; config.servers],
            matches: vec![0; config.servers],
        };
        self.leader = Some(self.id);
        out.tell(Tell::Leads { term: self.term });
        if !std::mem::replace(&mut self.beats, true) {
            self.set_heartbeat_timer(config, out);
        }
        let length = self.log.len();
        self.forward(config, out);
        if self.log.len() == length {
            self.append_at_all(config, out);
        }
    }

    fn hear(&mut self, from: NodeId, message: Rpc, config: &Config, out: &mut Output<Self>) {
        match message {
            Rpc::Forward(command) if self.is_leader() => self.propose(command, config, out),
            Rpc::Forward(_) => {}
            Rpc::RequestVote {
                term,
                last_index,
                last_term,
            } => {
                self.see_term(term, out);
                let complete = (last_term, last_index) >= {
                    let (index, term) = self.last();
                    (term, index)
                };
                let granted = term == self.term
                    && self.voted_for.is_none_or(|voted| voted == from)
                    && (complete || config.flaw == Some(Flaw::NoLogCheck));
                if granted {
                    self.voted_for = Some(from);
                    self.heard = true;
                }
                let term = self.term;
                out.send(from, Rpc::Vote { term, granted });
            }
            Rpc::Vote { term, granted } => {
                self.see_term(term, out);
                if term == self.term
                    && granted
                    && let Role::Candidate { votes } = &mut self.role
                {
                    votes.insert(from);
                    self.count_votes(config, out);
                }
            }
            Rpc::AppendEntries {
                term,
                prev_index,
                prev_term,
                entries,
                commit,
            } => {
                self.see_term(term, out);
                let matched = match term == self.term {
                    true => {
                        self.follow(from, config, out);
                        self.write(prev_index as usize, prev_term, &entries, out)
                    }
                    false => None,
                };
                if let Some(matched) = matched {
                    self.commit = self.commit.max(matched.min(commit as usize));
                    self.apply(out);
                }
                let reply = Rpc::Appended {
                    term: self.term,
                    success: matched.is_some(),
                    index: matched.map_or(prev_index, |matched| matched as u32),
                };
                out.send(from, reply);
            }
            Rpc::Appended {
                term,
                success,
                index,
            } => {
                self.see_term(term, out);
                if term == self.term {
                    self.appended(from, success, index as usize, config, out);
                }
            }
        }
    }

    /// A larger term makes everybody a follower in it.
    fn see_term(&mut self, term: u32, out: &mut Output<Self>) {
        if term <= self.term {
            return;
        }
        if self.is_leader() {
            out.tell(Tell::Follows);
        }
        self.term = term;
        self.voted_for = None;
        self.leader = None;
        self.role = Role::Follower;
    }

    fn follow(&mut self, leader: NodeId, config: &Config, out: &mut Output<Self>) {
        self.heard = true;
        if self.leader != Some(leader) && !self.is_leader() {
            self.role = Role::Follower;
            self.leader = Some(leader);
            self.forward(config, out);
        }
    }

    /// Writes what a leader sent after the entry before it; how far the logs match then, or none where that entry is
    /// missing.
    fn write(
        &mut self,
        prev: usize,
        prev_term: u32,
        entries: &[LogEntry],
        out: &mut Output<Self>,
    ) -> Option<usize> {
        if prev > self.log.len() || self.term_at(prev) != prev_term {
            return None;
        }
        let held = self.log[prev..].iter().zip(entries);
        let same = held.take_while(|(held, new)| held.term == new.term).count();
        let (first, matched) = (prev + same, prev + entries.len());
        // Only a conflict deletes: an old message must not shorten the log.
        if first < matched {
            self.log.truncate(first);
            self.log.extend_from_slice(&entries[same..]);
            self.tell_log_from(first + 1, out);
        }
        Some(matched)
    }

    fn apply(&mut self, out: &mut Output<Self>) {
        while self.applied < self.commit {
            let entry = self.log[self.applied];
            self.applied += 1;
            let index = self.applied as u32;
            out.tell(Tell::Applied {
                index,
                entry,
                term: self.term,
            });
            if let Some(command) = entry.command.filter(|_| entry.command == self.wish) {
                self.wish = None;
                out.tell(Tell::Answered { index, command });
            }
        }
    }
}
