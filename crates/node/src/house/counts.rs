//! Counts what happens to jobs as it passes through the house. This is cheap, because every command comes this way.

use std::iter::Peekable;
use std::slice::IterMut;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use testigo_core::{
    Change, Fence, Flow, JobChange, JobId, JobOutcome, Lost, Name, Outcome, QueueId, SessionId,
    Word,
};

use super::{ClientId, House};
use crate::stats::{Arrow, Held, How, ProcessKey};

/// The connection that asked and the process that it was, if any.
type Asked = (Option<ClientId>, Option<ProcessKey>);

/// A connection that is counted as a worker of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    pub(crate) process: ProcessKey,
    pub(crate) since: u64,
}

impl House {
    /// The wall clock, as offset at the last entry of the log. Only for people.
    pub(crate) fn wall_now(&self) -> u64 {
        self.now + self.submissions.wall_offset()
    }

    /// A job is given back, or its holder is gone, and it stays in its queue.
    pub(crate) fn count_back(&mut self, job: JobId, how: How) {
        let Some(hand) = self.stats.let_go(self.now, job, how) else {
            return;
        };
        let held = Held {
            queue: hand.queue,
            arrived: hand.arrived,
            by: hand.by,
            until: self.wall_now(),
            held_ms: self.now.saturating_sub(hand.since),
            how,
        };
        self.stats.histories.held(job, held);
    }

    /// A session gives back all jobs in hand that are not settling.
    pub(super) fn count_all_back(&mut self, session: SessionId) {
        for held in self.local().jobs_of(session) {
            if !held.settling {
                self.count_back(held.job, How::GivenBack);
            }
        }
    }

    /// Counts the changes of jobs in an entry of the log.
    pub(super) fn count_changes(&mut self, asked: Asked, change: &Change, outcome: &mut Outcome) {
        match (change, outcome) {
            (Change::Jobs(changes), Outcome::Jobs(outcomes)) => {
                let mut outcomes = outcomes.iter_mut().peekable();
                for change in changes {
                    self.count_change(asked, change, &mut outcomes);
                }
            }
            (
                Change::ApplyFlow { flow, .. }
                | Change::ApplyFlowOver { flow, .. }
                | Change::DeleteFlow { flow },
                _,
            ) => {
                self.keep_counts(flow);
            }
            _ => {}
        }
    }

    /// The arrows of a flow: process, queue, whether the arrow leads into the queue, and under which key it is counted, if it
    /// is.
    pub(crate) fn arrows_of<'a>(
        &'a self,
        name: &'a Name,
        flow: &'a Flow,
    ) -> impl Iterator<Item = (&'a Name, &'a Name, bool, Option<Arrow>)> {
        let processes = flow.scheme.processes.iter();
        processes.flat_map(move |(process, role)| {
            let key = self.stats.key(name, process);
            role.arrows().map(move |(queue, into)| {
                let ends = key.zip(flow.queue(queue));
                let arrow = ends.map(|(process, queue)| Arrow::new(process, queue, into));
                (process, queue, into, arrow)
            })
        })
    }

    /// A flow was applied or deleted: starts counting what is new and stops counting what is gone.
    fn keep_counts(&mut self, name: &Name) {
        let replicated = self.services.replicated();
        let flow = replicated.flow(name).ok();
        match flow {
            Some(flow) => {
                let queues = flow.queues().map(|(_, queue)| queue);
                self.stats.begin(self.now, name, queues);
            }
            None => self.stats.end(name),
        }
        self.stats.keep_processes(name, |process| {
            flow.is_some_and(|flow| flow.scheme.processes.contains_key(process))
        });
        let arrows = flow.into_iter().flat_map(|flow| self.arrows_of(name, flow));
        let there: FxHashSet<Arrow> = arrows.filter_map(|(.., arrow)| arrow).collect();
        self.stats
            .keep_queues(|queue| replicated.queue(queue).is_some());
        self.stats.arrows.keep(|arrow| {
            let queue = replicated.queue(arrow.queue);
            queue.is_some_and(|queue| queue.flow != *name || there.contains(arrow))
        });
    }

    fn count_change(
        &mut self,
        (client, process): Asked,
        change: &JobChange,
        outcomes: &mut Peekable<IterMut<'_, JobOutcome>>,
    ) {
        let now = self.now;
        match (change, outcomes.peek_mut()) {
            (JobChange::Create { queue, .. }, _) => {
                self.stats.arrived(now, *queue, true);
                if let Some(process) = process {
                    self.stats.arrows.put(now, process, *queue, true);
                }
            }
            (JobChange::Pass { queue, .. }, Some(JobOutcome::Passed { job, was, .. })) => {
                self.stats.let_go(now, *job, How::Passed);
                self.stats.departed(now, was.queue);
                self.stats.arrived(now, *queue, false);
                if let Some(process) = process {
                    self.stats.arrows.took(now, process, was.queue);
                    self.stats.arrows.put(now, process, *queue, false);
                }
            }
            (JobChange::Delete { .. }, Some(JobOutcome::Deleted(job))) => {
                let hand = self.stats.let_go(now, job.id, How::Deleted);
                self.stats.departed(now, job.queue);
                if let Some(process) = process {
                    self.stats.arrows.took(now, process, job.queue);
                }
                let held_ms = hand.as_ref().map(|hand| now.saturating_sub(hand.since));
                let by = match hand {
                    Some(hand) => hand.by,
                    None => self.asker(client),
                };
                let at = self.wall_now();
                self.stats.histories.ended(job, by, held_ms, at);
            }
            (JobChange::Back { job, .. }, _) => self.count_back(*job, How::GivenBack),
            (JobChange::Lose { .. }, _) => return self.count_deaths(outcomes),
            _ => {}
        }
        outcomes.next();
    }

    /// Who asked for a change. A job that nobody holds is deleted by an administrator.
    fn asker(&mut self, client: Option<ClientId>) -> Arc<str> {
        match client {
            Some(id) => self.signature(id),
            None => Arc::from("administrator"),
        }
    }

    /// What to log when workers die: who they were and how long they held these jobs.
    pub(super) fn lost_jobs(&self, jobs: &[(JobId, Fence)]) -> Vec<JobChange> {
        let lost = jobs.iter().map(|(job, attempt)| Lost {
            job: *job,
            attempt: *attempt,
            number: self.replicated().job_number(*job),
            held_ms: self
                .stats
                .hand(*job)
                .map_or(0, |hand| self.now.saturating_sub(hand.since)),
        });
        self.by_worker(lost)
    }

    /// Deaths, one change per worker.
    pub(super) fn by_worker(&self, jobs: impl IntoIterator<Item = Lost>) -> Vec<JobChange> {
        let mut lost: Vec<JobChange> = Vec::new();
        for one in jobs {
            let hand = self.stats.hand(one.job);
            let by = hand.map_or_else(|| Arc::from(""), |hand| Arc::clone(&hand.by));
            match lost.last_mut() {
                Some(JobChange::Lose { jobs, by: same }) if *same == by => {
                    jobs.push(one);
                }
                _ => lost.push(JobChange::Lose {
                    jobs: vec![one],
                    by,
                }),
            }
        }
        lost
    }

    fn count_deaths(&mut self, outcomes: &mut Peekable<IterMut<'_, JobOutcome>>) {
        while let Some(JobOutcome::Died { job, was, .. }) =
            outcomes.next_if(|outcome| matches!(outcome, JobOutcome::Died { .. }))
        {
            self.count_back(*job, How::Died);
            let queue = self.replicated().job(*job).map(|job| job.queue);
            let rejected = queue.ok().filter(|queue| *queue != was.queue);
            self.stats.died(self.now, was.queue, rejected.is_some());
            if let Some(queue) = rejected {
                self.stats.departed(self.now, was.queue);
                self.stats.arrived(self.now, queue, false);
            }
        }
    }

    /// A queue was full: counts the queue of the first change without room, considering what the entry itself did before.
    pub(crate) fn count_full(&mut self, change: &Change, word: Word) {
        let Change::Jobs(changes) = change else {
            return;
        };
        if word != Word::Full {
            return;
        }
        let mut lying: FxHashMap<QueueId, u64> = FxHashMap::default();
        for change in changes {
            let (into, job) = match change {
                JobChange::Create { queue, .. } => (Some(*queue), None),
                JobChange::Pass { queue, job, .. } => (Some(*queue), Some(*job)),
                JobChange::Delete { job, .. } => (None, Some(*job)),
                _ => continue,
            };
            let out_of = job.and_then(|job| Some(self.replicated().job(job).ok()?.queue));
            if into == out_of {
                continue;
            }
            for (queue, comes) in [(into, true), (out_of, false)] {
                let Some(queue) = queue else { continue };
                let Some(known) = self.replicated().queue(queue) else {
                    continue;
                };
                let jobs = lying.entry(queue).or_insert(known.jobs);
                if comes && known.rule.limit.is_some_and(|limit| *jobs >= limit) {
                    return self.stats.full(self.now, queue);
                }
                *jobs = match comes {
                    true => *jobs + 1,
                    false => jobs.saturating_sub(1),
                };
            }
        }
    }

    /// Counts a connection as this process from now on.
    pub(crate) fn count_worker(&mut self, id: ClientId, process: Option<ProcessKey>) {
        let now = self.now;
        let Some(client) = self.connections.client_mut(id) else {
            return;
        };
        client.signature = None;
        let worker = process.map(|process| Worker {
            process,
            since: now,
        });
        if let Some(before) = std::mem::replace(&mut client.worker, worker) {
            self.stats.left(now, before.process, before.since);
        }
    }
}
