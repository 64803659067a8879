//! A node without sockets or disk: both halves, a log that is a vector, and a crash that forgets all but the log.

use std::collections::VecDeque;

use testigo_core::*;

use crate::door::Door;

pub(crate) struct Stage {
    pub(crate) door: Door,
    pub(crate) replicated: Replicated,
    pub(crate) local: Local,
    pub(crate) now: u64,
    pub(crate) events: Vec<Event>,
    log: Vec<Change>,
    node: NodeId,
    start: Start,
    /// Submitted and not yet durable, with the jobs that settle by it.
    pub(crate) queued: VecDeque<(Change, Vec<JobId>)>,
}

pub(crate) fn word(result: Result<impl std::fmt::Debug, Refusal>) -> Word {
    result.expect_err("refused").word
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn names(texts: &[&str]) -> std::collections::BTreeSet<Name> {
    texts.iter().map(|text| name(text)).collect()
}

/// `intake -> [orders] -> price -> [priced] -> bill`, with a reject queue.
pub(crate) fn scheme(orders: QueueRule) -> Scheme {
    let mut scheme = Scheme::default();
    scheme.queues.insert(name("orders"), orders);
    for queue in ["priced", "rejected"] {
        scheme.queues.insert(name(queue), QueueRule::default());
    }
    let role = |creates: &[&str], takes: &[&str], passes: &[&str], deletes: &[&str]| Role {
        creates: names(creates),
        takes: names(takes),
        passes: names(passes),
        deletes: names(deletes),
        ..Role::default()
    };
    let roles = [
        ("intake", role(&["orders"], &[], &["orders"], &[])),
        ("price", role(&[], &["orders"], &["priced"], &[])),
        ("bill", role(&[], &["priced"], &[], &["priced"])),
    ];
    scheme
        .processes
        .extend(roles.map(|(process, role)| (name(process), role)));
    scheme
}

pub(crate) fn rejecting(retries: u32) -> QueueRule {
    QueueRule {
        retries,
        reject: Some(name("rejected")),
        ..QueueRule::default()
    }
}

impl Stage {
    pub(crate) fn new(orders: QueueRule) -> Stage {
        Stage::of(NodeId(1), orders)
    }

    /// The stage of another node, with a log of its own.
    pub(crate) fn of(node: NodeId, orders: QueueRule) -> Stage {
        let apply = Change::ApplyFlow {
            flow: name("shop"),
            text: "".into(),
            scheme: Box::new(scheme(orders)),
        };
        let mut stage = Stage::over(node, Start(1), Vec::new());
        stage.change(apply).unwrap();
        stage
    }

    fn over(node: NodeId, start: Start, log: Vec<Change>) -> Stage {
        let mut replicated = Replicated::new(Limits::default());
        for change in &log {
            let _ = replicated.apply(0, change);
        }
        let view = replicated.view_alone(node, start, 0);
        let _ = replicated.apply(0, &view).unwrap();
        let mut log = log;
        log.push(view);
        Stage {
            door: Door::default(),
            local: Local::start(0, Limits::default(), 1, &replicated, None),
            replicated,
            now: 0,
            events: Vec::new(),
            log,
            node,
            start,
            queued: VecDeque::new(),
        }
    }

    /// The title that a queue is owned by.
    pub(crate) fn title(&self, queue: &str) -> (Shard, Title) {
        let queue = self.replicated.queue(self.queue(queue)).unwrap();
        let title = self.replicated.ownership().title(queue.shard());
        (queue.shard(), title.unwrap())
    }

    /// The owner of a queue hands its shard to a start of a node.
    pub(crate) fn hand_over(
        &mut self,
        queue: &str,
        taker: NodeId,
        start: Start,
    ) -> Result<Outcome, Refusal> {
        let (shard, title) = self.title(queue);
        self.change(Change::Titles {
            shards: vec![Span::of(shard, title.number)],
            taker,
            start,
        })
    }

    /// The next start of the node, as the log sees it.
    pub(crate) fn next_view(&self) -> Change {
        let start = Start(self.start.0 + 1);
        self.replicated.view_alone(self.node, start, 0)
    }

    /// The process is killed: of what was submitted the first so many are durable all the same.
    pub(crate) fn crash(&mut self, durable: usize) {
        let mut log = std::mem::take(&mut self.log);
        log.extend(
            self.queued
                .drain(..)
                .take(durable)
                .map(|(change, _)| change),
        );
        let door = std::mem::take(&mut self.door);
        *self = Stage::over(self.node, Start(self.start.0 + 1), log);
        self.door = door;
    }

    /// As a crash, but by way of a snapshot's bytes.
    pub(crate) fn restart_from_image(&mut self) {
        let bytes = postcard::to_allocvec(self.replicated.records()).unwrap();
        let records: Records = postcard::from_bytes(&bytes).unwrap();
        let mut replicated = Replicated::restore(records);
        let view = self.next_view();
        let _ = replicated.apply(0, &view).unwrap();
        self.log.push(view);
        self.start.0 += 1;
        self.queued.clear();
        self.local = Local::start(0, Limits::default(), 1, &replicated, None);
        self.replicated = replicated;
        self.events.clear();
    }

    pub(crate) fn session(&mut self, number: u64) -> SessionId {
        let id = SessionId::implicit(number);
        self.ask(id, &Command::Connect).unwrap();
        id
    }

    pub(crate) fn ask(
        &mut self,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        let halves = (&mut self.local, &self.replicated);
        let (now, events) = (self.now, &mut self.events);
        self.door.apply(halves, now, session, command, events)
    }

    pub(crate) fn queue(&self, queue: &str) -> QueueId {
        self.replicated.queue_named(queue, Some("shop")).unwrap()
    }

    /// Submits and makes durable at once.
    pub(crate) fn change(&mut self, change: Change) -> Result<Outcome, Refusal> {
        self.queued.push_back((change, Vec::new()));
        let mut last = None;
        while !self.queued.is_empty() {
            last = Some(self.flush_one());
        }
        last.expect("something was queued")
    }

    /// The oldest submission becomes durable and is applied.
    pub(crate) fn flush_one(&mut self) -> Result<Outcome, Refusal> {
        let (change, settling) = self.queued.pop_front().expect("something is queued");
        self.log.push(change.clone());
        let applied = self.replicated.apply(self.now, &change);
        match applied {
            Ok(applied) => {
                self.local
                    .follow(self.now, &self.replicated, &applied, &mut self.events);
                self.queue_deaths();
                Ok(applied.outcome().clone())
            }
            Err(refusal) => {
                for job in settling {
                    let _ = self.ask(SessionId::implicit(0), &Command::Withdraw { job });
                }
                self.queue_deaths();
                Err(refusal)
            }
        }
    }

    /// What the local half asks the log for.
    pub(crate) fn queue_deaths(&mut self) {
        for event in &self.events {
            if let Event::Died { jobs } = event {
                let jobs = jobs.iter().map(|(job, attempt)| Lost {
                    job: *job,
                    attempt: *attempt,
                    number: self.replicated.job_number(*job),
                    held_ms: 7,
                });
                let lose = JobChange::Lose {
                    jobs: jobs.collect(),
                    by: "test".into(),
                };
                self.queued
                    .push_back((Change::Jobs(vec![lose]), Vec::new()));
            }
        }
        self.events
            .retain(|event| !matches!(event, Event::Died { .. }));
    }

    pub(crate) fn create_change(&self, queue: &str, job: &str) -> Change {
        Change::Jobs(vec![JobChange::Create {
            queue: self.queue(queue),
            name: Some(name(job)),
            class: 1,
            body: Body::from(job.as_bytes()),
            by: "test".into(),
        }])
    }

    pub(crate) fn create(&mut self, queue: &str, job: &str) -> Result<JobId, Refusal> {
        let change = self.create_change(queue, job);
        match self.change(change)? {
            Outcome::Jobs(outcomes) => match outcomes[..] {
                [JobOutcome::Created { job }] => Ok(job),
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn take_from(
        &mut self,
        session: SessionId,
        queues: &[&str],
        name: Option<&str>,
        wait_ms: Option<u64>,
    ) -> Result<Answer, Refusal> {
        let queues: Vec<QueueId> = queues.iter().map(|queue| self.queue(queue)).collect();
        let take = Take {
            queues: queues.into(),
            name,
            wait_ms,
        };
        self.ask(session, &Command::Take(take))
    }

    /// Takes the first job of a queue, if one waits.
    pub(crate) fn take(&mut self, session: SessionId, queue: &str) -> Option<Taken> {
        match self.take_from(session, &[queue], None, None).unwrap() {
            Answer::Settled(Settled::Taken(taken)) => Some(taken),
            _ => None,
        }
    }

    /// Submits a pass of a held job.
    pub(crate) fn submit_pass(
        &mut self,
        session: SessionId,
        taken: Taken,
        queue: &str,
    ) -> Result<(), Refusal> {
        let held_ms = self.settle(session, taken)?;
        let pass = JobChange::Pass {
            job: taken.job,
            attempt: taken.attempt,
            number: self.replicated.job_number(taken.job),
            queue: self.queue(queue),
            body: None,
            held_ms,
            by: "test".into(),
        };
        self.queued
            .push_back((Change::Jobs(vec![pass]), vec![taken.job]));
        Ok(())
    }

    pub(crate) fn pass(
        &mut self,
        session: SessionId,
        taken: Taken,
        queue: &str,
    ) -> Result<Outcome, Refusal> {
        self.submit_pass(session, taken, queue)?;
        self.flush_one()
    }

    pub(crate) fn submit_delete(
        &mut self,
        session: SessionId,
        taken: Taken,
    ) -> Result<(), Refusal> {
        self.settle(session, taken)?;
        let job = taken.job;
        let number = self.replicated.job_number(job);
        let delete = JobChange::Delete { job, number };
        self.queued
            .push_back((Change::Jobs(vec![delete]), vec![job]));
        Ok(())
    }

    pub(crate) fn delete(&mut self, session: SessionId, taken: Taken) -> Result<Outcome, Refusal> {
        self.submit_delete(session, taken)?;
        self.flush_one()
    }

    fn settle(&mut self, session: SessionId, taken: Taken) -> Result<u64, Refusal> {
        match self.ask(session, &Command::Settle(taken))? {
            Answer::Settling { held_ms } => Ok(held_ms),
            other => panic!("{other:?}"),
        }
    }

    /// A worker dies, and the log hears of it.
    pub(crate) fn kill(&mut self, session: SessionId) {
        self.ask(session, &Command::Disconnect).unwrap();
        self.queue_deaths();
    }

    pub(crate) fn flush_all(&mut self) {
        while !self.queued.is_empty() {
            let _ = self.flush_one();
        }
    }

    /// The names of the jobs that wait in a queue, the next one first.
    pub(crate) fn waiting(&self, queue: &str) -> Vec<String> {
        let jobs = self.local.waiting_jobs(self.queue(queue));
        jobs.map(|job| self.replicated.job(job).unwrap().name.to_string())
            .collect()
    }
}
