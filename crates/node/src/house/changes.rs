//! Changes: what must be in the log before it is true. A change is checked and submitted. When the log says that it is
//! durable, it is applied to both halves, and only then is its submitter answered.

use testigo_core::{Change, Command, Outcome, Refusal, Word};
use testigo_engine::{Applied as Logged, Delivery};

use super::House;
use super::answers::{Answers, settled_jobs};
use super::client::{ActsFor, ClientId};
use super::entry::{Entry, read};
use super::submissions::Submission;
use crate::wire::refuse;

impl House {
    /// Submits a change to the log; there is no other way. Whoever wants it is answered when it is durable and done. A
    /// refusal here means that nothing has happened. The node's own changes are never refused, but tried again.
    pub(crate) fn submit(&mut self, change: Change, answers: Answers) -> Result<(), Refusal> {
        if let Answers::Nobody = answers {
            if let Change::CloseSession { session, .. } | Change::EndSession { session, .. } =
                &change
            {
                self.services.session_ran_out(*session);
            }
            self.submissions.keep_own(change);
            self.submissions.submit_own(self.now);
            return Ok(());
        }
        if self.is_ordered_by_algorithm(&change) {
            self.check(&change)?;
            return self.send_by_chapter(change, answers);
        }
        let (client, jobs) = (answers.client(), settled_jobs(&change).collect::<Vec<_>>());
        let submitted = self.check(&change).and_then(|()| {
            let worker = client.and_then(|id| self.connections.client(id)?.worker);
            let submission = Submission {
                entry: Entry::new(change),
                answers,
                process: worker.map(|worker| worker.process),
            };
            self.submissions.submit(self.now, submission)
        });
        match (&submitted, client) {
            (Ok(tag), Some(id)) => self.connections.sent_to_the_log(id, *tag),
            (Err(_), Some(id)) => self.withdraw(id, jobs),
            _ => {}
        }
        submitted.map(drop)
    }

    /// Like [`House::submit`], for the definition of a gate: nobody can use its name until the log has decided.
    pub(crate) fn submit_named(&mut self, change: Change, id: ClientId) -> Result<(), Refusal> {
        if self.services.estate().is_none() {
            return self.submit(change, Answers::Client(id));
        }
        self.services.reserve_name(self.now, &change)?;
        let submitted = self.submit(change.clone(), Answers::Client(id));
        if submitted.is_err() {
            self.services.release_name(self.now, &change);
        }
        submitted
    }

    /// Refuses what would be refused anyway, before it is logged.
    fn check(&self, change: &Change) -> Result<(), Refusal> {
        if self.stopping {
            return Err(refuse(Word::Unavailable, "the node is stopping"));
        }
        self.check_acts()?;
        self.local().check(change)?;
        let limits = self.replicated().limits();
        match change {
            // The log decides whether it is the same.
            Change::CreateGate { gate, .. } if self.replicated().gate(gate).is_some() => Ok(()),
            Change::CreateGate { definition, .. } => {
                definition.check_new(limits)?;
                let gates = self.replicated().gates().len();
                let adds = |change: &Change| matches!(change, Change::CreateGate { .. });
                self.room_for("gates", gates, limits.gates, adds)
            }
            Change::OpenSession { ttl_ms, .. } => {
                let (least, most) = (limits.ttl_ms_min, limits.ttl_ms_max);
                if !(least..=most).contains(ttl_ms) {
                    return Err(refuse(
                        Word::BadArg,
                        format!("TTL {ttl_ms} is not in {least}..={most} milliseconds"),
                    ));
                }
                let sessions = self.local().sizes()[1];
                let adds = |change: &Change| matches!(change, Change::OpenSession { .. });
                self.room_for("sessions", sessions, limits.sessions, adds)
            }
            Change::Decide { .. }
            | Change::JoinGroup { .. }
            | Change::SendToGroup { .. }
            | Change::LeaveGroup { .. } => self.replicated().check(change),
            Change::StartOnce(_) => {
                let keys = self.replicated().once_keys();
                let most = limits.once_keys.saturating_add(1);
                let adds = |change: &Change| matches!(change, Change::StartOnce(_));
                self.room_for("once_keys", keys, most, adds)
            }
            _ => Ok(()),
        }
    }

    /// Refuses one item too many, counting those on their way through the log, which `adds` recognises.
    fn room_for(
        &self,
        name: &str,
        mut have: usize,
        most: usize,
        adds: fn(&Change) -> bool,
    ) -> Result<(), Refusal> {
        if have + self.submissions.len() >= most {
            let changes = self.submissions.changes();
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

    /// A session whose connection waits for the log, or for an answer in slices, is not silent, however slow the node is.
    pub(super) fn keep_waiting_alive(&mut self) {
        let logging = self.submissions.clients();
        let away = self.visits.clients();
        let sending = self.chapters.clients();
        let deleting = self.deletes.clients();
        for id in logging
            .chain(self.slices.clients())
            .chain(away)
            .chain(sending)
            .chain(deleting)
        {
            if let Some(ActsFor::Opened(session)) = self.connections.client(id).map(|c| c.acts_for)
            {
                let _ = self.services.ask(self.now, session, &Command::Renew);
            }
        }
        // Alone, the books know who waits.
        if self.services.estate().is_some() {
            for session in self.blocked_sessions() {
                let _ = self.services.ask(self.now, session, &Command::Renew);
            }
        }
    }

    /// Takes a delivery of the log.
    pub(crate) fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Committed {
                entries,
                delivered,
                log,
                free_bytes,
            } => {
                self.submissions.grown(log, free_bytes);
                for logged in entries {
                    self.snapshots.applied = logged.entry.position.index;
                    self.apply(logged);
                }
                self.delivered_up_to(delivered);
                self.snapshot_if_due();
            }
            Delivery::Full { index } => {
                self.snapshots.applied = index;
                self.snapshot();
            }
            Delivery::Refused { tag, error } => {
                if let Some(refused) = self.submissions.refused(self.now, tag, &error) {
                    let why = format!("{error}; nothing came of it");
                    let refusal = refuse(Word::Unavailable, why);
                    self.answer(tag, refused.answers, &refused.entry.change, Err(refusal));
                }
            }
            Delivery::Snapshot(ended) => self.snapshot_ended(ended),
            Delivery::Stopped { error, unknown } => {
                let why = format!("{error}; whether it was done shows after a restart");
                self.unknown(unknown, &why);
                self.end_deletes(&refuse(Word::Unknown, why));
                self.disk_failed(&error);
            }
            other => self.deliver_to_member(other),
        }
    }

    /// The log will say nothing more about these submissions.
    pub(super) fn unknown(&mut self, tags: Vec<u64>, why: &str) {
        for tag in tags {
            if let Some(lost) = self.submissions.take(tag) {
                let unknown = refuse(Word::Unknown, why);
                self.answer(tag, lost.answers, &lost.entry.change, Err(unknown));
            }
        }
    }

    fn apply(&mut self, logged: Logged) {
        let own = logged.tag.and_then(|tag| self.submissions.take(tag));
        let (entry, answers, process) = match own {
            // This is what was written, so only after a restart, or from another node, must the entry be read.
            Some(own) => {
                debug_assert_eq!(read(&logged.entry.data).as_ref(), Ok(&own.entry));
                (own.entry, own.answers, own.process)
            }
            None => match read(&logged.entry.data) {
                Ok(entry) => (entry, Answers::Nobody, None),
                Err(why) => return log::error!("an entry of the log is unreadable: {why}"),
            },
        };
        let client = answers.client();
        let stamp = entry.stamp(&logged.entry);
        let is_own = self.services.is_own(stamp.origin.as_ref());
        let before = self.owners_before(&entry.change);
        let outcome = match self.services.apply(self.now, stamp, &entry.change) {
            Ok(mut outcome) => {
                self.note_moves(&entry, before);
                match outcome {
                    Outcome::FlowApplied { .. } => self.end_forbidden_takes(),
                    Outcome::Viewed => self.viewed(),
                    Outcome::SessionMoved { session, .. } => self.moved(session),
                    Outcome::ClusterChanged => self.cluster_changed(),
                    Outcome::ReceiptKeyShared => self.take_receipt_key(),
                    _ => {}
                }
                self.publish_deliveries();
                self.chapters.follow(self.services.replicated());
                self.answer_deletes(&outcome);
                self.count_changes((client, process), &entry.change, &mut outcome);
                Ok(outcome)
            }
            Err(refusal) => {
                // What another node submitted is up to that node.
                if is_own {
                    self.not_done(&entry.change, &refusal);
                }
                self.count_full(&entry.change, refusal.word);
                Err(self.as_seen(client, &entry.change, refusal))
            }
        };
        let tag = logged.tag.unwrap_or_default();
        self.answer(tag, answers, &entry.change, outcome);
        self.pass_on();
    }

    /// A refusal without the names of jobs that the client may not see.
    fn as_seen(&self, client: Option<ClientId>, change: &Change, refusal: Refusal) -> Refusal {
        let Some(id) = client.filter(|_| refusal.word == Word::Busy) else {
            return refusal;
        };
        let sees = |queue| self.look_into(id, queue).is_ok();
        self.replicated()
            .check_for(change, &sees)
            .err()
            .unwrap_or(refusal)
    }
}
