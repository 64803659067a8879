//! All the nodes of one run, with the types of their algorithm erased. Messages stay inside, in
//! numbered slots, so that carrying one costs its driver a number.

use std::mem::Discriminant;
use std::ops::Range;
use std::sync::Arc;

use crate::packet;
use crate::{Grant, Input, Message, NodeId, Output, PacketError, Problem, Protocol, Timer, WordOf};

/// A running cluster. Every method that takes `effects` clears it first and leaves in it what the
/// step did.
pub trait Cluster<Q: Problem>: Send {
    fn start(&mut self, node: NodeId, effects: &mut Effects<Q>);
    fn ask(&mut self, node: NodeId, ask: Q::Ask, effects: &mut Effects<Q>);
    /// Delivers the message in a slot, which is free afterwards.
    fn deliver(&mut self, from: NodeId, to: NodeId, slot: Slot, effects: &mut Effects<Q>);
    fn fire(&mut self, node: NodeId, timer: Timer, effects: &mut Effects<Q>);

    /// Replaces a node by what is left of it after a crash: what it keeps on stable storage, or
    /// nothing. The driver starts it afterwards.
    fn crash(&mut self, node: NodeId, keeps_stable_storage: bool);

    /// Frees a slot without delivering.
    fn forget(&mut self, slot: Slot);
    /// The same message in another slot.
    fn copy(&mut self, slot: Slot) -> Slot;
    /// Replaces a message by the `choice`-th lie that its sender could tell; false when it has none.
    fn lie(&mut self, slot: Slot, choice: u64) -> bool;

    /// Puts a message into a slot that no node of this run sent, from its bytes.
    fn hear(&mut self, message: &[u8]) -> Result<Slot, PacketError>;

    fn label(&self, slot: Slot) -> String;
    /// The message in a slot as bytes, all that it says: a label may leave something out.
    fn message(&self, slot: Slot) -> Vec<u8>;
    fn word_of(&self, slot: Slot) -> WordOf;
    fn grant(&self, slot: Slot) -> Option<Grant>;
    fn traffic(&self) -> Traffic;
}

/// Where a message is kept until it is delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slot(pub u32);

/// What one step did. Messages are where the driver finds them: in the slots of a cluster, or in packets of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects<Q: Problem, M = Slot> {
    pub sends: Vec<(NodeId, M)>,
    pub tells: Vec<Q::Tell>,
    pub timers: Vec<(Range<u64>, Timer)>,
}

impl<Q: Problem, M> Effects<Q, M> {
    pub(crate) fn clear(&mut self) {
        self.sends.clear();
        self.tells.clear();
        self.timers.clear();
    }
}

impl<Q: Problem, M> Default for Effects<Q, M> {
    fn default() -> Self {
        Effects {
            sends: Vec::new(),
            tells: Vec::new(),
            timers: Vec::new(),
        }
    }
}

/// What has been sent so far, copies and messages to oneself not counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    pub messages: u64,
    /// The size of all of them, encoded for a wire.
    pub bytes: u64,
    /// How many of each kind.
    pub kinds: Vec<(String, u64)>,
}

pub(crate) struct Running<P: Protocol> {
    config: Arc<P::Config>,
    nodes: Vec<P>,
    slots: Vec<Option<P::Message>>,
    free: Vec<u32>,
    out: Output<P>,
    messages: u64,
    bytes: u64,
    kinds: Vec<Kind<P>>,
}

struct Kind<P: Protocol> {
    discriminant: Discriminant<P::Message>,
    inner: u64,
    label: String,
    count: u64,
}

impl<P: Protocol> Running<P> {
    pub(crate) fn new(nodes: usize, config: Arc<P::Config>) -> Self {
        Running {
            nodes: NodeId::all(nodes).map(|id| P::new(id, &config)).collect(),
            config,
            slots: Vec::new(),
            free: Vec::new(),
            out: Output::new(),
            messages: 0,
            bytes: 0,
            kinds: Vec::new(),
        }
    }

    fn run(&mut self, id: NodeId, input: Input<P>, effects: &mut Effects<P::Problem>) {
        self.out
            .run(id, &mut self.nodes[id.index()], input, &self.config);
        effects.clear();
        effects.tells.append(&mut self.out.tells);
        effects.timers.append(&mut self.out.timers);
        let mut sends = std::mem::take(&mut self.out.sends);
        for (to, message) in sends.drain(..) {
            self.count(&message);
            effects.sends.push((to, self.put(message)));
        }
        self.out.sends = sends;
    }

    fn put(&mut self, message: P::Message) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(message);
                Slot(slot)
            }
            None => {
                self.slots.push(Some(message));
                Slot(self.slots.len() as u32 - 1)
            }
        }
    }

    fn take(&mut self, slot: Slot) -> P::Message {
        self.free.push(slot.0);
        self.slots[slot.0 as usize]
            .take()
            .expect("a slot is delivered or forgotten once")
    }

    fn peek(&self, slot: Slot) -> &P::Message {
        self.slots[slot.0 as usize]
            .as_ref()
            .expect("a slot holds its message until delivered")
    }

    fn count(&mut self, message: &P::Message) {
        self.messages += 1;
        self.bytes += encoded_size(message);
        let (discriminant, inner) = (std::mem::discriminant(message), message.kind());
        match self
            .kinds
            .iter_mut()
            .find(|kind| (kind.discriminant, kind.inner) == (discriminant, inner))
        {
            Some(kind) => kind.count += 1,
            None => {
                let mut label = format!("{message:?}");
                label.truncate(
                    label
                        .find(|c: char| !c.is_alphanumeric())
                        .unwrap_or(label.len()),
                );
                self.kinds.push(Kind {
                    discriminant,
                    inner,
                    label,
                    count: 1,
                });
            }
        }
    }
}

fn encoded_size<M: serde::Serialize>(message: &M) -> u64 {
    postcard::serialize_with_flavor(message, postcard::ser_flavors::Size::default())
        .expect("counting bytes cannot run out of room") as u64
}

impl<P: Protocol> Cluster<P::Problem> for Running<P> {
    fn start(&mut self, node: NodeId, effects: &mut Effects<P::Problem>) {
        self.run(node, Input::Start, effects);
    }

    fn ask(
        &mut self,
        node: NodeId,
        ask: <P::Problem as Problem>::Ask,
        effects: &mut Effects<P::Problem>,
    ) {
        self.run(node, Input::Ask(ask), effects);
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, slot: Slot, effects: &mut Effects<P::Problem>) {
        let message = self.take(slot);
        self.run(to, Input::Message { from, message }, effects);
    }

    fn fire(&mut self, node: NodeId, timer: Timer, effects: &mut Effects<P::Problem>) {
        self.run(node, Input::Timer(timer), effects);
    }

    fn crash(&mut self, node: NodeId, keeps_stable_storage: bool) {
        let state = &mut self.nodes[node.index()];
        *state = match keeps_stable_storage {
            true => state.restart(node, &self.config),
            false => P::new(node, &self.config),
        };
    }

    fn forget(&mut self, slot: Slot) {
        self.take(slot);
    }

    fn copy(&mut self, slot: Slot) -> Slot {
        let message = self.peek(slot).clone();
        self.put(message)
    }

    fn lie(&mut self, slot: Slot, choice: u64) -> bool {
        let mut lies = P::lies(self.peek(slot), &self.config);
        if lies.is_empty() {
            return false;
        }
        let lie = lies.swap_remove((choice % lies.len() as u64) as usize);
        self.slots[slot.0 as usize] = Some(lie);
        true
    }

    fn hear(&mut self, message: &[u8]) -> Result<Slot, PacketError> {
        let message = packet::read(self.nodes.len(), message)?;
        Ok(self.put(message))
    }

    fn label(&self, slot: Slot) -> String {
        format!("{:?}", self.peek(slot))
    }

    fn message(&self, slot: Slot) -> Vec<u8> {
        postcard::to_stdvec(self.peek(slot)).expect("a message of plain data can be encoded")
    }

    fn word_of(&self, slot: Slot) -> WordOf {
        self.peek(slot).word_of()
    }

    fn grant(&self, slot: Slot) -> Option<Grant> {
        self.peek(slot).grant()
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            messages: self.messages,
            bytes: self.bytes,
            kinds: self
                .kinds
                .iter()
                .map(|kind| (kind.label.clone(), kind.count))
                .collect(),
        }
    }
}
