//! The bully of García-Molina, 1982: who notices a crash asks all larger ones; who hears nothing in time has won.
//!
//! Source: coordination and agreement §3.3. Crashes are detected by timeouts, so it is right only while no message is
//! slower than the bound. The source gives no span for the wait after an answer; here it is 2T, in which the largest
//! that lives has been asked, has waited and has announced itself.
//!
//! It has two known problems, which the checker finds: a process that comes back while another is being announced,
//! and a timeout that is too short.

use serde::{Deserialize, Serialize};

use super::{Ask, Candidate, Election, Tell};
use crate::{
    Algorithm, Experiment, Faults, Figure, Input, Machine, Message, NodeId, Output, Profile,
    Protocol, Range, Setup, SetupError, Shape, Telling, Timer, erase_for,
};

pub(crate) const ALGORITHM: Algorithm<Election> = Algorithm {
    profile: PROFILE,
    machine: |setup| with(setup, Flaw::None),
};

pub(super) const PROFILE: Profile = Profile {
    name: "bully",
    title: "The bully, García-Molina, 1982",
    source: "coordination and agreement §3.3",
    survives_crashes: true,
    needs_delay_bound: true,
    tolerates: |_| Faults::crashes(1),
    // What is published is the cost of replacing a leader that has crashed; other calls cost more or less.
    figures: &[Figure {
        what: "messages of an election that one process calls while the largest is down",
        formula: "N-2 to N²-N-1",
        range: |setup| {
            let n = setup.users as f64;
            Range::new(n - 2.0, n * n - n - 1.0)
        },
        sizes: &[4, 7, 13],
        chosen: &[],
        experiment: Experiment::LoneCallWithoutLargest,
    }],
    telling: Telling {
        nodes: 3,
        entries: 1,
    },
    ..Profile::PLAIN
};

/// What a specimen does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    None,
    /// After an answer it waits for ever.
    NoSecondTimeout,
    /// It does not wait for answers.
    Impatient,
}

pub(super) fn with(setup: &Setup, flaw: Flaw) -> Result<Box<dyn Machine<Election>>, SetupError> {
    let nodes = setup.at_least(2)?;
    let shape = Shape::users(nodes);
    let users = Candidate::of(false);
    let config = Config {
        nodes,
        delay_bound: setup.delay_bound.max(1),
        flaw,
    };
    Ok(erase_for::<Bully>(shape, users, config))
}

#[derive(Clone, Copy, Debug)]
struct Config {
    nodes: usize,
    delay_bound: u64,
    flaw: Flaw,
}

impl Config {
    /// T: a question and its answer are quicker.
    fn timeout(&self) -> u64 {
        2 * self.delay_bound + 1
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Bully {
    i: NodeId,
    e: Option<NodeId>,
    phase: Phase,
    /// Counts its waits, so that a timer of an earlier one is recognised.
    wait: u64,
    /// Whether it comes back from a crash.
    recovers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    WaitAnswer,
    WaitCoord,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Talk {
    Election,
    Answer,
    Coordinator(NodeId),
}

impl Message for Talk {}

impl Protocol for Bully {
    type Problem = Election;
    type Message = Talk;
    type Config = Config;

    fn new(i: NodeId, _: &Config) -> Self {
        Bully {
            i,
            e: None,
            phase: Phase::Idle,
            wait: 0,
            recovers: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            // Recovery: start(), even if the current coordinator works.
            Input::Start if self.recovers => {
                self.recovers = false;
                self.start(None, config, out);
            }
            Input::Start => {}
            Input::Ask(Ask::Call) if self.phase == Phase::Idle => self.start(None, config, out),
            Input::Ask(Ask::CallWithout(failed)) if self.phase == Phase::Idle => {
                self.start(Some(failed), config, out);
            }
            // The election that goes on answers this call, too.
            Input::Ask(_) => {}
            Input::Message { from, message } => match message {
                Talk::Election => {
                    out.send(from, Talk::Answer);
                    if self.phase == Phase::Idle {
                        self.start(None, config, out);
                    }
                }
                Talk::Answer if self.phase == Phase::WaitAnswer => {
                    self.phase = Phase::WaitCoord;
                    self.wait += 1;
                    if config.flaw != Flaw::NoSecondTimeout {
                        let span = 2 * config.timeout();
                        out.after(span..span + 1, Timer(self.wait));
                    }
                }
                Talk::Answer => {}
                Talk::Coordinator(x) => self.elected(x, out),
            },
            Input::Timer(Timer(wait)) if wait == self.wait => match self.phase {
                Phase::WaitAnswer => self.announce(out),
                Phase::WaitCoord => self.start(None, config, out),
                Phase::Idle => {}
            },
            Input::Timer(_) => {}
        }
    }

    /// Nothing is kept but that it has crashed.
    fn restart(&self, i: NodeId, config: &Config) -> Self {
        Bully {
            recovers: true,
            ..Bully::new(i, config)
        }
    }
}

impl Bully {
    /// Asks all larger ones, unless all of them are known to have failed.
    fn start(&mut self, failed: Option<NodeId>, config: &Config, out: &mut Output<Self>) {
        let i = self.i;
        let larger = || NodeId::all(config.nodes).filter(move |&node| node > i);
        if larger().all(|node| failed == Some(node)) {
            return self.announce(out);
        }
        (self.e, self.phase) = (None, Phase::WaitAnswer);
        self.wait += 1;
        out.tell(Tell::Participates);
        out.send_all(larger(), &Talk::Election);
        if config.flaw == Flaw::Impatient {
            return self.announce(out);
        }
        let span = config.timeout();
        out.after(span..span + 1, Timer(self.wait));
    }

    fn announce(&mut self, out: &mut Output<Self>) {
        let i = self.i;
        out.send_all(NodeId::all(i.index()), &Talk::Coordinator(i));
        self.elected(i, out);
    }

    fn elected(&mut self, x: NodeId, out: &mut Output<Self>) {
        (self.e, self.phase) = (Some(x), Phase::Idle);
        out.tell(Tell::Elected(x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::tests::Play;

    /// The largest has crashed, and this one calls; messages by kind.
    fn messages(nodes: usize, caller: u32, ask: Ask) -> [u64; 3] {
        let machine = with(&Setup::new(nodes), Flaw::None).expect("enough nodes");
        let last = nodes as u32 - 1;
        let mut play = Play::new(&*machine, &[last]);
        play.ask(caller, ask);
        play.finish();
        let elected = play.elected();
        assert!(
            elected[..nodes - 1]
                .iter()
                .all(|e| *e == Some(NodeId(last - 1)))
        );
        ["Election", "Answer", "Coordinator"].map(|kind| play.sent(kind))
    }

    #[test]
    fn the_best_case_is_n_minus_2() {
        for nodes in 3..=8 {
            let last = nodes as u32 - 1;
            let kinds = messages(nodes, last - 1, Ask::CallWithout(NodeId(last)));
            assert_eq!(kinds, [0, 0, nodes as u64 - 2]);
        }
    }

    #[test]
    fn the_worst_case_is_n_squared_minus_n_minus_1() {
        for nodes in 3..=8 {
            let n = nodes as u64;
            let kinds = messages(nodes, 0, Ask::Call);
            assert_eq!(kinds, [n * (n - 1) / 2, (n - 1) * (n - 2) / 2, n - 2]);
            assert_eq!(kinds.iter().sum::<u64>(), n * n - n - 1);
        }
        assert_eq!(messages(8, 0, Ask::Call), [28, 21, 6], "55 together");
    }

    /// §3.3: 4 of 0 to 7 notices that 7 has crashed.
    #[test]
    fn the_example_of_the_source_has_15_messages() {
        assert_eq!(messages(8, 4, Ask::Call), [6, 3, 6]);
    }

    /// §3.3, parts f to h: 6 crashes after it has answered 5, and 5 is elected.
    #[test]
    fn a_crash_during_the_election_is_survived() {
        let machine = with(&Setup::new(8), Flaw::None).expect("enough nodes");
        let mut play = Play::new(&*machine, &[7]);
        play.ask(4, Ask::Call);
        play.deliver_all();
        play.crash(6);
        play.finish();
        let elected = play.elected();
        assert!(
            elected[..6].iter().all(|e| *e == Some(NodeId(5))),
            "{elected:?}"
        );
        assert_eq!(play.sent("Election"), 6 + 3 + 2, "4 asks again, too");
    }
}
