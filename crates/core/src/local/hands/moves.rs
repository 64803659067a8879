//! Queues of several nodes. Every node knows the lines of all queues, because they follow the log. Only a queue's owner hands
//! out jobs, and only once it knows who has a job of the queue in hand. When a queue gets another owner, the former one puts
//! everything back in line, and the homes of the holders report to the new one.

use super::Held;
use crate::event::Event;
use crate::fence::Fence;
use crate::job::{JobId, QueueId};
use crate::local::Local;
use crate::ownership::Shard;
use crate::replicated::Replicated;
use crate::session::SessionId;
use crate::wait::Ticket;

/// A job in hand that is recorded twice: in the books of the queue's owner and in the table of the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakeCopy {
    pub session: SessionId,
    pub job: JobId,
    pub attempt: Fence,
    /// When it was taken.
    pub since: u64,
    /// The shard of the job's queue.
    pub shard: Shard,
}

/// A session whose home is elsewhere no longer has a job in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaidDown {
    pub session: SessionId,
    pub job: JobId,
    pub attempt: Fence,
}

impl Local {
    /// Sets up a cluster node's lines: none hands anything out before [`Local::open_lines`] says so.
    pub(crate) fn guard_lines(&mut self, replicated: &Replicated) {
        self.hands.guarded = true;
        self.line_up(replicated);
    }

    /// From now on exactly the lines of these shards hand out jobs.
    pub(crate) fn open_lines(
        &mut self,
        replicated: &Replicated,
        open: impl Fn(Shard) -> bool,
        out: &mut Vec<Event>,
    ) {
        let mut opened: Vec<QueueId> = Vec::new();
        for (queue, line) in &mut self.hands.lines {
            let opens = open(line.shard);
            if opens && !std::mem::replace(&mut line.open, opens) {
                opened.push(*queue);
            }
            line.open = opens;
        }
        self.serve_takers(replicated, &opened, out);
    }

    /// Without a lease nothing is granted and nothing handed out; with one again, those who waited are served.
    pub(crate) fn freeze(&mut self, frozen: bool, replicated: &Replicated, out: &mut Vec<Event>) {
        if std::mem::replace(&mut self.frozen, frozen) && !frozen {
            self.serve_all_takers(replicated, out);
            self.advance_all(self.now, out);
        }
    }

    /// Shards of this node have new numbers. Some requests may have waited for fences.
    pub(crate) fn renewed(&mut self, replicated: &Replicated, out: &mut Vec<Event>) {
        self.serve_all_takers(replicated, out);
        self.advance_all(self.now, out);
    }

    /// Another node owns these shards now: as far as this one is concerned, nobody holds or awaits a job there. Returns who
    /// held which job, and the takes that waited there.
    pub(crate) fn vacate_lines(
        &mut self,
        replicated: &Replicated,
        gone: impl Fn(Shard) -> bool,
    ) -> (Vec<TakeCopy>, Vec<(SessionId, Ticket)>) {
        let of_line = |job: &JobId| {
            let queue = replicated.job(*job).ok()?.queue;
            let shard = self.hands.lines.get(&queue)?.shard;
            gone(shard).then_some((*job, shard))
        };
        let mut left: Vec<(JobId, Shard)> = self.hands.held.keys().filter_map(of_line).collect();
        left.sort_unstable();
        let mut takes = Vec::new();
        for (job, shard) in left {
            takes.extend(self.take_copy(job, shard));
            self.take_from(job);
            if let Ok(record) = replicated.job(job) {
                self.stand_in_line(record);
            }
        }
        // The log, or the new owner, knows where they are.
        self.hands.laid.clear();
        let lines = self.hands.lines.values().filter(|line| gone(line.shard));
        let mut tickets: Vec<Ticket> = lines.flat_map(|line| line.takers.clone()).collect();
        tickets.sort_unstable();
        tickets.dedup();
        let takers = tickets.into_iter().map(|ticket| {
            let s = self.forget_taker(ticket);
            (self.sessions[s].id, ticket)
        });
        (takes, takers.collect())
    }

    fn take_copy(&self, job: JobId, shard: Shard) -> Option<TakeCopy> {
        let held = self.hands.held.get(&job)?;
        Some(TakeCopy {
            session: self.sessions[held.holder?].id,
            job,
            attempt: held.attempt,
            since: held.since,
            shard,
        })
    }

    /// What a session has in hand here, except jobs on their way through the log.
    pub(crate) fn takes_of(&self, replicated: &Replicated, session: SessionId) -> Vec<TakeCopy> {
        let jobs = self.jobs_of(session).into_iter();
        let jobs = jobs.filter(|held| !held.settling);
        jobs.filter_map(|held| {
            let queue = replicated.job(held.job).ok()?.queue;
            self.take_copy(held.job, self.hands.lines.get(&queue)?.shard)
        })
        .collect()
    }

    /// Gives a job to a session, as the session's home says. Of two holders the one with the higher attempt keeps it.
    pub(crate) fn install_take(&mut self, replicated: &Replicated, take: &TakeCopy) {
        let Ok(job) = replicated.job(take.job) else {
            return;
        };
        let line = self.hands.lines.get_mut(&job.queue);
        let Some(line) = line.filter(|line| line.shard == take.shard) else {
            return;
        };
        match self.hands.held.get(&take.job) {
            Some(held) if held.attempt >= take.attempt => return,
            Some(_) => self.take_from(take.job),
            None => drop(line.remove(job, job.place)),
        }
        self.admit_guest(take.session);
        let s = self.session_ids[&take.session];
        let held = Held {
            holder: Some(s),
            attempt: take.attempt,
            since: take.since,
            settling: false,
            orphan: false,
        };
        self.hands.held.insert(take.job, held);
        self.sessions[s].jobs.push(take.job);
    }

    /// Ends all waiting takes of a session without telling anybody.
    pub(crate) fn forget_takes(&mut self, session: SessionId) -> Vec<Ticket> {
        let Ok(s) = self.session(session) else {
            return Vec::new();
        };
        let tickets = self.sessions[s].takes.clone();
        for ticket in &tickets {
            self.forget_taker(*ticket);
        }
        tickets
    }

    /// The jobs that guests no longer have in hand, since the last call.
    pub(crate) fn take_laid(&mut self) -> Vec<LaidDown> {
        std::mem::take(&mut self.hands.laid)
    }
}
