//! The flow as an open network of queues, by formula: the workers who take from a queue are its station. Exact for
//! exponential times without deaths, where all takers of a queue are equal (Jackson 1957, Erlang C); other times by
//! the approximation of Allen and Cunneen, deaths by mean and mean square of all attempts together, takers that differ by the
//! mean of their speeds. Limits of queues are not in it: a flow that comes near them needs the simulation.

mod service;
mod traffic;

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::index::Index;
use crate::load::Load;
use crate::{Flow, Name};
use service::{Moments, Service, fills, waits};
use traffic::{Traffic, traffic};

/// A queue that would have as many jobs as its limit for more than this share of the time is beyond it.
const FULL_MAX: f64 = 0.01;

/// What the model says about a flow under a load. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    pub processes: Vec<ProcessForecast>,
    pub queues: Vec<QueueForecast>,
    /// Jobs created per second.
    pub created: f64,
    /// The mean time from creation to deletion; none when some queue grows for ever, or nothing is created.
    pub time: Option<f64>,
    /// The process that is used most; none when nothing is to be done.
    pub bottleneck: Option<Name>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessForecast {
    pub name: Name,
    pub workers: u32,
    /// Jobs taken per second, those that are taken again included.
    pub taken: f64,
    /// The share of its time that a worker works; 1 and more cannot be kept up.
    pub utilisation: f64,
    /// The mean time that a job waits in its queues, over all attempts; none when one grows for ever.
    pub waiting: Option<f64>,
    /// The workers that keep the utilisation at or below the target.
    pub workers_needed: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueForecast {
    pub name: Name,
    /// Jobs that arrive per second, rejected ones included.
    pub arrivals: f64,
    /// The mean time that a job waits here, over all its attempts.
    pub waiting: Option<f64>,
    /// The mean number of jobs that wait here.
    pub jobs: Option<f64>,
    /// The mean number of jobs of this queue that are in somebody's hands.
    pub held: f64,
    /// Of a queue with a limit: the share of the time in which it would have as many jobs, waiting and held, or more.
    pub full: Option<f64>,
    /// The queue's limit, if that is more than a hundredth: then the model, which knows no limits, does not hold.
    pub beyond_limit: Option<u32>,
    /// Several processes that differ take from it: its waiting and their shares are approximations.
    pub unequal_takers: bool,
}

impl Forecast {
    /// Whether everything can be kept up with: no queue grows for ever, and none has a limit below the number of jobs that
    /// must be in hand.
    pub fn keeps_up(&self) -> bool {
        self.queues
            .iter()
            .all(|queue| queue.waiting.is_some() && !queue.is_choked())
    }
}

impl QueueForecast {
    /// The limit does not even allow the jobs that must be in hand at the same time.
    pub fn is_choked(&self) -> bool {
        self.beyond_limit
            .is_some_and(|limit| self.held >= f64::from(limit))
    }
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
    let services = index.processes.iter();
    let services: Vec<Service> = services
        .map(|(name, _)| Service::of(load.works.get(*name)))
        .collect();
    let traffic = traffic(&index, load, &services)?;
    let stations: Vec<Station> = (0..index.processes.len())
        .map(|process| Station::of(&index, &services[process], &traffic, process))
        .collect();
    let network = Network {
        index: &index,
        services: &services,
        traffic: &traffic,
        stations: &stations,
    };
    let queues: Vec<QueueForecast> = (0..index.queues.len())
        .map(|queue| network.queue(queue))
        .collect();
    let processes: Vec<ProcessForecast> = (0..index.processes.len())
        .filter(|process| load.works.contains_key(index.processes[*process].0))
        .map(|process| network.process(process, &queues, target))
        .collect();
    let created = load.creates.values();
    let created = created.fold(0.0, |sum, arrivals| sum + arrivals.rate());
    let inside = queues
        .iter()
        .map(|queue| Some(queue.jobs? + queue.held))
        .sum::<Option<f64>>();
    let most = |a: &&ProcessForecast, b: &&ProcessForecast| a.utilisation.total_cmp(&b.utilisation);
    let bottleneck = processes.iter().max_by(most);
    Ok(Forecast {
        bottleneck: bottleneck
            .filter(|process| process.utilisation > 0.0)
            .map(|process| process.name.clone()),
        // Little's law.
        time: inside
            .filter(|_| created > 0.0)
            .map(|inside| inside / created),
        created,
        processes,
        queues,
    })
}

/// A process in the steady state.
struct Station {
    /// Takes per second.
    taken: f64,
    /// Mean number of workers that are busy or away.
    load: f64,
    /// The time that a job has its workers away, over all attempts.
    whole: Moments,
}

impl Station {
    fn of(index: &Index<'_>, service: &Service, traffic: &[Traffic], process: usize) -> Station {
        let (mut taken, mut jobs, mut whole) = (0.0, 0.0, Moments::default());
        for queue in &index.takes[process] {
            let traffic = &traffic[*queue];
            let taker = index.takers[*queue].iter().position(|p| *p == process);
            let share = taker.map_or(0.0, |taker| traffic.shares[taker]);
            taken += traffic.takes() * share;
            jobs += traffic.arrivals * share;
            let one = service.whole(index.deaths_max(*queue));
            whole.add(traffic.arrivals * share, one);
        }
        if jobs > 0.0 {
            (whole.mean, whole.square) = (whole.mean / jobs, whole.square / jobs);
        }
        Station {
            taken,
            load: taken * service.occupied,
            whole,
        }
    }
}

struct Network<'a> {
    index: &'a Index<'a>,
    services: &'a [Service],
    traffic: &'a [Traffic],
    stations: &'a [Station],
}

impl Network<'_> {
    fn process(&self, process: usize, queues: &[QueueForecast], target: f64) -> ProcessForecast {
        let (service, station) = (&self.services[process], &self.stations[process]);
        let takes = self.index.takes[process].iter();
        let arrivals = takes.clone().fold(0.0, |sum, q| sum + queues[*q].arrivals);
        let jobs = takes.map(|queue| queues[*queue].jobs).sum::<Option<f64>>();
        let waiting = match arrivals > 0.0 {
            true => jobs.map(|jobs| jobs / arrivals),
            false => Some(0.0),
        };
        // What rounding adds to a whole number is not a worker.
        let needed = (station.load / target - 1e-9).ceil();
        ProcessForecast {
            name: self.index.processes[process].0.clone(),
            workers: service.workers,
            taken: station.taken,
            utilisation: station.load / f64::from(service.workers),
            waiting,
            workers_needed: (needed as u32).max(1),
        }
    }

    fn queue(&self, queue: usize) -> QueueForecast {
        let name = self.index.queues[queue];
        let traffic = &self.traffic[queue];
        let takers = &self.index.takers[queue];
        let held = takers.iter().zip(&traffic.shares);
        let held = held.fold(0.0, |sum, (taker, share)| {
            sum + traffic.takes() * share * self.services[*taker].held
        });
        let pool = Pool::of(self, takers);
        let waiting = match takers.is_empty() {
            // What comes into a queue that nobody empties stays.
            true => (traffic.arrivals == 0.0).then_some(0.0),
            false => pool.waiting(self.services, takers, traffic),
        };
        let limit = self.index.graph.queues.get(name);
        let limit = limit.and_then(|queue| queue.limit);
        let full = limit.map(|limit| match waiting {
            None => 1.0,
            Some(_) if traffic.arrivals == 0.0 => 0.0,
            // Of the jobs that these workers have to do, so many are of this queue.
            Some(_) => {
                let own = (traffic.takes() / pool.taken).min(1.0);
                fills(pool.workers, pool.busy(), f64::from(limit) / own)
            }
        });
        QueueForecast {
            name: name.clone(),
            arrivals: traffic.arrivals,
            waiting,
            jobs: waiting.map(|waiting| waiting * traffic.arrivals),
            held,
            full,
            beyond_limit: limit.filter(|_| full.is_some_and(|full| full > FULL_MAX)),
            unequal_takers: self.differ(takers),
        }
    }

    fn differ(&self, takers: &[usize]) -> bool {
        let differ = |one: usize, two: usize| {
            let takes = &self.index.takes;
            !self.services[one].works_like(&self.services[two]) || takes[one] != takes[two]
        };
        takers.windows(2).any(|two| differ(two[0], two[1]))
    }
}

/// All workers who take from a queue.
struct Pool {
    workers: u32,
    /// Takes per second: those that they do, and those that they could do.
    taken: f64,
    speed: f64,
    /// The time that a job has them away when all of them work.
    whole: f64,
    /// (1 + its variability) / 2.
    varied: f64,
    /// (the variability of the times between arrivals - 1) / 2. What was passed on is taken as coming by chance.
    unlike_chance: f64,
}

impl Pool {
    fn of(network: &Network<'_>, takers: &[usize]) -> Pool {
        let mut pool = Pool {
            workers: 0,
            taken: 0.0,
            speed: 0.0,
            whole: 0.0,
            varied: 0.0,
            unlike_chance: 0.0,
        };
        for taker in takers {
            let (service, station) = (&network.services[*taker], &network.stations[*taker]);
            pool.workers += service.workers;
            pool.taken += station.taken;
            pool.speed += service.speed();
            pool.whole += service.speed() * station.whole.mean;
            pool.varied += service.speed() * station.whole.varied();
        }
        if pool.speed > 0.0 {
            (pool.whole, pool.varied) = (pool.whole / pool.speed, pool.varied / pool.speed);
        }
        let queues: BTreeSet<usize> = takers
            .iter()
            .flat_map(|taker| network.index.takes[*taker].iter().copied())
            .collect();
        let (mut arrivals, mut unlike_chance) = (0.0, 0.0);
        for queue in queues {
            arrivals += network.traffic[queue].arrivals;
            unlike_chance += network.traffic[queue].unlike_chance;
        }
        if arrivals > 0.0 {
            pool.unlike_chance = unlike_chance / arrivals / 2.0;
        }
        pool
    }

    /// The mean number of busy workers, were all equally fast.
    fn busy(&self) -> f64 {
        f64::from(self.workers) * self.taken / self.speed
    }

    /// The mean time that a job waits for being taken, and for being taken again.
    fn waiting(&self, services: &[Service], takers: &[usize], traffic: &Traffic) -> Option<f64> {
        let (workers, busy) = (f64::from(self.workers), self.busy());
        let all_busy = waits(self.workers, busy)?;
        // Times without a variance have no mean wait.
        let varied = Some(self.varied + self.unlike_chance).filter(|v| v.is_finite())?;
        let first = all_busy * self.whole / (workers - busy) * varied;
        // When a worker dies and all others are busy, the job waits for the first of them, or of the dead one, to be there.
        let others = (workers - 1.0) * self.speed / workers;
        let (mut again, mut deaths) = (0.0, 0.0);
        for (taker, share) in takers.iter().zip(&traffic.shares) {
            let service = &services[*taker];
            deaths += share * service.deaths;
            if service.restart > 0.0 {
                again += share * service.deaths / (others + 1.0 / service.restart);
            }
        }
        if deaths <= 0.0 || busy <= 0.0 {
            return Some(first);
        }
        let no_other = (all_busy * workers / busy).min(1.0);
        Some(first + (traffic.attempts - 1.0) * no_other * again / deaths)
    }
}
