//! Gates that several may be inside: one node owns such a gate and admits clients of all nodes, and when it gets another owner,
//! readers, rooms and permits are what they were. Everything happens in an order that a seed draws.

use std::collections::BTreeMap;

use testigo_core::estate::{Broken, Tell};
use testigo_core::{
    Answer, Ask, Change, Command, Definition, Lock, Name, Rule, SessionId, Settled, Ticket,
};

use crate::random::Random;
use crate::trio::{Trio, client};

const PERMITS: u32 = 3;
const CLIENTS: usize = 6;

/// How a client of this run asks for a gate.
fn wish(rule: Rule, random: &mut Random) -> Ask<'static> {
    match (rule, random.below(3)) {
        (Rule::Permits(_), permits) => Ask::Permits(1 + permits as u32),
        (Rule::Rooms, 0) => Ask::Room("red"),
        (Rule::Rooms, _) => Ask::Room("blue"),
        (_, 0) => Ask::Plain,
        _ => Ask::Shared,
    }
}

#[derive(Default)]
struct Inside(BTreeMap<usize, Ask<'static>>);

impl Inside {
    fn check(&self) -> Result<(), String> {
        let all: Vec<Ask<'static>> = self.0.values().copied().collect();
        let permits = all.iter().map(|ask| match ask {
            Ask::Permits(permits) => *permits,
            _ => 0,
        });
        let exclusive = all.contains(&Ask::Plain);
        let rooms = all.contains(&Ask::Room("red")) && all.contains(&Ask::Room("blue"));
        match permits.sum::<u32>() > PERMITS || rooms || exclusive && all.len() > 1 {
            true => Err(format!("inside together: {:?}", self.0)),
            false => Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
enum State {
    Outside,
    Waits(Ticket, Ask<'static>),
    Inside,
    Leaves(Ticket),
}

/// A run; gives how many were let in.
fn run(seed: u64, rule: Rule, broken: Option<Broken>) -> Result<u64, String> {
    let gate = "hall";
    let mut random = Random::new(seed);
    let mut trio = Trio::new(broken);
    let create = Change::CreateGate {
        gate: Name::new(gate).unwrap(),
        definition: Definition::new(rule),
        number: trio.replicated.gate_number(gate),
    };
    assert!(trio.log(0, create));
    trio.deliver_all();
    let session = |which: usize| client(which % 3, which as u64 + 1);
    for which in 0..CLIENTS {
        trio.ask(which % 3, session(which), &Command::Connect)
            .unwrap();
    }
    let mut states = [State::Outside; CLIENTS];
    let mut inside = Inside::default();
    let mut entered = 0;
    let enter = |inside: &mut Inside, which: usize, ask| {
        inside.0.insert(which, ask);
        inside.check()
    };
    for step in 0..600 {
        let calm = step >= 500;
        match random.below(8) {
            0 if !calm && random.one_in(4) => trio.give(gate, random.below(3) as usize),
            0 | 1 => trio.pass(random.between(1, 40)),
            2..=4 => {
                let links = trio.busy_links();
                if !links.is_empty() {
                    trio.deliver(links[random.below(links.len() as u64) as usize]);
                }
            }
            _ => {
                let which = random.below(CLIENTS as u64) as usize;
                let (at, session) = (which % 3, session(which));
                match states[which] {
                    State::Outside => {
                        let ask = wish(rule, &mut random);
                        let lock = Command::Lock(Lock {
                            gate,
                            ask,
                            ..Lock::default()
                        });
                        match trio.ask(at, session, &lock) {
                            Ok(Answer::Settled(Settled::Entered(_))) => {
                                entered += 1;
                                states[which] = State::Inside;
                                enter(&mut inside, which, ask)?;
                            }
                            Ok(Answer::Waiting(ticket)) => {
                                states[which] = State::Waits(ticket, ask);
                            }
                            _ => {}
                        }
                    }
                    State::Inside => {
                        inside.0.remove(&which);
                        let unlock = Command::Unlock { gate, fence: None };
                        states[which] = match trio.ask(at, session, &unlock) {
                            Ok(Answer::Waiting(ticket)) => State::Leaves(ticket),
                            _ => State::Outside,
                        };
                    }
                    State::Waits(..) | State::Leaves(_) => {}
                }
            }
        }
        hear(&mut trio, &mut states, &mut inside, &mut entered, &session)?;
    }
    // In the end everybody who waits is served.
    for _ in 0..CLIENTS * 4 {
        trio.pass(100);
        trio.deliver_all();
        hear(&mut trio, &mut states, &mut inside, &mut entered, &session)?;
        for (which, state) in states.iter_mut().enumerate() {
            if matches!(state, State::Inside) {
                inside.0.remove(&which);
                let unlock = Command::Unlock { gate, fence: None };
                let _ = trio.ask(which % 3, session(which), &unlock);
                *state = State::Outside;
            }
        }
    }
    let waits = |state: &State| matches!(state, State::Waits(..));
    match states.iter().any(waits) {
        true => Err("somebody waits for ever".into()),
        false => Ok(entered),
    }
}

fn hear(
    trio: &mut Trio,
    states: &mut [State; CLIENTS],
    inside: &mut Inside,
    entered: &mut u64,
    session: &dyn Fn(usize) -> SessionId,
) -> Result<(), String> {
    while let Some((_, tell)) = trio.tells.pop_front() {
        match tell {
            Tell::Answered {
                session: of,
                ticket,
                answer,
            } => {
                let which = (0..CLIENTS).find(|which| session(*which) == of);
                let which = which.expect("a client of this run");
                match states[which] {
                    State::Waits(own, ask) if own == ticket => {
                        states[which] = State::Outside;
                        if let Ok(Answer::Settled(Settled::Entered(_))) = answer {
                            *entered += 1;
                            states[which] = State::Inside;
                            inside.0.insert(which, ask);
                            inside.check()?;
                        }
                    }
                    State::Leaves(own) if own == ticket => states[which] = State::Outside,
                    _ => {}
                }
            }
            Tell::Lost { session: of, .. } => {
                return Err(format!(
                    "session {of} lost what it holds, and nothing failed"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn readers_rooms_and_permits_are_one_gate_at_all_nodes() {
    let mut entered = 0;
    for rule in [Rule::Shared, Rule::Permits(PERMITS), Rule::Rooms] {
        for seed in 0..100 {
            let ran = run(seed, rule, None);
            entered += ran.unwrap_or_else(|why| panic!("{rule:?}, seed {seed}: {why}"));
        }
        let found = (0..1_000).find_map(|seed| run(seed, rule, Some(Broken::OpenAtOnce)).err());
        assert!(found.is_some(), "{rule:?}: nobody noticed");
    }
    assert!(entered > 5_000, "{entered}");
}
