//! Workers: each has a session at a node, creates jobs, takes one from some queue wherever that is owned, keeps it for a
//! while, and passes it on, deletes it, gives it back, fails at it, or goes away with it.

use testigo_core::estate::{Out, Tell};
use testigo_core::{
    Answer, Body, Change, Command, JobChange, Name, QueueId, QueueRule, Replicated, Role, Scheme,
    SessionId, Shard, Taken, Ticket, Word,
};

use crate::visits::{Pending, Reply, Words};
use crate::world::{CALM_MS, Event, FAULTS_MS, Node, TTL_MS, World};

const FLOW: &str = "shop";

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) node: usize,
    pub(crate) session: Option<SessionId>,
    opened: bool,
    pub(crate) doing: Doing,
    pub(crate) call: Option<u64>,
    deadline: u64,
    pub(crate) due: u64,
    /// When it last was told of a job.
    served: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Nothing,
    Opening,
    Taking,
    Holding(Taken),
    Settling {
        words: Words,
        /// Whether it may have been done without an answer.
        unsure: bool,
        /// To be sent, again or for the first time.
        send: bool,
    },
    Resuming {
        had: Had,
        ticket: Option<Ticket>,
    },
}

/// What a worker had to do with a job when it lost its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Had {
    Nothing,
    InHand(Taken),
    /// It does not know what came of this.
    Wanted(Words),
}

impl Had {
    fn taken(self) -> Option<Taken> {
        match self {
            Had::Nothing | Had::Wanted(Words::Take(..)) => None,
            Had::InHand(taken)
            | Had::Wanted(
                Words::Pass(taken, _)
                | Words::Delete(taken)
                | Words::Back(taken)
                | Words::Fail(taken),
            ) => Some(taken),
        }
    }

    fn doing(self) -> Doing {
        match self {
            Had::Nothing => Doing::Nothing,
            Had::InHand(taken) => Doing::Holding(taken),
            Had::Wanted(words) => Doing::Settling {
                words,
                unsure: true,
                send: true,
            },
        }
    }
}

/// The flow that the workers work in.
pub(crate) fn flow(queues: usize) -> Change {
    let name = |text: &str| Name::new(text).expect("a good name");
    let mut scheme = Scheme::default();
    let names = (0..queues).map(|at| name(&format!("q{at}")));
    let names: std::collections::BTreeSet<Name> = names.collect();
    for queue in &names {
        scheme.queues.insert(queue.clone(), QueueRule::default());
    }
    let role = Role {
        creates: names.clone(),
        takes: names.clone(),
        passes: names.clone(),
        deletes: names,
        ..Role::default()
    };
    scheme.processes.insert(name("worker"), role);
    Change::ApplyFlow {
        flow: name(FLOW),
        text: "".into(),
        scheme: Box::new(scheme),
    }
}

pub(crate) fn queue_shard(at: usize) -> Shard {
    Shard::of_queue(FLOW, &format!("q{at}"))
}

impl Worker {
    pub(crate) fn new(node: usize, opened: bool) -> Worker {
        Worker {
            node,
            session: None,
            opened,
            doing: Doing::Nothing,
            call: None,
            deadline: 0,
            due: 0,
            served: 0,
        }
    }

    fn had(&self) -> Had {
        match self.doing {
            Doing::Holding(taken) => Had::InHand(taken),
            Doing::Settling { words, .. } => Had::Wanted(words),
            Doing::Resuming { had, .. } => had,
            _ => Had::Nothing,
        }
    }
}

impl World {
    /// The workers of this run, and their flow.
    pub(crate) fn hire(&mut self, replicated: Replicated) {
        if self.plan.workers == 0 {
            return;
        }
        self.work.canon = Some(replicated);
        self.submit(0, flow(self.plan.queues));
        for worker in 0..self.plan.workers {
            let node = self.random.below(self.nodes.len() as u64) as usize;
            let opened = self.random.one_in(2);
            self.work.workers.push(Worker::new(node, opened));
            self.after(500 + worker as u64, Event::Worker(worker));
        }
    }

    fn any_queue(&mut self, at: usize) -> Option<QueueId> {
        let queue = self.random.below(self.plan.queues as u64);
        let replicated = &self.nodes[at].replicated;
        let text = format!("{FLOW}/q{queue}");
        replicated.queue_named(&text, None).ok()
    }

    /// A worker does what it wants next.
    pub(crate) fn work(&mut self, which: usize) -> Result<(), String> {
        let step = self.random.between(20, 300);
        self.after(step, Event::Worker(which));
        let late = {
            let worker = &self.work.workers[which];
            let opened = worker.session.filter(|session| !session.is_implicit());
            opened.is_some() && worker.deadline <= self.now && worker.doing != Doing::Opening
        };
        if late {
            self.call_off(which)?;
            self.work.workers[which].session = None;
            self.work.workers[which].doing = Doing::Nothing;
        }
        if self.now < self.work.workers[which].due {
            return Ok(());
        }
        let at = self.work.workers[which].node;
        if !self.works(at) {
            if self.work.workers[which].opened {
                self.worker_cut_off(which);
            } else {
                self.leave_job(which)?;
            }
            return Ok(());
        }
        let Some(session) = self.work.workers[which].session else {
            return self.worker_connects(which);
        };
        self.renew(which, session)?;
        match self.work.workers[which].doing {
            Doing::Nothing if self.random.one_in(2) => self.create(which),
            Doing::Nothing => {
                let Some(queue) = self.any_queue(at) else {
                    return Ok(());
                };
                let wait_ms = self.random.between(0, 3_000);
                self.work.workers[which].doing = Doing::Taking;
                if !self.route(which, Words::Take(queue, wait_ms))? {
                    self.work.workers[which].doing = Doing::Nothing;
                }
                Ok(())
            }
            Doing::Opening => {
                if self.nodes[at].replicated.session(session).is_some() {
                    self.work.workers[which].doing = Doing::Nothing;
                    self.work.workers[which].deadline = self.now + TTL_MS;
                }
                Ok(())
            }
            Doing::Taking => {
                if self.random.one_in(12) {
                    self.call_off(which)?;
                    self.work.workers[which].doing = Doing::Nothing;
                }
                Ok(())
            }
            Doing::Holding(taken) => self.settle_or_leave(which, taken),
            Doing::Settling {
                words,
                unsure,
                send: true,
            } => {
                self.work.workers[which].doing = Doing::Settling {
                    words,
                    unsure,
                    send: false,
                };
                if !self.route(which, words)? {
                    // The job is gone: it was done, or another has done it.
                    self.work.workers[which].doing = Doing::Nothing;
                }
                Ok(())
            }
            Doing::Settling { .. } => Ok(()),
            Doing::Resuming { had, .. } => self.worker_resumes(which, session, had),
        }
    }

    fn settle_or_leave(&mut self, which: usize, taken: Taken) -> Result<(), String> {
        let at = self.work.workers[which].node;
        let words = match self.random.below(12) {
            0 | 1 => return Ok(()),
            2 if self.now < FAULTS_MS => return self.leave_job(which),
            3 => Words::Back(taken),
            4 => Words::Fail(taken),
            5 | 6 => Words::Delete(taken),
            _ => match self.any_queue(at) {
                Some(queue) => Words::Pass(taken, queue),
                None => return Ok(()),
            },
        };
        self.work.workers[which].doing = Doing::Settling {
            words,
            unsure: false,
            send: true,
        };
        Ok(())
    }

    /// It goes away, with whatever it has.
    fn leave_job(&mut self, which: usize) -> Result<(), String> {
        self.call_off(which)?;
        let worker = &mut self.work.workers[which];
        let session = worker.session.take();
        worker.doing = Doing::Nothing;
        let at = worker.node;
        let implicit = session.filter(|session| session.is_implicit());
        self.nodes[at].hung_up.extend(implicit);
        self.work.workers[which].node = self.random.below(self.nodes.len() as u64) as usize;
        Ok(())
    }

    fn create(&mut self, which: usize) -> Result<(), String> {
        let at = self.work.workers[which].node;
        let jobs = self.nodes[at].replicated.jobs().count();
        let Some(queue) = self.any_queue(at).filter(|_| jobs < 10) else {
            return Ok(());
        };
        if !self.nodes[at].estate.acts(self.now) {
            return Ok(());
        }
        self.work.created += 1;
        let name = Name::new(&format!("job{}", self.work.created)).expect("a good name");
        let create = JobChange::Create {
            queue,
            name: Some(name),
            class: 0,
            body: Body::from(&b""[..]),
            by: "worker".into(),
        };
        let pending = Pending {
            since: self.now,
            job: None,
            visit: None,
            creator: Some(which),
        };
        self.submit_jobs(at, create, pending);
        Ok(())
    }

    fn renew(&mut self, which: usize, session: SessionId) -> Result<(), String> {
        let at = self.work.workers[which].node;
        if matches!(
            self.work.workers[which].doing,
            Doing::Opening | Doing::Resuming { .. }
        ) {
            return Ok(());
        }
        let mut out = Out::default();
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let renewed = estate.ask(self.now, replicated, session, &Command::Renew, &mut out);
        if renewed.is_ok() {
            self.work.workers[which].deadline = self.now + TTL_MS;
        }
        self.carry_out(at, out)
    }

    fn worker_connects(&mut self, which: usize) -> Result<(), String> {
        let at = self.work.workers[which].node;
        if !self.nodes[at].estate.acts(self.now) {
            self.work.workers[which].node = self.random.below(self.nodes.len() as u64) as usize;
            return Ok(());
        }
        if self.work.workers[which].opened {
            self.next_session += 1;
            let session = SessionId::opened(self.next_session);
            self.work.workers[which].session = Some(session);
            self.work.workers[which].doing = Doing::Opening;
            self.work.workers[which].deadline = self.now + 10 * TTL_MS;
            let open = Change::OpenSession {
                session,
                ttl_ms: TTL_MS,
                label: None,
                user: None,
            };
            self.submit(at, open);
            return Ok(());
        }
        self.nodes[at].connections += 1;
        let node = &mut self.nodes[at];
        let session = SessionId::of_connection(node.id, node.start, node.connections);
        let mut out = Out::default();
        let connected = node.estate.ask(
            self.now,
            &node.replicated,
            session,
            &Command::Connect,
            &mut out,
        );
        self.work.workers[which].session = connected.is_ok().then_some(session);
        self.carry_out(at, out)
    }

    /// Takes its session up again elsewhere, and gives back what it does not know of.
    fn worker_resumes(&mut self, which: usize, session: SessionId, had: Had) -> Result<(), String> {
        let at = self.work.workers[which].node;
        let mut out = Out::default();
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let ticket = estate.resume(self.now, replicated, session, &[], None, &mut out);
        self.carry_out(at, out)?;
        let worker = &mut self.work.workers[which];
        worker.doing = Doing::Resuming { had, ticket };
        match ticket {
            Some(_) => worker.due = self.now + 3_000,
            None => worker.node = self.random.below(self.nodes.len() as u64) as usize,
        }
        Ok(())
    }

    /// Whether an answer was a worker's that takes its session up again.
    pub(crate) fn worker_resumed(&mut self, at: usize, tell: &Tell) -> Result<bool, String> {
        let Tell::Answered {
            session,
            ticket,
            answer,
        } = tell
        else {
            return Ok(false);
        };
        let mut workers = self.work.workers.iter();
        let which = workers.position(|worker| {
            worker.node == at
                && worker.session == Some(*session)
                && matches!(worker.doing, Doing::Resuming { ticket: own, .. } if own == Some(*ticket))
        });
        let Some(which) = which else {
            return Ok(false);
        };
        let had = self.work.workers[which].had();
        if answer.is_err() || !matches!(answer, Ok(Answer::Resumed(_))) {
            return Ok(true);
        }
        let worker = &mut self.work.workers[which];
        worker.deadline = self.now + TTL_MS;
        worker.due = 0;
        worker.doing = had.doing();
        let mut out = Out::default();
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        for taken in estate.jobs_in_hand(*session) {
            if Some(taken) != had.taken() {
                let back = Command::GiveBack(taken);
                let _ = estate.ask(self.now, replicated, *session, &back, &mut out);
            }
        }
        self.carry_out(at, out)?;
        Ok(true)
    }

    /// The worker's node has gone away, or does not act.
    pub(crate) fn worker_cut_off(&mut self, which: usize) {
        let call = self.work.workers[which].call.take();
        if let Some(call) = call {
            self.work.calls.remove(&call);
        }
        let worker = &mut self.work.workers[which];
        let had = worker.had();
        let opened = worker.opened && worker.session.is_some() && worker.doing != Doing::Opening;
        worker.doing = match opened {
            true => Doing::Resuming { had, ticket: None },
            false => Doing::Nothing,
        };
        if !opened {
            worker.session = None;
        }
        worker.due = self.now + 200;
        worker.node = self.random.below(self.nodes.len() as u64) as usize;
    }

    pub(crate) fn worker_loses(&mut self, at: usize, session: SessionId, suspect: bool) {
        let mut workers = self.work.workers.iter();
        let which = workers.position(|worker| worker.node == at && worker.session == Some(session));
        let Some(which) = which else {
            return;
        };
        if matches!(self.work.workers[which].doing, Doing::Resuming { .. }) && !suspect {
            return;
        }
        if !suspect {
            self.work.workers[which].session = None;
        }
        self.worker_cut_off(which);
    }

    /// The owner that it asked is out.
    pub(crate) fn worker_left_alone(&mut self, which: usize) {
        let worker = &mut self.work.workers[which];
        worker.call = None;
        worker.doing = match worker.doing {
            Doing::Settling { words, .. } => Doing::Settling {
                words,
                unsure: true,
                send: true,
            },
            Doing::Taking => Doing::Nothing,
            other => other,
        };
    }

    /// The reply to its call.
    pub(crate) fn worker_hears(&mut self, which: usize, reply: Reply) -> Result<(), String> {
        let at = self.work.workers[which].node;
        self.work.workers[which].call = None;
        let Some(session) = self.work.workers[which].session else {
            return Ok(());
        };
        let acts = self.nodes[at].estate.acts(self.now);
        match (self.work.workers[which].doing, reply) {
            (Doing::Taking, Reply::Taken(taken)) => {
                let tells = acts && self.nodes[at].estate.tell_take(session, taken);
                self.work.workers[which].doing = Doing::Nothing;
                if tells {
                    self.work.record.told(self.now, taken)?;
                    self.work.workers[which].doing = Doing::Holding(taken);
                    self.work.workers[which].served = self.now;
                    let job = self.nodes[at].replicated.job(taken.job).ok();
                    if let Some(job) = job {
                        self.granted
                            .insert(format!("queue{}", job.queue.0), self.now);
                    }
                }
            }
            (Doing::Taking, _) => self.work.workers[which].doing = Doing::Nothing,
            (Doing::Settling { words, .. }, Reply::Done) => {
                self.work.record.answered(words, true);
                self.work.workers[which].doing = Doing::Nothing;
            }
            (
                Doing::Settling { words, unsure, .. },
                Reply::Moved | Reply::Refused(Word::Unavailable),
            ) if self.work.broken.is_none() || reply == Reply::Moved => {
                self.work.workers[which].doing = Doing::Settling {
                    words,
                    unsure,
                    send: true,
                };
            }
            (Doing::Settling { words, unsure, .. }, Reply::Refused(_)) => {
                if !unsure {
                    self.work.record.answered(words, false);
                }
                self.work.workers[which].doing = Doing::Nothing;
                // It is believed to have it still, and does not want it.
                let mut out = Out::default();
                let Node {
                    estate, replicated, ..
                } = &mut self.nodes[at];
                for taken in estate.jobs_in_hand(session) {
                    let back = Command::GiveBack(taken);
                    let _ = estate.ask(self.now, replicated, session, &back, &mut out);
                }
                self.carry_out(at, out)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// In the end nothing is lost, nothing is stuck, and everybody was served.
    pub(crate) fn judge_work(&self) -> Result<(), String> {
        let Some(canon) = &self.work.canon else {
            return Ok(());
        };
        self.work.record.judge(canon)?;
        for (at, worker) in self.work.workers.iter().enumerate() {
            if worker.served < FAULTS_MS {
                return Err(format!(
                    "worker {at} was not served after the faults: {worker:?}"
                ));
            }
        }
        for job in canon.jobs() {
            let queue = canon.queue(job.queue).ok_or("a job lies in a queue")?;
            let title = canon.ownership().title(queue.shard());
            let title = title.ok_or("a queue has an owner")?;
            let owner = self.nodes.iter().find(|node| node.id == title.owner);
            let owner = owner.ok_or("an owner is a node")?;
            let Some(held) = owner.estate.local().held_job(job.id) else {
                continue;
            };
            let known = held
                .session
                .is_none_or(|session| self.work.knows(session, job.id));
            if held.since + CALM_MS / 2 < self.now && !(known && held.session.is_some()) {
                return Err(format!("job {} is stuck: {held:?}", job.id));
            }
        }
        Ok(())
    }
}
