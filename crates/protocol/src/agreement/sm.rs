//! Byzantine generals with signed messages: SM(m), which stands m liars among m + 2.
//!
//! Source: coordination and agreement §5.2.2 (Lamport, Shostak and Pease, 1982). The commander signs its order, and
//! everybody who sees an order for the first time signs it too and passes it on. Nobody can sign for another, so a
//! lieutenant cannot lie about what it was ordered, and two orders of one commander show that it lies.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::instances::{Instances, exactly};
use super::om::{GENERALS, promises};
use super::promises::ORDERS;
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Cost, Experiment, Faults, Figure, Input, Machine, Message, NodeId, Output, Profile,
    Protocol, Range, Setup, SetupError, Shape, Telling, Timer, erase_for,
};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "sm",
        title: "Byzantine generals with signed messages, 1982",
        source: "coordination and agreement §5.2.2; Lamport, Shostak and Pease, 1982",
        tolerates: |setup| Faults::liars(rounds(setup) as u32),
        costs: &[Cost::messages(
            "2N-3 to (N-1)² where nobody lies and m > 0, (N-1)² where all messages are equally fast",
            |setup| {
                let lieutenants = (setup.users - 1) as f64;
                let fewest = match rounds(setup) {
                    0 => lieutenants,
                    // Whoever hears an order first from the last that passes it on does not pass it on; the first
                    // lieutenant that hears it always does.
                    _ => 2.0 * lieutenants - 1.0,
                };
                Range::new(fewest, messages(setup).max)
            },
        )],
        figures: &[Figure {
            what: "messages per decision with m = 1",
            formula: FORMULA,
            range: messages,
            sizes: &[3, 4, 7],
            chosen: &[],
            experiment: Experiment::FullLoad,
        }],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..GENERALS
    },
    machine: |setup| with_signatures(setup, true),
};

const FORMULA: &str = "(N-1)² where nobody lies and m > 0";

fn messages(setup: &Setup) -> Range {
    let lieutenants = (setup.users - 1) as f64;
    match rounds(setup) {
        0 => Range::exactly(lieutenants),
        _ => Range::exactly(lieutenants * lieutenants),
    }
}

/// The m of SM(m).
fn rounds(setup: &Setup) -> usize {
    setup.faulty.unwrap_or(1)
}

/// Generals whose signatures hold, or that believe anything.
pub(super) fn with_signatures(
    setup: &Setup,
    unforgeable: bool,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let (users, m) = (setup.at_least(3)?, rounds(setup));
    if m + 2 > users {
        return Err(SetupError(format!(
            "SM({m}) with {users} nodes: there must be at least {}, two of them loyal; choose fewer with --faulty",
            m + 2
        )));
    }
    let config = Config {
        users,
        commanders: setup.proposers.unwrap_or(users).min(users),
        m,
        delay_bound: setup.delay_bound,
        unforgeable,
    };
    Ok(erase_for::<Instances<Sm>>(
        Shape::users(users),
        |user| User::new(user, users, promises(setup)),
        config,
    ))
}

#[derive(Debug)]
pub(super) struct Config {
    users: usize,
    /// How many of the users command.
    commanders: usize,
    m: usize,
    delay_bound: u64,
    /// Whether nobody can sign for another; a specimen has it otherwise.
    unforgeable: bool,
}

/// A general in one instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sm {
    id: NodeId,
    /// V, the orders that it has seen.
    orders: BTreeSet<Value>,
    decided: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Signed {
    /// `v:0:j1..jk`: signed by the commander and by everybody who passed it on.
    Order { value: Value, signers: Vec<NodeId> },
}

impl Message for Signed {
    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        let Signed::Order { signers, .. } = self;
        signers.iter_mut().for_each(|node| *node = new(*node));
    }
}

/// No more can come.
const ROUNDS_OVER: Timer = Timer(0);

impl Protocol for Sm {
    type Problem = Agreement;
    type Message = Signed;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        Sm {
            id,
            orders: BTreeSet::new(),
            decided: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        let rounds = (config.m as u64 + 1) * config.delay_bound.max(1);
        match input {
            Input::Ask(Ask::Propose { value, .. }) => {
                self.orders.insert(value);
                self.sign(value, Vec::new(), config, out);
                // As in OM(m): when every lieutenant has decided.
                out.after(exactly(2 * rounds + 1), ROUNDS_OVER);
            }
            Input::Message { from, message } => {
                let Signed::Order { value, signers } = message;
                if !self.is_valid(from, &signers, config) {
                    return;
                }
                if self.orders.is_empty() {
                    out.after(exactly(rounds + 1), ROUNDS_OVER);
                }
                if self.orders.insert(value) && signers.len() <= config.m {
                    self.sign(value, signers, config, out);
                }
            }
            Input::Timer(ROUNDS_OVER) => self.decide(out),
            Input::Timer(_) | Input::Start => {}
        }
    }

    /// Those who never command.
    fn equal_nodes(config: &Config) -> std::ops::Range<u32> {
        config.commanders as u32..config.users as u32
    }

    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        self.id = new(self.id);
    }

    /// An order that it has seen is ignored.
    fn is_quiet(&self, _: NodeId, Signed::Order { value, .. }: &Signed, _: &Config) -> bool {
        self.orders.contains(value)
    }

    /// A commander may sign any order. Whoever passes an order on has nobody else's signature under another one; it
    /// can keep silent, which every liar can.
    fn lies(Signed::Order { value, signers }: &Signed, config: &Config) -> Vec<Signed> {
        if config.unforgeable && signers.len() > 1 {
            return Vec::new();
        }
        let others = (1..=ORDERS).map(Value).filter(|other| other != value);
        others
            .map(|value| Signed::Order {
                value,
                signers: signers.clone(),
            })
            .collect()
    }
}

impl Sm {
    /// Signs, and sends to everybody who has not signed.
    fn sign(
        &self,
        value: Value,
        mut signers: Vec<NodeId>,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        signers.push(self.id);
        let others: Vec<NodeId> = NodeId::all(config.users)
            .filter(|node| !signers.contains(node))
            .collect();
        out.send_all(others, &Signed::Order { value, signers });
    }

    /// Whether the signatures are distinct, not too many for their round, and end with the sender's.
    fn is_valid(&self, from: NodeId, signers: &[NodeId], config: &Config) -> bool {
        let distinct = (1..signers.len()).all(|place| !signers[..place].contains(&signers[place]));
        let in_round = signers.len() <= config.m + 1;
        distinct && in_round && signers.last() == Some(&from) && !signers.contains(&self.id)
    }

    /// `choice(V)`: the single order, else the default.
    fn decide(&mut self, out: &mut Output<Self>) {
        if std::mem::replace(&mut self.decided, true) {
            return;
        }
        let value = match self.orders.len() {
            1 => self.orders.first().copied().unwrap_or(Value::DEFAULT),
            _ => Value::DEFAULT,
        };
        out.tell(Tell::Decided { instance: 0, value });
    }
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal::{Rehearsal, every_lie};
    use super::*;

    fn generals(users: usize, unforgeable: bool) -> Rehearsal {
        let setup = Setup {
            proposers: Some(1),
            ..Setup::new(users)
        };
        Rehearsal::new(&*with_signatures(&setup, unforgeable).expect("valid"))
    }

    #[test]
    fn loyal_generals_obey() {
        for users in [3, 4, 7] {
            let mut run = generals(users, true);
            run.propose(0);
            run.play();
            assert_eq!(run.messages(), ((users - 1) * (users - 1)) as u64);
            assert!(run.decisions(0).iter().all(|told| *told == Some(Value(1))));
        }
    }

    /// §5.2.2, N = 3: two orders of one commander reach both lieutenants, and both decide the default.
    #[test]
    fn a_lying_commander_is_shown() {
        let mut run = generals(3, true);
        run.liar =
            Some(|from, to, label| (from == 0).then(|| label.replace("v1", &format!("v{to}"))));
        run.propose(0);
        run.play();
        assert_eq!(run.decisions(0)[1..], [Some(Value::DEFAULT); 2]);
        assert_eq!(run.violation(), None);
    }

    /// Every liar among three: a commander with 4² plays, each lieutenant with its relay or silence.
    #[test]
    fn three_stand_every_lie() {
        assert_eq!(every_lie(|| generals(3, true)), (16 + 2 * 2, None));
        let (_, broken) = every_lie(|| generals(3, false));
        let (liar, what) = broken.expect("forged signatures");
        assert_eq!(liar, 1, "{what}");
    }

    /// A commander that tells only one: the other learns it from that one.
    #[test]
    fn an_order_to_one_reaches_all() {
        let mut run = generals(3, true);
        run.propose(0);
        run.deliver(0, 1);
        run.deliver(1, 2);
        run.lose_all(0, 2);
        run.play();
        assert_eq!(run.decisions(0)[1..], [Some(Value(1)); 2]);
    }

    #[test]
    fn a_silent_lieutenant_changes_nothing() {
        let mut run = generals(3, true);
        run.silent = Some(1);
        run.propose(0);
        run.play();
        assert_eq!(run.decisions(0)[2], Some(Value(1)));
        assert_eq!(run.violation(), None);
    }

    /// Whoever passes an order on cannot change it.
    #[test]
    fn no_lie_carries_a_signature_of_another() {
        let config = |unforgeable| Config {
            users: 3,
            commanders: 1,
            m: 1,
            delay_bound: 0,
            unforgeable,
        };
        let order = |signers: &[u32]| Signed::Order {
            value: Value(1),
            signers: signers.iter().map(|&node| NodeId(node)).collect(),
        };
        assert_eq!(Sm::lies(&order(&[0]), &config(true)).len(), 2);
        assert!(Sm::lies(&order(&[0, 1]), &config(true)).is_empty());
        assert!(!Sm::lies(&order(&[0, 1]), &config(false)).is_empty());
    }

    #[test]
    fn two_generals_must_be_loyal() {
        let setup = Setup {
            faulty: Some(3),
            ..Setup::new(4)
        };
        let refused = with_signatures(&setup, true).err().expect("refused");
        assert!(refused.0.contains("at least 5"), "{refused}");
    }
}
