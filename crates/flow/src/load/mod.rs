//! The load of a flow: how often jobs are created, how long they are worked on, by how many, and where they go. It is what
//! the model and the simulation start from.

mod distribution;
mod measured;
mod read;

pub use distribution::Distribution;
pub use measured::{Measured, MeasuredProcess, MeasuredQueue};

use std::collections::BTreeMap;
use std::fmt::Write;

use testigo_sim::Generator;

use crate::{Flow, Name};

/// Seconds everywhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// How a process creates into a queue.
    pub creates: BTreeMap<(Name, Name), Arrivals>,
    pub works: BTreeMap<Name, Work>,
    /// By process: the weight of each queue that it passes to. Where none is given, all ways out are equal.
    pub routes: BTreeMap<Name, BTreeMap<Name, f64>>,
    /// By process: the weight of deleting.
    pub deletes: BTreeMap<Name, f64>,
}

/// How jobs come.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// By chance, so many a second: the times between them are exponential.
    Rate(f64),
    /// With these times between them.
    Every(Distribution),
}

impl Arrivals {
    /// Jobs per second.
    pub fn rate(&self) -> f64 {
        match self {
            Arrivals::Rate(rate) => *rate,
            Arrivals::Every(between) => 1.0 / between.mean(),
        }
    }

    /// Of the times between them.
    pub fn variability(&self) -> f64 {
        match self {
            Arrivals::Rate(_) => 1.0,
            Arrivals::Every(between) => between.variability(),
        }
    }

    /// The time until the next one.
    pub(crate) fn draw(&self, generator: &mut Generator) -> f64 {
        match self {
            Arrivals::Rate(rate) => generator.exponential(1.0 / rate),
            Arrivals::Every(between) => between.draw(generator),
        }
    }
}

/// How a process works.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The time that one job takes.
    pub service: Distribution,
    pub workers: u32,
    /// The probability that a worker dies of a job.
    pub deaths: f64,
    /// The time until a dead worker is there again.
    pub restart: Distribution,
}

/// The most workers of a process in a load.
pub const WORKERS_MAX: u32 = 100_000;

/// A way out of a process for a job that it took from one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Delete,
    /// By its number.
    Pass(usize),
}

impl Load {
    /// The ways out for a job that a process took from a queue, with their shares; they add up to 1.
    pub(crate) fn outs(
        &self,
        index: &crate::index::Index<'_>,
        process: usize,
        queue: usize,
    ) -> Vec<(Out, f64)> {
        let (name, _) = index.processes[process];
        let routes = self.routes.get(name);
        let given = routes.is_some() || self.deletes.contains_key(name);
        let weight = |next: usize| match given {
            false => 1.0,
            true => routes
                .and_then(|routes| routes.get(index.queues[next]))
                .copied()
                .unwrap_or(0.0),
        };
        let mut outs: Vec<(Out, f64)> = index.passes[process]
            .iter()
            .map(|next| (Out::Pass(*next), weight(*next)))
            .collect();
        if index.deletes(process, queue) {
            let weight = if given {
                self.deletes.get(name).copied().unwrap_or(0.0)
            } else {
                1.0
            };
            outs.push((Out::Delete, weight));
        }
        let mut total: f64 = outs.iter().map(|(_, weight)| weight).sum();
        if total <= 0.0 {
            // Only ways that this queue's jobs cannot go were given: all that are left are equal.
            outs.iter_mut().for_each(|(_, weight)| *weight = 1.0);
            total = outs.len() as f64;
        }
        outs.iter_mut().for_each(|(_, weight)| *weight /= total);
        outs
    }

    /// A load to fill in, with all that can be said about this flow.
    pub fn template(flow: &Flow) -> String {
        let mut text = String::from(
            "# Jobs per second (/s), per minute (/m) or per hour (/h), by chance; or `every` and a time.\n",
        );
        for (name, process) in &flow.processes {
            for queue in &process.creates {
                let _ = writeln!(text, "create {name} -> [{queue}] 1/s");
            }
        }
        text.push_str("\n# The time for one job, in seconds: fixed:S, uniform:A:B, exponential:MEAN, erlang:K:MEAN, mixed:P:MEAN:MEAN,\n# lognormal:MEAN:DEVIATION, pareto:SHAPE:MEAN or values:S,S,…\n");
        for (name, process) in &flow.processes {
            if !process.takes.is_empty() {
                let _ = writeln!(text, "work {name} exponential:0.5 workers 1");
            }
        }
        text.push_str("\n# Where jobs go, by weight.\n");
        for (name, process) in &flow.processes {
            if process.takes.is_empty()
                || process.passes.len() + usize::from(!process.deletes.is_empty()) < 2
            {
                continue;
            }
            for queue in &process.passes {
                let _ = writeln!(text, "route {name} -> [{queue}] 1");
            }
            if !process.deletes.is_empty() {
                let _ = writeln!(text, "route {name} delete 1");
            }
        }
        text
    }
}
