//! What a connection may see of flows, queues and jobs. What it may not see gets the same answer as what does not exist, byte
//! for byte, so that nobody learns a name by asking for it.

use testigo_core::{Job, JobId, QueueId, Refusal, ambiguous_queue, no_job, no_queue};

use super::{ClientId, House, Presented};
use crate::users::{Deed, Rights, User};

impl House {
    /// The queue that a connection means by a text. One that it may not see is refused for lack of rights, whether it exists
    /// or not; a bare name means a queue that it may see.
    pub(crate) fn queue_of(
        &self,
        id: ClientId,
        text: &str,
        deed: Deed,
    ) -> Result<QueueId, Refusal> {
        if let Some(presented) = self.presented(id) {
            if let Some((flow, _)) = text.split_once('/') {
                presented.check_flow(flow)?;
            }
            return self.replicated().queue_named(text, Some(&presented.flow));
        }
        let user = self.user(id)?;
        if user.may(Deed::Show, "") {
            return self.replicated().queue_named(text, None);
        }
        let seen = |queue: &QueueId| self.show_jobs(user, *queue).is_ok();
        if text.contains('/') {
            let found = self.replicated().queue_named(text, None);
            return match user.may(Deed::Show, text) || found.as_ref().is_ok_and(seen) {
                true => found,
                false => Err(Rights::denied(user.name(), deed, text)),
            };
        }
        let flows = self.replicated().flows();
        let flows = flows.filter(|(_, flow)| flow.queue(text).as_ref().is_some_and(seen));
        let flows: Vec<&str> = flows.map(|(name, _)| name.as_str()).take(2).collect();
        match flows[..] {
            [flow] => self.replicated().queue_named(text, Some(flow)),
            [] => Err(no_queue(text)),
            [one, two, ..] => Err(ambiguous_queue(text, one, two)),
        }
    }

    /// Like [`House::queue_of`], for a queue named together with a job: a bare name means a queue of the job's flow. A client
    /// that sees a job also sees where it was rejected.
    pub(crate) fn queue_near(
        &self,
        id: ClientId,
        job: JobId,
        text: &str,
    ) -> Result<QueueId, Refusal> {
        if self.presented(id).is_some() {
            return self.queue_of(id, text, Deed::Admin);
        }
        let bare = !text.contains('/');
        let job = match self.seen_job(id, job) {
            Err(refusal) if bare => return Err(refusal),
            Err(_) => return self.queue_of(id, text, Deed::Admin),
            Ok(job) => job,
        };
        let flow = &self.known(job.queue)?.flow;
        let named = self.replicated().queue_named(text, Some(flow)).ok();
        match named.filter(|queue| job.rejected_from == Some(*queue)) {
            Some(rejected_from) => Ok(rejected_from),
            None if bare => self.queue_of(id, &format!("{flow}/{text}"), Deed::Admin),
            None => self.queue_of(id, text, Deed::Admin),
        }
    }

    /// A job that a connection may see.
    pub(crate) fn seen_job(&self, id: ClientId, job: JobId) -> Result<&Job, Refusal> {
        let found = self.replicated().job(job);
        let found = found.and_then(|job| self.look_into(id, job.queue).map(|()| job));
        found.map_err(|_| self.no_job(id, job))
    }

    /// The refusal of a job that does not exist, or that a connection may not see.
    pub(crate) fn no_job(&self, id: ClientId, job: JobId) -> Refusal {
        let mut refusal = no_job(job);
        match (self.presented(id), self.user(id)) {
            (Some(Presented { flow, .. }), _) => {
                refusal.sentence += &format!(", or is not of flow {flow}");
            }
            (None, Ok(user)) if !user.may(Deed::Show, "") => {
                refusal.sentence += &format!(", or user {} may not see it", user.name());
            }
            _ => {}
        }
        refusal
    }

    /// Whether a connection may look into a queue: a process into those of its flow, otherwise a user with that right, or one
    /// that the queue names.
    pub(crate) fn look_into(&self, id: ClientId, queue: QueueId) -> Result<(), Refusal> {
        let known = self.known(queue)?;
        match self.presented(id) {
            Some(presented) => presented.check_flow(&known.flow),
            None => self.show_jobs(self.user(id)?, queue),
        }
    }

    /// Whether a user may see the jobs of a queue.
    pub(crate) fn show_jobs(&self, user: &User, queue: QueueId) -> Result<(), Refusal> {
        match self.known(queue)?.rule.users.contains(user.name()) {
            true => Ok(()),
            false => user.check(Deed::Show, &self.queue_name(queue)),
        }
    }
}
