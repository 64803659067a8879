//! What happens to jobs in the log: they are created, passed on and deleted, and their workers die. Each entry is a list of
//! changes; either all of them are done or none. Who holds a job is up to the owner of its queue, and the log does not know
//! it. So a change that settles a job rests on the number of that queue's shard, and is void once somebody else may have
//! taken the job.
//!
//! The attempts at a job grow, whichever queues it passes through, so that an attempt names one take and a stale worker is
//! always told. Within a queue its shard takes care of that. A job that goes to another queue lifts the shard of that queue:
//! in the log to the number of the queue that it comes from, and at the owner to the attempt under which it was held.

use std::sync::Arc;

use super::flows::{Flows, Names, no_job, no_queue};
use super::job_change::{JobChange, JobOutcome, Lost, Spot};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::job::{Body, Hop, Job, JobId, QueueId};
use crate::limits::{Limits, SharedLimits};
use crate::name::Name;
use crate::ownership::{Number, Ownership};

/// From this death on a job goes to the end of its line, so that a job that kills its workers holds up nobody.
const DEATHS_TO_THE_END: u32 = 2;

/// Flows and names together, while one entry is applied.
pub(super) struct Jobs<'a> {
    pub(super) flows: &'a mut Flows,
    pub(super) names: &'a mut Names,
    pub(super) limits: &'a SharedLimits,
    /// Decides who owns the queues.
    pub(super) ownership: &'a mut Ownership,
}

impl Jobs<'_> {
    /// Applies all changes, or none of them.
    pub(super) fn apply(
        &mut self,
        now: u64,
        changes: &[JobChange],
    ) -> Result<Vec<JobOutcome>, Refusal> {
        if let [change] = changes {
            return self.one(now, change);
        }
        if changes.len() > Limits::UNIT_CHANGES {
            return Err(Refusal::new(
                Word::Limit,
                format!(
                    "a unit of work has at most {} changes (the limit unit_changes)",
                    Limits::UNIT_CHANGES
                ),
            ));
        }
        let before = (self.flows.clone(), self.ownership.clone());
        let mut outcomes = Vec::new();
        for (nth, change) in (1..).zip(changes) {
            match self.one(now, change) {
                Ok(outcome) => outcomes.extend(outcome),
                Err(mut refusal) => {
                    self.undo(before, &outcomes);
                    refusal.sentence = format!("command {nth}: {}", refusal.sentence);
                    return Err(refusal);
                }
            }
        }
        Ok(outcomes)
    }

    /// Restores everything to what it was before a unit of work. Names follow jobs, and only creates and deletes touch them.
    fn undo(&mut self, (before, titles): (Flows, Ownership), outcomes: &[JobOutcome]) {
        *self.ownership = titles;
        for outcome in outcomes.iter().rev() {
            let created = match outcome {
                JobOutcome::Created { job } => self.flows.jobs.find(*job),
                _ => None,
            };
            if let Some(job) = created
                && let Some(queue) = self.flows.queues.get(&job.queue)
            {
                self.names.remove(&queue.flow, &job.name);
            }
            if let JobOutcome::Deleted(job) = outcome
                && before.jobs.find(job.id).is_some()
                && let Some(queue) = self.flows.queues.get(&job.queue)
            {
                self.names.insert(&queue.flow, job);
            }
        }
        *self.flows = before;
    }

    /// Applies one change. A refused change has changed nothing.
    fn one(&mut self, now: u64, change: &JobChange) -> Result<Vec<JobOutcome>, Refusal> {
        Ok(match change {
            JobChange::Create {
                queue,
                name,
                class,
                body,
                by,
            } => {
                let (queue, name) = (*queue, name.as_ref());
                vec![self.create(now, queue, name, *class, body, by)?]
            }
            JobChange::Pass {
                job,
                attempt,
                number,
                queue,
                body,
                held_ms,
                by,
            } => {
                self.check_rests(*job, *number)?;
                let held = (*attempt, *held_ms);
                vec![self.pass(now, *job, *queue, body.as_ref(), held, by)?]
            }
            JobChange::Delete { job, number } => {
                self.check_rests(*job, *number)?;
                vec![self.delete(*job)?]
            }
            // A worker failed, perhaps as part of a unit: like everything that settles a job, this is void if it comes late.
            JobChange::Lose { jobs, by } if jobs.len() == 1 => {
                self.check_rests(jobs[0].job, jobs[0].number)?;
                self.die(now, &jobs[0], by).into_iter().collect()
            }
            JobChange::Lose { jobs, by } => {
                let jobs = jobs.iter();
                let lost = jobs.filter_map(|lost| {
                    self.check_rests(lost.job, lost.number).ok()?;
                    self.die(now, lost, by)
                });
                lost.collect()
            }
            JobChange::Back { job, number } => {
                self.check_rests(*job, *number)?;
                vec![JobOutcome::GivenBack { job: *job }]
            }
        })
    }

    fn create(
        &mut self,
        now: u64,
        queue: QueueId,
        name: Option<&Name>,
        class: u32,
        body: &Body,
        by: &Arc<str>,
    ) -> Result<JobOutcome, Refusal> {
        if class >= self.limits.classes {
            return Err(Refusal::new(
                Word::BadArg,
                format!("CLASS {class} is not in 0..{}", self.limits.classes),
            ));
        }
        let flow = self.flow_of(queue)?;
        self.check_name(&flow, name)?;
        self.check_room(queue)?;
        super::below("jobs", self.flows.jobs.len(), self.limits.jobs)?;
        let id = JobId(self.flows.last_job + 1);
        let name = name.cloned().unwrap_or_else(|| self.free_name(&flow, id));
        let job = Job {
            id,
            name,
            queue,
            place: self.flows.last_place + 1,
            class,
            deaths: 0,
            rejected_from: None,
            body: body.clone(),
            at: now,
            created: now,
            creator: Arc::clone(by),
            hops: Vec::new(),
        };
        self.check_bytes(job.weight())?;
        self.flows.last_job += 1;
        self.flows.last_place += 1;
        self.flows.bytes += job.weight();
        self.count(queue, 1);
        self.names.insert(&flow, &job);
        self.flows.jobs.insert(job);
        Ok(JobOutcome::Created { job: id })
    }

    fn pass(
        &mut self,
        now: u64,
        id: JobId,
        queue: QueueId,
        body: Option<&Body>,
        (attempt, held_ms): (Fence, u64),
        by: &Arc<str>,
    ) -> Result<JobOutcome, Refusal> {
        let Some(job) = self.flows.jobs.find(id) else {
            return Err(no_job(id));
        };
        let (was, weight) = (spot(job), job.weight());
        if self.flow_of(was.queue)? != self.flow_of(queue)? {
            return Err(Refusal::new(
                Word::BadArg,
                format!("job {id} cannot leave its flow; delete it and create another"),
            ));
        }
        // A pass within one queue makes its own room.
        if queue != was.queue {
            self.check_room(queue)?;
        }
        if let Some(body) = body {
            let longer = body.len().saturating_sub(job.body.len());
            self.check_bytes(longer as u64)?;
        }
        self.flows.last_place += 1;
        let place = self.flows.last_place;
        let Some(job) = self.flows.jobs.find_mut(id) else {
            return Err(no_job(id));
        };
        job.hop(now, held_ms, Arc::clone(by));
        job.place = place;
        job.queue = queue;
        job.deaths = 0;
        job.rejected_from = None;
        if let Some(body) = body {
            job.body = body.clone();
        }
        let weight_now = job.weight();
        self.flows.bytes = self.flows.bytes - weight + weight_now;
        self.count(was.queue, -1);
        self.count(queue, 1);
        self.lift(was.queue, queue);
        Ok(JobOutcome::Passed {
            job: id,
            was,
            attempt,
        })
    }

    fn delete(&mut self, id: JobId) -> Result<JobOutcome, Refusal> {
        let Some(job) = self.flows.jobs.remove(id) else {
            return Err(no_job(id));
        };
        self.flows.bytes -= job.weight();
        if let Some(queue) = self.flows.queues.get(&job.queue) {
            self.names.remove(&queue.flow, &job.name);
        }
        self.count(job.queue, -1);
        Ok(JobOutcome::Deleted(job))
    }

    /// A worker of this job died. The job comes back, at the end of the line if that has happened before. Beyond the queue's
    /// retries it goes to the reject queue, which takes it even when it is full, so that nothing is lost.
    fn die(&mut self, now: u64, lost: &Lost, by: &Arc<str>) -> Option<JobOutcome> {
        let id = lost.job;
        let job = self.flows.jobs.find(id)?;
        let (was, deaths) = (spot(job), job.deaths + 1);
        let queue = self.flows.queues.get(&was.queue)?;
        let reject = queue.rule.reject.as_ref();
        let reject = reject.and_then(|name| self.flows.flows.get(&queue.flow)?.queue(name));
        let reject = reject.filter(|reject| *reject != was.queue && deaths > queue.rule.retries);
        // If it can be rejected no further, the count of its deaths stays visible.
        let next = reject.and_then(|reject| self.flows.queues.get(&reject));
        let counts_anew = next.is_some_and(|next| {
            let further = next.rule.reject.as_ref();
            further.is_some_and(|further| *further != next.name)
        });
        let mut place = was.place;
        if reject.is_some() || deaths >= DEATHS_TO_THE_END {
            self.flows.last_place += 1;
            place = self.flows.last_place;
        }
        let job = self.flows.jobs.find_mut(id)?;
        job.deaths = deaths;
        job.place = place;
        if let Some(reject) = reject {
            let by = match by.is_empty() {
                true => Arc::clone(by),
                false => Arc::from(format!("{}{by}", Hop::LOST_BY)),
            };
            job.hop(now, lost.held_ms, by);
            job.rejected_from = Some(was.queue);
            job.queue = reject;
            if counts_anew {
                job.deaths = 0;
            }
            self.count(was.queue, -1);
            self.count(reject, 1);
            self.lift(was.queue, reject);
        }
        Some(JobOutcome::Died {
            job: id,
            was,
            attempt: lost.attempt,
        })
    }

    /// A job that was held under an earlier owner, or an earlier start, is no longer held.
    fn check_rests(&self, id: JobId, number: Number) -> Result<(), Refusal> {
        let Some(job) = self.flows.jobs.find(id) else {
            return Err(no_job(id));
        };
        let Some(queue) = self.flows.queues.get(&job.queue) else {
            return Err(gone());
        };
        if self.ownership.holds(queue.shard(), number) {
            return Ok(());
        }
        Err(Refusal::new(
            Word::Stale,
            format!(
                "queue {}/{} of job {id} has changed hands (its number is {}, not {number}); take the job again",
                queue.flow,
                queue.name,
                self.ownership.number(queue.shard())
            ),
        ))
    }

    /// A queue that a job goes to gets at least the number of the one that it comes from.
    fn lift(&mut self, from: QueueId, to: QueueId) {
        let shard = |queue| self.flows.queues.get(&queue).map(super::Queue::shard);
        if let (Some(from), Some(to)) = (shard(from), shard(to)) {
            let number = self.ownership.number(from);
            self.ownership.lift(to, number);
        }
    }

    /// A client that repeats a create must hear that the first one was done, whatever else is in the way.
    fn check_name(&self, flow: &Name, name: Option<&Name>) -> Result<(), Refusal> {
        match name.and_then(|name| Some((name, self.names.find(flow, name)?))) {
            None => Ok(()),
            Some((name, job)) => Err(Refusal::new(
                Word::Duplicate,
                format!(
                    "job {job} of flow {flow} has the name {name}; names are used again only after a delete"
                ),
            )),
        }
    }

    fn check_room(&self, queue: QueueId) -> Result<(), Refusal> {
        self.flows.check_room(queue)
    }

    fn check_bytes(&self, more: u64) -> Result<(), Refusal> {
        let most = self.limits.job_bytes;
        if more == 0 || self.flows.bytes + more <= most {
            return Ok(());
        }
        Err(Refusal::new(
            Word::Limit,
            format!("all jobs together would exceed the limit job_bytes of {most}"),
        ))
    }

    fn flow_of(&self, queue: QueueId) -> Result<Name, Refusal> {
        let found = self.flows.queues.get(&queue);
        found.map(|queue| queue.flow.clone()).ok_or_else(gone)
    }

    fn free_name(&self, flow: &Name, id: JobId) -> Name {
        let free = |name: &str| match self.names.find(flow, name) {
            Some(_) => None,
            None => Name::new(name).ok(),
        };
        // Nearly always this name is free, so no text is allocated for it.
        free(itoa::Buffer::new().format(id.0))
            .or_else(|| (1..).find_map(|n: u64| free(&format!("{id}.{n}"))))
            .expect("there are more numbers than jobs")
    }

    fn count(&mut self, queue: QueueId, by: i64) {
        if let Some(queue) = self.flows.queues.get_mut(&queue) {
            queue.jobs = queue
                .jobs
                .checked_add_signed(by)
                .expect("a queue has as many jobs as lie in it");
        }
    }
}

impl Flows {
    /// Whether a queue has room for one more job.
    pub(super) fn check_room(&self, queue: QueueId) -> Result<(), Refusal> {
        let Some(queue) = self.queues.get(&queue) else {
            return Err(gone());
        };
        match queue.rule.limit {
            Some(limit) if queue.jobs >= limit => Err(Refusal::new(
                Word::Full,
                format!(
                    "queue {}/{} has {} jobs and its limit is {limit}; try again when some are taken away",
                    queue.flow, queue.name, queue.jobs
                ),
            )),
            _ => Ok(()),
        }
    }
}

fn spot(job: &Job) -> Spot {
    Spot {
        queue: job.queue,
        place: job.place,
    }
}

fn gone() -> Refusal {
    no_queue("of that identity any more")
}
