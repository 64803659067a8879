//! Reliable multicast over a lossy broadcast, with negative acknowledgements: a message names what its sender has
//! delivered from everybody, and who finds a gap asks for what is missing.
//!
//! Source: coordination and agreement §4.4. A broadcast (IP multicast) is one send per member, of which each may be lost by
//! itself. Numbers start at 1: with the printed 0 the first message is taken for an old one. While earlier
//! messages are missing, a later one is delivered at once or held ([`Delivery`]): the slides say both. The loss of the
//! last message is noticed by an empty message with the same acknowledgements, sent after a silence until
//! everybody is known to have everything.
//!
//! Losses are stood in either mode. A crash besides is stood only with `hold`: what is delivered above a gap is in
//! nobody's acknowledgements, so if the sender of the missing message is gone, others never hear of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::basic::{fellows, others};
use super::layer::{Carry, Config, Content, Flaw, Layer, Wire, stand};
use super::received::Received;
use super::{Cast, Delivery, Group, Multicast, Promises};
use crate::{
    Algorithm, Channels, Claim, Experiment, Faults, Figure, Machine, Message, NodeId, Profile,
    Range, Setup, SetupError, Telling, Timer,
};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "nack-multicast",
        title: "Reliable multicast with negative acknowledgements",
        source: "coordination and agreement §4.4",
        channels: Channels::AnyOrder,
        tolerates: |setup| Faults {
            losses: 1,
            copies: 1,
            crashes: match setup.delivery {
                Delivery::Immediate => 0,
                Delivery::Hold => others(setup),
            },
            ..Faults::NONE
        },
        claims: &[Claim::Safety, Claim::DeadlockFreedom],
        figures: &[Figure {
            what: "messages per multicast, without losses and empty messages",
            formula: "|g|−1",
            range: |setup| Range::exactly(fellows(setup)),
            sizes: &[4, 16],
            chosen: &[],
            experiment: Experiment::LoneKinds(&["Message"]),
        }],
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| machine(setup, None),
};

pub(super) fn machine(
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Multicast>>, SetupError> {
    let promises = Promises {
        fifo: setup.delivery == Delivery::Hold && setup.groups.is_none_or(|groups| groups == 1),
        ..OverNack::PROMISES
    };
    stand::<Nack<Cast>>(setup, promises, flaw)
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct OverNack;

impl Carry for OverNack {
    type Layer<C: Content> = Nack<C>;
    const PROMISES: Promises = Promises {
        agreement: true,
        ..super::OverBasic::PROMISES
    };
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Nack<C> {
    id: NodeId,
    groups: Vec<InGroup<C>>,
}

/// What a member knows in one group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct InGroup<C> {
    /// S: the next number to use.
    next: u64,
    /// R and `extra`, by sender: what has been delivered.
    delivered: Vec<Received>,
    /// What was sent or received, until everybody is known to have it.
    store: BTreeMap<(NodeId, u64), C>,
    /// Every member's R, as far as it has said.
    known: Vec<Vec<u64>>,
    /// Whether somebody may wait for its acknowledgements.
    owes: bool,
    /// Whether its timer is running.
    armed: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Heard<C> {
    Message {
        group: Group,
        number: u64,
        /// R of every node; its own is S − 1.
        acks: Vec<u64>,
        content: C,
    },
    /// The same after a silence, without a content.
    Empty {
        group: Group,
        acks: Vec<u64>,
        /// Whether the sender does not know that everybody has everything.
        asks: bool,
    },
    Nack {
        group: Group,
        sender: NodeId,
        missing: Vec<u64>,
    },
    Retransmit {
        group: Group,
        sender: NodeId,
        number: u64,
        content: C,
    },
}

impl<C: Content> Message for Heard<C> {}

impl<C: fmt::Debug> fmt::Debug for Heard<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Heard::Message { acks, content, .. } => write!(f, "Message({content:?} {acks:?})"),
            Heard::Empty { acks, asks, .. } => {
                write!(f, "Empty({acks:?}{})", if *asks { "?" } else { "" })
            }
            Heard::Nack {
                sender, missing, ..
            } => write!(f, "Nack(p{sender} {missing:?})"),
            Heard::Retransmit { content, .. } => write!(f, "Retransmit({content:?})"),
        }
    }
}

/// The most numbers that one nack asks for; the rest is asked for when these have come.
const MISSING_MAX: usize = 64;
/// A silence of so many delay bounds ends with an empty message; how many exactly is drawn.
const SILENCE: std::ops::Range<u64> = 4..8;

impl<C: Content> Layer<C> for Nack<C> {
    type Message = Heard<C>;

    fn new(id: NodeId, config: &Config) -> Self {
        let nodes = config.groups.nodes();
        let in_group = InGroup {
            next: u64::from(config.flaw != Some(Flaw::FirstNumberZero)),
            delivered: vec![Received::default(); nodes],
            store: BTreeMap::new(),
            known: vec![vec![0; nodes]; nodes],
            owes: false,
            armed: false,
        };
        Nack {
            id,
            groups: vec![in_group; config.groups.count()],
        }
    }

    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<Heard<C>, C>,
    ) {
        let id = self.id;
        let Some(here) = self.groups.get_mut(group.index()) else {
            return;
        };
        let number = here.next;
        here.next += 1;
        here.delivered[id.index()].add(number);
        here.store.insert((id, number), content.clone());
        here.owes = false;
        let message = Heard::Message {
            group,
            number,
            acks: here.acks(),
            content: content.clone(),
        };
        self.broadcast(group, &message, config, out);
        out.deliver(id, group, content);
        self.arm(group, config, out);
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Heard<C>,
        config: &Config,
        out: &mut Wire<Heard<C>, C>,
    ) {
        let (Heard::Message { group, .. }
        | Heard::Empty { group, .. }
        | Heard::Nack { group, .. }
        | Heard::Retransmit { group, .. }) = message;
        if !config.groups.has(group, self.id) || !config.groups.has(group, from) {
            return;
        }
        let here = &mut self.groups[group.index()];
        match message {
            Heard::Message {
                number,
                acks,
                content,
                ..
            } => {
                here.accept(from, number, group, content, config, out);
                here.heard(from, &acks, group, out);
            }
            Heard::Empty { acks, asks, .. } => {
                here.owes |= asks;
                here.heard(from, &acks, group, out);
            }
            Heard::Retransmit {
                sender,
                number,
                content,
                ..
            } => here.accept(sender, number, group, content, config, out),
            // To the requester only, by decision.
            Heard::Nack {
                sender, missing, ..
            } => {
                for number in missing.into_iter().take(MISSING_MAX) {
                    if let Some(content) = here.store.get(&(sender, number)).cloned() {
                        let again = Heard::Retransmit {
                            group,
                            sender,
                            number,
                            content,
                        };
                        out.send(from, again);
                    }
                }
            }
        }
        here.forget_what_all_have(self.id, group, config);
        self.arm(group, config, out);
    }

    fn fire(&mut self, timer: Timer, config: &Config, out: &mut Wire<Heard<C>, C>) {
        let group = Group(timer.0 as u32);
        let Some(here) = self.groups.get_mut(group.index()) else {
            return;
        };
        here.armed = false;
        let asks = here.asks(self.id, group, config);
        if asks || std::mem::take(&mut here.owes) {
            here.owes = false;
            let acks = here.acks();
            let empty = Heard::Empty { group, acks, asks };
            self.broadcast(group, &empty, config, out);
        }
        self.arm(group, config, out);
    }

    fn content(message: &Heard<C>) -> Option<&C> {
        match message {
            Heard::Message { content, .. } | Heard::Retransmit { content, .. } => Some(content),
            Heard::Empty { .. } | Heard::Nack { .. } => None,
        }
    }
}

impl<C: Content> Nack<C> {
    /// IP multicast.
    fn broadcast(
        &self,
        group: Group,
        message: &Heard<C>,
        config: &Config,
        out: &mut Wire<Heard<C>, C>,
    ) {
        for member in config
            .groups
            .members(group)
            .filter(|&member| member != self.id)
        {
            out.send(member, message.clone());
        }
    }

    /// Sets the timer of a silence, where an empty message may be needed after it.
    fn arm(&mut self, group: Group, config: &Config, out: &mut Wire<Heard<C>, C>) {
        let here = &mut self.groups[group.index()];
        let needed = here.owes || here.asks(self.id, group, config);
        if needed && !here.armed && config.flaw != Some(Flaw::Silence) {
            here.armed = true;
            let bound = config.delay_bound;
            let span = SILENCE.start * bound..SILENCE.end * bound;
            out.after(span, Timer(u64::from(group.0)));
        }
    }
}

impl<C: Content> InGroup<C> {
    fn acks(&self) -> Vec<u64> {
        self.delivered
            .iter()
            .map(|received| received.upto)
            .collect()
    }

    /// Whether some member is not known to have what this one has.
    fn asks(&self, id: NodeId, group: Group, config: &Config) -> bool {
        let mut others = config.groups.members(group).filter(|&other| other != id);
        others.any(|other| {
            let theirs = self.known[other.index()].iter();
            let mut both = self.delivered.iter().zip(theirs);
            both.any(|(mine, theirs)| mine.upto > *theirs)
        })
    }

    fn accept(
        &mut self,
        sender: NodeId,
        number: u64,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<Heard<C>, C>,
    ) {
        let Some(delivered) = self.delivered.get_mut(sender.index()) else {
            return;
        };
        if delivered.has(number) || self.store.contains_key(&(sender, number)) {
            return;
        }
        self.store.insert((sender, number), content.clone());
        self.owes = true;
        match config.delivery {
            Delivery::Immediate => {
                delivered.add(number);
                out.deliver(sender, group, content);
            }
            Delivery::Hold => {
                while let Some(content) = self.store.get(&(sender, delivered.upto + 1)) {
                    delivered.add(delivered.upto + 1);
                    out.deliver(sender, group, content.clone());
                }
            }
        }
    }

    /// Remembers what a member has delivered, and asks it for what is missing here.
    fn heard(&mut self, from: NodeId, acks: &[u64], group: Group, out: &mut Wire<Heard<C>, C>) {
        for (known, ack) in self.known[from.index()].iter_mut().zip(acks) {
            *known = (*known).max(*ack);
        }
        for ((sender, mine), &theirs) in self.delivered.iter().enumerate().zip(acks) {
            let sender = NodeId(sender as u32);
            let lacks =
                |&number: &u64| !mine.has(number) && !self.store.contains_key(&(sender, number));
            let missing = (mine.upto + 1..=theirs).filter(lacks);
            let missing: Vec<u64> = missing.take(MISSING_MAX).collect();
            if !missing.is_empty() {
                let nack = Heard::Nack {
                    group,
                    sender,
                    missing,
                };
                out.send(from, nack);
            }
        }
    }

    fn forget_what_all_have(&mut self, id: NodeId, group: Group, config: &Config) {
        let others = config.groups.members(group).filter(|&other| other != id);
        let others: Vec<&Vec<u64>> = others.map(|other| &self.known[other.index()]).collect();
        let delivered = &self.delivered;
        self.store.retain(|(sender, number), _| {
            let sender = sender.index();
            let mine = delivered[sender].upto;
            let least = others.iter().map(|theirs| theirs[sender]).min();
            *number > least.map_or(mine, |least| least.min(mine))
        });
    }
}
