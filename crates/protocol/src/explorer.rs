//! The face that a checker drives: node states and messages are numbers, equal ones have equal
//! numbers, and a step that was taken before is looked up. A state of a whole cluster is then a
//! short list of numbers, cheap to copy and to hash, whatever the algorithm.

use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::{Grant, Input, Message, NodeId, Output, Problem, Protocol, Timer, UnderWay, WordOf};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StateId(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageId(pub u32);

/// An input, by numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Move<Q: Problem> {
    Start,
    Ask(Q::Ask),
    Message { from: NodeId, message: MessageId },
    Timer(Timer),
}

/// What a step leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<Q: Problem> {
    pub state: StateId,
    pub sends: Vec<(NodeId, MessageId)>,
    /// Of what each of the messages brings word.
    pub words_of: Vec<WordOf>,
    /// What each of the messages hands over.
    pub grants: Vec<Option<Grant>>,
    pub tells: Vec<Q::Tell>,
    pub timers: Vec<(Range<u64>, Timer)>,
}

pub trait Explorer<Q: Problem>: Send {
    /// A node before its start.
    fn initial(&mut self, node: NodeId) -> StateId;
    fn step(&mut self, node: NodeId, state: StateId, input: Move<Q>) -> &Outcome<Q>;

    /// What is left of a node after a crash: what it keeps on stable storage.
    fn restarted(&mut self, node: NodeId, state: StateId) -> StateId;
    /// The messages that a liar could send in place of this one, in the order of [`Protocol::lies`].
    fn lies(&mut self, message: MessageId) -> Vec<MessageId>;

    /// The smallest logical time of a state or a message, if it has any.
    fn state_time(&mut self, state: StateId) -> Option<u64>;
    fn message_time(&mut self, message: MessageId) -> Option<u64>;
    /// The same, with all logical times smaller by this much.
    fn state_rebased(&mut self, state: StateId, by: u64) -> StateId;
    fn message_rebased(&mut self, message: MessageId, by: u64) -> MessageId;

    /// The nodes that are equal; see [`Protocol::equal_nodes`].
    fn equal_nodes(&self) -> Range<u32>;
    /// The same with new names for all nodes; equal names have an equal `number`.
    fn state_renamed(&mut self, state: StateId, number: u32, names: &[NodeId]) -> StateId;
    fn message_renamed(&mut self, message: MessageId, number: u32, names: &[NodeId]) -> MessageId;

    /// Makes equal what no later step can tell apart: see [`Protocol::canonical`]. False where the
    /// algorithm has no more to say of it than its logical times.
    fn canonical(&mut self, nodes: &mut [StateId], messages: &mut Vec<UnderWay<MessageId>>)
    -> bool;

    /// Whether a node in this state may just as well be given this message at once: see [`Protocol::is_quiet`].
    fn is_quiet(&mut self, state: StateId, from: NodeId, message: MessageId) -> bool;

    /// Whether every search goes by canonical states: see [`Protocol::SEARCHES_CANONICAL`].
    fn searches_canonical(&self) -> bool;

    fn message_grant(&self, message: MessageId) -> Option<Grant>;
    fn message_label(&self, message: MessageId) -> String;
}

pub(crate) struct Interned<P: Protocol> {
    config: Arc<P::Config>,
    states: IndexSet<P, FxBuildHasher>,
    messages: IndexSet<P::Message, FxBuildHasher>,
    taken: FxHashMap<(u32, Move<P::Problem>), u32>,
    outcomes: Vec<Outcome<P::Problem>>,
    state_times: FxHashMap<u32, Option<u64>>,
    message_times: FxHashMap<u32, Option<u64>>,
    rebased_states: FxHashMap<(u32, u64), u32>,
    rebased_messages: FxHashMap<(u32, u64), u32>,
    renamed_states: FxHashMap<(u32, u32), u32>,
    renamed_messages: FxHashMap<(u32, u32), u32>,
    out: Output<P>,
}

impl<P: Protocol> Interned<P> {
    pub(crate) fn new(config: Arc<P::Config>) -> Self {
        Interned {
            config,
            states: IndexSet::default(),
            messages: IndexSet::default(),
            taken: FxHashMap::default(),
            outcomes: Vec::new(),
            state_times: FxHashMap::default(),
            message_times: FxHashMap::default(),
            rebased_states: FxHashMap::default(),
            rebased_messages: FxHashMap::default(),
            renamed_states: FxHashMap::default(),
            renamed_messages: FxHashMap::default(),
            out: Output::new(),
        }
    }

    fn intern(&mut self, state: P) -> u32 {
        self.states.insert_full(state).0 as u32
    }

    fn state(&self, id: StateId) -> &P {
        &self.states[id.0 as usize]
    }
}

impl<P: Protocol> Explorer<P::Problem> for Interned<P> {
    fn initial(&mut self, node: NodeId) -> StateId {
        let state = P::new(node, &self.config);
        StateId(self.intern(state))
    }

    fn step(
        &mut self,
        node: NodeId,
        state: StateId,
        input: Move<P::Problem>,
    ) -> &Outcome<P::Problem> {
        if let Some(&known) = self.taken.get(&(state.0, input)) {
            return &self.outcomes[known as usize];
        }
        let mut next = self.state(state).clone();
        let typed = match input {
            Move::Start => Input::Start,
            Move::Ask(ask) => Input::Ask(ask),
            Move::Message { from, message } => Input::Message {
                from,
                message: self.messages[message.0 as usize].clone(),
            },
            Move::Timer(timer) => Input::Timer(timer),
        };
        self.out.run(node, &mut next, typed, &self.config);
        let words_of = self.out.sends.iter().map(|(_, message)| message.word_of());
        let words_of = words_of.collect();
        let grants = self.out.sends.iter().map(|(_, message)| message.grant());
        let grants = grants.collect();
        let sends = std::mem::take(&mut self.out.sends).into_iter();
        let outcome = Outcome {
            words_of,
            grants,
            sends: sends
                .map(|(to, message)| (to, MessageId(self.messages.insert_full(message).0 as u32)))
                .collect(),
            tells: std::mem::take(&mut self.out.tells),
            timers: std::mem::take(&mut self.out.timers),
            state: StateId(self.intern(next)),
        };
        self.taken
            .insert((state.0, input), self.outcomes.len() as u32);
        self.outcomes.push(outcome);
        self.outcomes.last().expect("just pushed")
    }

    fn restarted(&mut self, node: NodeId, state: StateId) -> StateId {
        let restarted = self.state(state).restart(node, &self.config);
        StateId(self.intern(restarted))
    }

    fn lies(&mut self, message: MessageId) -> Vec<MessageId> {
        let lies = P::lies(&self.messages[message.0 as usize], &self.config);
        let number = |lie| MessageId(self.messages.insert_full(lie).0 as u32);
        lies.into_iter().map(number).collect()
    }

    fn state_time(&mut self, state: StateId) -> Option<u64> {
        if let Some(&known) = self.state_times.get(&state.0) {
            return known;
        }
        let time = oldest(|visit| self.state(state).clone().clocks(visit));
        self.state_times.insert(state.0, time);
        time
    }

    fn message_time(&mut self, message: MessageId) -> Option<u64> {
        if let Some(&known) = self.message_times.get(&message.0) {
            return known;
        }
        let time = oldest(|visit| self.messages[message.0 as usize].clone().clocks(visit));
        self.message_times.insert(message.0, time);
        time
    }

    fn state_rebased(&mut self, state: StateId, by: u64) -> StateId {
        if let Some(&known) = self.rebased_states.get(&(state.0, by)) {
            return StateId(known);
        }
        let mut rebased = self.state(state).clone();
        rebased.clocks(&mut |time| *time -= by);
        let id = self.intern(rebased);
        self.rebased_states.insert((state.0, by), id);
        StateId(id)
    }

    fn message_rebased(&mut self, message: MessageId, by: u64) -> MessageId {
        if let Some(&known) = self.rebased_messages.get(&(message.0, by)) {
            return MessageId(known);
        }
        let mut rebased = self.messages[message.0 as usize].clone();
        rebased.clocks(&mut |time| *time -= by);
        let id = self.messages.insert_full(rebased).0 as u32;
        self.rebased_messages.insert((message.0, by), id);
        MessageId(id)
    }

    fn equal_nodes(&self) -> Range<u32> {
        P::equal_nodes(&self.config)
    }

    fn state_renamed(&mut self, state: StateId, number: u32, names: &[NodeId]) -> StateId {
        if let Some(&known) = self.renamed_states.get(&(state.0, number)) {
            return StateId(known);
        }
        let mut renamed = self.state(state).clone();
        renamed.rename(&|node| names[node.index()]);
        let id = self.intern(renamed);
        self.renamed_states.insert((state.0, number), id);
        StateId(id)
    }

    fn message_renamed(&mut self, message: MessageId, number: u32, names: &[NodeId]) -> MessageId {
        if let Some(&known) = self.renamed_messages.get(&(message.0, number)) {
            return MessageId(known);
        }
        let mut renamed = self.messages[message.0 as usize].clone();
        renamed.rename(&|node| names[node.index()]);
        let id = self.messages.insert_full(renamed).0 as u32;
        self.renamed_messages.insert((message.0, number), id);
        MessageId(id)
    }

    fn canonical(
        &mut self,
        nodes: &mut [StateId],
        messages: &mut Vec<UnderWay<MessageId>>,
    ) -> bool {
        if !P::HAS_CANONICAL {
            return false;
        }
        let mut states: Vec<P> = nodes.iter().map(|&id| self.state(id).clone()).collect();
        let typed = |flight: &UnderWay<MessageId>| UnderWay {
            from: flight.from,
            to: flight.to,
            message: self.messages[flight.message.0 as usize].clone(),
            place: flight.place,
        };
        let mut under_way: Vec<UnderWay<P::Message>> = messages.iter().map(typed).collect();
        P::canonical(&mut states, &mut under_way, &self.config);
        for (id, state) in nodes.iter_mut().zip(states) {
            id.0 = self.intern(state);
        }
        messages.clear();
        for flight in under_way {
            messages.push(UnderWay {
                from: flight.from,
                to: flight.to,
                message: MessageId(self.messages.insert_full(flight.message).0 as u32),
                place: flight.place,
            });
        }
        true
    }

    fn is_quiet(&mut self, state: StateId, from: NodeId, message: MessageId) -> bool {
        let message = &self.messages[message.0 as usize];
        self.state(state).is_quiet(from, message, &self.config)
    }

    fn searches_canonical(&self) -> bool {
        P::SEARCHES_CANONICAL
    }

    fn message_grant(&self, message: MessageId) -> Option<Grant> {
        self.messages[message.0 as usize].grant()
    }

    fn message_label(&self, message: MessageId) -> String {
        format!("{:?}", self.messages[message.0 as usize])
    }
}

/// The smallest time that a visit shows.
fn oldest(show: impl FnOnce(&mut dyn FnMut(&mut u64))) -> Option<u64> {
    let mut oldest = None;
    show(&mut |time| oldest = Some(oldest.map_or(*time, |o: u64| o.min(*time))));
    oldest
}
