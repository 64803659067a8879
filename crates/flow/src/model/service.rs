//! How long a process has its workers for a job, and what a pool of workers makes of it. A job whose worker dies comes back
//! to the head of its queue, so the service of a job is the sum of its attempts, and what matters of it are mean and mean
//! square.

use crate::load::{Distribution, Work};

/// How a process works.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) workers: u32,
    pub(super) deaths: f64,
    /// Mean time that one take has a worker away: until the job is done, or until the worker is back from its death.
    pub(super) occupied: f64,
    /// Mean time that a job is held, per take.
    pub(super) held: f64,
    /// Mean time until a dead worker is there again.
    pub(super) restart: f64,
    done: Moments,
    dying: Moments,
}

/// Mean and mean square of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) mean: f64,
    pub(super) square: f64,
}

impl Moments {
    fn of(time: &Distribution) -> Moments {
        let mean = time.mean();
        Moments {
            mean,
            square: mean.powi(2) * (1.0 + time.variability()),
        }
    }

    pub(super) fn add(&mut self, weight: f64, other: Moments) {
        self.mean += weight * other.mean;
        self.square += weight * other.square;
    }

    /// (1 + variability) / 2.
    pub(super) fn varied(self) -> f64 {
        match self.mean > 0.0 {
            true => self.square / self.mean.powi(2) / 2.0,
            false => 0.0,
        }
    }
}

impl Service {
    /// A worker that dies does so at any time of the service alike, and is then gone until it restarts.
    pub(super) fn of(work: Option<&Work>) -> Service {
        let (service, restart, workers, deaths) = work.map_or(Default::default(), |work| {
            let (service, restart) = (Moments::of(&work.service), Moments::of(&work.restart));
            (service, restart, work.workers, work.deaths)
        });
        let dying = Moments {
            mean: service.mean / 2.0 + restart.mean,
            square: service.square / 3.0 + service.mean * restart.mean + restart.square,
        };
        Service {
            workers,
            deaths,
            occupied: (1.0 - deaths) * service.mean + deaths * dying.mean,
            held: service.mean * (1.0 - deaths / 2.0),
            restart: restart.mean,
            done: service,
            dying,
        }
    }

    /// Whether a worker of this process is as good as one of that.
    pub(super) fn works_like(&self, other: &Service) -> bool {
        (self.deaths, self.restart, self.done, self.dying)
            == (other.deaths, other.restart, other.done, other.dying)
    }

    /// Takes per second that its workers can do together.
    pub(super) fn speed(&self) -> f64 {
        f64::from(self.workers) / self.occupied.max(1e-12)
    }

    /// How many of its workers are free in the mean, if each free one is taken so often a second.
    pub(super) fn free(&self, pull: f64) -> f64 {
        f64::from(self.workers) / (1.0 + self.occupied * pull)
    }

    /// The time that a job has workers away, over all its attempts. After so many deaths it is rejected.
    pub(super) fn whole(&self, deaths_max: Option<u32>) -> Moments {
        let Service { done, dying, .. } = self;
        let died = self.deaths;
        let spread = dying.square - dying.mean.powi(2);
        // The mean of the deaths of a job, of their square, and of those of a job that gets done.
        let (deaths, square, of_done, rejected) = match deaths_max {
            None => {
                let deaths = died / (1.0 - died);
                (deaths, deaths * (1.0 + died) / (1.0 - died), deaths, 0.0)
            }
            Some(most) => {
                let chance = |n: u32| died.powf(f64::from(n));
                let rejected = chance(most);
                let (mut square, mut of_done) = (rejected * f64::from(most).powi(2), 0.0);
                for n in 0..most {
                    let done = chance(n) * (1.0 - died);
                    square += done * f64::from(n).powi(2);
                    of_done += done * f64::from(n);
                }
                let deaths = of_done + rejected * f64::from(most);
                (deaths, square, of_done, rejected)
            }
        };
        Moments {
            mean: deaths * dying.mean + (1.0 - rejected) * done.mean,
            square: deaths * spread
                + square * dying.mean.powi(2)
                + 2.0 * of_done * dying.mean * done.mean
                + (1.0 - rejected) * done.square,
        }
    }
}

/// Erlang's C: the probability that a job must wait, with so many workers and this many busy in the mean. None when they
/// cannot keep up.
pub(super) fn waits(workers: u32, busy: f64) -> Option<f64> {
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

/// The probability that at least so many jobs wait or are held, with so many workers and this many busy in the mean. The
/// number may have a fraction.
pub(super) fn fills(workers: u32, busy: f64, jobs: f64) -> f64 {
    let Some(all_busy) = waits(workers, busy) else {
        return 1.0;
    };
    let all = f64::from(workers);
    if jobs >= all {
        return all_busy * (busy / all).powf(jobs - all);
    }
    // The chances of each number, in parts of that of none at all; made smaller before they leave the range.
    let (mut part, mut fewer, mut total) = (1.0, 0.0, 0.0);
    for n in 0..workers {
        if f64::from(n) < jobs {
            fewer += part;
        }
        total += part;
        part *= busy / f64::from(n + 1);
        if total > 1e200 {
            (part, fewer, total) = (part * 1e-200, fewer * 1e-200, total * 1e-200);
        }
    }
    // All workers busy, and so many more waiting.
    total += part / (1.0 - busy / all);
    1.0 - fewer / total
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

    #[test]
    fn a_number_of_jobs_is_as_likely_as_in_the_textbook() {
        let near = |found: f64, wanted: f64| {
            assert!(
                (found - wanted).abs() < 1e-12,
                "{found} instead of {wanted}"
            );
        };
        // One worker: the n-th power of the utilisation.
        for n in 0..5 {
            near(fills(1, 0.7, f64::from(n)), 0.7_f64.powi(n));
        }
        // Two, one busy in the mean: nobody there a third of the time, one a third, all others the rest.
        near(fills(2, 1.0, 0.0), 1.0);
        near(fills(2, 1.0, 1.0), 2.0 / 3.0);
        near(fills(2, 1.0, 2.0), 1.0 / 3.0);
        near(fills(2, 1.0, 3.0), 1.0 / 6.0);
        near(fills(2, 3.0, 3.0), 1.0);
        // Many workers: the number is Poisson's.
        near(fills(500, 2.0, 1.0), 1.0 - (-2.0_f64).exp());
        assert!((0.4..0.6).contains(&fills(5_000, 2_000.0, 2_000.0)));
    }

    #[test]
    fn attempts_add_up_to_one_service() {
        let work = Work {
            service: Distribution::Exponential(1.0),
            workers: 1,
            deaths: 0.5,
            restart: Distribution::Fixed(0.2),
        };
        let service = Service::of(Some(&work));
        // Never retried: half of them are done, the others die halfway in the mean.
        let once = service.whole(Some(1));
        assert!((once.mean - (0.5 + 0.5 * 0.7)).abs() < 1e-12, "{once:?}");
        let dying = 2.0 / 3.0 + 2.0 * 0.5 * 0.2 + 0.04;
        assert!((once.square - (0.5 * 2.0 + 0.5 * dying)).abs() < 1e-12);
        // Retried often enough it makes no difference that there is an end.
        let (many, for_ever) = (service.whole(Some(200)), service.whole(None));
        assert!((many.mean - for_ever.mean).abs() < 1e-9);
        assert!((many.square - for_ever.square).abs() < 1e-9);
    }
}
