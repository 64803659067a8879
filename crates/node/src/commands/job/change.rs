//! The changes that `JOB CREATE|PASS|DELETE|BACK|MOVE` submit: checks the rights, and puts the job out of everybody's reach
//! until the log has decided.

use testigo_core::{
    Answer, Body, Command, Fence, JobChange, JobId, Lost, Name, QueueAct, QueueId, Refusal, Taken,
};

use crate::house::{ClientId, House};
use crate::wire::bad_arg;

impl House {
    /// Creates a job.
    pub(super) fn create_change(
        &mut self,
        id: ClientId,
        queue: QueueId,
        name: Option<Name>,
        class: u32,
        body: Body,
    ) -> Result<JobChange, Refusal> {
        self.allow_new_job(id, QueueAct::Create, queue)?;
        Ok(JobChange::Create {
            queue,
            name,
            class,
            body,
            by: self.signature(id),
        })
    }

    /// Passes on a job that the connection holds.
    pub(super) fn pass_change(
        &mut self,
        id: ClientId,
        (job, attempt): (JobId, Fence),
        queue: QueueId,
        body: Option<Body>,
    ) -> Result<JobChange, Refusal> {
        let from = self.in_hand(id, job, attempt)?;
        self.allow_job(id, QueueAct::Take, from)?;
        self.allow_job(id, QueueAct::Pass, queue)?;
        let by = self.signature(id);
        let held_ms = self.settle(id, job, attempt)?;
        Ok(JobChange::Pass {
            job,
            attempt,
            number: self.replicated().job_number(job),
            queue,
            body,
            held_ms,
            by,
        })
    }

    /// Deletes a job that the connection holds, because it is done.
    pub(super) fn delete_change(
        &mut self,
        id: ClientId,
        job: JobId,
        attempt: Fence,
    ) -> Result<JobChange, Refusal> {
        let from = self.in_hand(id, job, attempt)?;
        self.allow_job(id, QueueAct::Delete, from)?;
        self.settle(id, job, attempt)?;
        let number = self.replicated().job_number(job);
        Ok(JobChange::Delete { job, number })
    }

    /// The connection failed at a job that it holds: that counts like its death.
    pub(super) fn fail_change(
        &mut self,
        id: ClientId,
        job: JobId,
        attempt: Fence,
    ) -> Result<JobChange, Refusal> {
        self.in_hand(id, job, attempt)?;
        let held_ms = self.settle(id, job, attempt)?;
        let jobs = vec![Lost {
            job,
            attempt,
            number: self.replicated().job_number(job),
            held_ms,
        }];
        let by = self.signature(id);
        Ok(JobChange::Lose { jobs, by })
    }

    /// The connection gives back a job that it holds, together with other changes.
    pub(super) fn back_change(
        &mut self,
        id: ClientId,
        job: JobId,
        attempt: Fence,
    ) -> Result<JobChange, Refusal> {
        self.in_hand(id, job, attempt)?;
        self.settle(id, job, attempt)?;
        let number = self.replicated().job_number(job);
        Ok(JobChange::Back { job, number })
    }

    /// An administrator deletes a waiting job.
    pub(super) fn discard_change(
        &mut self,
        id: ClientId,
        job: JobId,
    ) -> Result<JobChange, Refusal> {
        self.no_process(id)?;
        self.administer(id, self.seen_job(id, job)?.queue)?;
        self.reserve(id, job)?;
        let number = self.replicated().job_number(job);
        Ok(JobChange::Delete { job, number })
    }

    /// An administrator moves a waiting job.
    pub(super) fn move_change(
        &mut self,
        id: ClientId,
        job: JobId,
        queue: QueueId,
    ) -> Result<JobChange, Refusal> {
        self.no_process(id)?;
        let lies = self.seen_job(id, job)?;
        self.administer(id, lies.queue)?;
        // An administrator of the queue of rejected jobs may send a job back to where it was rejected.
        if lies.rejected_from != Some(queue) {
            self.administer(id, queue)?;
        }
        if lies.queue == queue {
            let queue = self.known(queue)?;
            return Err(bad_arg(format!(
                "job {job} lies in queue {}/{} already",
                queue.flow, queue.name
            )));
        }
        let by = self.signature(id);
        let attempt = self.reserve(id, job)?;
        Ok(JobChange::Pass {
            job,
            attempt,
            number: self.replicated().job_number(job),
            queue,
            body: None,
            held_ms: 0,
            by,
        })
    }

    /// The queue of a job that the connection has in hand. This is checked before the graph, so that a former holder is told
    /// that it no longer has the job, wherever the job lies now.
    pub(super) fn in_hand(
        &mut self,
        id: ClientId,
        job: JobId,
        attempt: Fence,
    ) -> Result<QueueId, Refusal> {
        let session = self.any_session_of(id)?;
        let held = self.ask(session, &Command::CheckJob(Taken { job, attempt }));
        match self.replicated().job(job) {
            Ok(job) if held.is_ok() => Ok(job.queue),
            _ => {
                let queue = self.seen_job(id, job)?.queue;
                held.map(|_| queue)
            }
        }
    }

    fn settle(&mut self, id: ClientId, job: JobId, attempt: Fence) -> Result<u64, Refusal> {
        let session = self.any_session_of(id)?;
        match self.ask(session, &Command::Settle(Taken { job, attempt }))? {
            Answer::Settling { held_ms } => Ok(held_ms),
            other => unreachable!("a settle was answered {other:?}"),
        }
    }

    fn reserve(&mut self, id: ClientId, job: JobId) -> Result<Fence, Refusal> {
        match self.ask(self.identity(id), &Command::Reserve { job })? {
            Answer::Reserved(attempt) => Ok(attempt),
            other => unreachable!("a reservation was answered {other:?}"),
        }
    }
}
