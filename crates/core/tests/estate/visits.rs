//! Job commands on their way: a worker's home sends a call to the owner of the queue's shard, which carries it out for the
//! worker's session as a guest and replies on the same link. This is what the node does with commands of the wire.

use std::collections::BTreeMap;

use testigo_core::estate::{Out, Peer, Stands, Tell};
use testigo_core::{
    Answer, Change, Command, Fence, Index, JobChange, JobId, JobOutcome, Lost, Number, Origin,
    Outcome, QueueId, Refusal, Replicated, SessionId, Settled, Shard, Start, Take, Taken, Ticket,
    Word,
};

use crate::links::Letter;
use crate::workers::{Doing, Worker};
use crate::world::{Node, World};

/// What a worker wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    Take(QueueId, u64),
    Pass(Taken, QueueId),
    Delete(Taken),
    Back(Taken),
    Fail(Taken),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: u64,
    pub(crate) session: SessionId,
    pub(crate) home: Index,
    pub(crate) shard: Shard,
    pub(crate) number: Number,
    pub(crate) words: Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Taken(Taken),
    Nothing,
    Done,
    Moved,
    Refused(Word),
}

/// A call that its home waits for.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) worker: usize,
    pub(crate) at: usize,
    pub(crate) start: Start,
    pub(crate) owner: Peer,
}

/// A call at its owner.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// Another home, or a worker of this very node.
    pub(crate) from: Option<Peer>,
    pub(crate) call: Call,
    /// Waits for a job; else for the log or for reports.
    pub(crate) ticket: Option<Ticket>,
}

/// A change that a node has submitted for somebody.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) since: u64,
    pub(crate) job: Option<JobId>,
    pub(crate) visit: Option<Visit>,
    pub(crate) creator: Option<usize>,
}

/// A rule of the node around the estate that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenWork {
    /// Q: the log does not ask whether the queue has changed hands.
    LatePass,
    /// R: an owner that hears nothing for a while believes its change lost.
    GivesUp,
}

/// Everything about jobs.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) workers: Vec<Worker>,
    pub(crate) next_call: u64,
    pub(crate) calls: BTreeMap<u64, Calling>,
    pub(crate) visits: BTreeMap<(usize, u64), Visit>,
    pub(crate) pending: BTreeMap<(usize, Start, u64), Pending>,
    /// The attempts under which jobs are deleted, by submission.
    pub(crate) deleting: BTreeMap<(u64, u64, u64), Fence>,
    pub(crate) record: crate::record::Record,
    pub(crate) canon: Option<Replicated>,
    pub(crate) broken: Option<BrokenWork>,
    pub(crate) created: u64,
}

impl World {
    /// Sends a worker's words to whoever owns the queue that they are about.
    pub(crate) fn route(&mut self, worker: usize, words: Words) -> Result<bool, String> {
        let at = self.work.workers[worker].node;
        let Some(session) = self.work.workers[worker].session else {
            return Ok(false);
        };
        let node = &mut self.nodes[at];
        let replicated = &node.replicated;
        let shard = match words {
            Words::Take(queue, _) => replicated.queue(queue).map(testigo_core::Queue::shard),
            Words::Pass(taken, _)
            | Words::Delete(taken)
            | Words::Back(taken)
            | Words::Fail(taken) => node.estate.job_shard(replicated, taken.job),
        };
        let Some(shard) = shard else {
            return Ok(false);
        };
        let Some(title) = replicated.ownership().title(shard) else {
            return Ok(false);
        };
        let owner = (title.owner, title.start);
        self.work.next_call += 1;
        let record = replicated.session(session);
        let call = Call {
            call: self.work.next_call,
            session,
            home: record.map_or(Index(0), |record| record.home.index),
            shard,
            number: title.number,
            words,
        };
        if let Words::Back(taken) = words {
            node.estate.gives_up(session, taken);
        }
        let calling = Calling {
            worker,
            at,
            start: node.start,
            owner,
        };
        self.work.calls.insert(call.call, calling);
        self.work.workers[worker].call = Some(call.call);
        let node = &mut self.nodes[at];
        if owner == (node.id, node.start) {
            let visit = Visit {
                from: None,
                call,
                ticket: None,
            };
            self.visit(at, visit)?;
        } else {
            node.links.send(owner, Letter::Call(call));
            self.carry_out(at, Out::default())?;
        }
        Ok(true)
    }

    /// Carries a call out at its owner, or keeps it until that is possible.
    fn visit(&mut self, at: usize, visit: Visit) -> Result<(), String> {
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let Call {
            session,
            home,
            shard,
            number,
            words,
            ..
        } = visit.call;
        let stands = match estate.acts(self.now) {
            true => estate.call_stands(replicated, (shard, number), (session, home)),
            false => Stands::Wait,
        };
        match stands {
            Stands::Moved => return self.reply(at, &visit, Reply::Moved),
            Stands::Wait => {
                self.work.visits.insert((at, visit.call.call), visit);
                return Ok(());
            }
            Stands::Now => {}
        }
        let command = match words {
            Words::Take(queue, wait_ms) => Command::Take(Take {
                queues: vec![queue].into(),
                name: None,
                wait_ms: Some(wait_ms),
            }),
            Words::Pass(taken, _) | Words::Delete(taken) | Words::Fail(taken) => {
                Command::Settle(taken)
            }
            Words::Back(taken) => Command::GiveBack(taken),
        };
        let mut out = Out::default();
        let now = self.now;
        let answer = match visit.from {
            Some(home) => estate.ask_as_guest(now, replicated, home, session, &command, &mut out),
            None => estate.ask(now, replicated, session, &command, &mut out),
        };
        // What the estate says goes first.
        self.carry_out(at, out)?;
        match answer {
            Ok(Answer::Waiting(ticket)) => {
                let visit = Visit {
                    ticket: Some(ticket),
                    ..visit
                };
                self.work.visits.insert((at, visit.call.call), visit);
                Ok(())
            }
            Ok(Answer::Settled(Settled::Taken(taken))) => {
                self.reply(at, &visit, Reply::Taken(taken))
            }
            Ok(Answer::Settling { held_ms }) => {
                self.settle(at, visit, held_ms);
                Ok(())
            }
            Ok(Answer::Done) => self.reply(at, &visit, Reply::Done),
            Ok(_) => self.reply(at, &visit, Reply::Nothing),
            Err(refusal) => self.reply(at, &visit, Reply::Refused(refusal.word)),
        }
    }

    /// What a job settles for goes through the log.
    fn settle(&mut self, at: usize, visit: Visit, held_ms: u64) {
        let by = || "worker".into();
        let replicated = &self.nodes[at].replicated;
        let (taken, change) = match visit.call.words {
            Words::Pass(taken, queue) => {
                let pass = JobChange::Pass {
                    job: taken.job,
                    attempt: taken.attempt,
                    number: replicated.job_number(taken.job),
                    queue,
                    body: None,
                    held_ms,
                    by: by(),
                };
                (taken, pass)
            }
            Words::Delete(taken) => {
                let (job, number) = (taken.job, replicated.job_number(taken.job));
                (taken, JobChange::Delete { job, number })
            }
            Words::Fail(taken) => {
                let lost = Lost {
                    job: taken.job,
                    attempt: taken.attempt,
                    number: replicated.job_number(taken.job),
                    held_ms,
                };
                let (jobs, by) = (vec![lost], by());
                (taken, JobChange::Lose { jobs, by })
            }
            Words::Take(..) | Words::Back(_) => unreachable!("they settle nothing"),
        };
        let deletes = matches!(change, JobChange::Delete { .. });
        let pending = Pending {
            since: self.now,
            job: Some(taken.job),
            visit: Some(visit),
            creator: None,
        };
        let sequence = self.submit_jobs(at, change, pending);
        let node = &self.nodes[at];
        if deletes {
            let key = (node.id.0, node.start.0, sequence);
            self.work.deleting.insert(key, taken.attempt);
        }
    }

    pub(crate) fn submit_jobs(&mut self, at: usize, change: JobChange, pending: Pending) -> u64 {
        let node = &mut self.nodes[at];
        node.sequence += 1;
        let sequence = node.sequence;
        let change = Change::Jobs(vec![change]);
        node.submitted.push_back((sequence, change));
        node.sent_at = 0;
        self.work
            .pending
            .insert((at, self.nodes[at].start, sequence), pending);
        self.resubmit(at);
        sequence
    }

    fn reply(&mut self, at: usize, visit: &Visit, reply: Reply) -> Result<(), String> {
        let (call, session) = (visit.call.call, visit.call.session);
        let Some(home) = visit.from else {
            return self.replied(at, call, session, reply);
        };
        let letter = Letter::Reply(call, session, reply);
        self.nodes[at].links.send(home, letter);
        self.carry_out(at, Out::default())
    }

    /// A letter of another member that is not the estate's.
    pub(crate) fn hear_letter(
        &mut self,
        at: usize,
        from: Peer,
        letter: Letter,
    ) -> Result<(), String> {
        match letter {
            Letter::Estate(_) => unreachable!("the estate takes it"),
            Letter::Call(call) => {
                let visit = Visit {
                    from: Some(from),
                    call,
                    ticket: None,
                };
                self.visit(at, visit)
            }
            Letter::Reply(call, session, reply) => self.replied(at, call, session, reply),
            Letter::CallOff(call) => self.call_off_visit(at, call),
        }
    }

    fn call_off_visit(&mut self, at: usize, call: u64) -> Result<(), String> {
        let Some(visit) = self.work.visits.remove(&(at, call)) else {
            return Ok(());
        };
        let (Some(ticket), session) = (visit.ticket, visit.call.session) else {
            return Ok(());
        };
        let mut out = Out::default();
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let (now, cancel) = (self.now, Command::Cancel { ticket });
        let _ = match visit.from {
            Some(home) => estate.ask_as_guest(now, replicated, home, session, &cancel, &mut out),
            None => estate.ask(now, replicated, session, &cancel, &mut out),
        };
        self.carry_out(at, out)
    }

    /// A worker does not wait for its call any more.
    pub(crate) fn call_off(&mut self, worker: usize) -> Result<(), String> {
        let Some(call) = self.work.workers[worker].call.take() else {
            return Ok(());
        };
        let Some(calling) = self.work.calls.remove(&call) else {
            return Ok(());
        };
        let at = calling.at;
        let node = &mut self.nodes[at];
        if calling.owner == (node.id, node.start) {
            return self.call_off_visit(at, call);
        }
        node.links.send(calling.owner, Letter::CallOff(call));
        self.carry_out(at, Out::default())
    }

    /// A reply at the worker's home.
    fn replied(
        &mut self,
        at: usize,
        call: u64,
        session: SessionId,
        reply: Reply,
    ) -> Result<(), String> {
        let start = self.nodes[at].start;
        let waits = |calling: &Calling| (calling.at, calling.start) == (at, start);
        if self.work.calls.get(&call).is_some_and(waits) {
            let calling = self.work.calls.remove(&call).expect("it was found");
            return self.worker_hears(calling.worker, reply);
        }
        // Nobody waits: what came of it is given back.
        if let Reply::Taken(taken) = reply {
            let mut out = Out::default();
            let Node {
                estate, replicated, ..
            } = &mut self.nodes[at];
            let back = Command::GiveBack(taken);
            let _ = estate.ask(self.now, replicated, session, &back, &mut out);
            self.carry_out(at, out)?;
        }
        Ok(())
    }

    /// What an estate tells of takes and deaths. False if it is for somebody else.
    pub(crate) fn hear_of_work(&mut self, at: usize, tell: &Tell) -> Result<bool, String> {
        let found = |world: &World, of: &Ticket| {
            let mut visits = world.work.visits.iter();
            let here = visits.find(|((node, _), visit)| *node == at && visit.ticket == Some(*of));
            here.map(|(key, _)| *key)
        };
        match tell {
            Tell::Answered { ticket, answer, .. } => {
                let Some(key) = found(self, ticket) else {
                    return self.worker_resumed(at, tell);
                };
                let visit = self.work.visits.remove(&key).expect("it was found");
                let reply = match answer {
                    Ok(Answer::Settled(Settled::Taken(taken))) => Reply::Taken(*taken),
                    _ => Reply::Nothing,
                };
                self.reply(at, &visit, reply)?;
                Ok(true)
            }
            Tell::Moved { ticket, .. } => {
                if let Some(key) = found(self, ticket) {
                    let visit = self.work.visits.remove(&key).expect("it was found");
                    self.reply(at, &visit, Reply::Moved)?;
                }
                Ok(true)
            }
            Tell::Died { jobs } => {
                let (jobs, by) = (jobs.clone(), "worker".into());
                let pending = Pending {
                    since: self.now,
                    job: None,
                    visit: None,
                    creator: None,
                };
                self.submit_jobs(at, JobChange::Lose { jobs, by }, pending);
                Ok(true)
            }
            Tell::Suspect { session } | Tell::Closed { session } => {
                self.worker_loses(at, *session, matches!(tell, Tell::Suspect { .. }));
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// The log has answered what a node has submitted.
    pub(crate) fn log_answers(
        &mut self,
        at: usize,
        sequence: u64,
        result: &Result<Outcome, Refusal>,
    ) -> Result<(), String> {
        let start = self.nodes[at].start;
        let Some(pending) = self.work.pending.remove(&(at, start, sequence)) else {
            return Ok(());
        };
        if let (Some(creator), Ok(Outcome::Jobs(outcomes))) = (pending.creator, result)
            && let [JobOutcome::Created { job }] = outcomes[..]
        {
            self.work.record.created(job);
            self.work.workers[creator].due = 0;
        }
        let Some(visit) = pending.visit else {
            return Ok(());
        };
        match result {
            Ok(_) => self.reply(at, &visit, Reply::Done),
            Err(refusal) => {
                self.withdraw(at, pending.job)?;
                let node = &self.nodes[at];
                let title = node.replicated.ownership().title(visit.call.shard);
                let owner = title.map(|title| (title.owner, title.start));
                let moved = refusal.word == Word::Stale && owner != Some((node.id, node.start));
                let reply = match moved {
                    true => Reply::Moved,
                    false => Reply::Refused(refusal.word),
                };
                self.reply(at, &visit, reply)
            }
        }
    }

    fn withdraw(&mut self, at: usize, job: Option<JobId>) -> Result<(), String> {
        let Some(job) = job else {
            return Ok(());
        };
        let mut out = Out::default();
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let (nobody, command) = (SessionId::opened(0), Command::Withdraw { job });
        let _ = estate.ask(self.now, replicated, nobody, &command, &mut out);
        self.carry_out(at, out)
    }

    /// Calls that waited are tried again; and what a broken node believes lost is given up.
    pub(crate) fn tend_visits(&mut self, at: usize) -> Result<(), String> {
        let own = self.work.visits.range((at, 0)..=(at, u64::MAX));
        let parked = own.filter(|(_, visit)| visit.ticket.is_none());
        let parked: Vec<(usize, u64)> = parked.map(|(key, _)| *key).collect();
        for key in parked {
            if let Some(visit) = self.work.visits.remove(&key) {
                self.visit(at, visit)?;
            }
        }
        if self.work.broken == Some(BrokenWork::GivesUp) {
            let late = self.work.pending.iter().filter(|((node, _, _), pending)| {
                *node == at && pending.visit.is_some() && pending.since + 1_000 < self.now
            });
            let late: Vec<_> = late.map(|(key, _)| *key).collect();
            for key in late {
                let pending = self.work.pending.remove(&key).expect("it was found");
                self.withdraw(at, pending.job)?;
                let visit = pending.visit.expect("it was looked for");
                self.reply(at, &visit, Reply::Refused(Word::Unavailable))?;
            }
        }
        Ok(())
    }

    /// A view was applied at a node: what it had asked of owners that are out has no answer, and homes that are out ask
    /// nothing any more.
    pub(crate) fn visits_follow(&mut self, at: usize) -> Result<(), String> {
        let node = &self.nodes[at];
        let view = node.replicated.view().clone();
        let start = node.start;
        let out = |peer: Peer| !view.has(peer.0, peer.1);
        let lost = self.work.calls.iter().filter(|(_, calling)| {
            (calling.at, calling.start) == (at, start) && out(calling.owner)
        });
        let lost: Vec<u64> = lost.map(|(call, _)| *call).collect();
        self.work
            .visits
            .retain(|(node, _), visit| *node != at || !visit.from.is_some_and(out));
        for call in lost {
            let calling = self.work.calls.remove(&call).expect("it was found");
            self.worker_left_alone(calling.worker);
        }
        Ok(())
    }

    /// A node starts again and has forgotten everything.
    pub(crate) fn forget_visits(&mut self, at: usize) {
        self.work.visits.retain(|(node, _), _| *node != at);
        self.work.pending.retain(|(node, _, _), _| *node != at);
        self.work.calls.retain(|_, calling| calling.at != at);
        for worker in 0..self.work.workers.len() {
            if self.work.workers[worker].node == at {
                self.worker_cut_off(worker);
            }
        }
    }

    /// The log as it will be everywhere, and what it means for jobs.
    pub(crate) fn canonical(
        &mut self,
        origin: Origin,
        term: u64,
        change: &Change,
    ) -> Result<(), String> {
        let Some(mut canon) = self.work.canon.take() else {
            return Ok(());
        };
        let change = self.doctored(&canon, change);
        let stamp = testigo_core::Stamp {
            at: 0,
            origin: Some(origin),
            term,
        };
        let applied = canon.apply(stamp, &change);
        self.work.canon = Some(canon);
        let Ok(Outcome::Jobs(outcomes)) = applied.map(testigo_core::Applied::into_outcome) else {
            return Ok(());
        };
        let key = (origin.node.0, origin.start.0, origin.sequence);
        let deleted = self.work.deleting.get(&key).copied();
        self.work.record.logged(&outcomes, deleted)
    }

    /// A log that does not ask what a change rests on.
    pub(crate) fn doctored(&self, replicated: &Replicated, change: &Change) -> Change {
        let mut change = change.clone();
        let broken = self.work.broken == Some(BrokenWork::LatePass);
        if let (true, Change::Jobs(changes)) = (broken, &mut change) {
            for change in changes {
                if let JobChange::Pass { job, number, .. } | JobChange::Delete { job, number } =
                    change
                {
                    *number = replicated.job_number(*job);
                }
            }
        }
        change
    }
}

impl Work {
    /// Whether a worker may still have to do with a job.
    pub(crate) fn knows(&self, session: SessionId, job: JobId) -> bool {
        let mut workers = self.workers.iter();
        workers.any(|worker| {
            worker.session == Some(session)
                && match worker.doing {
                    Doing::Holding(taken) => taken.job == job,
                    Doing::Settling { words, .. } => match words {
                        Words::Pass(taken, _)
                        | Words::Delete(taken)
                        | Words::Back(taken)
                        | Words::Fail(taken) => taken.job == job,
                        Words::Take(..) => false,
                    },
                    _ => false,
                }
        })
    }
}
