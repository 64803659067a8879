//! How a job leaves its holder: given back, through the log, or by the end of its session.

use super::{Held, LaidDown};
use crate::command::{Answer, Taken};
use crate::error::{Refusal, Word};
use crate::event::Event;
use crate::job::JobId;
use crate::local::Local;
use crate::replicated::Replicated;
use crate::session::{SessionId, SessionKey};

impl Local {
    /// Puts a held job back where it waited.
    pub(in crate::local) fn give_back(
        &mut self,
        session: SessionId,
        replicated: &Replicated,
        taken: Taken,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        self.check_job(session, taken)?;
        self.take_from(taken.job);
        self.hands.counters.given_back += 1;
        self.offer(replicated, replicated.job(taken.job)?, out);
        Ok(Answer::Done)
    }

    /// Like [`Local::give_back`], for a holder that will not hear of the job again: if the job is on its way and the log
    /// refuses the change, it waits again.
    pub(crate) fn leave_job(
        &mut self,
        session: SessionId,
        replicated: &Replicated,
        taken: Taken,
        out: &mut Vec<Event>,
    ) {
        let Ok(s) = self.session(session) else {
            return;
        };
        let held = self.hands.held.get(&taken.job);
        let own = held.filter(|held| (held.holder, held.attempt) == (Some(s), taken.attempt));
        match own.map(|held| held.settling) {
            Some(true) => self.forget_job(s, taken.job),
            // If the hold is over already, nothing is left to do.
            _ => drop(self.give_back(session, replicated, taken, out)),
        }
    }

    /// Gives back everything that a session has in hand, except jobs that are settling.
    pub(in crate::local) fn give_back_all(
        &mut self,
        session: SessionId,
        replicated: &Replicated,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let s = self.session(session)?;
        let jobs = self.sessions[s].jobs.iter().copied();
        let held = |job: &JobId| self.hands.held.get(job).is_some_and(|held| !held.settling);
        let jobs: Vec<JobId> = jobs.filter(held).collect();
        self.hands.counters.given_back += jobs.len() as u64;
        self.offer_all(replicated, &jobs, out);
        Ok(Answer::Done)
    }

    /// Takes jobs from whoever holds them: all wait again.
    fn offer_all(&mut self, replicated: &Replicated, jobs: &[JobId], out: &mut Vec<Event>) {
        let mut wanted = Vec::new();
        for id in jobs {
            self.take_from(*id);
            if let Ok(job) = replicated.job(*id)
                && self.stand_in_line(job)
            {
                wanted.push(job.queue);
            }
        }
        self.serve_takers(replicated, &wanted, out);
    }

    /// The node stops: nobody holds a job any more, and no death is counted. Jobs that are settling are left to the log.
    pub fn lay_down(&mut self) {
        let held = self.hands.held.iter();
        let held = held.filter(|(_, held)| !held.settling).map(|(job, _)| *job);
        for job in held.collect::<Vec<_>>() {
            self.take_from(job);
        }
    }

    /// Whether a session has a job in hand, under this attempt.
    pub(in crate::local) fn check_job(
        &mut self,
        session: SessionId,
        taken: Taken,
    ) -> Result<Answer, Refusal> {
        let s = self.acting(session)?;
        self.check_holds(s, taken).map(|()| Answer::Done)
    }

    /// A holder wants its job passed or deleted: from now on only the log's answer moves it.
    pub(in crate::local) fn settle_job(
        &mut self,
        session: SessionId,
        taken: Taken,
    ) -> Result<Answer, Refusal> {
        self.check_job(session, taken)?;
        let held = self.hands.held.get_mut(&taken.job);
        let held = held.expect("a job that is held is in the books");
        held.settling = true;
        let held_ms = self.now - held.since;
        Ok(Answer::Settling { held_ms })
    }

    /// A holder failed at its job.
    pub(in crate::local) fn fail_job(
        &mut self,
        session: SessionId,
        taken: Taken,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        self.settle_job(session, taken)?;
        let s = self.session(session)?;
        self.forget_job(s, taken.job);
        out.push(Event::Died {
            jobs: vec![(taken.job, taken.attempt)],
        });
        Ok(Answer::Done)
    }

    /// Takes a waiting job out of its line for an administrator, who changes it through the log.
    pub(in crate::local) fn reserve(
        &mut self,
        replicated: &Replicated,
        job: JobId,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let record = replicated.job(job)?;
        self.check_attempts(record.queue)?;
        let line = self.hands.lines.get_mut(&record.queue);
        if !line.is_some_and(|line| line.remove(record, record.place)) {
            return Err(Refusal::new(
                Word::Busy,
                format!(
                    "job {job} is in somebody's hands; JOB SHOW says in whose, SESSION END ends them"
                ),
            ));
        }
        let attempt = self.next_attempt(record.queue, out);
        let held = Held {
            holder: None,
            attempt,
            since: self.now,
            settling: true,
            orphan: false,
        };
        self.hands.held.insert(job, held);
        Ok(Answer::Reserved(attempt))
    }

    /// The log has refused a change of a job: it is held as before. If its holder has gone meanwhile, that is a death, which
    /// the log must know of.
    pub(in crate::local) fn withdraw_job(
        &mut self,
        replicated: &Replicated,
        job: JobId,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let held = self.hands.held.get_mut(&job);
        let Some(held) = held.filter(|held| held.settling) else {
            let why = format!("job {job} is not on its way through the log");
            return Err(Refusal::new(Word::Stale, why));
        };
        held.settling = false;
        if held.holder.is_some() {
            return Ok(Answer::Done);
        }
        if std::mem::take(&mut held.orphan) {
            held.settling = true;
            let jobs = vec![(job, held.attempt)];
            out.push(Event::Died { jobs });
            return Ok(Answer::Done);
        }
        // An administrator's job: it waits again.
        self.offer_all(replicated, &[job], out);
        Ok(Answer::Done)
    }

    /// Lets go of all that an ending session holds. The log decides on jobs that are settling; for the others it is asked to
    /// note a death.
    pub(in crate::local) fn hands_down(&mut self, s: SessionKey, out: &mut Vec<Event>) {
        let mut died = Vec::new();
        for job in std::mem::take(&mut self.sessions[s].jobs) {
            let Some(held) = self.hands.held.get_mut(&job) else {
                continue;
            };
            held.holder = None;
            held.orphan = std::mem::replace(&mut held.settling, true);
            if !held.orphan {
                died.push((job, held.attempt));
            }
        }
        if !died.is_empty() {
            out.push(Event::Died { jobs: died });
        }
    }

    /// Removes a job from its holder's books.
    pub(super) fn take_from(&mut self, job: JobId) {
        if let Some(held) = self.hands.held.remove(&job)
            && let Some(s) = held.holder
        {
            let session = &mut self.sessions[s];
            session.jobs.retain(|other| *other != job);
            if session.is_guest() {
                self.hands.laid.push(LaidDown {
                    session: session.id,
                    job,
                    attempt: held.attempt,
                });
            }
        }
    }

    /// The job continues to settle without its holder.
    fn forget_job(&mut self, s: SessionKey, job: JobId) {
        self.sessions[s].jobs.retain(|other| *other != job);
        if let Some(held) = self.hands.held.get_mut(&job) {
            held.holder = None;
        }
    }

    fn check_holds(&self, s: SessionKey, taken: Taken) -> Result<(), Refusal> {
        let Taken { job, attempt } = taken;
        let not_yours = |why: String| {
            Err(Refusal::new(
                Word::NotYours,
                format!("this session does not hold job {job}: {why}; JOB TAKE gives one"),
            ))
        };
        match self.hands.held.get(&job) {
            None => not_yours("nobody does".into()),
            Some(held) if held.attempt > attempt => Err(Refusal::new(
                Word::Stale,
                format!("attempt {attempt} at job {job} is over; another came after it"),
            )),
            Some(held) if held.attempt < attempt => {
                not_yours(format!("attempt {attempt} was never given"))
            }
            Some(held) if held.holder != Some(s) => not_yours("another does".into()),
            Some(held) if held.settling => Err(Refusal::new(
                Word::Busy,
                format!("job {job} is already on its way; wait for that answer"),
            )),
            Some(_) => Ok(()),
        }
    }
}
