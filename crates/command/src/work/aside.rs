//! Jobs that fail where no reject queue takes them. They wait again for ever, and some orders put them first each time:
//! a worker keeps such a job in hand without running anything for it, so that others have their turn.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use testigo_client::{Backoff, Connection, Job};

use super::duty::Duty;

/// Jobs whose failures are remembered; beyond, all are forgotten.
const REMEMBERED_MAX: usize = 100_000;
/// Jobs that one worker keeps aside to try them again.
const RETRIED_MAX: usize = 1_000;
/// Jobs that one worker keeps aside to leave them; a session may hold a few more.
const LEFT_MAX: usize = 9_000;

/// How often jobs have failed in this run, by id and queue; of all workers of a harness.
#[derive(Default)]
pub(super) struct Failures(Mutex<HashMap<(u64, String), u64>>);

impl Failures {
    /// Notes that a job failed, if it stays in its queue.
    pub(super) fn note(&self, duty: &Duty, job: &Job) {
        if duty.stays(&job.queue).is_some() {
            let mut failures = self.failures();
            if failures.len() >= REMEMBERED_MAX {
                failures.clear();
            }
            *failures.entry(key(job)).or_default() += 1;
        }
    }

    pub(super) fn forget(&self, job: &Job) {
        self.failures().remove(&key(job));
    }

    /// How many jobs failed and were not done since.
    pub(super) fn jobs(&self) -> usize {
        self.failures().len()
    }

    /// Whether others come before a job: it has failed; or, where a run ends with the last job, more often than the queue's
    /// retries allow.
    pub(super) fn others_first(&self, duty: &Duty, job: &Job, drain: bool) -> bool {
        let Some(retries) = duty.stays(&job.queue) else {
            return false;
        };
        let failures = self.failures();
        let failed = failures.get(&key(job));
        failed.is_some_and(|failed| !drain || *failed > retries)
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<(u64, String), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(job: &Job) -> (u64, String) {
    (job.id, job.queue.clone())
}

/// What one worker keeps aside.
pub(super) struct Aside {
    jobs: VecDeque<Job>,
    /// Between two of them; without, they are left alone to the end.
    pauses: Option<Backoff>,
    due: Option<Instant>,
}

impl Aside {
    /// Where a run ends with the last job, nothing is tried again.
    pub(super) fn new(seed: u64, drain: bool) -> Aside {
        Aside {
            jobs: VecDeque::new(),
            pauses: (!drain).then(|| Backoff::new(seed)),
            due: None,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        let most = match self.pauses {
            Some(_) => RETRIED_MAX,
            None => LEFT_MAX,
        };
        self.jobs.len() >= most
    }

    pub(super) fn put(&mut self, mut job: Job, now: Instant) {
        if self.pauses.is_none() {
            job.body = Vec::new();
        }
        self.jobs.push_back(job);
        if self.due.is_none() {
            self.due = self.pause().map(|pause| now + pause);
        }
    }

    /// The next one whose pause is over.
    pub(super) fn take(&mut self, now: Instant) -> Option<Job> {
        if self.rest(now)? > Duration::ZERO {
            return None;
        }
        let job = self.jobs.pop_front();
        self.due = match self.jobs.is_empty() {
            true => None,
            false => self.pause().map(|pause| now + pause),
        };
        job
    }

    /// How long until then.
    pub(super) fn rest(&self, now: Instant) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now))
    }

    /// How long to pause after one more failure.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        self.pauses.as_mut().map(Backoff::pause)
    }

    /// A job was done that had failed before.
    pub(super) fn relax(&mut self) {
        if let Some(pauses) = &mut self.pauses {
            pauses.reset();
        }
    }

    /// They wait again. Over a connection that is lost the node sees to that.
    pub(super) async fn give_back(self, connection: &mut Connection) {
        for job in &self.jobs {
            if connection.give_back(job, false).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: u64) -> Job {
        Job {
            id,
            name: id.to_string(),
            queue: "f/q".into(),
            attempt: 1,
            body: b"body".to_vec(),
        }
    }

    #[test]
    fn one_is_tried_after_each_pause_and_the_pauses_grow() {
        let mut now = Instant::now();
        let mut aside = Aside::new(7, false);
        aside.put(job(0), now);
        let mut pauses = Vec::new();
        for next in 1..10 {
            aside.put(job(next), now);
            let rest = aside.rest(now).expect("a pause");
            assert_eq!(aside.take(now), None, "not yet");
            pauses.push(rest);
            now += rest;
            let due = aside.take(now).expect("it is due");
            assert_eq!((due.id, due.body), (next - 1, b"body".to_vec()));
        }
        assert!(pauses[8] > 8 * pauses[0], "{pauses:?}");
        aside.relax();
        now += aside.rest(now).expect("a pause");
        assert!(aside.take(now).is_some());
        aside.put(job(10), now);
        assert!(aside.rest(now) < Some(pauses[8]));
    }

    #[test]
    fn where_the_run_ends_with_the_last_job_they_are_left() {
        let mut aside = Aside::new(7, true);
        let now = Instant::now();
        aside.put(job(1), now);
        assert_eq!(aside.rest(now), None);
        assert_eq!(aside.take(now + Duration::from_secs(3600)), None);
    }
}
