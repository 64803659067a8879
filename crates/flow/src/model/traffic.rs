//! How many jobs per second come through each queue, and who takes them. Where several processes take from one queue, the
//! worker that has been free longest gets the job, so free workers are taken equally: a process gets a share by the workers
//! that it has free in the mean, which depends on its share.

use super::Endless;
use super::service::Service;
use crate::index::Index;
use crate::load::{Load, Out};

/// How often shares are computed from the arrivals, and these from the shares, until they fit together.
const ROUNDS_MAX: u32 = 50;
/// The same within one round, from queue to queue.
const SWEEPS_MAX: u32 = 100;
/// The most often that a free worker is taken in a second; beyond it there are none free.
const PULL_MAX: f64 = 1e9;

/// A queue in the steady state.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    /// Jobs that arrive per second, rejected ones included.
    pub(super) arrivals: f64,
    /// Of those that are created here, by what their times vary more than those of chance, times their rate.
    pub(super) unlike_chance: f64,
    /// For each of its takers: the share of the takes that are its own.
    pub(super) shares: Vec<f64>,
    /// How often a job is taken here, in the mean.
    pub(super) attempts: f64,
    /// The probability that it ends in the reject queue.
    rejected: f64,
    /// The probability that a worker dies of it.
    deaths: f64,
}

impl Traffic {
    /// Takes per second.
    pub(super) fn takes(&self) -> f64 {
        self.arrivals * self.attempts
    }
}

/// By queue; `services` are by process.
pub(super) fn traffic(
    index: &Index<'_>,
    load: &Load,
    services: &[Service],
) -> Result<Vec<Traffic>, Endless> {
    let created = created(index, load);
    let mut all = vec![Traffic::default(); index.queues.len()];
    for (queue, traffic) in all.iter_mut().enumerate() {
        let takers = &index.takers[queue];
        traffic.share(takers.iter().map(|taker| services[*taker].speed()));
    }
    for ((_, queue), arrivals) in &load.creates {
        if let Some(queue) = index.queue(queue) {
            all[queue].unlike_chance += arrivals.rate() * (arrivals.variability() - 1.0);
        }
    }
    let mut pulls = vec![0.0; all.len()];
    let shared = index.takers.iter().any(|takers| takers.len() > 1);
    for _ in 0..ROUNDS_MAX {
        for (queue, traffic) in all.iter_mut().enumerate() {
            traffic.fate(index, services, queue);
        }
        let arrivals = solve(transitions(index, load, services, &all), created.clone());
        for (traffic, arrivals) in all.iter_mut().zip(arrivals.ok_or(Endless)?) {
            traffic.arrivals = arrivals;
        }
        if !shared || balance(index, services, &mut all, &mut pulls) < 1e-6 {
            break;
        }
    }
    Ok(all)
}

impl Traffic {
    /// Takes these weights as shares, and says how far they have moved.
    fn share(&mut self, weights: impl Iterator<Item = f64> + Clone) -> f64 {
        let total: f64 = weights.clone().sum();
        let shares: Vec<f64> = weights.map(|weight| weight / total).collect();
        let moved = shares.iter().zip(&self.shares);
        let moved = moved.fold(0.0, |most: f64, (new, old)| most.max((new - old).abs()));
        self.shares = shares;
        moved
    }

    /// What becomes of its jobs.
    fn fate(&mut self, index: &Index<'_>, services: &[Service], queue: usize) {
        let takers = index.takers[queue].iter().zip(&self.shares);
        self.deaths = takers.fold(0.0, |sum, (taker, share)| {
            sum + share * services[*taker].deaths
        });
        self.rejected = match index.deaths_max(queue) {
            Some(deaths) => self.deaths.powf(f64::from(deaths)),
            None => 0.0,
        };
        self.attempts = (1.0 - self.rejected) / (1.0 - self.deaths);
    }
}

/// Shares the takes of every queue, and says how far the shares have moved. With a pull of k a second on every free worker, and
/// o seconds for a take, a worker that feels the pull K of all its queues is free for 1 / (1 + o·K) of its time.
fn balance(index: &Index<'_>, services: &[Service], all: &mut [Traffic], pulls: &mut [f64]) -> f64 {
    let mut felt: Vec<f64> = index
        .takes
        .iter()
        .map(|takes| takes.iter().fold(0.0, |sum, queue| sum + pulls[*queue]))
        .collect();
    for _ in 0..SWEEPS_MAX {
        let mut moved: f64 = 0.0;
        for (queue, traffic) in all.iter().enumerate() {
            let takers = &index.takers[queue];
            let old: f64 = pulls[queue];
            let taken = |pull: f64| -> f64 {
                let free = |taker: &usize| services[*taker].free(felt[*taker] - old + pull);
                pull * takers.iter().map(free).sum::<f64>()
            };
            let pull = if takers.is_empty() {
                0.0
            } else {
                inverse(taken, traffic.takes(), old)
            };
            moved = moved.max((pull - old).abs() / pull.max(1.0));
            pulls[queue] = pull;
            takers.iter().for_each(|taker| felt[*taker] += pull - old);
        }
        if moved < 1e-10 {
            break;
        }
    }
    let mut moved: f64 = 0.0;
    for (queue, traffic) in all.iter_mut().enumerate() {
        let takers = index.takers[queue].iter();
        let free = takers.map(|taker| services[*taker].free(felt[*taker]));
        moved = moved.max(traffic.share(free));
    }
    moved
}

/// Where a function that grows from 0 reaches a value, or [`PULL_MAX`] if it does not; sought from a guess on.
fn inverse(function: impl Fn(f64) -> f64, value: f64, guess: f64) -> f64 {
    let (mut low, mut high) = (0.0, guess.max(1e-3));
    while function(high) < value {
        low = high;
        high *= 2.0;
        if high > PULL_MAX {
            return PULL_MAX;
        }
    }
    while high - low > 1e-13 * high.max(1e-3) {
        let middle = f64::midpoint(low, high);
        match function(middle) < value {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Jobs per second that are created into each queue.
fn created(index: &Index<'_>, load: &Load) -> Vec<f64> {
    let mut created = vec![0.0; index.queues.len()];
    for ((_, queue), arrivals) in &load.creates {
        if let Some(queue) = index.queue(queue) {
            created[queue] += arrivals.rate();
        }
    }
    created
}

/// The share of each queue's jobs that goes on to each other one: rows are where from, columns where to.
fn transitions(
    index: &Index<'_>,
    load: &Load,
    services: &[Service],
    all: &[Traffic],
) -> Vec<Vec<f64>> {
    let queues = index.queues.len();
    let mut shares = vec![vec![0.0; queues]; queues];
    for (queue, traffic) in all.iter().enumerate() {
        for (process, share) in index.takers[queue].iter().zip(&traffic.shares) {
            let done = traffic.attempts * share * (1.0 - services[*process].deaths);
            for (out, share) in load.outs(index, *process, queue) {
                if let Out::Pass(next) = out {
                    shares[queue][next] += done * share;
                }
            }
        }
        let reject = index.graph.reject(index.queues[queue]);
        if let Some(next) = reject.and_then(|name| index.queue(name)) {
            shares[queue][next] += traffic.rejected;
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
