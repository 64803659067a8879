//! Changes: what must be in the log before it is true. A change is checked, submitted and forgotten about; when the log
//! says that it is durable, it is applied to both halves, and only then is whoever asked for it answered.

use std::sync::Arc;

use testigo_core::{Change, Command, JobId, Name, OnceAnswer, Outcome, Refusal, Word};
use testigo_engine::{
    Applied as Logged, DISK_RESERVE_BYTES, Delivery, LogSize, ProposeError, SubmitError,
};

use super::client::{ClientId, Place};
use super::entry::{Entry, read, write};
use super::jobs::jobs_reply;
use super::unit::{Done, unit_reply};
use super::{House, Seat};
use crate::completion::Completion;
use crate::mailbox::Mailbox;
use crate::stats::ProcessKey;
use crate::wire::{Reply, refuse};

/// More memory than this is not kept for the next entry.
const WRITING_KEPT_BYTES: usize = 64 << 10;

/// How long the node keeps its own changes to itself after the log refused one, in milliseconds.
const OWN_PAUSE_MS: u64 = 250;

/// Who is answered when a change is in the log.
#[derive(Debug)]
pub(crate) enum Answers {
    /// Nobody: the node itself wanted it.
    Nobody,
    /// A connection.
    Client(ClientId),
    /// A connection that gave a unit of work, and what its commands are answered.
    Unit(ClientId, Box<[Done]>),
    /// A caller in this process; an opened session is taken into its hands.
    Embedded(
        Arc<Completion<Result<Outcome, Refusal>>>,
        Option<Arc<Mailbox>>,
    ),
}

/// A change on its way through the log.
#[derive(Debug)]
pub(super) struct Submission {
    /// What was written, so that it need not be read again.
    entry: Entry,
    answers: Answers,
    /// The jobs that settle by it.
    jobs: Box<[JobId]>,
    /// The process that wants it. Its connection may be gone when the log has spoken.
    process: Option<ProcessKey>,
}

impl Answers {
    fn client(&self) -> Option<ClientId> {
        match self {
            Answers::Client(id) | Answers::Unit(id, _) => Some(*id),
            Answers::Nobody | Answers::Embedded(..) => None,
        }
    }
}

impl Submission {
    /// The connection that waits for it.
    pub(super) fn client(&self) -> Option<ClientId> {
        self.answers.client()
    }
}

impl House {
    /// Submits a change for a connection, which waits for the answer.
    pub(crate) fn change(&mut self, id: ClientId, change: Change) -> Result<(), Refusal> {
        self.change_of(id, change, Box::default())
    }

    /// As [`House::change`], for a change that jobs settle by. If nothing comes of it, they are held as before.
    pub(super) fn change_of(
        &mut self,
        id: ClientId,
        change: Change,
        jobs: Box<[JobId]>,
    ) -> Result<(), Refusal> {
        self.change_for(id, Answers::Client(id), change, jobs)
    }

    pub(super) fn change_for(
        &mut self,
        id: ClientId,
        answers: Answers,
        change: Change,
        jobs: Box<[JobId]>,
    ) -> Result<(), Refusal> {
        let checked = self.check(&change);
        if checked.is_err() {
            self.withdraw(id, &jobs);
        }
        checked?;
        let tag = self.enqueue(Entry::new(change), answers, jobs)?;
        self.sent_to_the_log(id, tag);
        Ok(())
    }

    /// Submits a change. A refusal here means that nothing came of it.
    pub(crate) fn submit(&mut self, change: Change, answers: Answers) -> Result<(), Refusal> {
        self.check(&change)?;
        self.enqueue(Entry::new(change), answers, Box::default())
            .map(drop)
    }

    /// What would be refused anyway is not logged first.
    fn check(&self, change: &Change) -> Result<(), Refusal> {
        if self.stopping {
            return Err(refuse(Word::Unavailable, "the node is stopping"));
        }
        self.local.check(change)?;
        match change {
            Change::CreateGate { definition, .. } => {
                definition.check(&self.limits)?;
                let gates = self.replicated.gates().len();
                let adds = |change: &Change| matches!(change, Change::CreateGate { .. });
                self.room_for("gates", gates, self.limits.gates, adds)
            }
            Change::OpenSession { ttl_ms, .. } => {
                let (least, most) = (self.limits.ttl_ms_min, self.limits.ttl_ms_max);
                if !(least..=most).contains(ttl_ms) {
                    return Err(refuse(
                        Word::BadArg,
                        format!("TTL {ttl_ms} is not in {least}..={most} milliseconds"),
                    ));
                }
                let sessions = self.local.sizes()[1];
                let adds = |change: &Change| matches!(change, Change::OpenSession { .. });
                self.room_for("sessions", sessions, self.limits.sessions, adds)
            }
            Change::StartOnce(_) => {
                let keys = self.replicated.once_keys();
                let most = self.limits.once_keys.saturating_add(1);
                let adds = |change: &Change| matches!(change, Change::StartOnce(_));
                self.room_for("once_keys", keys, most, adds)
            }
            _ => Ok(()),
        }
    }

    /// Refuses what would be one too many, counting those that are on their way through the log: `adds` knows them.
    fn room_for(
        &self,
        name: &str,
        mut have: usize,
        most: usize,
        adds: fn(&Change) -> bool,
    ) -> Result<(), Refusal> {
        if have + self.submitted.len() >= most {
            let changes = self.submitted.values().map(|sent| &sent.entry.change);
            have += changes.filter(|change| adds(change)).count();
        }
        match have < most {
            true => Ok(()),
            false => Err(refuse(
                Word::Limit,
                format!("there are {have} already, and the limit {name} is {most}"),
            )),
        }
    }

    fn enqueue(
        &mut self,
        entry: Entry,
        answers: Answers,
        jobs: Box<[JobId]>,
    ) -> Result<u64, Refusal> {
        let client = answers.client();
        match self.queue(&entry) {
            Ok(tag) => {
                let client = client.and_then(|id| self.clients.get(&id));
                let worker = client.and_then(|client| client.worker);
                let submission = Submission {
                    entry,
                    answers,
                    jobs,
                    process: worker.map(|worker| worker.process),
                };
                self.submitted.insert(tag, submission);
                Ok(tag)
            }
            Err(refusal) => {
                if let Some(id) = client {
                    self.withdraw(id, &jobs);
                }
                Err(refusal)
            }
        }
    }

    fn queue(&mut self, entry: &Entry) -> Result<u64, Refusal> {
        let log = self.log.as_ref().filter(|_| self.failed.is_none());
        let Some(log) = log else {
            return Err(self.no_log());
        };
        self.next_tag += 1;
        self.wall_offset = entry.at.saturating_sub(self.now);
        self.writing = write(entry, std::mem::take(&mut self.writing));
        let submitted = log.submit(self.next_tag, &self.writing);
        if self.writing.capacity() > WRITING_KEPT_BYTES {
            self.writing = Vec::new();
        }
        match submitted {
            Ok(()) => {
                self.unbegun = true;
                Ok(self.next_tag)
            }
            Err(SubmitError::Full | SubmitError::SnapshotInProgress) => Err(refuse(
                Word::Busy,
                "too much waits for the disk; try again in a moment",
            )),
            Err(SubmitError::Stopped) => Err(self.no_log()),
        }
    }

    /// Whether a change of a flow is on its way through the log: what it grants is not known yet.
    pub(crate) fn is_being_changed(&self, name: &Name) -> bool {
        let mut changes = self.submitted.values().map(|s| &s.entry.change);
        changes.any(|change| match change {
            Change::ApplyFlow { flow, .. } | Change::DeleteFlow { flow } => flow == name,
            _ => false,
        })
    }

    /// Something was submitted with which the log has not begun.
    pub(crate) fn is_unbegun(&self) -> bool {
        self.unbegun
    }

    /// Whoever takes it does the log's work itself.
    pub(crate) fn take_unbegun(&mut self) -> bool {
        std::mem::take(&mut self.unbegun)
    }

    /// Lets the log begin with what was submitted since it last did.
    pub(crate) fn begin_flush(&mut self) {
        if let Some(log) = self
            .log
            .as_ref()
            .filter(|_| std::mem::take(&mut self.unbegun))
        {
            log.begin();
        }
    }

    /// A session whose connection waits for the log, or for an answer in slices, is not silent, however slow the node.
    pub(super) fn keep_waiting_alive(&mut self) {
        let logging = self.submitted.values().filter_map(Submission::client);
        for id in logging.chain(self.slices.clients()) {
            if let Some(Place::Opened(session)) = self.clients.get(&id).map(|c| c.place) {
                let (local, replicated) = (&mut self.local, &self.replicated);
                let renew = &Command::Renew;
                let _ = local.apply(self.now, replicated, session, renew, &mut self.events);
            }
        }
    }

    fn no_log(&self) -> Refusal {
        let why = self.failed.as_deref().unwrap_or("the log is closed");
        refuse(Word::Unavailable, format!("{why}; the node is ending"))
    }

    /// Why nothing durable can change any more; or why, when last something was to, only what is short could.
    pub(crate) fn trouble(&self) -> Option<String> {
        let free_bytes = self.free_bytes;
        let full = || {
            (free_bytes < DISK_RESERVE_BYTES)
                .then(|| ProposeError::DiskFull { free_bytes }.to_string())
        };
        self.failed.clone().or_else(full)
    }

    /// Why the log writes nothing any more, if it does not.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    pub(crate) fn log_size(&self) -> LogSize {
        self.log_size
    }

    /// Logs what the node itself wants; what finds no room is tried again with the next turn, or after a pause.
    pub(super) fn log_own(&mut self) {
        if self.now < self.own_after {
            return;
        }
        while let Some(change) = self.unlogged.pop_front() {
            if self.failed.is_some() {
                return;
            }
            let entry = Entry::new(change);
            let Ok(tag) = self.queue(&entry) else {
                self.unlogged.push_front(entry.change);
                return;
            };
            let submission = Submission {
                entry,
                answers: Answers::Nobody,
                jobs: Box::default(),
                process: None,
            };
            self.submitted.insert(tag, submission);
        }
    }

    /// The log says something.
    pub(crate) fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Committed {
                entries,
                log,
                free_bytes,
            } => {
                self.log_size = log;
                self.free_bytes = free_bytes;
                for logged in entries {
                    self.snapshots.applied = logged.entry.position.index;
                    self.apply(logged);
                }
                self.snapshot_if_due();
            }
            Delivery::Full { index } => {
                self.snapshots.applied = index;
                self.snapshot();
            }
            Delivery::Refused { tag, error } => {
                if let ProposeError::DiskFull { free_bytes } = error {
                    self.free_bytes = free_bytes;
                }
                if self.wanted_itself(tag) {
                    return;
                }
                let refusal = refuse(Word::Unavailable, format!("{error}; nothing came of it"));
                self.answer(Some(tag), Err(refusal));
            }
            Delivery::Snapshot(ended) => self.snapshot_ended(ended),
            Delivery::Stopped { error, unknown } => {
                for tag in unknown {
                    // Nobody gets these jobs before a restart has shown what became of them.
                    if let Some(submission) = self.submitted.get_mut(&tag) {
                        submission.jobs = Box::default();
                    }
                    let why = format!("{error}; whether it was done shows after a restart");
                    self.answer(Some(tag), Err(refuse(Word::Unknown, why)));
                }
                self.disk_failed(&error);
            }
        }
    }

    /// The log refused what the node itself wants, if it does: a death or an end that happened cannot be called off, so it
    /// is tried again until there is room.
    fn wanted_itself(&mut self, tag: u64) -> bool {
        let own = |submission: &Submission| matches!(submission.answers, Answers::Nobody);
        if !self.submitted.get(&tag).is_some_and(own) {
            return false;
        }
        let own = self.submitted.remove(&tag);
        self.unlogged.extend(own.map(|own| own.entry.change));
        self.own_after = self.now + OWN_PAUSE_MS;
        true
    }

    fn apply(&mut self, logged: Logged) {
        let own = logged.tag.and_then(|tag| self.submitted.get_mut(&tag));
        let process = own.as_ref().and_then(|submission| submission.process);
        let client = own.as_ref().and_then(|submission| submission.client());
        let entry = match own {
            // It was written from this; only after a restart, or from another node, must it be read.
            Some(submission) => {
                debug_assert_eq!(read(&logged.entry.data).as_ref(), Ok(&submission.entry));
                std::mem::replace(&mut submission.entry, Entry::EMPTY)
            }
            None => match read(&logged.entry.data) {
                Ok(entry) => entry,
                Err(why) => {
                    let why = format!("the entry is unreadable: {why}");
                    return self.answer(logged.tag, Err(refuse(Word::Unavailable, why)));
                }
            },
        };
        let stamp = entry.stamp(logged.entry.origin);
        let outcome = match self.replicated.apply(stamp, &entry.change) {
            Ok(applied) => {
                self.local
                    .follow(self.now, &self.replicated, &applied, &mut self.events);
                let mut outcome = applied.into_outcome();
                if let Outcome::FlowApplied { .. } = outcome {
                    self.end_forbidden_takes();
                }
                let asked = (logged.tag, process);
                self.count_changes(asked, &entry.change, &mut outcome);
                Ok(outcome)
            }
            Err(refusal) => {
                self.count_full(&entry.change, refusal.word);
                Err(self.as_seen(client, &entry.change, refusal))
            }
        };
        self.answer(logged.tag, outcome);
        self.pass_on();
    }

    /// A refusal without the names of jobs that whoever asked may not see.
    fn as_seen(&self, client: Option<ClientId>, change: &Change, refusal: Refusal) -> Refusal {
        let Some(id) = client.filter(|_| refusal.word == Word::Busy) else {
            return refusal;
        };
        let sees = |queue| self.look_into(id, queue).is_ok();
        self.replicated
            .check_for(change, &sees)
            .err()
            .unwrap_or(refusal)
    }

    fn answer(&mut self, tag: Option<u64>, outcome: Result<Outcome, Refusal>) {
        let known = tag.and_then(|tag| Some((tag, self.submitted.remove(&tag)?)));
        let Some((tag, submission)) = known else {
            return self.answer_nobody(&outcome);
        };
        if let (Err(_), Some(id)) = (&outcome, submission.client()) {
            self.withdraw(id, &submission.jobs);
        }
        match submission.answers {
            Answers::Nobody => self.answer_nobody(&outcome),
            Answers::Client(id) => self.answer_client(id, tag, outcome),
            Answers::Unit(id, done) => {
                self.answer_under_way(id, tag, unit_reply(&done, outcome));
            }
            Answers::Embedded(completion, mailbox) => {
                if let (Ok(Outcome::SessionOpened { session, .. }), Some(mailbox)) =
                    (&outcome, mailbox)
                {
                    self.sit_down(*session, Seat::Embedded(mailbox));
                }
                completion.give(outcome);
            }
        }
    }

    fn answer_nobody(&mut self, outcome: &Result<Outcome, Refusal>) {
        if let Ok(Outcome::SessionOpened { session, .. }) = outcome {
            self.nobody_there(*session);
        }
    }

    fn answer_client(&mut self, id: ClientId, tag: u64, outcome: Result<Outcome, Refusal>) {
        let here = self.clients.get_mut(&id);
        match (&outcome, here) {
            (Ok(Outcome::SessionOpened { session, .. }), Some(client)) => {
                client.place = Place::Opened(*session);
                self.sit_down(*session, Seat::Client(id));
            }
            (Ok(Outcome::SessionOpened { session, .. }), None) => self.nobody_there(*session),
            (Ok(Outcome::SessionClosed { session }), Some(client))
                if client.place == Place::Opened(*session) =>
            {
                client.place = Place::Nowhere;
                self.seats.remove(session);
            }
            _ => {}
        }
        let reply = match outcome {
            Ok(outcome) => outcome_reply(&outcome),
            Err(refusal) => refusal.into(),
        };
        self.answer_under_way(id, tag, reply);
    }
}

fn outcome_reply(outcome: &Outcome) -> Reply {
    match outcome {
        Outcome::SessionOpened { session, .. } => Reply::number(session.number()),
        Outcome::Once(answer) => once_reply(*answer),
        Outcome::Jobs(outcomes) => jobs_reply(outcomes),
        Outcome::Viewed
        | Outcome::Entitled
        | Outcome::GateCreated { .. }
        | Outcome::GateDeleted { .. }
        | Outcome::SessionClosed { .. }
        | Outcome::FlowApplied { .. }
        | Outcome::FlowDeleted { .. }
        | Outcome::ReceiptKeyShared
        | Outcome::Unchanged => Reply::Ok,
    }
}

fn once_reply(answer: OnceAnswer) -> Reply {
    let told = |word: &str, period, at| {
        Reply::Array(vec![
            Reply::text(word),
            Reply::number(period),
            Reply::number(at),
        ])
    };
    match answer {
        OnceAnswer::Run => Reply::Array(vec![Reply::text("RUN")]),
        OnceAnswer::Done { period, at } => told("DONE", period, at),
        OnceAnswer::Unknown { period, at } => told("UNKNOWN", period, at),
        OnceAnswer::Abandoned | OnceAnswer::Forgotten => Reply::Ok,
    }
}
