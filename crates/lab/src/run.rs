//! One simulated run and what is to be said of it.

use serde::Serialize;
use testigo_protocol::{Channels, Counted, Machine, Measure, Problem, Profile, Range, Setup};
use testigo_sim::{Fault, LinkOrder, Time};

use crate::family::LabError;
use crate::observer::{Observer, Wrong};
use crate::simulate::simulate;
use crate::stage::Stage;
use crate::threads::AccessReport;
use crate::trace::{Header, Trace};
use crate::world::{Progress, World};

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    pub report: Report,
    /// Kept when it was asked for, up to [`Trace::EVENTS_MAX`] events.
    pub trace: Option<Trace>,
}

/// The report of a run. Its field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub algorithm: &'static str,
    pub problem: &'static str,
    /// The word for what is counted as entries.
    #[serde(skip)]
    pub counted: Counted,
    pub nodes: usize,
    pub seed: u64,
    /// Entries that happened; elections, multicasts or decisions where the problem is one of these.
    pub entries: u64,
    pub safe: bool,
    pub live: bool,
    /// Whether entries followed the happened-before order of their requests; null where the
    /// algorithm does not claim it.
    pub ordered: Option<bool>,
    /// Whether no request was passed more often, or earlier, than the bounds allow; null where the
    /// algorithm does not claim it.
    pub bounded: Option<bool>,
    pub messages: u64,
    pub messages_per_entry: Option<f64>,
    pub published_messages_per_entry: Option<Published>,
    /// Whether the messages per entry are as published; null where nothing is, or nobody got in.
    pub as_published: Option<bool>,
    /// The mean size of a message, in bytes.
    pub message_bytes: Option<f64>,
    /// The messages of each kind.
    pub messages_by_kind: std::collections::BTreeMap<String, u64>,
    /// Times are in message times: multiples of the mean latency.
    pub entry_delay: Option<f64>,
    pub waiting_time: Option<f64>,
    pub response_time: Option<f64>,
    pub synchronisation_delay: Option<f64>,
    /// This and what follows is null where there is no inside.
    pub overtakes_max: Option<u64>,
    /// Rounds: entries that found nobody inside, or for which a room was opened.
    pub rounds: Option<u64>,
    /// Messages a round between nodes that have no user; null where there are not two of them.
    pub messages_behind: Option<f64>,
    /// Rounds for another kind of request than the round before.
    pub switches: Option<u64>,
    /// The most users inside together.
    pub inside_max: Option<usize>,
    /// By kind of request, where the problem has several.
    pub kinds: Vec<KindReport>,
    /// Where threads share memory; messages are counted beside them where registers are replicated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<AccessReport>,
    pub well_formed: bool,
    pub violations: Vec<String>,
    /// Virtual time at the end, in message times.
    pub time: f64,
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.safe && self.live && self.well_formed && self.bounded != Some(false)
    }
}

/// The requests of one kind: of a class, for a room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindReport {
    pub kind: String,
    pub entries: u64,
    pub waiting_time: Option<f64>,
    /// The most entries that passed one such request, at nodes that could know of it.
    pub passed_max: u32,
}

/// A published range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    pub min: f64,
    pub max: f64,
}

impl Published {
    pub fn contains(&self, value: f64) -> bool {
        Range::new(self.min, self.max).contains(value)
    }
}

/// The published range of a measure for a setup.
pub(crate) fn published(profile: &Profile, measure: Measure, setup: &Setup) -> Option<Published> {
    let cost = profile.costs.iter().find(|cost| cost.measure == measure)?;
    let range = (cost.range)(setup);
    Some(Published {
        min: range.min,
        max: range.max,
    })
}

pub(crate) fn run<Q: Problem>(
    profile: &'static Profile,
    machine: &dyn Machine<Q>,
    setup: &Setup,
    world: &World,
    keep_trace: bool,
    progress: fn(Progress),
) -> Result<Run, LabError> {
    refuse_what_cannot_be(profile, machine, world)?;
    let mut stage = Stage::new(machine, profile.claims, keep_trace);
    let end = simulate(machine, world, &mut stage, profile.idle_traffic, progress);
    let report = report(profile, setup, world, &stage, end);
    let trace = stage.into_trace().map(|events| {
        let made_by = format!("simulation with seed {}", world.seed);
        Trace {
            header: Header {
                network: Some(world.network()),
                ..Header::new(profile, machine.shape(), setup, made_by)
            },
            events,
        }
    });
    Ok(Run { report, trace })
}

fn report<Q: Problem>(
    profile: &'static Profile,
    setup: &Setup,
    world: &World,
    stage: &Stage<Q>,
    end: Time,
) -> Report {
    let traffic = stage.cluster.traffic();
    let measures = &stage.observer.measures;
    let unit = world.latency.mean();
    let observer = &stage.observer;
    let per = |count: u64, of: u64| (of > 0).then(|| count as f64 / of as f64);
    let messages_per_entry = per(traffic.messages, measures.entries);
    let published = published(profile, Measure::Messages, setup);
    let has_inside = Q::COUNTED.has_inside();
    Report {
        algorithm: profile.name,
        problem: Q::NAME,
        counted: Q::COUNTED,
        nodes: setup.users,
        seed: world.seed,
        entries: measures.entries,
        safe: observer.holds(Wrong::Safety),
        live: observer.holds(Wrong::Liveness),
        ordered: observer.ordered(),
        bounded: observer.bounded(),
        messages: traffic.messages,
        messages_per_entry,
        published_messages_per_entry: published,
        as_published: published
            .zip(messages_per_entry)
            .map(|(published, measured)| published.contains(measured)),
        message_bytes: per(traffic.bytes, traffic.messages),
        messages_by_kind: traffic.kinds.into_iter().collect(),
        entry_delay: measures.entry_delay.in_units_of(unit),
        waiting_time: measures.waiting.in_units_of(unit),
        response_time: measures.response.in_units_of(unit),
        synchronisation_delay: measures.synchronisation.in_units_of(unit),
        overtakes_max: has_inside.then_some(measures.overtakes_max),
        rounds: has_inside.then_some(measures.rounds),
        messages_behind: per(measures.behind, measures.rounds)
            .filter(|_| stage.shape.extra.len() > 1),
        switches: has_inside.then_some(measures.switches),
        inside_max: has_inside.then_some(measures.inside_max),
        kinds: kinds::<Q>(observer, unit),
        accesses: None,
        well_formed: observer.holds(Wrong::WellFormedness),
        violations: observer
            .violations
            .iter()
            .map(|v| format!("{} at {}: {}", v.kind.word(), v.at, v.what))
            .collect(),
        time: end.0 as f64
            / if unit == Time::ZERO {
                Time::UNIT
            } else {
                unit.0
            } as f64,
    }
}

fn kinds<Q: Problem>(observer: &Observer, unit: Time) -> Vec<KindReport> {
    let kinds = observer.kinds().iter().enumerate();
    let reports = kinds.map(|(number, kind)| KindReport {
        kind: Q::kind_name(number as u32),
        entries: kind.entries,
        waiting_time: kind.waiting.in_units_of(unit),
        passed_max: kind.passed_max,
    });
    match observer.kinds().len() {
        0 | 1 => Vec::new(),
        _ => reports.collect(),
    }
}

fn refuse_what_cannot_be<Q: Problem>(
    profile: &Profile,
    machine: &dyn Machine<Q>,
    world: &World,
) -> Result<(), LabError> {
    let name = profile.name;
    let nodes = machine.shape().nodes();
    if let Some(node) = world.nodes_named().find(|&node| node as usize >= nodes) {
        let last = nodes - 1;
        return Err(LabError::new(format!(
            "there is no node {node}: {name} has the nodes 0 to {last}"
        )));
    }
    if let crate::Arrivals::Script(items) = &world.arrivals {
        let users = machine.shape().users;
        if let Some((node, _)) = items.iter().find(|(node, _)| *node as usize >= users) {
            return Err(LabError::new(format!(
                "there is no user {node} that could ask: only the first {users}"
            )));
        }
    }
    if world.order == LinkOrder::Any && profile.channels == Channels::Fifo {
        return Err(LabError::new(format!(
            "{name} needs FIFO links: it cannot run with --reorder"
        )));
    }
    let lies = |fault: &Fault| matches!(fault, Fault::Wrong(..) | Fault::Arbitrary(..));
    if world.faults.iter().any(lies) && !profile.survives_lies {
        return Err(LabError::new(format!(
            "{name} is not meant to stand liars, so it does not say what one could send"
        )));
    }
    if world.entries == 0 {
        return Err(LabError::new(
            "0 entries: there would be nothing to see; ask for at least 1",
        ));
    }
    Ok(())
}
