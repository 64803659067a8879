//! Playing a schedule that the checker found: the same steps on a stage, which yields a trace.

use rustc_hash::FxHashMap;
use testigo_protocol::{Faults, Machine, NodeId, Problem, Profile, Setup, UserId};
use testigo_sim::{Loss, Memory, Time};

use super::faults::Fate;
use super::model::Step;
use crate::stage::{Flight, SILENCE, Stage};
use crate::trace::{Clock, Event, Header, Trace};

/// What is played, and what becomes of it.
pub(crate) struct Schedule<'a> {
    pub(crate) steps: &'a [Step],
    /// Repeated for ever after the steps, and who starves.
    pub(crate) cycle: Option<(&'a [Step], UserId)>,
    /// Whether nothing more can happen afterwards.
    pub(crate) ends: bool,
    pub(crate) faults: Faults,
    /// What a node that crashes keeps.
    pub(crate) memory: Memory,
    pub(crate) made_by: String,
}

pub(crate) fn play<Q: Problem>(
    profile: &Profile,
    machine: &dyn Machine<Q>,
    setup: &Setup,
    schedule: &Schedule<'_>,
) -> Trace {
    let shape = machine.shape();
    let mut player = Player {
        stage: Stage::new(machine, profile.claims, true),
        links: FxHashMap::default(),
        now: 0,
        down: vec![false; shape.nodes()],
        restarts_left: schedule.faults.restarts,
        memory: schedule.memory,
    };
    for node in NodeId::all(shape.nodes()) {
        player.stage.start(Time::ZERO, node);
        player.collect();
    }
    for step in schedule.steps {
        player.take(*step);
    }
    if let Some((cycle, victim)) = schedule.cycle {
        let begins = Time::units(player.now + 1);
        player.stage.record(begins, || Event::Cycle);
        for step in cycle {
            player.take(*step);
        }
        let closes = player.next();
        player.stage.repeat(closes, victim);
    }
    if schedule.ends {
        let end = player.next();
        player.stage.end(end, None);
    }
    Trace {
        header: Header {
            clock: Clock::Steps,
            ..Header::new(profile, shape, setup, schedule.made_by.clone())
        },
        events: player.stage.into_trace().unwrap_or_default(),
    }
}

struct Player<Q: Problem> {
    stage: Stage<Q>,
    links: FxHashMap<(NodeId, NodeId), Vec<Flight>>,
    /// How many steps were taken. What befalls a message before it is delivered is a step of its own.
    now: u64,
    down: Vec<bool>,
    restarts_left: u32,
    memory: Memory,
}

impl<Q: Problem> Player<Q> {
    fn next(&mut self) -> Time {
        self.now += 1;
        Time::units(self.now)
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask(user, choice) => {
                let now = self.next();
                self.stage.ask(now, user, choice);
            }
            Step::Carry {
                from,
                to,
                place,
                fate,
            } => self.carry(from, to, place as usize, fate),
            Step::Fire(node, timer) => {
                let now = self.next();
                self.stage.fire(now, node, timer);
            }
            Step::Crash(node) => {
                let now = self.next();
                self.stage.crash(now, node, self.memory);
                self.down[node.index()] = true;
            }
            Step::Restart(node) => {
                let now = self.next();
                self.stage.restart(now, node, self.memory);
                self.down[node.index()] = false;
                self.restarts_left -= 1;
            }
        }
        self.collect();
    }

    fn carry(&mut self, from: NodeId, to: NodeId, place: usize, fate: Fate) {
        let now = self.next();
        let flights = self.links.entry((from, to)).or_default();
        let flight = flights.remove(place);
        match fate {
            Fate::Delivered => self.stage.deliver(now, flight),
            Fate::Lost => self.stage.lose(now, flight, &Loss::Channel.to_string()),
            Fate::Missed => self.stage.lose(now, flight, &Loss::Down.to_string()),
            Fate::Dropped => self.stage.lose(now, flight, &Loss::Sender.to_string()),
            Fate::Silenced => self.stage.lose(now, flight, SILENCE),
            Fate::Copied => {
                flights.insert(place, self.stage.copy(now, flight));
                let now = self.next();
                self.stage.deliver(now, flight);
            }
            Fate::Lied(choice) => {
                self.stage.lie(now, flight, u64::from(choice));
                let now = self.next();
                self.stage.deliver(now, flight);
            }
        }
    }

    /// Takes what was sent; what nobody will ever receive is lost.
    fn collect(&mut self) {
        for flight in std::mem::take(&mut self.stage.sent) {
            let link = (flight.from, flight.to);
            self.links.entry(link).or_default().push(flight);
        }
        if self.restarts_left > 0 {
            return;
        }
        let down = &self.down;
        let gone = self
            .links
            .iter_mut()
            .filter(|((_, to), _)| down[to.index()]);
        let mut lost: Vec<Flight> = gone.flat_map(|(_, flights)| flights.drain(..)).collect();
        lost.sort_by_key(|flight| flight.number);
        for flight in lost {
            let now = self.next();
            self.stage.lose(now, flight, &Loss::Down.to_string());
        }
    }
}
