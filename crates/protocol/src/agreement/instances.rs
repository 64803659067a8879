//! A run of many decisions by an algorithm that makes one: an instance of it for each.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use super::user::{Agreement, Ask, Instance, Tell};
use crate::{Input, Message, NodeId, Output, Protocol, Timer, UnderWay};

/// One node of every instance that has begun here: with a proposal, or with the first message of it. An instance
/// knows nothing of its number and tells its user of instance 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Instances<P> {
    id: NodeId,
    begun: BTreeMap<Instance, P>,
}

/// A message of an instance.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Of<M> {
    pub(super) instance: Instance,
    pub(super) message: M,
}

impl<M: fmt::Debug> fmt::Debug for Of<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.message)?;
        match self.instance {
            0 => Ok(()),
            instance => write!(f, " of {instance}"),
        }
    }
}

impl<M: Message> Message for Of<M> {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.message.clocks(visit);
    }

    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        self.message.rename(new);
    }

    fn kind(&self) -> u64 {
        let mut hasher = FxHasher::default();
        std::mem::discriminant(&self.message).hash(&mut hasher);
        hasher.finish()
    }
}

/// The bits of a timer's name that are the instance's own.
const TIMER_BITS: u32 = 32;

impl<P: Protocol<Problem = Agreement>> Instances<P> {
    /// Lets one instance take a step, and gives what it does the instance's number.
    fn step_in(
        &mut self,
        instance: Instance,
        input: Input<P>,
        config: &P::Config,
        out: &mut Output<Self>,
    ) {
        let mut inner = Output::new();
        let id = self.id;
        let mut carry = |inner: &mut Output<P>| {
            for (to, message) in inner.sends.drain(..) {
                out.sends.push((to, Of { instance, message }));
            }
            for Tell::Decided { value, .. } in inner.tells.drain(..) {
                out.tells.push(Tell::Decided { instance, value });
            }
            for (span, Timer(timer)) in inner.timers.drain(..) {
                debug_assert!(timer < 1 << TIMER_BITS, "an instance names few timers");
                let named = Timer(u64::from(instance) << TIMER_BITS | timer);
                out.timers.push((span, named));
            }
        };
        let node = self.begun.entry(instance).or_insert_with(|| {
            let mut node = P::new(id, config);
            inner.run(id, &mut node, Input::Start, config);
            carry(&mut inner);
            node
        });
        inner.run(id, node, input, config);
        carry(&mut inner);
    }
}

impl<P: Protocol<Problem = Agreement>> Protocol for Instances<P> {
    type Problem = Agreement;
    type Message = Of<P::Message>;
    type Config = P::Config;

    fn new(id: NodeId, _: &P::Config) -> Self {
        Instances {
            id,
            begun: BTreeMap::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, config: &P::Config, out: &mut Output<Self>) {
        match input {
            // What begins later starts then.
            Input::Start => {
                let begun: Vec<Instance> = self.begun.keys().copied().collect();
                for instance in begun {
                    self.step_in(instance, Input::Start, config, out);
                }
            }
            Input::Ask(Ask::Propose { instance, value }) => {
                let ask = Ask::Propose { instance, value };
                self.step_in(instance, Input::Ask(ask), config, out);
            }
            Input::Message { from, message } => {
                let Of { instance, message } = message;
                self.step_in(instance, Input::Message { from, message }, config, out);
            }
            Input::Timer(Timer(timer)) => {
                let instance = (timer >> TIMER_BITS) as Instance;
                let timer = Timer(timer & ((1 << TIMER_BITS) - 1));
                self.step_in(instance, Input::Timer(timer), config, out);
            }
        }
    }

    fn restart(&self, id: NodeId, config: &P::Config) -> Self {
        let back = |(&instance, node): (&Instance, &P)| (instance, node.restart(id, config));
        Instances {
            id,
            begun: self.begun.iter().map(back).collect(),
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.begun.values_mut().for_each(|node| node.clocks(visit));
    }

    const HAS_CANONICAL: bool = P::HAS_CANONICAL;
    const SEARCHES_CANONICAL: bool = P::SEARCHES_CANONICAL;

    fn equal_nodes(config: &P::Config) -> Range<u32> {
        P::equal_nodes(config)
    }

    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        self.id = new(self.id);
        self.begun.values_mut().for_each(|node| node.rename(new));
    }

    /// Makes equal what an instance makes equal.
    fn canonical(
        nodes: &mut [Self],
        messages: &mut Vec<UnderWay<Self::Message>>,
        config: &P::Config,
    ) {
        let under_way = messages.iter().map(|m| m.message.instance);
        let begun = nodes.iter().flat_map(|node| node.begun.keys().copied());
        let mut instances: Vec<Instance> = under_way.chain(begun).collect();
        instances.sort_unstable();
        instances.dedup();
        let mut kept = Vec::new();
        for instance in instances {
            let begun = |node: &Self| match node.begun.get(&instance) {
                Some(begun) => begun.clone(),
                None => P::new(node.id, config),
            };
            let mut within: Vec<P> = nodes.iter().map(begun).collect();
            let of = messages.iter().filter(|m| m.message.instance == instance);
            let inner = |flight: &UnderWay<Self::Message>| UnderWay {
                from: flight.from,
                to: flight.to,
                message: flight.message.message.clone(),
                place: flight.place,
            };
            let mut inside: Vec<UnderWay<P::Message>> = of.map(inner).collect();
            P::canonical(&mut within, &mut inside, config);
            for (node, within) in nodes.iter_mut().zip(within) {
                if let Some(begun) = node.begun.get_mut(&instance) {
                    *begun = within;
                }
            }
            kept.extend(inside.into_iter().map(|flight| flight.place));
        }
        messages.retain(|flight| kept.contains(&flight.place));
    }

    fn is_quiet(&self, from: NodeId, message: &Of<P::Message>, config: &P::Config) -> bool {
        let Of { instance, message } = message;
        match self.begun.get(instance) {
            Some(node) => node.is_quiet(from, message, config),
            None => P::new(self.id, config).is_quiet(from, message, config),
        }
    }

    fn lies(message: &Of<P::Message>, config: &P::Config) -> Vec<Of<P::Message>> {
        let instance = message.instance;
        let lies = P::lies(&message.message, config).into_iter();
        lies.map(|message| Of { instance, message }).collect()
    }
}

/// A span of so many ticks.
pub(super) fn exactly(ticks: u64) -> Range<u64> {
    ticks..ticks + 1
}
