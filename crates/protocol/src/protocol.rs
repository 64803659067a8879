//! The one trait of every algorithm, and all that goes into it and comes out.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Grant, NodeId, Problem};

/// One node of an algorithm.
///
/// A node is driven by [`step`](Protocol::step) and by nothing else; whoever drives it carries its
/// messages, fires its timers and draws its chances. Equal nodes given equal inputs do equal
/// things: that is what lets one implementation be simulated, explored and run on sockets. So a node
/// that must know who it is keeps its own number.
pub trait Protocol: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    type Problem: Problem;
    type Message: Message;
    /// Shared by all nodes and never changed: the number of nodes, quorums, a delay bound.
    type Config: Send + Sync + 'static;

    fn new(id: NodeId, config: &Self::Config) -> Self;

    fn step(&mut self, input: Input<Self>, config: &Self::Config, out: &mut Output<Self>);

    /// The node as it comes back from a crash: what it keeps on stable storage. Nothing, for most.
    fn restart(&self, id: NodeId, config: &Self::Config) -> Self {
        Self::new(id, config)
    }

    /// Shows every logical time of the state. The checker subtracts the smallest one from all of
    /// them, which is sound because clocks are only compared, raised to a maximum and counted up;
    /// so a run that repeats but for its clocks is seen to repeat.
    fn clocks(&mut self, _visit: &mut dyn FnMut(&mut u64)) {}

    /// Whether [`canonical`](Protocol::canonical) does anything.
    const HAS_CANONICAL: bool = false;

    /// Whether a search for bad states goes by canonical states too, not only the one for starvation: where
    /// numbers grow in every run, there is no end of others.
    const SEARCHES_CANONICAL: bool = false;

    /// Makes equal what no later step can tell apart, in a whole cluster: numbers that only grow are
    /// shifted, and messages that will change nothing are dropped. For the checker, which sees runs
    /// repeat that way.
    fn canonical(
        _nodes: &mut [Self],
        _messages: &mut Vec<UnderWay<Self::Message>>,
        _config: &Self::Config,
    ) {
    }

    /// Whether the node may just as well be given this message at once: whatever it is given first, it ends in the same
    /// state, sends the same and tells its users the same, and the message stays such a one. A message that is
    /// ignored from now on is the plainest. What it sends in turn makes no endless chain of such messages. For the
    /// checker, which then tries no other order.
    fn is_quiet(&self, _from: NodeId, _message: &Self::Message, _config: &Self::Config) -> bool {
        false
    }

    /// The nodes that are equal, each with a user of its own: none compares their ids, they stand in no order, and
    /// [`rename`](Protocol::rename) renames whatever names one of them.
    fn equal_nodes(_config: &Self::Config) -> Range<u32> {
        0..0
    }

    /// Gives every node that the state names its new name.
    fn rename(&mut self, _new: &dyn Fn(NodeId) -> NodeId) {}

    /// The messages that a liar could send in place of this one.
    fn lies(_message: &Self::Message, _config: &Self::Config) -> Vec<Self::Message> {
        Vec::new()
    }
}

/// What nodes send to each other: an enum with a variant for each kind of message of the paper,
/// whose `Debug` is the label in traces and pictures.
pub trait Message:
    Clone + Eq + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Shows every logical time, as [`Protocol::clocks`] does.
    fn clocks(&mut self, _visit: &mut dyn FnMut(&mut u64)) {}

    /// Tells kinds of message apart that are not variants of its own, as those inside a wrapper are.
    fn kind(&self) -> u64 {
        0
    }
    /// Gives every node that it names its new name, as [`Protocol::rename`] does.
    fn rename(&mut self, _new: &dyn Fn(NodeId) -> NodeId) {}

    /// Of whose requests it brings word, where it is counted how often a request is passed knowingly.
    fn word_of(&self) -> WordOf {
        WordOf::All
    }

    /// What it hands over, where grants are judged.
    fn grant(&self) -> Option<Grant> {
        None
    }
}

/// A message that was sent and has not arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnderWay<M> {
    pub from: NodeId,
    pub to: NodeId,
    pub message: M,
    /// Its place among all messages under way, before any was dropped.
    pub place: usize,
}

/// What whoever gets a message can know from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WordOf {
    /// All that its sender knew.
    All,
    /// The requests of this kind that the sender's own users have.
    Own(u32),
    Nothing,
}

/// What a node is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input<P: Protocol> {
    /// Once before everything else, and again after a restart.
    Start,
    Ask(<P::Problem as Problem>::Ask),
    Message {
        from: NodeId,
        message: P::Message,
    },
    Timer(Timer),
}

/// A timer's name: whatever number the protocol gave it. Timers are not cancelled; a protocol
/// recognises one that no longer matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timer(pub u64);

/// What a node does with an input: it sends, it tells its user, it sets timers.
#[derive(Debug)]
pub struct Output<P: Protocol> {
    id: NodeId,
    pub(crate) sends: Vec<(NodeId, P::Message)>,
    pub(crate) tells: Vec<<P::Problem as Problem>::Tell>,
    pub(crate) timers: Vec<(Range<u64>, Timer)>,
    own: VecDeque<P::Message>,
}

impl<P: Protocol> Output<P> {
    pub(crate) fn new() -> Self {
        Output {
            id: NodeId(0),
            sends: Vec::new(),
            tells: Vec::new(),
            timers: Vec::new(),
            own: VecDeque::new(),
        }
    }

    /// A message to oneself is handled within the same step, in order, and is not counted.
    pub fn send(&mut self, to: NodeId, message: P::Message) {
        if to == self.id {
            self.own.push_back(message);
        } else {
            self.sends.push((to, message));
        }
    }

    pub fn send_all(&mut self, to: impl IntoIterator<Item = NodeId>, message: &P::Message) {
        for node in to {
            self.send(node, message.clone());
        }
    }

    pub fn tell(&mut self, tell: <P::Problem as Problem>::Tell) {
        self.tells.push(tell);
    }

    /// Fires after a span that the driver draws from this range, in the unit of the delay bound.
    pub fn after(&mut self, span: Range<u64>, timer: Timer) {
        self.timers.push((span, timer));
    }

    /// One whole step of a node, with its messages to itself.
    pub(crate) fn run(&mut self, id: NodeId, node: &mut P, input: Input<P>, config: &P::Config) {
        debug_assert!(self.sends.is_empty() && self.tells.is_empty() && self.timers.is_empty());
        self.id = id;
        node.step(input, config, self);
        while let Some(message) = self.own.pop_front() {
            node.step(Input::Message { from: id, message }, config, self);
        }
    }
}
