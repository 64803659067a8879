//! What `testigo lock`, `testigo elect` and `testigo pool take` have in common: a session, a command that runs while it holds something, and the
//! end of both.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use testigo_client::{Client, Guard, NotDone, Session, SessionOptions, State};
use tokio::time::timeout;

use super::child::{Child, first_lost};
pub(crate) use super::child::{Ran, Signals, code_of};
use crate::exit::{self, UNREACHABLE};
use crate::reach::{Ended, label};
use crate::span::Span;

/// How long to try to tell the node that all is over.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// How a command is kept to what it holds.
#[derive(Args)]
pub(crate) struct Held {
    /// What to do with the command when what it holds is lost.
    #[arg(long, value_name = "WHAT", default_value = "term")]
    on_loss: OnLoss,
    /// How long the command may take to stop after SIGTERM, before SIGKILL; more than a quarter of the TTL is shortened to that.
    #[arg(long, value_name = "SPAN", default_value = "2s")]
    grace: Span,
    /// How long this machine may be silent before the node gives what it holds to another.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    ttl: Span,
}

/// What becomes of the command when what it holds is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLoss {
    /// SIGTERM, and SIGKILL after the grace; begun early enough to be over by the time of the loss.
    Term,
    /// SIGKILL.
    Kill,
    /// Let it run on: its fence tells it from the next holder.
    Ignore,
}

impl Held {
    pub(crate) async fn open(&self, client: &Client) -> Result<Session, Ended> {
        let options = SessionOptions {
            ttl: self.ttl.0,
            label: Some(label()),
        };
        client.open(options).await.map_err(not_run)
    }

    /// Runs a command until it ends; it is stopped when a guard is lost, which `holds` says in words.
    pub(crate) async fn run(
        &self,
        command: &[OsString],
        environment: Vec<(&'static str, Option<String>)>,
        (holds, guards): (&'static str, &[Guard]),
        signals: &mut Signals,
    ) -> Result<Ran, Ended> {
        let grace = self.grace(guards);
        let margin = match self.on_loss {
            OnLoss::Term => grace,
            OnLoss::Kill | OnLoss::Ignore => Duration::ZERO,
        };
        let lost = first_lost(holds, guards, margin);
        let how = (self.on_loss, grace);
        let mut ran = run_until_lost(command, environment, how, lost, signals).await?;
        ran.lost |= guards.iter().any(|guard| guard.state() == State::Lost);
        Ok(ran)
    }

    /// The time that the command gets to stop is taken from the end of the lock's own time, so it is no large part of it.
    fn grace(&self, guards: &[Guard]) -> Duration {
        let now = Instant::now();
        let left = |guard: &Guard| guard.deadline().saturating_duration_since(now);
        let shortest = guards.iter().map(left).min().unwrap_or_default();
        self.grace.0.min(shortest / 4)
    }
}

/// Runs a command until it ends; it is stopped when what it holds is lost, for which `lost` gives the reason.
pub(crate) async fn run_until_lost(
    command: &[OsString],
    environment: Vec<(&'static str, Option<String>)>,
    (on_loss, grace): (OnLoss, Duration),
    lost: impl Future<Output = String>,
    signals: &mut Signals,
) -> Result<Ran, Ended> {
    let child = Child {
        command,
        environment,
        on_loss,
        grace,
    };
    child.run(lost, signals).await.map_err(|error| {
        let why = format!("{} cannot run: {error}", command[0].display());
        let code = exit::code_of_unrunnable(&error);
        Ended::new(code, why)
    })
}

/// Whatever became of the session and its lock, the command has not run, and that is known.
pub(crate) fn not_run(not_done: NotDone) -> Ended {
    let ended = Ended::from(not_done);
    match ended.is_unknown() {
        true => Ended::new(UNREACHABLE, ended.why),
        false => ended,
    }
}

/// Closes a session, which gives everything back. If the node cannot be told, it finds out by itself after the TTL.
pub(crate) async fn close(session: Session) {
    let _ = timeout(CLOSE_PATIENCE, session.close()).await;
}
