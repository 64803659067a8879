//! Who is answered when the log has decided, and how.

use std::sync::Arc;

use testigo_core::{
    Change, GroupUsing, JobChange, JobId, JobOutcome, OnceAnswer, Outcome, Refusal, Word,
};

use super::client::{ActsFor, ClientId};
use super::unit::{Done, unit_reply};
use super::{House, Seat};
use crate::commands::{Known, joined_reply, serve_settled};
use crate::completion::Completion;
use crate::mailbox::Mailbox;
use crate::wire::{KeptCommand, Reply};

/// Who is answered when a change is in the log.
#[derive(Debug)]
pub(crate) enum Answers {
    /// Nobody: it is the node's own change.
    Nobody,
    /// A connection.
    Client(ClientId),
    /// A connection whose command needs what the change creates; the command is carried out then.
    Again(ClientId, KeptCommand),
    /// A connection that submitted a unit of work, and how its commands are answered.
    Unit(ClientId, Box<[Done]>),
    /// A caller in this process. If the change opens a session, this mailbox takes its seat.
    Embedded(
        Arc<Completion<Result<Outcome, Refusal>>>,
        Option<Arc<Mailbox>>,
    ),
}

impl Answers {
    /// The connection that waits.
    pub(super) fn client(&self) -> Option<ClientId> {
        match self {
            Answers::Client(id) | Answers::Unit(id, _) | Answers::Again(id, _) => Some(*id),
            Answers::Nobody | Answers::Embedded(..) => None,
        }
    }
}

/// The jobs that a change settles, whoever holds them.
pub(crate) fn settled_jobs(change: &Change) -> impl Iterator<Item = JobId> {
    let changes = match change {
        Change::Jobs(changes) => &changes[..],
        _ => &[],
    };
    changes.iter().filter_map(settled_job)
}

/// The job that a change settles, unless it creates one.
pub(crate) fn settled_job(change: &JobChange) -> Option<JobId> {
    match change {
        JobChange::Pass { job, .. }
        | JobChange::Delete { job, .. }
        | JobChange::Back { job, .. } => Some(*job),
        JobChange::Lose { jobs, .. } => jobs.first().map(|lost| lost.job),
        JobChange::Create { .. } => None,
    }
}

impl House {
    /// A change is done, refused, or has an unknown outcome: tells whoever wanted it.
    pub(super) fn answer(
        &mut self,
        tag: u64,
        answers: Answers,
        change: &Change,
        outcome: Result<Outcome, Refusal>,
    ) {
        // With an unknown outcome the jobs stay with nobody until a restart has shown what happened.
        if let (Err(refusal), Some(id)) = (&outcome, answers.client())
            && refusal.word != Word::Unknown
        {
            self.withdraw(id, settled_jobs(change));
        }
        if let (Answers::Client(_), Change::CreateGate { .. } | Change::DeleteGate { .. }) =
            (&answers, change)
        {
            self.services.release_name(self.now, change);
        }
        let outcome = match outcome {
            Ok(Outcome::GroupJoined(joined)) if joined.using != GroupUsing::Log => {
                return self.join_chapter(tag, answers, change.clone(), joined);
            }
            outcome => outcome,
        };
        if let Some(answers) = self.answer_after_vote(tag, answers, change, &outcome) {
            self.answer_now(tag, answers, change, outcome);
        }
    }

    /// Like [`House::answer`], with nothing left to wait for.
    pub(super) fn answer_now(
        &mut self,
        tag: u64,
        answers: Answers,
        change: &Change,
        outcome: Result<Outcome, Refusal>,
    ) {
        match answers {
            Answers::Nobody => {
                if let Ok(Outcome::SessionOpened { session, .. }) = outcome {
                    self.nobody_there(session);
                }
            }
            Answers::Client(id) => self.answer_client(id, tag, outcome),
            Answers::Again(id, line) => self.carry_out_again(id, tag, &line, outcome),
            Answers::Unit(id, done) => {
                self.connections
                    .answer_under_way(id, tag, unit_reply(&done, outcome));
            }
            Answers::Embedded(completion, mailbox) => {
                match (&outcome, mailbox, change) {
                    (Ok(Outcome::SessionOpened { session, .. }), Some(mailbox), _) => {
                        self.sit_down(*session, Seat::Embedded(mailbox));
                    }
                    (Ok(_), Some(mailbox), Change::JoinGroup { group, session, .. }) => {
                        self.listen_to_group_here(group, *session, &mailbox);
                    }
                    _ => {}
                }
                completion.give(outcome);
            }
        }
    }

    /// What a command needed first is done, so the command is carried out; or it was refused, and the command with it.
    fn carry_out_again(
        &mut self,
        id: ClientId,
        tag: u64,
        line: &KeptCommand,
        outcome: Result<Outcome, Refusal>,
    ) {
        if outcome.is_err() {
            return self.answer_client(id, tag, outcome);
        }
        self.reseat(id, &outcome);
        if !self.connections.forget_under_way(id, tag) {
            return;
        }
        serve_settled(self, id, line.raw(), Known::Little);
        let client = self.connections.client(id);
        if client.is_some_and(|client| client.blocked.is_none()) {
            self.connections.let_go_on(id);
        }
    }

    fn answer_client(&mut self, id: ClientId, tag: u64, outcome: Result<Outcome, Refusal>) {
        self.reseat(id, &outcome);
        match &outcome {
            Ok(Outcome::GroupJoined(joined)) => self.listen_to_group(id, joined),
            Ok(Outcome::GroupLeft { group }) => self.leave_group_channel(id, group),
            _ => {}
        }
        let reply = match outcome {
            Ok(outcome) => outcome_reply(&outcome),
            Err(refusal) => refusal.into(),
        };
        self.connections.answer_under_way(id, tag, reply);
    }

    /// Gives a connection its new session, or takes its old one away.
    fn reseat(&mut self, id: ClientId, outcome: &Result<Outcome, Refusal>) {
        let here = self.connections.client_mut(id);
        match (outcome, here) {
            (Ok(Outcome::SessionOpened { session, .. }), Some(client)) => {
                client.acts_for = ActsFor::Opened(*session);
                self.sit_down(*session, Seat::Client(id));
            }
            (Ok(Outcome::SessionOpened { session, .. }), None) => self.nobody_there(*session),
            (Ok(Outcome::SessionClosed { session, .. }), Some(client))
                if client.acts_for == ActsFor::Opened(*session) =>
            {
                client.acts_for = ActsFor::Nobody;
                self.seats.remove(session);
            }
            _ => {}
        }
    }
}

fn outcome_reply(outcome: &Outcome) -> Reply {
    match outcome {
        Outcome::SessionOpened { session, .. } => Reply::number(session.number()),
        Outcome::Once(answer) => once_reply(*answer),
        Outcome::Jobs(outcomes) => jobs_reply(outcomes),
        Outcome::Decided { value } => Reply::Body(value.clone()),
        Outcome::DecisionForgotten { was: false } => Reply::Null,
        Outcome::GroupJoined(joined) => joined_reply(joined),
        Outcome::GroupSent { number } => Reply::number(*number),
        Outcome::Viewed
        | Outcome::Entitled
        | Outcome::GateCreated { .. }
        | Outcome::GateDeleted { .. }
        | Outcome::SessionClosed { .. }
        | Outcome::SessionMoved { .. }
        | Outcome::FlowApplied { .. }
        | Outcome::FlowDeleted { .. }
        | Outcome::LimitsChanged
        | Outcome::ReceiptKeyShared
        | Outcome::ClusterChanged
        | Outcome::PoolCreated { .. }
        | Outcome::PoolClosing { .. }
        | Outcome::PoolKept { .. }
        | Outcome::PoolDeleted { .. }
        | Outcome::PoolHeard
        | Outcome::SlotsClaimed { .. }
        | Outcome::SlotsGiven { .. }
        | Outcome::DecisionForgotten { was: true }
        | Outcome::GroupLeft { .. }
        | Outcome::EndsWaited { .. }
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
        OnceAnswer::Run { attempt } => {
            Reply::Array(vec![Reply::text("RUN"), Reply::number(attempt)])
        }
        OnceAnswer::Done { period, at } => told("DONE", period, at),
        OnceAnswer::Unknown { period, at } => told("UNKNOWN", period, at),
        OnceAnswer::Abandoned | OnceAnswer::Forgotten => Reply::Ok,
        OnceAnswer::NotOnRecord => Reply::Null,
    }
}

/// The reply to a connection whose change of jobs is in the log.
fn jobs_reply(outcomes: &[JobOutcome]) -> Reply {
    match outcomes {
        [JobOutcome::Created { job }] => Reply::number(job.0),
        _ => Reply::Ok,
    }
}
