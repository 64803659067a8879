//! A layer of multicast, and how layers stand on each other.
//!
//! A layer takes contents from above, multicasts them through the layer below, and hands up what is delivered. So
//! causal order over reliable multicast is a composition. At the bottom are [`Carry`]ing layers, which send
//! messages over links; at the top is a [`Node`], whose contents are the users' multicasts.

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Ask, Cast, Delivery, Group, Groups, Multicast, Promises, Tell, User};
use crate::{
    Input, Machine, Message, NodeId, Output, Protocol, Setup, SetupError, Shape, Timer, erase_for,
};

/// One layer at one node.
pub(super) trait Layer<C: Content>:
    Clone + Eq + Hash + Debug + Send + Sync + 'static
{
    type Message: Message;

    fn new(id: NodeId, config: &Config) -> Self;
    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<Self::Message, C>,
    );
    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        config: &Config,
        out: &mut Wire<Self::Message, C>,
    );
    fn fire(&mut self, timer: Timer, config: &Config, out: &mut Wire<Self::Message, C>);

    /// The content that a message carries, if it carries one.
    fn content(message: &Self::Message) -> Option<&C>;
}

/// What a layer carries for the one above.
pub(super) trait Content:
    Clone + Eq + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<T> Content for T where
    T: Clone + Eq + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// The layers that something can stand on, whatever they carry for it.
pub(super) trait Carry: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    type Layer<C: Content>: Layer<C>;
    const PROMISES: Promises;
}

/// What a layer does, in the order in which it does it: a crash may come between any two.
pub(super) struct Wire<M, C> {
    pub(super) effects: Vec<Effect<M, C>>,
}

pub(super) enum Effect<M, C> {
    Send(NodeId, M),
    After(Range<u64>, Timer),
    Deliver(Delivered<C>),
}

/// A content on its way up.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Delivered<C> {
    /// Who multicast it, whoever brought it.
    pub(super) sender: NodeId,
    pub(super) group: Group,
    pub(super) content: C,
}

impl<M, C> Wire<M, C> {
    pub(super) fn new() -> Self {
        Wire {
            effects: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, to: NodeId, message: M) {
        self.effects.push(Effect::Send(to, message));
    }

    pub(super) fn after(&mut self, span: Range<u64>, timer: Timer) {
        self.effects.push(Effect::After(span, timer));
    }

    pub(super) fn deliver(&mut self, sender: NodeId, group: Group, content: C) {
        self.effects.push(Effect::Deliver(Delivered {
            sender,
            group,
            content,
        }));
    }

    /// Takes over what the layer below did, and gives what it delivers to `take`.
    pub(super) fn lift<B, D>(
        &mut self,
        below: Wire<B, D>,
        wrap: fn(B) -> M,
        mut take: impl FnMut(Delivered<D>, &mut Self),
    ) {
        for effect in below.effects {
            match effect {
                Effect::Send(to, message) => self.send(to, wrap(message)),
                Effect::After(span, timer) => self.after(span, timer),
                Effect::Deliver(delivered) => take(delivered, self),
            }
        }
    }
}

/// What all nodes share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) groups: Groups,
    pub(super) delivery: Delivery,
    /// No message is slower; 1 where nothing is known.
    pub(super) delay_bound: u64,
    pub(super) flaw: Option<Flaw>,
}

/// What is wrong with a specimen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// Reliable: it delivers first and passes on afterwards (§4.3).
    DeliverFirst,
    /// Negative acknowledgements: the first number is 0, which counts as delivered (§4.4).
    FirstNumberZero,
    /// Negative acknowledgements: nobody says anything after the last message (§4.4).
    Silence,
    /// FIFO: nothing is held back (§4.6).
    NoHoldBack,
    /// Causal: the own copy waits for its turn, which has passed (§4.7).
    OwnCopyHeld,
    /// ISIS: equal numbers are delivered in the order of arrival (§4.8).
    TiesByArrival,
}

/// A node: the layers, and the user's multicasts on top.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Node<L> {
    id: NodeId,
    /// How many multicasts its user has asked for.
    number: u32,
    layer: L,
}

impl<L: Layer<Cast>> Protocol for Node<L> {
    type Problem = Multicast;
    type Message = L::Message;
    type Config = Config;

    fn new(id: NodeId, config: &Config) -> Self {
        Node {
            id,
            number: 0,
            layer: L::new(id, config),
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        let mut wire = Wire::new();
        match input {
            Input::Start => {}
            Input::Ask(Ask::Multicast(group)) => {
                self.number += 1;
                let cast = Cast {
                    sender: self.id,
                    number: self.number,
                    group,
                };
                self.layer.multicast(group, cast, config, &mut wire);
            }
            Input::Message { from, message } => {
                self.layer.receive(from, message, config, &mut wire);
            }
            Input::Timer(timer) => self.layer.fire(timer, config, &mut wire),
        }
        for effect in wire.effects {
            match effect {
                Effect::Send(to, message) => out.send(to, message),
                Effect::After(span, timer) => out.after(span, timer),
                Effect::Deliver(delivered) => out.tell(Tell::Delivered(delivered.content)),
            }
        }
    }
}

/// Makes the nodes of a stack of layers.
pub(super) fn stand<L: Layer<Cast>>(
    setup: &Setup,
    promises: Promises,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Multicast>>, SetupError> {
    let nodes = setup.at_least(1)?;
    let groups = Groups::new(nodes, setup.groups)?;
    let config = Config {
        groups,
        delivery: setup.delivery,
        delay_bound: setup.delay_bound.max(1),
        flaw,
    };
    let user = |user| User::new(user, groups, promises);
    Ok(erase_for::<Node<L>>(Shape::users(nodes), user, config))
}

/// Makes the nodes of a layer over the one that the setup names: `over!(setup, promises, flaw, Fifo)`.
macro_rules! over {
    ($setup:expr, $layer:ident, $promises:expr, $flaw:expr) => {{
        use $crate::multicast::layer::{Carry, stand};
        use $crate::multicast::{Over, OverBasic, OverNack, OverReliable};
        let (setup, promises, flaw) = ($setup, $promises, $flaw);
        match setup.over {
            Over::Basic => {
                stand::<$layer<Cast, OverBasic>>(setup, promises(OverBasic::PROMISES), flaw)
            }
            Over::Reliable => {
                stand::<$layer<Cast, OverReliable>>(setup, promises(OverReliable::PROMISES), flaw)
            }
            Over::Nack => {
                stand::<$layer<Cast, OverNack>>(setup, promises(OverNack::PROMISES), flaw)
            }
        }
    }};
}
pub(super) use over;
