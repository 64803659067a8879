//! The words of a replicated log, its user, and its properties: users have commands put into one sequence
//! that every node applies in the same order.
//!
//! Besides the answers to its own commands, a user is told what its node wrote, led, prepared and applied:
//! all that the properties of Raft (§5.6) and PBFT (§5.7) speak of.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{pbft, raft};
use crate::{Algorithm, Counted, Next, NodeId, Phase, Problem, Setup, UserId};

/// Every algorithm of this problem, in the order in which they are listed to people.
pub static ALGORITHMS: &[&Algorithm<ReplicatedLog>] = &[&raft::ALGORITHM, &pbft::ALGORITHM];

/// Those that are kept in order to be refuted.
pub static SPECIMENS: &[&Algorithm<ReplicatedLog>] = &[
    &raft::specimens::OLD_TERM,
    &raft::specimens::NO_LOG_CHECK,
    &raft::specimens::FORGETS_VOTE,
    &raft::specimens::FIXED_TIMEOUT,
    &pbft::specimens::THREE,
    &pbft::specimens::NO_COMMIT,
];

/// The problem of one log at many nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReplicatedLog;

/// A command: the `number`-th of its client, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Command {
    pub client: NodeId,
    pub number: u32,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}#{}", self.client, self.number)
    }
}

/// What a log holds at an index: a command, or nothing at all where a view change filled a gap; and the term
/// that wrote it, 0 where there are no terms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LogEntry {
    pub term: u32,
    pub command: Option<Command>,
}

impl fmt::Debug for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command {
            Some(command) => write!(f, "{command:?}@{}", self.term),
            None => write!(f, "nothing@{}", self.term),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    Propose(Command),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tell {
    /// To the client: its command is in the sequence, at this index.
    Answered { index: u32, command: Command },
    /// The node's log now ends with this entry, at this index.
    Wrote { index: u32, entry: LogEntry },
    /// The node applied this entry; `term` is the node's own by then.
    Applied {
        index: u32,
        entry: LogEntry,
        term: u32,
    },
    /// The node won the election of this term.
    Leads { term: u32 },
    /// The node does not lead any more.
    Follows,
    /// The node holds proof that a quorum agrees to this command at this index of this view.
    Prepared {
        view: u32,
        index: u32,
        command: Option<Command>,
    },
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tell::Answered { index, command } => write!(f, "Answered({index}: {command:?})"),
            Tell::Wrote { index, entry } => write!(f, "Wrote({index}: {entry:?})"),
            Tell::Applied { index, entry, term } => {
                write!(f, "Applied({index}: {entry:?}, term {term})")
            }
            Tell::Leads { term } => write!(f, "Leads(term {term})"),
            Tell::Follows => f.write_str("Follows"),
            Tell::Prepared {
                view,
                index,
                command: Some(command),
            } => write!(f, "Prepared(view {view}, {index}: {command:?})"),
            Tell::Prepared { view, index, .. } => {
                write!(f, "Prepared(view {view}, {index}: nothing)")
            }
        }
    }
}

impl Problem for ReplicatedLog {
    const NAME: &'static str = "replicated-log";
    const COUNTED: Counted = Counted::DECISIONS;
    type Ask = Ask;
    type Tell = Tell;
    type User = User;
    type Monitor = ();

    fn violation(users: &[User]) -> Option<String> {
        let honest = || users.iter().enumerate().filter(|(_, user)| !user.lies);
        for (one, user) in honest() {
            if let Some(what) = user
                .contradicts_itself(one)
                .or_else(|| invented(users, one))
            {
                return Some(what);
            }
            for (other, second) in honest().filter(|(other, _)| *other != one) {
                if let Some(what) = misses_committed((one, user), (other, second))
                    .or_else(|| wrong_answer((one, user), (other, second)))
                {
                    return Some(what);
                }
                if one < other
                    && let Some(what) = differ((one, user), (other, second))
                {
                    return Some(what);
                }
            }
        }
        None
    }
}

type Of<'a> = (usize, &'a User);

/// What no two nodes may differ in, whichever of them comes first.
fn differ((one, user): Of<'_>, (other, second): Of<'_>) -> Option<String> {
    // Election safety: at most one leader in a term.
    if let Some(term) = user.led.iter().find(|term| second.led.contains(term)) {
        return Some(format!("p{one} and p{other} both lead in term {term}"));
    }
    // State-machine safety, or in PBFT's words: executed sequences are prefixes of each other.
    let pairs = user.applied.iter().zip(&second.applied);
    if let Some((at, (a, b))) = pairs.enumerate().find(|(_, (a, b))| a.entry != b.entry) {
        let (a, b) = (a.entry, b.entry);
        let index = at + 1;
        return Some(format!(
            "p{one} applied {a:?} at {index}, and p{other} {b:?}"
        ));
    }
    // Log matching: equal terms at an index mean equal logs up to it.
    let shared = user.log.len().min(second.log.len());
    let same_term = |at: &usize| user.log[*at].term == second.log[*at].term;
    if let Some(last) = (0..shared).rev().find(same_term)
        && let Some(at) = (0..=last).find(|&at| user.log[at] != second.log[at])
    {
        let (a, b) = (user.log[at], second.log[at]);
        let (index, last) = (at + 1, last + 1);
        return Some(format!(
            "the logs of p{one} and p{other} have the same term at {last}, but {a:?} and {b:?} at {index}"
        ));
    }
    // PBFT: no two digests prepared for the same view and number.
    for (view, index, a) in &user.prepared {
        let same = |(v, i, b): &&(u32, u32, Option<Command>)| (v, i) == (view, index) && b != a;
        if let Some((.., b)) = second.prepared.iter().find(same) {
            return Some(format!(
                "p{one} prepared {a:?} at {index} in view {view}, and p{other} {b:?}"
            ));
        }
    }
    None
}

/// Leader completeness: an entry committed in a term is in the log of every leader of a later one.
fn misses_committed((one, user): Of<'_>, (other, leader): Of<'_>) -> Option<String> {
    let leads = leader.leads?;
    let misses = |(at, applied): &(usize, &Applied)| {
        applied.in_term < leads && leader.log.get(*at) != Some(&applied.entry)
    };
    let (at, applied) = user.applied.iter().enumerate().find(misses)?;
    Some(format!(
        "p{other} leads in term {leads} without {:?} at {}, which p{one} applied in term {}",
        applied.entry,
        at + 1,
        applied.in_term
    ))
}

/// A client was given an index at which somebody applied another command.
fn wrong_answer((one, user): Of<'_>, (other, second): Of<'_>) -> Option<String> {
    let wrong = |&&(index, command): &&(u32, Command)| {
        let applied = index
            .checked_sub(1)
            .map(|at| second.applied.get(at as usize));
        let applied = applied.flatten();
        applied.is_some_and(|applied| applied.entry.command != Some(command))
    };
    let (index, command) = user.answered.iter().find(wrong)?;
    Some(format!(
        "p{one} was told that {command:?} is at {index}, where p{other} applied another"
    ))
}

/// Validity: what is applied was asked for by its client.
fn invented(users: &[User], one: usize) -> Option<String> {
    let unasked = |command: &Command| {
        let client = users.get(command.client.index());
        client.is_none_or(|client| client.asked < command.number && !client.lies)
    };
    let commands = users[one].applied.iter();
    let command = commands.filter_map(|a| a.entry.command).find(unasked)?;
    Some(format!(
        "p{one} applied {command:?}, for which nobody asked"
    ))
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Applied {
    entry: LogEntry,
    /// The term of its node by then.
    in_term: u32,
}

/// A user of a replicated log: it proposes one command after the other, and remembers what its node told it.
/// A crash does not take that away, since what was applied once must stay true.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct User {
    me: NodeId,
    /// Whether it only listens.
    listens: bool,
    /// Whether its node has ever lied.
    lies: bool,
    /// Commands so far.
    asked: u32,
    waits: bool,
    answered: Vec<(u32, Command)>,
    leads: Option<u32>,
    led: Vec<u32>,
    log: Vec<LogEntry>,
    applied: Vec<Applied>,
    /// An index that its node applied twice, and differently.
    reapplied: Option<u32>,
    prepared: Vec<(u32, u32, Option<Command>)>,
}

impl User {
    /// A user of so many, of whom the first `proposers` propose.
    pub fn new(me: UserId, setup: &Setup) -> User {
        User {
            me: NodeId(me.0),
            listens: setup
                .proposers
                .is_some_and(|proposers| me.index() >= proposers),
            ..User::default()
        }
    }

    fn contradicts_itself(&self, one: usize) -> Option<String> {
        let index = self.reapplied?;
        Some(format!("p{one} applied two different entries at {index}"))
    }
}

impl Default for User {
    fn default() -> Self {
        User {
            me: NodeId(0),
            listens: false,
            lies: false,
            asked: 0,
            waits: false,
            answered: Vec::new(),
            leads: None,
            led: Vec::new(),
            log: Vec::new(),
            applied: Vec::new(),
            reapplied: None,
            prepared: Vec::new(),
        }
    }
}

impl crate::User<ReplicatedLog> for User {
    fn next(&self) -> Next<Ask> {
        match self.waits || self.listens {
            true => Next::Nothing,
            false => Next::May(Ask::Propose(Command {
                client: self.me,
                number: self.asked + 1,
            })),
        }
    }

    fn asked(&mut self, Ask::Propose(command): Ask) {
        self.asked = command.number;
        self.waits = true;
    }

    fn told(&mut self, tell: Tell) -> Result<(), String> {
        match tell {
            Tell::Answered { index, command } => {
                if !self.waits || (command.client, command.number) != (self.me, self.asked) {
                    return Err(format!("told of {command:?} without waiting for it"));
                }
                self.waits = false;
                self.answered.push((index, command));
            }
            Tell::Wrote { index, entry } => {
                let kept = index as usize - 1;
                if kept > self.log.len() {
                    return Err(format!("told of an entry at {index}, with a gap before it"));
                }
                if self.leads.is_some() && kept < self.log.len() {
                    return Err(format!("a leader, and its log was overwritten at {index}"));
                }
                self.log.truncate(kept);
                self.log.push(entry);
            }
            Tell::Applied { index, entry, term } => match self.applied.get(index as usize - 1) {
                // It came back from a crash and applies its log again.
                Some(applied) if applied.entry == entry => {}
                Some(_) => self.reapplied = Some(index),
                None if index as usize == self.applied.len() + 1 => self.applied.push(Applied {
                    entry,
                    in_term: term,
                }),
                None => return Err(format!("told to apply {index}, with a gap before it")),
            },
            Tell::Leads { term } => {
                self.leads = Some(term);
                self.led.push(term);
            }
            Tell::Follows => self.leads = None,
            Tell::Prepared {
                view,
                index,
                command,
            } => self.prepared.push((view, index, command)),
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        match self.waits {
            true => Phase::Waiting,
            false => Phase::Idle,
        }
    }

    /// Terms: nobody is told of one before somebody leads, or has led.
    fn knows_a_time(&self) -> bool {
        !(self.led.is_empty() && self.log.is_empty() && self.applied.is_empty())
    }

    fn deceived(&mut self) {
        self.lies = true;
    }

    fn crashed(&self, _: &User) -> User {
        User {
            waits: false,
            leads: None,
            ..self.clone()
        }
    }
}
