//! Crashes in the middle of a step: every order of arrival, and every crash between any two things that a node does, with
//! links that deliver whatever was sent (§4.1). A driver's step is atomic, so this is tried on the layers themselves.

use super::basic::Basic;
use super::layer::{Carry, Config, Effect, Flaw, Layer, Wire};
use super::reliable::Reliable;
use super::*;
use crate::{NodeId, Problem, User as _, UserId};

#[derive(Clone)]
struct World<L: Layer<Cast>> {
    /// None for a node that has crashed.
    nodes: Vec<Option<L>>,
    users: Vec<User>,
    under_way: Vec<(NodeId, NodeId, L::Message)>,
    crashes_left: u32,
}

impl<L: Layer<Cast>> World<L> {
    fn first(config: &Config, promises: Promises, crashes: u32) -> World<L> {
        let nodes = config.groups.nodes();
        World {
            nodes: NodeId::all(nodes)
                .map(|id| Some(L::new(id, config)))
                .collect(),
            users: UserId::all(nodes)
                .map(|user| User::new(user, config.groups, promises))
                .collect(),
            under_way: Vec::new(),
            crashes_left: crashes,
        }
    }

    /// A step of a node: whole, or cut by a crash after each of its effects.
    fn step(
        &self,
        node: NodeId,
        step: impl Fn(&mut L, &mut Wire<L::Message, Cast>),
        next: &mut dyn FnMut(World<L>),
    ) {
        let mut after = self.clone();
        let Some(layer) = after.nodes[node.index()].as_mut() else {
            return next(after);
        };
        let mut wire = Wire::new();
        step(layer, &mut wire);
        let mut cut = after.clone();
        (cut.nodes[node.index()], cut.crashes_left) = (None, after.crashes_left.saturating_sub(1));
        for effect in wire.effects {
            if after.crashes_left > 0 {
                let mut crashed = cut.clone();
                let user = &mut crashed.users[node.index()];
                *user = user.crashed(&User::default());
                crashed.under_way.retain(|(_, to, _)| *to != node);
                next(crashed);
            }
            for world in [&mut after, &mut cut] {
                match &effect {
                    Effect::Send(to, message) => world.under_way.push((node, *to, message.clone())),
                    Effect::Deliver(it) => {
                        let told = world.users[node.index()].told(Tell::Delivered(it.content));
                        told.expect("well-formed");
                    }
                    Effect::After(..) => {}
                }
            }
        }
        next(after);
    }

    /// Explores everything from here; counts the ends, and keeps what was missing in the first that missed something.
    fn explore(&self, config: &Config, ends: &mut u64, missing: &mut Option<String>) {
        if self.under_way.is_empty() {
            *ends += 1;
            if missing.is_none() {
                *missing = Multicast::unserved(&self.users);
            }
        }
        for place in 0..self.under_way.len() {
            let mut world = self.clone();
            let (from, to, message) = world.under_way.remove(place);
            let receive = |layer: &mut L, wire: &mut Wire<L::Message, Cast>| {
                layer.receive(from, message.clone(), config, wire);
            };
            world.step(to, receive, &mut |next| next.explore(config, ends, missing));
        }
    }
}

/// One multicast to a group of three; what is missing in the end, and how many runs ended.
fn three<L: Layer<Cast>>(
    flaw: Option<Flaw>,
    promises: Promises,
    crashes: u32,
) -> (Option<String>, u64) {
    let config = Config {
        groups: Groups::new(3, None).expect("valid"),
        delivery: Delivery::Immediate,
        delay_bound: 1,
        flaw,
    };
    let mut world = World::<L>::first(&config, promises, crashes);
    let cast = Cast {
        sender: NodeId(0),
        number: 1,
        group: Group(0),
    };
    world.users[0].asked(Ask::Multicast(cast.group));
    let (mut ends, mut missing) = (0, None);
    let multicast = |layer: &mut L, wire: &mut Wire<L::Message, Cast>| {
        layer.multicast(cast.group, cast, &config, wire);
    };
    world.step(cast.sender, multicast, &mut |next| {
        next.explore(&config, &mut ends, &mut missing);
    });
    (missing, ends)
}

const UNIFORM: Promises = Promises {
    uniform: true,
    ..OverReliable::PROMISES
};

/// §4.2: the sender crashes between two sends, and one member delivers.
#[test]
fn basic_multicast_has_no_agreement() {
    let agreeing = Promises {
        agreement: true,
        ..OverBasic::PROMISES
    };
    let (missing, _) = three::<Basic<Cast>>(None, agreeing, 1);
    let what = "p2 never delivers p0.1, which a correct member delivers";
    assert_eq!(missing.as_deref(), Some(what));
    assert_eq!(three::<Basic<Cast>>(None, OverBasic::PROMISES, 2).0, None);
}

/// §4.3: passing on before delivering gives agreement of all members, also of those that crash.
#[test]
fn passing_on_first_gives_uniform_agreement() {
    let (missing, ends) = three::<Reliable<Cast>>(None, UNIFORM, 2);
    assert_eq!(missing, None);
    assert!(ends > 100, "only {ends} runs");
}

/// §4.3, the negative test: deliver first, then crash.
#[test]
fn delivering_first_does_not() {
    let (missing, _) = three::<Reliable<Cast>>(Some(Flaw::DeliverFirst), UNIFORM, 2);
    let missing = missing.expect("a member that delivered alone");
    assert!(
        missing.ends_with("which a member delivered before it crashed"),
        "{missing}"
    );
    let (missing, _) = three::<Reliable<Cast>>(Some(Flaw::DeliverFirst), OverReliable::PROMISES, 2);
    assert_eq!(missing, None, "correct members still agree");
}
