//! Jobs of queues that one node owns and sessions of all nodes take from. A take is recorded twice, as a hold is: in the
//! books of the queue's owner and in the table of the session's home. The owner tells the home of a guest before the guest is
//! answered. What the log does with a job, every home sees for itself.

use super::frame::{Frame, InHand};
use super::serve::Time;
use super::{Broken, Estate, Out, Peer, Tell};
use crate::command::{Answer, Command, Settled, Taken};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::job::JobId;
use crate::local::TakeCopy;
use crate::ownership::{Index, Number, Shard};
use crate::replicated::{JobOutcome, Lost, Replicated};
use crate::session::SessionId;
use crate::wait::Ticket;

/// Whether this node can carry out a call that names a shard's number and a session's home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// At once.
    Now,
    /// The log here has not come that far, or not everybody has reported what is in hand.
    Wait,
    /// Never: another node is the owner, or the session has another home.
    Moved,
}

/// A take in the table of its home.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableTake {
    pub(super) take: TakeCopy,
    /// How far its owner had applied the log: a later entry about the job ends this take.
    pub(super) at: Index,
    /// The owner that said so.
    pub(super) from: Peer,
    /// Whether the client knows of it.
    pub(super) told: bool,
}

impl Estate {
    /// See [`Local::reorder`](crate::Local::reorder).
    pub fn reorder(&mut self, replicated: &Replicated) -> bool {
        self.local.reorder(replicated)
    }

    /// Whether this node can carry out a call about a queue of this shard, for a session with this home.
    pub fn call_stands(
        &self,
        replicated: &Replicated,
        (shard, number): (Shard, Number),
        (session, home): (SessionId, Index),
    ) -> Stands {
        match self.time_of_take(replicated, (shard, number), (session, home)) {
            Time::Past => Stands::Moved,
            Time::Future => Stands::Wait,
            Time::Present if !self.owns(replicated, shard) => Stands::Moved,
            Time::Present if self.openings.all_reported(shard) => Stands::Now,
            Time::Present => Stands::Wait,
        }
    }

    /// Carries out a job command that another member has sent here for one of its sessions. [`Answer::Waiting`] means that a
    /// [`Tell::Answered`] or a [`Tell::Moved`] with this ticket will follow here.
    pub fn ask_as_guest(
        &mut self,
        now: u64,
        replicated: &Replicated,
        home: Peer,
        session: SessionId,
        command: &Command<'_>,
        out: &mut Out,
    ) -> Result<Answer, Refusal> {
        if let Command::Withdraw { .. } = command {
            return self.ask(now, replicated, session, command, out);
        }
        if !self.wake(now, replicated, out) {
            return Err(Estate::no_lease());
        }
        let of_jobs = matches!(
            command,
            Command::Take(_)
                | Command::Narrow { .. }
                | Command::CheckJob(_)
                | Command::Settle(_)
                | Command::Reserve { .. }
                | Command::GiveBack(_)
                | Command::Fail(_)
                | Command::Cancel { .. }
        );
        if !of_jobs {
            return Err(Refusal::new(
                Word::BadArg,
                "a guest's command is about jobs; gates are asked for by their own frames",
            ));
        }
        if self.home(replicated, session) != Some(home) {
            return Err(Refusal::new(
                Word::Stale,
                format!("session {session} is not at home where this comes from"),
            ));
        }
        self.settle_up(replicated, out);
        self.local.admit_guest(session);
        let answer = self.ask_for_job(replicated, home, session, command);
        self.go_on(replicated, out);
        answer
    }

    /// Carries out a job command in the books, for a session here or elsewhere.
    pub(super) fn ask_for_job(
        &mut self,
        replicated: &Replicated,
        home: Peer,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        let answer = self.in_books(replicated, session, command)?;
        match &answer {
            Answer::Waiting(ticket) => {
                self.takers.insert(*ticket, home);
            }
            Answer::Settled(Settled::Taken(taken)) => {
                self.took(replicated, home, session, *taken);
            }
            _ => {}
        }
        Ok(answer)
    }

    /// A session has got a job. If its home is elsewhere, the home hears of it before the session does.
    fn took(&mut self, replicated: &Replicated, home: Peer, session: SessionId, taken: Taken) {
        let Some(shard) = shard_of(replicated, taken.job) else {
            return;
        };
        self.used(shard, home);
        if home == self.own {
            return;
        }
        let number = replicated.ownership().number(shard);
        let take = InHand {
            session,
            home: self.home_index(replicated, session),
            job: taken.job,
            attempt: taken.attempt,
            shard,
            held_ms: 0,
            at: replicated.index(),
        };
        self.send(home, Frame::Took { take, number });
    }

    /// A take that waited is over, with or without a job.
    pub(super) fn take_settled(
        &mut self,
        replicated: &Replicated,
        home: Peer,
        (session, ticket): (SessionId, Ticket),
        settled: Settled,
        out: &mut Out,
    ) {
        if let Settled::Taken(taken) = settled {
            self.took(replicated, home, session, taken);
        }
        out.tells.push(Tell::Answered {
            session,
            ticket,
            answer: Ok(Answer::Settled(settled)),
        });
    }

    /// Takes that waited here no longer wait anywhere.
    pub(super) fn takes_moved(
        &mut self,
        takes: impl IntoIterator<Item = (SessionId, Ticket)>,
        out: &mut Out,
    ) {
        for (session, ticket) in takes {
            self.takers.remove(&ticket);
            out.tells.push(Tell::Moved { session, ticket });
        }
    }

    /// Ends all waits for jobs here.
    pub(super) fn end_takers(&mut self, out: &mut Out) {
        let mut takers = Vec::new();
        for session in self.local.session_list() {
            let takes = self.local.forget_takes(session).into_iter();
            takers.extend(takes.map(|ticket| (session, ticket)));
        }
        takers.sort_unstable_by_key(|(_, ticket)| *ticket);
        self.takes_moved(takers, out);
    }

    /// An owner says that a session of this home has a job.
    pub(super) fn hear_of_take(&mut self, from: Peer, take: InHand) {
        if self.table.hosts(take.session) {
            let at = take.at;
            let take = self.as_take(&take);
            self.table.write_take(TableTake {
                take,
                at,
                from,
                told: false,
            });
        }
    }

    /// The reply to a take has brought a job. Says whether its client may hear of it; if not, the log has overtaken the
    /// reply, and the job must be asked for again.
    pub fn tell_take(&mut self, session: SessionId, taken: Taken) -> bool {
        if self.table.tell_take(session, taken) {
            return true;
        }
        // This node may own the queue by now.
        let held = self.local.held_job(taken.job);
        held.is_some_and(|held| {
            (held.session, held.attempt, held.settling) == (Some(session), taken.attempt, false)
        })
    }

    /// The shard of a job's queue. For a job in hand the owner's word counts, because the log here may be behind.
    pub fn job_shard(&self, replicated: &Replicated, job: JobId) -> Option<Shard> {
        let in_hand = self.table.shard_of(job);
        in_hand.or_else(|| shard_of(replicated, job))
    }

    /// A client gives a job back: from now on no new owner hears of this take, whatever happens to the call.
    pub fn gives_up(&mut self, session: SessionId, taken: Taken) {
        self.table.strike_take(session, taken);
    }

    /// Gives back a job that a session of this home has from another owner's queue. False if it has not.
    pub(super) fn return_take(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        taken: Taken,
    ) -> bool {
        let Some(take) = self.table.strike_take(session, taken) else {
            return false;
        };
        let ownership = replicated.ownership();
        if let Some(title) = ownership.title(take.shard) {
            let frame = Frame::Return {
                session,
                home: self.home_index(replicated, session),
                shard: take.shard,
                number: title.number,
                taken,
            };
            self.send((title.owner, title.start), frame);
        }
        true
    }

    /// Gives back all of them.
    pub(super) fn return_takes(&mut self, replicated: &Replicated, session: SessionId) {
        for take in self.table.takes_of(session) {
            let TakeCopy { job, attempt, .. } = take;
            self.return_take(replicated, session, Taken { job, attempt });
        }
    }

    /// A home gives a job back for a session.
    pub(super) fn returned(&mut self, replicated: &Replicated, session: SessionId, taken: Taken) {
        self.local
            .leave_job(session, replicated, taken, &mut self.events);
    }

    /// The log has changed jobs: whoever had them in hand no longer does.
    pub(super) fn strike_by_log(&mut self, replicated: &Replicated, outcomes: &[JobOutcome]) {
        for outcome in outcomes {
            let job = match outcome {
                JobOutcome::Created { .. } => continue,
                JobOutcome::Passed { job, .. }
                | JobOutcome::Died { job, .. }
                | JobOutcome::GivenBack { job } => *job,
                JobOutcome::Deleted(job) => job.id,
            };
            self.table.settle_takes(job, replicated.index());
        }
    }

    /// What [`Broken::FreedByView`] does.
    pub(super) fn free_all(&mut self, replicated: &Replicated, session: SessionId) {
        for held in self.local.jobs_of(session) {
            let (job, attempt) = (held.job, held.attempt);
            let _ = self.in_books(replicated, session, &Command::Withdraw { job });
            let taken = Taken { job, attempt };
            let _ = self.in_books(replicated, session, &Command::GiveBack(taken));
        }
    }

    /// What to log about workers that died.
    pub(super) fn lost(&self, replicated: &Replicated, jobs: &[(JobId, Fence)]) -> Vec<Lost> {
        let lost = jobs.iter().map(|(job, attempt)| Lost {
            job: *job,
            attempt: *attempt,
            number: replicated.job_number(*job),
            held_ms: self
                .local
                .held_job(*job)
                .map_or(0, |held| self.now.saturating_sub(held.since)),
        });
        lost.collect()
    }

    /// Sets which lines hand out jobs: those of shards that this node owns and on which everybody has reported.
    pub(super) fn set_lines(&mut self, replicated: &Replicated) {
        let at_once = self.breaks(Broken::OpenAtOnce);
        let Estate {
            local,
            openings,
            own,
            events,
            ..
        } = self;
        let open = |shard: Shard| {
            let title = replicated.ownership().title(shard);
            title.is_some_and(|title| (title.owner, title.start) == *own)
                && (openings.all_reported(shard) || at_once)
        };
        local.open_lines(replicated, open, events);
    }

    pub(super) fn owns(&self, replicated: &Replicated, shard: Shard) -> bool {
        let title = replicated.ownership().title(shard);
        title.is_some_and(|title| (title.owner, title.start) == self.own)
    }

    pub(super) fn as_in_hand(&self, replicated: &Replicated, take: &TakeCopy) -> InHand {
        InHand {
            session: take.session,
            home: self.home_index(replicated, take.session),
            job: take.job,
            attempt: take.attempt,
            shard: take.shard,
            held_ms: self.now.saturating_sub(take.since),
            at: replicated.index(),
        }
    }

    pub(super) fn as_take(&self, take: &InHand) -> TakeCopy {
        TakeCopy {
            session: take.session,
            job: take.job,
            attempt: take.attempt,
            since: self.now.saturating_sub(take.held_ms),
            shard: take.shard,
        }
    }
}

/// The shard of a job's queue.
fn shard_of(replicated: &Replicated, job: JobId) -> Option<Shard> {
    let queue = replicated.job(job).ok()?.queue;
    replicated.queue(queue).map(crate::replicated::Queue::shard)
}
