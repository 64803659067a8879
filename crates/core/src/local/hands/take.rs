//! Taking a job: at once if one waits, otherwise in line behind earlier takers. The first of the named queues that has a job
//! provides it; a job that arrives goes to the taker that has waited longest.

use super::{Held, Taker};
use crate::command::{Answer, Settled, Take, Taken, WaitEnd};
use crate::error::{Refusal, Word};
use crate::event::Event;
use crate::fence::Fence;
use crate::job::{Job, JobId, QueueId};
use crate::local::Local;
use crate::name::Name;
use crate::replicated::Replicated;
use crate::session::{SessionId, SessionKey};
use crate::timer::Target;
use crate::wait::Ticket;

impl Local {
    /// Takes a job for a session, or waits for one.
    pub(in crate::local) fn take_job(
        &mut self,
        session: SessionId,
        replicated: &Replicated,
        take: &Take<'_>,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let s = self.acting(session)?;
        self.check_take(s, take)?;
        let name = take.name.map(Name::new).transpose()?;
        for queue in take.queues.iter() {
            if let Some(job) = self.next_job(replicated, *queue, take.name) {
                let taken = self.hand_over(s, *queue, job, out);
                return Ok(Answer::Settled(Settled::Taken(taken)));
            }
        }
        let Some(wait_ms) = take.wait_ms.filter(|wait_ms| *wait_ms > 0) else {
            return Ok(Answer::Settled(Settled::Ended(WaitEnd::TimedOut)));
        };
        Ok(Answer::Waiting(self.wait_for_job(
            s,
            &take.queues,
            name,
            wait_ms,
        )))
    }

    fn check_take(&self, s: SessionKey, take: &Take<'_>) -> Result<(), Refusal> {
        let limit = |what: &str, most: usize| {
            Err(Refusal::new(
                Word::Limit,
                format!("there are {most} already, which is the limit {what}"),
            ))
        };
        for queue in take.queues.iter() {
            self.check_attempts(*queue)?;
        }
        let limits = &self.limits;
        let session = &self.sessions[s];
        if take.queues.is_empty() || take.queues.len() > limits.take_queues {
            let most = limits.take_queues;
            return Err(Refusal::new(
                Word::BadArg,
                format!("a take names 1 to {most} queues (the limit take_queues)"),
            ));
        }
        // Even if a job can be taken at once: an invalid request is refused in any case.
        if let Some(wait_ms) = take.wait_ms.filter(|wait_ms| *wait_ms > limits.wait_ms_max) {
            let most = limits.wait_ms_max;
            return Err(Refusal::new(
                Word::BadArg,
                format!("WAIT {wait_ms} is above the limit wait_ms_max of {most}"),
            ));
        }
        if session.jobs.len() >= limits.holds_per_session {
            return limit("holds_per_session", limits.holds_per_session);
        }
        if session.takes.len() >= limits.waits_per_session {
            return limit("waits_per_session", limits.waits_per_session);
        }
        if self.hands.takers.len() >= limits.waiters {
            return limit("waiters", limits.waiters);
        }
        Ok(())
    }

    /// Takes the next matching job out of a queue's line.
    fn next_job(
        &mut self,
        replicated: &Replicated,
        queue: QueueId,
        name: Option<&str>,
    ) -> Option<JobId> {
        if !self.has_attempts(queue) {
            return None;
        }
        let Some(name) = name else {
            return self.hands.lines.get_mut(&queue)?.pop(replicated);
        };
        let job = self.named_job(replicated, queue, name)?;
        let line = self.hands.lines.get_mut(&queue)?;
        line.remove(job, job.place).then_some(job.id)
    }

    /// Gives a session a job that stands in no line.
    fn hand_over(
        &mut self,
        s: SessionKey,
        queue: QueueId,
        job: JobId,
        out: &mut Vec<Event>,
    ) -> Taken {
        let attempt = self.next_attempt(queue, out);
        let held = Held {
            holder: Some(s),
            attempt,
            since: self.now,
            settling: false,
            orphan: false,
        };
        self.hands.held.insert(job, held);
        self.sessions[s].jobs.push(job);
        self.hands.counters.taken += 1;
        Taken { job, attempt }
    }

    /// Refuses if a queue has no attempts left. Normally the shard's next number is logged long before that.
    pub(super) fn check_attempts(&self, queue: QueueId) -> Result<(), Refusal> {
        if self.has_attempts(queue) {
            return Ok(());
        }
        let open = self.hands.lines.get(&queue).is_none_or(|line| line.open);
        let why = match open && !self.frozen {
            true => {
                "the queue's attempts are used up and its next number is being logged; try again"
            }
            false => {
                "this node does not own the queue, or does not know yet who has its jobs in hand; try again"
            }
        };
        Err(Refusal::new(Word::Unavailable, why))
    }

    fn has_attempts(&self, queue: QueueId) -> bool {
        let line = self.hands.lines.get(&queue);
        let gives = line.is_none_or(|line| line.open && self.fences.suffices(line.shard, 1));
        gives && !self.frozen
    }

    pub(super) fn next_attempt(&mut self, queue: QueueId, out: &mut Vec<Event>) -> Fence {
        let line = self.hands.lines.get(&queue);
        let shard = line.expect("a job comes out of a line").shard;
        self.next_fence(shard, out)
    }

    fn wait_for_job(
        &mut self,
        s: SessionKey,
        queues: &[QueueId],
        name: Option<Name>,
        wait_ms: u64,
    ) -> Ticket {
        let ticket = Ticket(self.next_serial());
        for queue in queues {
            if let Some(line) = self.hands.lines.get_mut(queue) {
                line.takers.insert(ticket);
            }
        }
        let since = self.now;
        let taker = Taker {
            session: s,
            queues: queues.into(),
            name,
            since,
        };
        self.hands.takers.insert(ticket, taker);
        self.sessions[s].takes.push(ticket);
        let deadline = since.saturating_add(wait_ms);
        self.arm(deadline, ticket.0, Target::Take(ticket));
        ticket
    }

    /// A job waits: puts it in line and serves those who wait for one.
    pub(super) fn offer(&mut self, replicated: &Replicated, job: &Job, out: &mut Vec<Event>) {
        if self.stand_in_line(job) {
            self.serve_takers(replicated, &[job.queue], out);
        }
    }

    /// Puts a job into its queue's line; says whether anybody waits there.
    pub(super) fn stand_in_line(&mut self, job: &Job) -> bool {
        let line = self.hands.lines.get_mut(&job.queue);
        line.is_some_and(|line| {
            line.insert(job);
            !line.takers.is_empty()
        })
    }

    /// Gives the jobs in these lines to those who wait there, in the order in which they began to wait: each gets the next
    /// job of the first of its queues that has one. Jobs that came together are all in line by now, so nobody gets the wrong
    /// one.
    pub(super) fn serve_takers(
        &mut self,
        replicated: &Replicated,
        queues: &[QueueId],
        out: &mut Vec<Event>,
    ) {
        let first = |local: &Local| {
            let queues = queues.iter();
            queues
                .filter_map(|queue| local.first_served(replicated, *queue))
                .min()
        };
        while let Some(ticket) = first(self) {
            let taker = &self.hands.takers[&ticket];
            let (wanted, name) = (taker.queues.clone(), taker.name.clone());
            let mut wanted = wanted.iter();
            let found = wanted.find_map(|queue| {
                let job = self.next_job(replicated, *queue, name.as_deref())?;
                Some((*queue, job))
            });
            let (queue, job) = found.expect("a line that serves somebody has a job for it");
            let s = self.forget_taker(ticket);
            let taken = self.hand_over(s, queue, job, out);
            self.end_take(s, ticket, Settled::Taken(taken), out);
        }
    }

    /// Like [`Local::serve_takers`], in all lines.
    pub(in crate::local) fn serve_all_takers(
        &mut self,
        replicated: &Replicated,
        out: &mut Vec<Event>,
    ) {
        let lines: Vec<QueueId> = self.hands.lines.keys().copied().collect();
        self.serve_takers(replicated, &lines, out);
    }

    /// Among the takers for which a line has a job, the one that has waited longest.
    fn first_served(&self, replicated: &Replicated, queue: QueueId) -> Option<Ticket> {
        let line = self.hands.lines.get(&queue)?;
        let gives = line.len() > 0 && self.has_attempts(queue);
        let mut takers = line.takers.iter().copied().filter(|_| gives);
        takers.find(|ticket| match &self.hands.takers[ticket].name {
            None => true,
            Some(name) => self.named_job(replicated, queue, name).is_some(),
        })
    }

    /// The job with this name, if it stands in this queue's line.
    fn named_job<'a>(
        &self,
        replicated: &'a Replicated,
        queue: QueueId,
        name: &str,
    ) -> Option<&'a Job> {
        let line = self.hands.lines.get(&queue)?;
        let flow = &replicated.queue(queue)?.flow;
        let job = replicated.job(replicated.job_named(flow, name)?).ok()?;
        (job.queue == queue && line.contains(job)).then_some(job)
    }

    /// The queues that a take waits for.
    pub fn take_queues(&self, ticket: Ticket) -> Option<&[QueueId]> {
        self.hands.takers.get(&ticket).map(|taker| &*taker.queues)
    }

    /// From now on a take waits only for these of its queues.
    pub(in crate::local) fn narrow_take(
        &mut self,
        session: SessionId,
        ticket: Ticket,
        left: &[QueueId],
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let s = self.session(session)?;
        let taker = self.hands.takers.get_mut(&ticket);
        let Some(taker) = taker.filter(|taker| taker.session == s) else {
            let why = format!("session {session} has no take {ticket}");
            return Err(Refusal::new(Word::BadArg, why));
        };
        if left.is_empty() {
            self.end_taker(ticket, WaitEnd::Cancelled, out);
            return Ok(Answer::Done);
        }
        for queue in taker.queues.iter().filter(|queue| !left.contains(queue)) {
            if let Some(line) = self.hands.lines.get_mut(queue) {
                line.takers.remove(&ticket);
            }
        }
        taker.queues = left.into();
        Ok(Answer::Done)
    }

    /// Ends a take that got nothing.
    pub(in crate::local) fn end_taker(
        &mut self,
        ticket: Ticket,
        end: WaitEnd,
        out: &mut Vec<Event>,
    ) {
        let s = self.forget_taker(ticket);
        self.end_take(s, ticket, Settled::Ended(end), out);
    }

    pub(super) fn forget_taker(&mut self, ticket: Ticket) -> SessionKey {
        let taker = self.hands.takers.remove(&ticket);
        let taker = taker.expect("a ticket in a line has its taker");
        self.hands.leave_lines(ticket, &taker);
        let session = &mut self.sessions[taker.session];
        session.takes.retain(|other| *other != ticket);
        session.hear(self.now, self.absent_ms);
        taker.session
    }

    fn end_take(&mut self, s: SessionKey, ticket: Ticket, settled: Settled, out: &mut Vec<Event>) {
        out.push(Event::Settled {
            session: self.sessions[s].id,
            ticket,
            settled,
        });
    }
}
