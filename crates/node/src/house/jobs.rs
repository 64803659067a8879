//! Which process of a flow a connection is, and what it may do with the flow's jobs.

use std::sync::Arc;

use testigo_core::{
    Body, Command, JobId, Limits, Name, Queue, QueueAct, QueueId, Refusal, Role, SessionId, Shard,
    Taken, Word,
};

use super::{Client, ClientId, House, Waiter, fence_reply};
use crate::stats::Hand;
use crate::users::{self, User};
use crate::wire::{Reply, refuse};

/// A connection that acts as a process of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Presented {
    pub(crate) flow: Name,
    pub(crate) process: Name,
}

impl Presented {
    /// A process has access to its own flow only, whatever its user may do.
    pub(crate) fn check_flow(&self, flow: &str) -> Result<(), Refusal> {
        match *self.flow == *flow {
            true => Ok(()),
            false => Err(refuse(
                Word::NoRight,
                format!(
                    "this connection is process {} of flow {} and has no rights in other flows",
                    self.process, self.flow
                ),
            )),
        }
    }
}

impl House {
    /// `PRESENT flow process`: from now on the connection may do what the graph allows the process.
    pub(crate) fn present_as(
        &mut self,
        id: ClientId,
        flow: &str,
        process: &str,
    ) -> Result<(), Refusal> {
        let presented = Presented {
            flow: Name::new(flow)?,
            process: Name::new(process)?,
        };
        let user = self.user(id)?;
        // By name alone: a user that may not be the process does not learn whether it exists.
        user.check(users::Deed::Use, &format!("{flow}/{process}"))?;
        let shown = user.may(users::Deed::Show, flow);
        let scheme = match self.replicated().flow(flow) {
            Ok(found) => Some(&found.scheme),
            Err(_) if !shown => None,
            Err(no_flow) => return Err(no_flow),
        };
        let Some(role) = scheme.and_then(|scheme| scheme.processes.get(process)) else {
            let known = scheme.filter(|_| shown).map(|scheme| {
                let known: Vec<&str> = scheme.processes.keys().map(|name| &**name).collect();
                format!("; it has {}", known.join(", "))
            });
            let known = known.unwrap_or_default();
            return Err(refuse(
                Word::NoRight,
                format!("flow {flow} has no process {process}{known}"),
            ));
        };
        is_for(role, user, &presented)?;
        let limit = role.limit;
        let session = self.any_session_of(id)?;
        if self.presented(id).is_some_and(|other| *other != presented)
            && !self.services.jobs_held(session).is_empty()
        {
            return Err(refuse(
                Word::Busy,
                "this connection holds jobs as another process; pass them on or give them back first",
            ));
        }
        let others = self.presented_as(&presented.flow, &presented.process);
        let others = others.filter(|client| client.id != id).count();
        if let Some(limit) = limit
            && others >= limit as usize
        {
            return Err(refuse(
                Word::Limit,
                format!(
                    "{limit} clients are process {process} already, which is its limit in flow {flow}"
                ),
            ));
        }
        let key = self.stats.process(&presented.flow, &presented.process);
        if let Some(client) = self.connections.client_mut(id) {
            client.presented = Some(presented);
        }
        self.count_worker(id, key);
        Ok(())
    }

    /// The connections that are a process of a flow.
    pub(crate) fn presented_as(&self, flow: &str, process: &str) -> impl Iterator<Item = &Client> {
        self.connections.iter().filter(move |client| {
            let presented = client.presented.as_ref();
            presented.is_some_and(|known| *known.flow == *flow && *known.process == *process)
        })
    }

    pub(crate) fn presented(&self, id: ClientId) -> Option<&Presented> {
        self.connections.client(id)?.presented.as_ref()
    }

    /// Whether a connection may do this with a queue: as a process what the graph allows, otherwise as an administrator.
    pub(crate) fn allow_job(
        &self,
        id: ClientId,
        act: QueueAct,
        queue: QueueId,
    ) -> Result<(), Refusal> {
        let Some(presented) = self.presented(id) else {
            return self.administer(id, queue);
        };
        let queue = self.known(queue)?;
        presented.check_flow(&queue.flow)?;
        let flow = self.replicated().flow(&presented.flow)?;
        flow.allows(&presented.process, act, queue)
    }

    /// Like [`House::allow_job`], for a create or a take, which begin something. A connection that may no longer be the
    /// process can only finish what it has in hand.
    pub(crate) fn allow_new_job(
        &self,
        id: ClientId,
        act: QueueAct,
        queue: QueueId,
    ) -> Result<(), Refusal> {
        self.allow_job(id, act, queue)?;
        let Some(presented) = self.presented(id) else {
            return Ok(());
        };
        let flow = self.replicated().flow(&presented.flow)?;
        match flow.scheme.processes.get(&presented.process) {
            Some(role) => is_for(role, self.user(id)?, presented),
            None => Ok(()),
        }
    }

    /// A flow was changed: ends waits for jobs of queues from which the connection may no longer take.
    pub(super) fn end_forbidden_takes(&mut self) {
        let takes = self.tickets.iter().filter_map(|(ticket, waiter)| {
            let Waiter::Blocked(id) = waiter else {
                return None;
            };
            Some((*ticket, *id, self.local().take_queues(*ticket)?))
        });
        let narrowed = takes.filter_map(|(ticket, id, queues)| {
            let may = |queue: &&QueueId| self.allow_new_job(id, QueueAct::Take, **queue).is_ok();
            let left: Vec<QueueId> = queues.iter().filter(may).copied().collect();
            (left.len() < queues.len()).then_some((ticket, id, left))
        });
        let narrowed: Vec<_> = narrowed.collect();
        for (ticket, id, left) in narrowed {
            let queues = left.into();
            let _ = self.ask(self.identity(id), &Command::Narrow { ticket, queues });
        }
    }

    /// Checks for an administrator of a queue: a user with that right, or one that the queue names.
    pub(crate) fn administer(&self, id: ClientId, queue: QueueId) -> Result<(), Refusal> {
        self.no_process(id)?;
        let (user, known) = (self.user(id)?, self.known(queue)?);
        // An administrator of the node administers every queue; the queue's name is built only if it matters.
        match user.may(users::Deed::Admin, "") || known.rule.users.contains(user.name()) {
            true => Ok(()),
            false => user.check(users::Deed::Admin, &self.queue_name(queue)),
        }
    }

    /// Refuses a process: it does the work of its flow and nothing else.
    pub(crate) fn no_process(&self, id: ClientId) -> Result<(), Refusal> {
        match self.presented(id) {
            None => Ok(()),
            Some(presented) => Err(refuse(
                Word::NoRight,
                format!(
                    "this is for administrators; this connection is process {} of flow {}",
                    presented.process, presented.flow
                ),
            )),
        }
    }

    pub(crate) fn known(&self, queue: QueueId) -> Result<&Queue, Refusal> {
        self.replicated()
            .queue(queue)
            .ok_or_else(|| refuse(Word::NoQueue, "the queue was deleted just now"))
    }

    /// A connection's name in a job's history.
    pub(crate) fn signature(&mut self, id: ClientId) -> Arc<str> {
        let Some(client) = self.connections.client_mut(id) else {
            return Arc::from("");
        };
        if let Some(signature) = &client.signature {
            return Arc::clone(signature);
        }
        let place = match &*client.name {
            "" => client.address.as_str(),
            name => name,
        };
        let signature: Arc<str> = match &client.presented {
            Some(presented) => format!("{}@{place}", presented.process).into(),
            None => format!("administrator@{place}").into(),
        };
        client.signature = Some(Arc::clone(&signature));
        signature
    }

    /// Undoes what a connection wanted of these jobs.
    pub(crate) fn withdraw(&mut self, id: ClientId, jobs: impl IntoIterator<Item = JobId>) {
        for job in jobs {
            // The log may have moved the job meanwhile.
            let _ = self.ask(self.identity(id), &Command::Withdraw { job });
        }
    }

    /// A session leaves cleanly: its jobs wait again, without counting a death.
    pub(crate) fn give_back_all(&mut self, session: SessionId) {
        self.count_all_back(session);
        let _ = self.ask(session, &Command::GiveBackAll);
    }

    /// A connection has got a job: counts that, and makes the reply to `JOB TAKE`.
    pub(crate) fn taken_reply(&mut self, id: ClientId, taken: Taken) -> Reply {
        self.visit_took(id, taken);
        let by = self.signature(id);
        let worker = self.connections.client(id).and_then(|client| client.worker);
        let wall_now = self.wall_now();
        let Ok(job) = self.services.replicated().job(taken.job) else {
            return Reply::Null;
        };
        let hand = Hand {
            queue: job.queue,
            process: worker.map(|worker| worker.process),
            by,
            arrived: job.at,
            since: self.now,
        };
        let waited_ms = wall_now.saturating_sub(job.at);
        self.stats.taken(job.id, hand, waited_ms);
        Reply::Array(vec![
            Reply::number(job.id.0),
            Reply::Name(job.name.clone()),
            self.queue_reply(job.queue),
            fence_reply(taken.attempt),
            Reply::Body(job.body.clone()),
        ])
    }

    /// The shard of a job's queue; for a job in hand here also if the log is behind.
    pub(crate) fn job_shard(&self, job: JobId) -> Option<Shard> {
        if let Some(estate) = self.services.estate() {
            return estate.job_shard(self.replicated(), job);
        }
        let queue = self.replicated().job(job).ok()?.queue;
        Some(self.replicated().queue(queue)?.shard())
    }

    /// A queue's full name as a reply.
    pub(crate) fn queue_reply(&self, queue: QueueId) -> Reply {
        match self.replicated().queue(queue) {
            Some(queue) => Reply::QueueName {
                flow: queue.flow.clone(),
                queue: queue.name.clone(),
            },
            None => Reply::text(DELETED_QUEUE),
        }
    }

    /// A queue's full name, `flow/queue`.
    pub(crate) fn queue_name(&self, queue: QueueId) -> String {
        match self.replicated().queue(queue) {
            Some(queue) => format!("{}/{}", queue.flow, queue.name),
            None => DELETED_QUEUE.into(),
        }
    }
}

/// The name of a queue that is gone. No real name has a space.
const DELETED_QUEUE: &str = "a deleted queue";

/// A body, unless it is too large.
pub(crate) fn checked_body(body: &[u8]) -> Result<Body, Refusal> {
    let (len, most) = (body.len(), Limits::BODY_BYTES);
    match len <= most {
        true => Ok(Body::from(body)),
        false => Err(refuse(
            Word::Limit,
            format!(
                "a body of {len} bytes is above the limit body_bytes of {most}; keep the data in a file, and its name here"
            ),
        )),
    }
}

/// Whether the flow lets this user be a process.
fn is_for(role: &Role, user: &User, presented: &Presented) -> Result<(), Refusal> {
    if role.users.is_empty() || role.users.contains(user.name()) {
        return Ok(());
    }
    Err(refuse(
        Word::NoRight,
        format!(
            "process {} of flow {} is not for user {}",
            presented.process,
            presented.flow,
            user.name()
        ),
    ))
}
