//! F-multicast over B-multicast: every member passes a message on to the whole group before it delivers it.
//!
//! Source: coordination and agreement §4.3. Each message is sent |g| times to each member: |g|(|g|−1) sends without those to
//! oneself. Passing on comes before delivering: then what anybody delivers, even a member that crashes right
//! afterwards, everybody delivers, if links deliver whatever was sent (§4.1). Where a crash takes along what has not
//! arrived yet, as in the laboratory, only correct members agree; so uniform agreement is reported apart
//! ([`Promises::uniform`]) and not claimed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::basic::{Basic, fellows, others};
use super::layer::{Carry, Config, Content, Delivered, Flaw, Layer, Wire, stand};
use super::received::Received;
use super::{Cast, Group, Multicast, Promises};
use crate::{
    Algorithm, Channels, Claim, Cost, Faults, Machine, NodeId, Profile, Range, Setup, SetupError,
    Telling, Timer,
};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "reliable-multicast",
        title: "Reliable multicast by passing on",
        source: "coordination and agreement §4.3",
        channels: Channels::AnyOrder,
        survives_crashes: true,
        tolerates: |setup| Faults::crashes(others(setup)),
        claims: &[Claim::Safety, Claim::DeadlockFreedom],
        costs: &[Cost::messages("|g|(|g|−1)", |setup| {
            Range::exactly((fellows(setup) + 1) * fellows(setup))
        })],
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| machine(setup, None),
};

/// With a flaw, uniform agreement is claimed.
pub(super) fn machine(
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Multicast>>, SetupError> {
    let promises = Promises {
        uniform: flaw.is_some(),
        ..OverReliable::PROMISES
    };
    stand::<Reliable<Cast>>(setup, promises, flaw)
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct OverReliable;

impl Carry for OverReliable {
    type Layer<C: Content> = Reliable<C>;
    const PROMISES: Promises = Promises {
        agreement: true,
        ..super::OverBasic::PROMISES
    };
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Reliable<C> {
    id: NodeId,
    basic: Basic<Signed<C>>,
    /// How many messages it has multicast.
    number: u64,
    /// What has been delivered, by sender.
    received: Vec<Received>,
}

/// A message needs an identity (§4.3): its sender and its number there.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Signed<C> {
    sender: NodeId,
    number: u64,
    content: C,
}

impl<C: fmt::Debug> fmt::Debug for Signed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.content.fmt(f)
    }
}

impl<C: Content> Layer<C> for Reliable<C> {
    type Message = <Basic<Signed<C>> as Layer<Signed<C>>>::Message;

    fn new(id: NodeId, config: &Config) -> Self {
        Reliable {
            id,
            basic: Basic::new(id, config),
            number: 0,
            received: vec![Received::default(); config.groups.nodes()],
        }
    }

    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<Self::Message, C>,
    ) {
        self.number += 1;
        let signed = Signed {
            sender: self.id,
            number: self.number,
            content,
        };
        let mut below = Wire::new();
        self.basic.multicast(group, signed, config, &mut below);
        self.lift(below, config, out);
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        config: &Config,
        out: &mut Wire<Self::Message, C>,
    ) {
        let mut below = Wire::new();
        self.basic.receive(from, message, config, &mut below);
        self.lift(below, config, out);
    }

    fn fire(&mut self, _: Timer, _: &Config, _: &mut Wire<Self::Message, C>) {}

    fn content(message: &Self::Message) -> Option<&C> {
        Basic::content(message).map(|signed| &signed.content)
    }
}

impl<C: Content> Reliable<C> {
    fn lift(
        &mut self,
        below: Wire<<Self as Layer<C>>::Message, Signed<C>>,
        config: &Config,
        out: &mut Wire<<Self as Layer<C>>::Message, C>,
    ) {
        out.lift(
            below,
            |message| message,
            |delivered, out| self.take(delivered, config, out),
        );
    }

    /// B-deliver.
    fn take(
        &mut self,
        Delivered {
            group,
            content: signed,
            ..
        }: Delivered<Signed<C>>,
        config: &Config,
        out: &mut Wire<<Self as Layer<C>>::Message, C>,
    ) {
        let Some(received) = self.received.get_mut(signed.sender.index()) else {
            return;
        };
        if !received.add(signed.number) {
            return;
        }
        let (sender, content) = (signed.sender, signed.content.clone());
        let deliver_first = config.flaw == Some(Flaw::DeliverFirst);
        if deliver_first {
            out.deliver(sender, group, content.clone());
        }
        if sender != self.id {
            let mut below = Wire::new();
            self.basic.multicast(group, signed, config, &mut below);
            // Its own copy is what it is passing on: received already.
            out.lift(below, |message| message, |_, _| {});
        }
        if !deliver_first {
            out.deliver(sender, group, content);
        }
    }
}
