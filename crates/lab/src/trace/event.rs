//! What a trace is made of.

use testigo_protocol::{NodeId, Profile, Setup, SetupError, Shape, UserId};
use testigo_sim::{Memory, Time};

use super::{AskKind, Network, TellKind};

/// A run, from its set-up to its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub header: Header,
    pub events: Vec<(Time, Event)>,
}

/// What must be known to run it again.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Header {
    pub algorithm: String,
    pub users: usize,
    /// The name of every node, those with users first.
    pub names: Vec<String>,
    /// How many users are at each node, where they share nodes.
    pub seats: Vec<usize>,
    /// What was chosen about the algorithm: a word and a value each.
    pub chosen: Vec<(String, String)>,
    /// What the algorithm was told; zero where it was told nothing.
    pub delay_bound: Time,
    /// What links and nodes may do, in a simulated run.
    pub network: Option<Network>,
    pub clock: Clock,
    /// Whether it was read from the first format, whose asks and tells have no kind of their own.
    pub is_old: bool,
    /// How it came about, for people.
    pub made_by: String,
}

/// What the time of an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Clock {
    /// Message times, in a simulated run.
    #[default]
    Units,
    /// The number of its step, in a schedule.
    Steps,
    /// Milliseconds, in a live run: one that nodes have recorded.
    Milliseconds,
}

impl Clock {
    pub(super) const ALL: [Clock; 3] = [Clock::Units, Clock::Steps, Clock::Milliseconds];

    pub fn word(self) -> &'static str {
        match self {
            Clock::Units => "units",
            Clock::Steps => "steps",
            Clock::Milliseconds => "milliseconds",
        }
    }
}

impl Header {
    /// The header of a run of this algorithm.
    pub(crate) fn new(profile: &Profile, shape: &Shape, setup: &Setup, made_by: String) -> Header {
        let chosen = setup.chosen().into_iter();
        Header {
            algorithm: profile.name.into(),
            users: shape.users,
            names: NodeId::all(shape.nodes())
                .map(|node| shape.name(node))
                .collect(),
            seats: shape.seats().to_vec(),
            chosen: chosen.map(|(word, value)| (word.into(), value)).collect(),
            delay_bound: Time(setup.delay_bound),
            network: None,
            clock: Clock::Units,
            is_old: false,
            made_by,
        }
    }

    /// The setup that the run had.
    pub(crate) fn setup(&self) -> Result<Setup, SetupError> {
        let mut setup = Setup::new(match self.seats.len() {
            0 => self.users,
            nodes => nodes,
        });
        setup.delay_bound = self.delay_bound.0;
        for (word, value) in &self.chosen {
            setup.choose(word, value)?;
        }
        Ok(setup)
    }

    /// The node of a user.
    pub fn home(&self, user: UserId) -> NodeId {
        let mut last = 0;
        let holds = |seats: &usize| {
            last += seats;
            user.index() < last
        };
        let shared = self.seats.iter().position(holds);
        shared.map_or(NodeId(user.0), |node| NodeId(node as u32))
    }
}

/// One line of a trace. Inputs come first: what was done to a node. The others are what followed
/// from it, and a replay must see them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Start(NodeId),
    Ask(UserId, AskKind, String),
    Deliver(u64),
    Fire(NodeId, u64),
    Crash(NodeId, Memory),
    Restart(NodeId),
    Lose(u64, String),
    /// The second message is another copy of the first.
    Copy(u64, u64),
    /// The message now says something else.
    Lie(u64, String),
    /// A network partition begins, or ends.
    Cut(String),
    Heal(String),
    /// What follows repeats for ever.
    Cycle,
    /// Here the cycle closes, and this user waits for ever.
    Repeat(UserId),
    /// Nothing more happens; the reason, where that is itself a failure.
    End(String),
    /// A message came, in a live run, from a node whose record is lost or cut; the bytes are what it said.
    Heard {
        number: u64,
        from: NodeId,
        to: NodeId,
        message: Vec<u8>,
        label: String,
    },
    /// What a register holds before anything happens, where threads share memory and that is open.
    Set(String, u64),
    /// A thread accesses a register; the first access of a step does the whole step.
    Access(NodeId, String),
    /// What is recorded of a live run ends here, and why; the run itself may have gone on.
    Stop(String),

    Send {
        number: u64,
        from: NodeId,
        to: NodeId,
        /// All that it says, in a live run.
        message: Option<Vec<u8>>,
        label: String,
    },
    Tell(UserId, TellKind, String),
    Timer(NodeId, u64),
    /// A promise was broken: which one, and how.
    Violation(String, String),
}

impl Event {
    /// Whether a replay does this, rather than expects it.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            Event::Send { .. } | Event::Tell(..) | Event::Timer(..) | Event::Violation(..)
        )
    }
}
