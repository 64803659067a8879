//! The command under a lock: started, passed signals on, and stopped when the lock is lost.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use testigo_client::{Guard, Loss};
use tokio::process::Command;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{Instant, sleep_until};

use super::held::OnLoss;
use super::leash;
use crate::exit::complain;
use crate::reach::Ended;

/// A command to run.
pub(super) struct Child<'a> {
    pub(super) command: &'a [OsString],
    /// Variables to set, or to take out.
    pub(super) environment: Vec<(&'static str, Option<String>)>,
    pub(super) on_loss: OnLoss,
    pub(super) grace: Duration,
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

impl Child<'_> {
    /// Runs it to its end. It is stopped when what it holds is lost or about to be: `endangered` says in words why.
    pub(super) async fn run(
        self,
        endangered: impl Future<Output = String>,
        signals: &mut Signals,
    ) -> io::Result<Ran> {
        let mut endangered = pin!(endangered);
        let target = Target::new();
        let mut child = self.start(target)?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let send = |signal| {
            // One that is gone already needs no signal.
            let _ = pid.map(|pid| target.send(pid, signal));
        };
        let (mut lost, mut kill_at) = (false, None);
        loop {
            tokio::select! {
                biased;
                status = child.wait() => {
                    return Ok(Ran { status: status?, lost });
                }
                why = &mut endangered, if !lost => {
                    lost = true;
                    let then = match self.on_loss {
                        OnLoss::Term => "stopping the command",
                        OnLoss::Kill => "killing the command",
                        OnLoss::Ignore => "the command runs on",
                    };
                    complain!("testigo: {why}; {then}");
                    match self.on_loss {
                        OnLoss::Term => {
                            send(Signal::TERM);
                            kill_at = Some(Instant::now() + self.grace);
                        }
                        OnLoss::Kill => send(Signal::KILL),
                        OnLoss::Ignore => {}
                    }
                }
                () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                    kill_at = None;
                    send(Signal::KILL);
                }
                signal = signals.next() => {
                    if !target.heard(signal) {
                        send(signal);
                    }
                }
            }
        }
    }

    fn start(&self, target: Target) -> io::Result<tokio::process::Child> {
        let on_loss = clap::ValueEnum::to_possible_value(&self.on_loss);
        let on_loss = on_loss.map(|value| value.get_name().to_owned());
        let mut command = Command::from(leash::command(&on_loss.unwrap_or_default())?);
        command.args(self.command);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if target == Target::Group {
            command.process_group(0);
        }
        command.spawn()
    }
}

/// Why the first guard that is lost, or has only `margin` left, is so; `holds` says what guards are.
pub(super) async fn first_lost(holds: &str, guards: &[Guard], margin: Duration) -> String {
    let (gate, loss) = first_endangered(guards, margin).await;
    let why = match loss {
        Some(Loss::Silence) => "is lost: the node was silent for too long",
        Some(Loss::Limit) => "is lost: its hold limit is over",
        Some(Loss::Told) => "is lost: the node gave it up",
        Some(Loss::SessionOver) => "is lost: its session is over",
        None => "is about to be lost",
    };
    format!("{holds} {gate} {why}")
}

/// The first guard that is lost, or has only `margin` left.
async fn first_endangered(guards: &[Guard], margin: Duration) -> (&str, Option<Loss>) {
    let mut all: Vec<_> = guards
        .iter()
        .map(|guard| Box::pin(async move { (guard.gate(), guard.endangered(margin).await) }))
        .collect();
    std::future::poll_fn(|context| {
        let mut polled = all.iter_mut().map(|one| one.as_mut().poll(context));
        let ready = polled.find(std::task::Poll::is_ready);
        ready.unwrap_or(std::task::Poll::Pending)
    })
    .await
}

/// Whom a signal is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The command and everything that it started, in a group of its own.
    Group,
    /// The command alone: in a terminal it stays in our group, or it could not read from it.
    Process,
}

impl Target {
    fn new() -> Target {
        match io::stdin().is_terminal() {
            true => Target::Process,
            false => Target::Group,
        }
    }

    /// Whether the command has had the signal already: a terminal sends its own to the whole group.
    fn heard(self, signal: Signal) -> bool {
        self == Target::Process && [Signal::INT, Signal::QUIT].contains(&signal)
    }

    fn send(self, pid: Pid, signal: Signal) -> rustix::io::Result<()> {
        match self {
            Target::Group => kill_process_group(pid, signal),
            Target::Process => kill_process(pid, signal),
        }
    }
}

/// The exit code of who is ended by a signal.
pub(crate) fn code_of(signal: Signal) -> u8 {
    128 + signal.as_raw() as u8
}

/// The signals that are passed on.
pub(crate) struct Signals([(Signal, unix::Signal); 4]);

impl Signals {
    pub(crate) fn new() -> Result<Signals, Ended> {
        let listen = |signal: Signal| {
            let listening = unix::signal(SignalKind::from_raw(signal.as_raw()));
            let listening = listening.map_err(|error| Ended::bad_input(error.to_string()))?;
            Ok::<_, Ended>((signal, listening))
        };
        Ok(Signals([
            listen(Signal::TERM)?,
            listen(Signal::INT)?,
            listen(Signal::HUP)?,
            listen(Signal::QUIT)?,
        ]))
    }

    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (signal, listening) in &mut self.0 {
                if listening.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*signal);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
