//! B-multicast: one send per member, and an acknowledgement for each.
//!
//! Source: coordination and agreement §4.2. As an algorithm of its own it acknowledges, so that the ack implosion can be
//! measured: |g| sends and |g| acknowledgements, of which those to oneself are not counted, all of them to the sender. As a
//! layer it does not: links are reliable (§4.1). A member delivers whatever arrives, so a copy is delivered twice, and a
//! sender that crashes between two sends leaves members out: neither agreement nor integrity under copies is claimed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::layer::{Carry, Config, Content, Layer, Wire, stand};
use super::{Cast, Group, Multicast, Promises};
use crate::{
    Algorithm, Channels, Claim, Cost, Experiment, Faults, Figure, Machine, Message, NodeId,
    Profile, Range, Setup, SetupError, Telling, Timer,
};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "basic-multicast",
        title: "Basic multicast, with acknowledgements",
        source: "coordination and agreement §4.2",
        channels: Channels::AnyOrder,
        survives_crashes: true,
        tolerates: |setup| Faults::crashes(others(setup)),
        claims: &[Claim::Safety, Claim::DeadlockFreedom],
        costs: &[Cost::messages(
            "2(|g|−1): as many acknowledgements as sends",
            |setup| Range::exactly(2 * fellows(setup)),
        )],
        figures: &[Figure {
            what: "acknowledgements per multicast, all to the sender",
            formula: "|g|−1",
            range: |setup| Range::exactly(fellows(setup)),
            sizes: &[4, 16, 64],
            chosen: &[],
            experiment: Experiment::LoneKinds(&["Ack"]),
        }],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| machine(setup, OverBasic::PROMISES),
};

pub(super) fn machine(
    setup: &Setup,
    promises: Promises,
) -> Result<Box<dyn Machine<Multicast>>, SetupError> {
    stand::<Acknowledged<Cast>>(setup, promises, None)
}

/// The other members of a group: |g| − 1.
pub(super) fn fellows(setup: &Setup) -> u32 {
    let left_out = usize::from(setup.groups.is_some_and(|groups| groups > 1));
    (setup.users - left_out).saturating_sub(1) as u32
}

/// All nodes but one may crash.
pub(super) fn others(setup: &Setup) -> u32 {
    setup.users.saturating_sub(1) as u32
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct OverBasic;

impl Carry for OverBasic {
    type Layer<C: Content> = Basic<C>;
    const PROMISES: Promises = Promises {
        integrity: true,
        validity: true,
        agreement: false,
        uniform: false,
        fifo: false,
        causal: false,
        total: false,
    };
}

/// The layer, without acknowledgements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Basic<C> {
    id: NodeId,
    carries: std::marker::PhantomData<C>,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum ToMember<C> {
    Message(Group, C),
    Ack,
}

impl<C: Content> Message for ToMember<C> {}

impl<C: fmt::Debug> fmt::Debug for ToMember<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToMember::Message(_, content) => write!(f, "Message({content:?})"),
            ToMember::Ack => f.write_str("Ack"),
        }
    }
}

impl<C: Content> Layer<C> for Basic<C> {
    type Message = ToMember<C>;

    fn new(id: NodeId, _: &Config) -> Self {
        Basic {
            id,
            carries: std::marker::PhantomData,
        }
    }

    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<ToMember<C>, C>,
    ) {
        for member in config
            .groups
            .members(group)
            .filter(|&member| member != self.id)
        {
            out.send(member, ToMember::Message(group, content.clone()));
        }
        if config.groups.has(group, self.id) {
            out.deliver(self.id, group, content);
        }
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: ToMember<C>,
        config: &Config,
        out: &mut Wire<ToMember<C>, C>,
    ) {
        if let ToMember::Message(group, content) = message
            && config.groups.has(group, self.id)
        {
            out.deliver(from, group, content);
        }
    }

    fn fire(&mut self, _: Timer, _: &Config, _: &mut Wire<ToMember<C>, C>) {}

    fn content(message: &ToMember<C>) -> Option<&C> {
        match message {
            ToMember::Message(_, content) => Some(content),
            ToMember::Ack => None,
        }
    }
}

/// The layer with acknowledgements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Acknowledged<C>(Basic<C>);

impl<C: Content> Layer<C> for Acknowledged<C> {
    type Message = ToMember<C>;

    fn new(id: NodeId, config: &Config) -> Self {
        Acknowledged(Basic::new(id, config))
    }

    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<ToMember<C>, C>,
    ) {
        self.0.multicast(group, content, config, out);
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: ToMember<C>,
        config: &Config,
        out: &mut Wire<ToMember<C>, C>,
    ) {
        let acknowledges = matches!(message, ToMember::Message(..));
        self.0.receive(from, message, config, out);
        if acknowledges {
            out.send(from, ToMember::Ack);
        }
    }

    fn fire(&mut self, _: Timer, _: &Config, _: &mut Wire<ToMember<C>, C>) {}

    fn content(message: &ToMember<C>) -> Option<&C> {
        Basic::content(message)
    }
}
