//! What a trace is made of.

use testigo_protocol::{NodeId, Profile, Setup, SetupError, Shape, SpanningTree};
use testigo_sim::{Memory, Time};

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
    /// The name of every node, users first.
    pub names: Vec<String>,
    /// How quorums are built, where that was chosen.
    pub quorum: Option<String>,
    /// The tree that the nodes stand in, where that was chosen.
    pub tree: Option<String>,
    pub delay_bound: Time,
    /// Whether the time of an event is only the number of its step.
    pub steps: bool,
    /// How it came about, for people.
    pub made_by: String,
}

impl Header {
    /// The header of a run of this algorithm.
    pub(crate) fn new(profile: &Profile, shape: &Shape, setup: &Setup, made_by: String) -> Header {
        let tree = Some(setup.tree).filter(|tree| *tree != SpanningTree::default());
        Header {
            algorithm: profile.name.into(),
            users: shape.users,
            names: NodeId::all(shape.nodes())
                .map(|node| shape.name(node))
                .collect(),
            quorum: setup.quorum.map(|quorum| quorum.to_string()),
            tree: tree.map(|tree| tree.to_string()),
            delay_bound: Time(setup.delay_bound),
            steps: false,
            made_by,
        }
    }

    /// The setup that the run had.
    pub(crate) fn setup(&self) -> Result<Setup, SetupError> {
        let mut setup = Setup::new(self.users);
        setup.delay_bound = self.delay_bound.0;
        if let Some(quorum) = &self.quorum {
            setup.quorum = Some(quorum.parse()?);
        }
        if let Some(tree) = &self.tree {
            setup.tree = tree.parse()?;
        }
        Ok(setup)
    }
}

/// One line of a trace. Inputs come first: what was done to a node. The others are what followed
/// from it, and a replay must see them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Start(NodeId),
    Ask(NodeId, String),
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
    /// Here the cycle closes, and this node waits for ever.
    Repeat(NodeId),
    /// Nothing more happens; the reason, where that is itself a failure.
    End(String),

    Send {
        number: u64,
        from: NodeId,
        to: NodeId,
        label: String,
    },
    Tell(NodeId, String),
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
