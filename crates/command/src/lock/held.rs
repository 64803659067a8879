//! What `testigo lock`, `testigo elect` and `testigo pool take` have in common: a session, a command that runs while it holds something, and the
//! end of both.

use std::cell::Cell;
use std::convert::Infallible;
use std::ffi::OsString;
use std::future::{pending, ready};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use clap::Args;
use testigo_client::{Client, Guard, Loss, NotDone, Session, SessionOptions, State};
use tokio::time::timeout;

use crate::exit::{self, UNREACHABLE, complain};
use crate::leash::{self, Leash, OnLoss, Reins, Stopped, Terms};
use crate::reach::{Ended, label};
use crate::signals::{Signals, stop_if_told};
use crate::span::Span;

/// How long to try to tell the node that all is over.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// How long it is looked why the leash has stopped a command.
const REASON_PATIENCE: Duration = Duration::from_millis(100);

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

/// How a command ended.
pub(crate) struct Ran {
    status: ExitStatus,
    /// Whether its lock was lost or about to be while it ran.
    pub(crate) lost: bool,
}

impl Ran {
    pub(crate) fn success(&self) -> bool {
        self.status.success()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        let code = self.status.code().and_then(|code| u8::try_from(code).ok());
        let signalled = self.status.signal().map(|signal| 128 + signal as u8);
        ExitCode::from(code.or(signalled).unwrap_or(1))
    }
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
        let ran = self.on_leash(command, environment, (holds, guards), signals);
        ran.await.map_err(|error| {
            let why = format!("{} cannot run: {error}", command[0].display());
            let code = exit::code_of_unrunnable(&error);
            Ended::new(code, why)
        })
    }

    async fn on_leash(
        &self,
        command: &[OsString],
        environment: Vec<(&'static str, Option<String>)>,
        (holds, guards): (&'static str, &[Guard]),
        signals: &mut Signals,
    ) -> io::Result<Ran> {
        let terms = Terms {
            on_loss: self.on_loss,
            orphaned: self.on_loss,
            grace: self.grace(guards),
        };
        let leash = Leash::start()?;
        let mut begun = leash::command(self.on_loss)?;
        begun.args(command);
        for (name, value) in &environment {
            match value {
                Some(value) => begun.env(name, value),
                None => begun.env_remove(name),
            };
        }
        let stdin = io::stdin();
        let own_group = !stdin.is_terminal();
        let kept = (terms, deadline(guards));
        let leashed = leash.begin(begun, stdin.as_fd(), own_group, kept)?;
        let reins = leashed.reins();
        let (margin, then) = match self.on_loss {
            OnLoss::Term => (terms.grace, "stopping the command"),
            OnLoss::Kill => (Duration::ZERO, "killing the command"),
            OnLoss::Ignore => (Duration::ZERO, "the command runs on"),
        };
        let (said, ignores) = (Cell::new(false), self.on_loss == OnLoss::Ignore);
        let lost = async {
            let why = first_lost(holds, guards, margin).await;
            said.set(true);
            complain!("testigo: {why}; {then}");
            if ignores {
                pending::<()>().await;
            }
        };
        let passed_on = async {
            loop {
                let signal = signals.any().await;
                reins.pass_on(signal);
                stop_if_told(signal);
            }
        };
        let run = tokio::select! {
            biased;
            run = leashed.run(ready(()), lost, terms.grace) => run?,
            never = renewals(guards, &reins) => match never {},
            never = passed_on => match never {},
        };
        match run.stopped {
            Some(Stopped::Late) => {
                // The leash was faster; or this process was stopped, and what it holds may be renewed by now.
                let why = timeout(REASON_PATIENCE, first_lost(holds, guards, margin)).await;
                let why = why.unwrap_or_else(|_| format!("{holds} was about to be lost"));
                complain!("testigo: {why}; {then}");
            }
            Some(Stopped::Unleashed) => {
                complain!("testigo: the leash of the command was killed; {then}");
            }
            Some(Stopped::For(())) | None => {}
        }
        let lost = said.get() || run.stopped.is_some();
        let lost = lost || guards.iter().any(|guard| guard.state() == State::Lost);
        Ok(Ran {
            status: run.status,
            lost,
        })
    }

    /// The time that the command gets to stop is taken from the end of the lock's own time, so it is no large part of it.
    fn grace(&self, guards: &[Guard]) -> Duration {
        let left = deadline(guards).saturating_duration_since(Instant::now());
        self.grace.0.min(left / 4)
    }
}

/// When the first guard is lost if the node stays silent from now on.
fn deadline(guards: &[Guard]) -> Instant {
    let all = guards.iter().map(Guard::deadline);
    all.min().unwrap_or_else(Instant::now)
}

/// Tells the leash of every renewal.
async fn renewals(guards: &[Guard], reins: &Reins) -> Infallible {
    loop {
        let seen: Vec<Instant> = guards.iter().map(Guard::deadline).collect();
        reins.good_until(deadline(guards));
        let renewed = guards.iter().zip(seen);
        first(renewed.map(|(guard, seen)| guard.renewed(seen))).await;
    }
}

/// Why the first guard that is lost, or has only `margin` left, is so; `holds` says what guards are.
async fn first_lost(holds: &str, guards: &[Guard], margin: Duration) -> String {
    let all = guards.iter();
    let (gate, loss) =
        first(all.map(async |guard| (guard.gate(), guard.endangered(margin).await))).await;
    let why = match loss {
        Some(Loss::Silence) => "is lost: the node was silent for too long",
        Some(Loss::Limit) => "is lost: its hold limit is over",
        Some(Loss::Told) => "is lost: the node gave it up",
        Some(Loss::SessionOver) => "is lost: its session is over",
        None => "is about to be lost",
    };
    format!("{holds} {gate} {why}")
}

/// What comes first of several things.
async fn first<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> T {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        let mut polled = all.iter_mut().map(|one| one.as_mut().poll(context));
        let ready = polled.find(std::task::Poll::is_ready);
        ready.unwrap_or(std::task::Poll::Pending)
    })
    .await
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
