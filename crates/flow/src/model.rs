//! The flow as an open network of queues, by formula: every process is a station with its workers. Exact for exponential
//! times (Jackson 1957, Erlang C); other service times by the approximation of Allen and Cunneen. Limits of queues are not
//! in it: a flow that comes near them needs the simulation.

use std::fmt;

use serde::Serialize;

use crate::index::Index;
use crate::load::{Load, Out, Work};
use crate::{Flow, Name};

/// What the model says about a flow under a load. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    pub processes: Vec<ProcessForecast>,
    pub queues: Vec<QueueForecast>,
    /// Jobs created a second.
    pub created: f64,
    /// The mean time from creation to deletion; none when some queue grows for ever.
    pub time: Option<f64>,
    /// The process that is used most.
    pub bottleneck: Option<Name>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessForecast {
    pub name: Name,
    pub workers: u32,
    /// Jobs taken a second, those that are taken again included.
    pub taken: f64,
    /// The share of its time that a worker works; 1 and more cannot be kept up.
    pub utilisation: f64,
    /// The mean time that a job waits for this process; none when its queues grow for ever.
    pub waiting: Option<f64>,
    /// The workers that keep the utilisation at or below the target.
    pub workers_needed: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueForecast {
    pub name: Name,
    /// Jobs that arrive a second, rejected ones included.
    pub arrivals: f64,
    /// The mean time that a job waits here, over all its attempts.
    pub waiting: Option<f64>,
    /// The mean number of jobs that wait here.
    pub jobs: Option<f64>,
    /// The queue's limit, if the jobs would exceed it: then the model, which knows no limits, does not hold.
    pub beyond_limit: Option<u32>,
}

/// Some jobs go round for ever: there is no steady state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("with these routes jobs go round for ever; give some weight to a way out")
    }
}

impl std::error::Error for Endless {}

/// Computes the forecast; `target` is the utilisation that the needed workers are counted for.
pub fn model(flow: &Flow, load: &Load, target: f64) -> Result<Forecast, Endless> {
    let index = Index::of(flow);
    let visits = visits(&index, load);
    let created = created(&index, load);
    let arrivals = solve(transitions(&index, load, &visits), created.clone()).ok_or(Endless)?;
    let stations: Vec<Station> = (0..index.processes.len())
        .map(|process| Station::of(&index, load, &visits, &arrivals, process))
        .collect();
    let processes: Vec<ProcessForecast> = index
        .processes
        .iter()
        .zip(&stations)
        .filter(|((name, _), _)| load.works.contains_key(*name))
        .map(|((name, _), station)| station.forecast(name, target))
        .collect();
    let queues: Vec<QueueForecast> = (0..index.queues.len())
        .map(|queue| queue_forecast(&index, &visits, &stations, queue, arrivals[queue]))
        .collect();
    let total: f64 = created.iter().sum();
    let inside = queues.iter().map(|queue| queue.jobs).sum::<Option<f64>>();
    let held: f64 = stations
        .iter()
        .map(|station| station.taken * station.service)
        .sum();
    let most = |a: &&ProcessForecast, b: &&ProcessForecast| a.utilisation.total_cmp(&b.utilisation);
    Ok(Forecast {
        bottleneck: processes
            .iter()
            .max_by(most)
            .map(|process| process.name.clone()),
        // Little's law.
        time: inside.map(|waiting| (waiting + held) / total),
        created: total,
        processes,
        queues,
    })
}

/// What happens to a job of a queue at one of its takers.
struct Visit {
    queue: usize,
    /// The share of the queue's jobs that this process takes.
    share: f64,
    /// How often such a job is taken, in the mean.
    attempts: f64,
    /// The probability that it ends in the reject queue.
    rejected: f64,
}

/// By process.
fn visits(index: &Index<'_>, load: &Load) -> Vec<Vec<Visit>> {
    let speed = |process: &usize| {
        let work = load.works.get(index.processes[*process].0);
        work.map_or(0.0, |work| {
            f64::from(work.workers) / work.service.mean().max(1e-12)
        })
    };
    let visit = |process: usize, queue: usize| {
        let name = index.queues[queue];
        let all: f64 = index.takers[queue].iter().map(speed).sum();
        let deaths = load
            .works
            .get(index.processes[process].0)
            .map_or(0.0, |work| work.deaths);
        let rejected = match index.graph.reject(name) {
            Some(_) => deaths.powf(f64::from(index.graph.retries(name)) + 1.0),
            None => 0.0,
        };
        Visit {
            queue,
            share: if all > 0.0 {
                speed(&process) / all
            } else {
                0.0
            },
            attempts: (1.0 - rejected) / (1.0 - deaths),
            rejected,
        }
    };
    let of = |process: usize| {
        index.takes[process]
            .iter()
            .map(|queue| visit(process, *queue))
            .collect()
    };
    (0..index.processes.len()).map(of).collect()
}

/// Jobs a second that are created into each queue.
fn created(index: &Index<'_>, load: &Load) -> Vec<f64> {
    let mut created = vec![0.0; index.queues.len()];
    for ((_, queue), rate) in &load.creates {
        if let Some(queue) = index.queue(queue) {
            created[queue] += rate;
        }
    }
    created
}

/// The share of each queue's jobs that goes on to each other one: rows are where from, columns where to.
fn transitions(index: &Index<'_>, load: &Load, visits: &[Vec<Visit>]) -> Vec<Vec<f64>> {
    let queues = index.queues.len();
    let mut shares = vec![vec![0.0; queues]; queues];
    for (process, visits) in visits.iter().enumerate() {
        for visit in visits {
            for (out, share) in load.outs(index, process, visit.queue) {
                if let Out::Pass(next) = out {
                    shares[visit.queue][next] += visit.share * (1.0 - visit.rejected) * share;
                }
            }
            let reject = index.graph.reject(index.queues[visit.queue]);
            if let Some(next) = reject.and_then(|name| index.queue(name)) {
                shares[visit.queue][next] += visit.share * visit.rejected;
            }
        }
    }
    shares
}

/// The arrivals x with x = created + xᵀ·shares, by elimination; none when there is no such finite, positive x.
fn solve(shares: Vec<Vec<f64>>, created: Vec<f64>) -> Option<Vec<f64>> {
    let n = created.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|to| {
            let mut row: Vec<f64> = (0..n)
                .map(|from| f64::from(u8::from(from == to)) - shares[from][to])
                .collect();
            row.push(created[to]);
            row
        })
        .collect();
    for pivot in 0..n {
        let largest =
            (pivot..n).max_by(|a, b| rows[*a][pivot].abs().total_cmp(&rows[*b][pivot].abs()))?;
        rows.swap(pivot, largest);
        if rows[pivot][pivot].abs() < 1e-12 {
            return None;
        }
        let (upper, lower) = rows.split_at_mut(pivot + 1);
        let top = &upper[pivot];
        for row in lower.iter_mut().filter(|row| row[pivot] != 0.0) {
            let factor = row[pivot] / top[pivot];
            for (value, above) in row[pivot..].iter_mut().zip(&top[pivot..]) {
                *value -= factor * above;
            }
        }
    }
    let mut arrivals = vec![0.0; n];
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n)
            .map(|column| rows[row][column] * arrivals[column])
            .sum();
        arrivals[row] = (rows[row][n] - known) / rows[row][row];
    }
    let right = |value: &f64| value.is_finite() && *value > -1e-9 && *value < 1e15;
    let right = arrivals.iter().all(right);
    // What rounding left below nothing is nothing.
    let arrivals = arrivals
        .into_iter()
        .map(|value| if value > 0.0 { value } else { 0.0 });
    right.then(|| arrivals.collect())
}

/// A process with its workers.
struct Station {
    workers: u32,
    taken: f64,
    /// Mean time that a job is held, per attempt.
    service: f64,
    /// Mean number of workers that are busy or away.
    load: f64,
    waiting: Option<f64>,
}

impl Station {
    fn of(
        index: &Index<'_>,
        load: &Load,
        visits: &[Vec<Visit>],
        arrivals: &[f64],
        process: usize,
    ) -> Station {
        let idle = Work {
            service: crate::Distribution::Fixed(0.0),
            workers: 1,
            deaths: 0.0,
            restart: crate::Distribution::Fixed(0.0),
        };
        let work = load.works.get(index.processes[process].0).unwrap_or(&idle);
        let taken = visits[process]
            .iter()
            .map(|visit| arrivals[visit.queue] * visit.share * visit.attempts)
            .sum();
        let service = work.service.mean() * (1.0 - work.deaths / 2.0);
        let (occupied, square) = occupation(work);
        let load = taken * occupied;
        let waiting = waits(work.workers, load).map(|share| {
            let free = f64::from(work.workers) - load;
            // (1 + variability) / 2, from the mean square.
            let varied = if occupied > 0.0 {
                square / occupied.powi(2) / 2.0
            } else {
                0.0
            };
            share * occupied / free * varied
        });
        Station {
            workers: work.workers,
            taken,
            service,
            load,
            waiting,
        }
    }

    fn forecast(&self, name: &Name, target: f64) -> ProcessForecast {
        ProcessForecast {
            name: name.clone(),
            workers: self.workers,
            taken: self.taken,
            utilisation: self.load / f64::from(self.workers),
            waiting: self.waiting,
            workers_needed: ((self.load / target).ceil() as u32).max(1),
        }
    }
}

/// Mean and mean square of the time that one attempt takes a worker away. A worker that dies does so at any time of the
/// service alike, and is then gone until it restarts.
fn occupation(work: &Work) -> (f64, f64) {
    let square_of = |time: &crate::Distribution| time.mean().powi(2) * (1.0 + time.variability());
    let (service, restart) = (work.service.mean(), work.restart.mean());
    let mean = service * (1.0 - work.deaths / 2.0) + work.deaths * restart;
    let dying = square_of(&work.service) / 3.0 + service * restart + square_of(&work.restart);
    let square = (1.0 - work.deaths) * square_of(&work.service) + work.deaths * dying;
    (mean, square)
}

/// Erlang's C: the probability that a job must wait, with so many workers and this many busy in the mean. None when they
/// cannot keep up.
fn waits(workers: u32, busy: f64) -> Option<f64> {
    let utilisation = busy / f64::from(workers);
    if utilisation >= 1.0 {
        return None;
    }
    // Erlang's B by its recursion, which stays in range.
    let blocked = (1..=workers).fold(1.0, |blocked, n| {
        busy * blocked / (f64::from(n) + busy * blocked)
    });
    Some(blocked / (1.0 - utilisation * (1.0 - blocked)))
}

fn queue_forecast(
    index: &Index<'_>,
    visits: &[Vec<Visit>],
    stations: &[Station],
    queue: usize,
    arrivals: f64,
) -> QueueForecast {
    let mut waiting = Some(0.0);
    for process in &index.takers[queue] {
        let here = visits[*process].iter().find(|visit| visit.queue == queue);
        if let Some(visit) = here.filter(|visit| visit.share > 0.0 && arrivals > 0.0) {
            let one = stations[*process]
                .waiting
                .map(|one| one * visit.share * visit.attempts);
            waiting = waiting.zip(one).map(|(sum, one)| sum + one);
        }
    }
    // What comes into a queue that nobody empties stays.
    if index.takers[queue].is_empty() && arrivals > 0.0 {
        waiting = None;
    }
    let name = index.queues[queue];
    let jobs = waiting.map(|waiting| waiting * arrivals);
    let limit = index.graph.queues.get(name).and_then(|queue| queue.limit);
    QueueForecast {
        name: name.clone(),
        arrivals,
        waiting,
        jobs,
        beyond_limit: limit.filter(|limit| jobs.is_none_or(|jobs| jobs > f64::from(*limit))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erlang_c_has_the_known_values() {
        assert_eq!(waits(1, 0.5), Some(0.5));
        let two = waits(2, 1.0).expect("it keeps up");
        assert!((two - 1.0 / 3.0).abs() < 1e-12, "{two}");
        assert_eq!(waits(2, 2.0), None);
    }
}
