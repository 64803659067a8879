//! Measures the published figures that hold in a situation of their own.

use testigo_protocol::{Experiment, Figure, Setup, SetupError};
use testigo_sim::{Fault, Latency, Time};

use crate::arrivals::Arrivals;
use crate::claims::Finding;
use crate::family::{KnownAlgorithm, LabError};
use crate::run::Report;
use crate::world::World;

/// An experiment that runs longer than this is not going to end.
const EVENTS_MAX: u64 = 10_000_000;
/// Runs with random latency, where the worst of many is looked for.
const SEEDS: u64 = 20;

/// Holds a figure against an experiment with so many nodes.
pub(crate) fn measure(
    algorithm: &KnownAlgorithm,
    figure: &Figure,
    users: usize,
) -> Result<Finding, LabError> {
    let mut setup = Setup {
        delay_bound: Time::UNIT,
        ..Setup::new(users)
    };
    for (word, value) in figure.chosen {
        let chosen = setup.choose(word, value);
        chosen.map_err(|SetupError(why)| LabError::new(why))?;
    }
    let laboratory = Laboratory { algorithm, setup };
    let (least, most) = laboratory.values(figure.experiment)?;
    let range = (figure.range)(&laboratory.setup);
    let whole = least == most;
    let holds = match figure.experiment {
        // The sizes are known exactly, so both ends must be met.
        Experiment::QuorumSizes(_) => (least, most) == (range.min, range.max),
        _ => range.contains(least) && range.contains(most),
    };
    Ok(Finding {
        algorithm: algorithm.profile.name,
        claim: figure.what.to_owned(),
        published: match figure.formula == range.to_string() {
            true => figure.formula.to_owned(),
            false => format!("{} = {range}", figure.formula),
        },
        published_min: Some(range.min),
        published_max: Some(range.max),
        measured: match whole {
            true => format!("{most:.2}"),
            false => format!("{least:.2} to {most:.2}"),
        },
        measured_value: Some(most),
        nodes: users,
        holds,
    })
}

struct Laboratory<'a> {
    algorithm: &'a KnownAlgorithm,
    setup: Setup,
}

impl Laboratory<'_> {
    /// The least and the greatest value that was found.
    fn values(&self, experiment: Experiment) -> Result<(f64, f64), LabError> {
        if let Experiment::QuorumSizes(construction) = experiment {
            let structure = construction.structure(self.setup.users);
            let structure = structure.map_err(|SetupError(why)| LabError::new(why))?;
            let counts = structure.counts();
            let sizes = || (0..counts.len()).filter(|&size| counts[size] > 0);
            let [least, most] = [sizes().min(), sizes().max()].map(|size| size.unwrap_or(0) as f64);
            return Ok((least, most));
        }
        if experiment == Experiment::LoneCallWithoutLargest {
            return self.calls_without_largest();
        }
        let value = match experiment {
            Experiment::FullLoad => per_entry(&self.full_load(self.algorithm)?)?,
            Experiment::LoneEntryLeast => self.lone_entry(Ord::min)?,
            Experiment::LoneEntryMost => self.lone_entry(Ord::max)?,
            Experiment::SecondEntryMost => self.second_entry_most()?,
            Experiment::LoneKinds(kinds) => {
                let report = self.one_at_a_time(self.algorithm)?;
                let count = |kind: &&str| report.messages_by_kind.get(*kind).copied();
                let sum: u64 = kinds.iter().filter_map(count).sum();
                sum as f64 / report.entries as f64
            }
            Experiment::LoneRatio(other) => {
                let other = KnownAlgorithm::find(other)?;
                per_entry(&self.one_at_a_time(self.algorithm)?)?
                    / per_entry(&self.one_at_a_time(&other)?)?
            }
            Experiment::FullLoadRatio(other) => {
                let other = KnownAlgorithm::find(other)?;
                per_entry(&self.full_load(self.algorithm)?)? / per_entry(&self.full_load(&other)?)?
            }
            Experiment::NodeFailuresSurvived => {
                let nodes = 0..self.setup.users as u32;
                let halts = nodes.map(|node| (vec![format!("halt:{node}@0")], Some(node)));
                self.survived(halts)? as f64
            }
            Experiment::LinkFailuresSurvived => {
                let nodes = self.setup.users as u32;
                let links = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b)));
                let cuts = links.map(|(a, b)| {
                    let ways = [(a, b), (b, a)];
                    (
                        ways.map(|(a, b)| format!("omit-channel:{a}>{b}:1"))
                            .to_vec(),
                        None,
                    )
                });
                self.survived(cuts)? as f64
            }
            Experiment::PassedMost(kind) => self.passed_most(kind)? as f64,
            Experiment::QuorumSizes(_) | Experiment::LoneCallWithoutLargest => {
                unreachable!("answered above")
            }
        };
        Ok((value, value))
    }

    fn full_load(&self, algorithm: &KnownAlgorithm) -> Result<Report, LabError> {
        let world = World {
            entries: 40 * self.setup.users as u64,
            ..World::default()
        };
        self.run(algorithm, world)
    }

    fn one_at_a_time(&self, algorithm: &KnownAlgorithm) -> Result<Report, LabError> {
        self.alone(algorithm, &(0..self.users()?).collect::<Vec<_>>())
    }

    /// These users, each with nobody else anywhere near.
    fn alone(&self, algorithm: &KnownAlgorithm, users: &[u32]) -> Result<Report, LabError> {
        let apart = 10 * self.setup.users as u64;
        let items = users.iter().zip(0..);
        let items = items.map(|(user, turn)| (*user, Time::units(turn * apart)));
        let world = World {
            entries: users.len() as u64,
            arrivals: Arrivals::Script(items.collect()),
            ..World::default()
        };
        self.run(algorithm, world)
    }

    /// The messages of a lone entry after another one, over all pairs of users.
    fn lone_entry(&self, choose: fn(u64, u64) -> u64) -> Result<f64, LabError> {
        let mut chosen = None;
        for first in 0..self.users()? {
            let before = self.alone(self.algorithm, &[first])?.messages;
            for second in 0..self.users()? {
                let both = self.alone(self.algorithm, &[first, second])?.messages;
                let messages = both - before;
                chosen = Some(chosen.map_or(messages, |chosen| choose(chosen, messages)));
            }
        }
        Ok(chosen.unwrap_or(0) as f64)
    }

    /// The least and the most messages of an election without the largest, over all callers.
    fn calls_without_largest(&self) -> Result<(f64, f64), LabError> {
        let largest = self.users()?.saturating_sub(1);
        let down: Result<Fault, _> = format!("halt:{largest}@0").parse();
        let down = down.map_err(|error| LabError::new(error.to_string()))?;
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for caller in 0..largest {
            let world = World {
                entries: 1,
                arrivals: Arrivals::Script(vec![(caller, Time::ZERO)]),
                faults: vec![down.clone()],
                ..World::default()
            };
            let messages = self.run(self.algorithm, world)?.messages as f64;
            (least, most) = (least.min(messages), most.max(messages));
        }
        Ok((least, most))
    }

    /// The messages of an entry while another user is inside, over all pairs of users.
    fn second_entry_most(&self) -> Result<f64, LabError> {
        let long = 100 * self.setup.users as u64;
        let beside = |users: &[u32]| {
            let items = users.iter().zip(0..);
            let items = items.map(|(user, turn)| (*user, Time::units(turn * long / 2)));
            let world = World {
                entries: users.len() as u64,
                arrivals: Arrivals::Script(items.collect()),
                hold: Latency::Fixed(Time::units(long)),
                ..World::default()
            };
            self.run(self.algorithm, world)
        };
        let mut most = 0;
        for first in 0..self.users()? {
            let before = beside(&[first])?.messages;
            for second in (0..self.users()?).filter(|second| *second != first) {
                let both = beside(&[first, second])?;
                if both.inside_max > Some(1) {
                    most = most.max(both.messages - before);
                }
            }
        }
        Ok(most as f64)
    }

    /// With how many of these faults everybody enters but the node that they stop.
    fn survived(
        &self,
        faults: impl Iterator<Item = (Vec<String>, Option<u32>)>,
    ) -> Result<u64, LabError> {
        let mut survived = 0;
        for (faults, dead) in faults {
            let users = (0..self.users()?).filter(|user| Some(*user) != dead);
            let items: Vec<(u32, Time)> = users.map(|user| (user, Time::ZERO)).collect();
            let asked = items.len() as u64;
            let faults = faults.iter().map(|fault| fault.parse::<Fault>());
            let world = World {
                entries: asked,
                arrivals: Arrivals::Script(items),
                faults: faults
                    .collect::<Result<_, _>>()
                    .map_err(|e| LabError::new(e.to_string()))?,
                ..World::default()
            };
            let report = self.run(self.algorithm, world)?;
            survived += u64::from(report.is_good() && report.entries == asked);
        }
        Ok(survived)
    }

    fn passed_most(&self, kind: u32) -> Result<u32, LabError> {
        let mut most = 0;
        for seed in 0..SEEDS {
            let world = World {
                entries: 100 * self.setup.users as u64,
                seed,
                latency: Latency::Exponential(Time::units(1)),
                ..World::default()
            };
            let report = self.run(self.algorithm, world)?;
            let passed = report.kinds.get(kind as usize).map(|kind| kind.passed_max);
            most = most.max(passed.unwrap_or(0));
        }
        Ok(most)
    }

    fn users(&self) -> Result<u32, LabError> {
        Ok(self.algorithm.shape(&self.setup)?.users as u32)
    }

    fn run(&self, algorithm: &KnownAlgorithm, world: World) -> Result<Report, LabError> {
        let world = World {
            events_max: EVENTS_MAX,
            ..world
        };
        Ok(algorithm.run(&self.setup, &world, false)?.report)
    }
}

fn per_entry(report: &Report) -> Result<f64, LabError> {
    let name = report.algorithm;
    let nobody = || LabError::new(format!("{name}: nobody got in"));
    report.messages_per_entry.ok_or_else(nobody)
}
