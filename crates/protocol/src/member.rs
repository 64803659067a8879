//! One node of an algorithm by itself, with its types erased: bytes in, bytes out. A process that has a node of
//! its own carries the packets over its links; the state machine is the one that is simulated and checked.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::packet::{self, PacketError, PacketTag};
use crate::{Effects, Input, NodeId, Output, Problem, Protocol, SetupError, Timer};

/// The most nodes that run as members of their own: as many as a cluster can have, and a server.
pub const MEMBERS_MAX: usize = 256;

/// A running member. Every method that takes `effects` clears it first and leaves in it what the step did: packets
/// to other members, tells to the local user, and timers, whose spans the driver draws.
pub trait Member<Q: Problem>: Send {
    fn id(&self) -> NodeId;

    /// Once, before everything else.
    fn start(&mut self, effects: &mut Effects<Q, Packet>);
    fn ask(&mut self, ask: Q::Ask, effects: &mut Effects<Q, Packet>);
    fn fire(&mut self, timer: Timer, effects: &mut Effects<Q, Packet>);

    /// Takes a packet of another member. One that is refused changes nothing, whatever its bytes. What the checksum
    /// cannot tell is whether its sender lies: a member believes what it can read.
    fn receive(
        &mut self,
        from: NodeId,
        packet: &[u8],
        effects: &mut Effects<Q, Packet>,
    ) -> Result<(), PacketError>;
}

/// A message as bytes: see [`Member`].
pub type Packet = Vec<u8>;

pub(crate) struct Hosted<P: Protocol> {
    id: NodeId,
    members: usize,
    tag: PacketTag,
    config: Arc<P::Config>,
    node: P,
    out: Output<P>,
}

impl<P: Protocol> Hosted<P> {
    pub(crate) fn new(
        id: NodeId,
        members: usize,
        tag: PacketTag,
        config: Arc<P::Config>,
    ) -> Result<Self, SetupError> {
        may_be(id, members)?;
        Ok(Hosted {
            id,
            members,
            tag,
            node: P::new(id, &config),
            config,
            out: Output::new(),
        })
    }

    fn run(&mut self, input: Input<P>, effects: &mut Effects<P::Problem, Packet>) {
        self.out.run(self.id, &mut self.node, input, &self.config);
        self.hand_out(effects);
    }

    fn hand_out(&mut self, effects: &mut Effects<P::Problem, Packet>) {
        effects.clear();
        effects.tells.append(&mut self.out.tells);
        effects.timers.append(&mut self.out.timers);
        for (to, message) in self.out.sends.drain(..) {
            effects.sends.push((to, packet::seal(self.tag, &message)));
        }
    }
}

fn may_be(id: NodeId, members: usize) -> Result<(), SetupError> {
    if members > MEMBERS_MAX {
        let what = format!("{members} members are too many: at most {MEMBERS_MAX}");
        return Err(SetupError(what));
    }
    if id.index() >= members {
        let what = format!("there is no member {id}: {members} are numbered from 0");
        return Err(SetupError(what));
    }
    Ok(())
}

impl<P: Protocol> Member<P::Problem> for Hosted<P> {
    fn id(&self) -> NodeId {
        self.id
    }

    fn start(&mut self, effects: &mut Effects<P::Problem, Packet>) {
        self.run(Input::Start, effects);
    }

    fn ask(
        &mut self,
        ask: <P::Problem as Problem>::Ask,
        effects: &mut Effects<P::Problem, Packet>,
    ) {
        self.run(Input::Ask(ask), effects);
    }

    fn fire(&mut self, timer: Timer, effects: &mut Effects<P::Problem, Packet>) {
        self.run(Input::Timer(timer), effects);
    }

    fn receive(
        &mut self,
        from: NodeId,
        packet: &[u8],
        effects: &mut Effects<P::Problem, Packet>,
    ) -> Result<(), PacketError> {
        effects.clear();
        let members = self.members;
        if from == self.id || from.index() >= members {
            return Err(PacketError::Stranger { from, members });
        }
        let message = packet::open(self.tag, members, packet)?;
        // A state machine asserts what must hold, and a peer may be wrong: the step is tried on a copy.
        let (mut next, out) = (self.node.clone(), &mut self.out);
        let input = Input::Message { from, message };
        if !succeeds(|| out.run(self.id, &mut next, input, &self.config)) {
            self.out = Output::new();
            return Err(PacketError::Impossible { from });
        }
        self.node = next;
        self.hand_out(effects);
        Ok(())
    }
}

thread_local! {
    static TRIES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is trying a step whose panic will be answered as [`PacketError::Impossible`]. A panic hook that
/// ends the process lets such a panic pass.
pub fn tries_a_step() -> bool {
    TRIES.get()
}

/// Whether a step ends without a panic. What it was to change must not be used if not.
fn succeeds(step: impl FnOnce()) -> bool {
    TRIES.set(true);
    let done = catch_unwind(AssertUnwindSafe(step));
    TRIES.set(false);
    done.is_ok()
}

#[cfg(test)]
mod tests;
