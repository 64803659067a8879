//! `testigo lock`: runs a command while it holds a lock, stops it when the lock is lost, and, with `--once` or `--every`,
//! runs it once and not only one at a time.

mod child;
pub(crate) mod leash;
mod once;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args, ValueEnum};
use testigo_client::{
    Client, Guard, Lock as Request, Mode, NotDone, OnceStart, Session, SessionOptions,
};
use tokio::time::timeout;

use crate::exit::{self, Outcome, UNKNOWN, UNREACHABLE, WAIT_ENDED, complain};
use crate::reach::{Ended, Reach, label};
use crate::span::Span;
use crate::speech::in_shell_words;
use child::{Child, Ran, Signals};
use once::Once;

/// How long to try to tell the node that all is over.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// Run a command while holding a lock.
///
/// Waits for the gate NAME, runs the command, and gives the gate back. Several names are
/// entered together, all or none. The command finds its fences in $TESTIGO_FENCES, as
/// name=fence name=fence, and that of a single gate in $TESTIGO_FENCE, too; hand it to
/// whatever the lock protects, for example with `testigo guard`. Fences of different gates
/// cannot be compared, so for several gates there is no $TESTIGO_FENCE.
///
/// When the lock is about to be lost because the node is silent, the command is stopped
/// before another can enter.
///
/// Exit code: that of the command, 128+N if signal N ended it; 75 the wait ended; 69 no node
/// reachable; 76 an attempt of --once or --every has an unknown outcome; 2 bad input;
/// 126 or 127 the command cannot run.
///
/// Examples:
///
///     testigo lock deploy -- ./deploy.sh
///     testigo lock db --shared --wait 30s --reason backup -- pg_dump shop
///     testigo lock nightly --every 24h -- ./nightly.sh
#[derive(Args)]
#[command(verbatim_doc_comment, group(ArgGroup::new("mode").args(["shared", "permits", "room"])))]
pub(crate) struct Lock {
    /// The gates to enter.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// As a reader, together with others.
    #[arg(long)]
    shared: bool,
    /// With so many of the gate's permits.
    #[arg(long, value_name = "H")]
    permits: Option<u32>,
    /// In this room of the gate.
    #[arg(long, value_name = "R")]
    room: Option<String>,
    /// Only if the room may stay for that long still.
    #[arg(long, value_name = "SPAN", requires = "room")]
    needs: Option<Span>,
    /// The priority class; 0 is most urgent.
    #[arg(long, value_name = "C")]
    class: Option<u32>,
    /// How long to wait; 0 only tries. Without it, as long as the node allows.
    #[arg(long, value_name = "SPAN")]
    wait: Option<Span>,
    /// What for, shown to others.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// What to do with the command when the lock is lost.
    #[arg(long, value_name = "WHAT", default_value = "term")]
    on_loss: OnLoss,
    /// How long the command may take to stop after SIGTERM, before SIGKILL; at most a quarter of the lock's time.
    #[arg(long, value_name = "SPAN", default_value = "2s")]
    grace: Span,
    /// How long this machine may be silent before the node gives its lock to another.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    ttl: Span,
    /// Run only if no run under this key has ended with 0 before.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["every", "mode"])]
    once: Option<String>,
    /// Run only if no run of this period, counted from 1970, has ended with 0 before.
    #[arg(long, value_name = "SPAN", conflicts_with = "mode")]
    every: Option<Span>,
    /// With --once or --every: run although an earlier attempt has an unknown outcome.
    #[arg(long)]
    retry_unknown: bool,
    /// The time to take for now, in milliseconds since 1970.
    #[arg(long, value_name = "MS", requires = "every", hide = true)]
    now: Option<u64>,
    #[command(flatten)]
    reach: Reach,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What becomes of the command when its lock is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLoss {
    /// SIGTERM, and SIGKILL after the grace; begun early enough to be over when the lock is.
    Term,
    /// SIGKILL.
    Kill,
    /// Let it run on: its fence tells it from the next holder.
    Ignore,
}

impl Lock {
    pub(crate) fn run(self) -> Outcome {
        self.reach.end_with(async {
            let mut signals = Signals::new()?;
            self.work(&mut signals).await
        })
    }

    async fn work(&self, signals: &mut Signals) -> Result<ExitCode, Ended> {
        let once = self.once_key()?;
        let open = async { self.open(&self.reach.connect().await?).await };
        let session = tokio::select! {
            session = open => session?,
            signal = signals.next() => return Ok(ExitCode::from(child::code_of(signal))),
        };
        let guards = tokio::select! {
            guards = session.lock_all(self.request()) => guards.map_err(not_run),
            signal = signals.next() => {
                close(session).await;
                return Ok(ExitCode::from(child::code_of(signal)));
            }
        };
        let end = match guards {
            Ok(Some(guards)) => self.inside(&session, guards, once, signals).await,
            Ok(None) => Err(Ended::new(
                WAIT_ENDED,
                format!("the wait for {} ended", self.names.join(", ")),
            )),
            Err(end) => Err(end),
        };
        close(session).await;
        end
    }

    async fn open(&self, client: &Client) -> Result<Session, Ended> {
        let options = SessionOptions {
            ttl: self.ttl.0,
            label: Some(label()),
        };
        client.open(options).await.map_err(not_run)
    }

    async fn inside(
        &self,
        session: &Session,
        guards: Vec<Guard>,
        once: Option<Once>,
        signals: &mut Signals,
    ) -> Result<ExitCode, Ended> {
        let Some(once) = once else {
            return self
                .run_command(&guards, signals)
                .await
                .map(|ran| ran.exit_code());
        };
        let (key, period) = once.key();
        let started = session.start_once(key, period, self.retry_unknown).await?;
        let attempt = match started {
            OnceStart::Run(attempt) => attempt,
            OnceStart::Done { period, at_ms } => {
                complain!("testigo: {}", once.done(period, at_ms));
                return Ok(ExitCode::SUCCESS);
            }
            OnceStart::Unknown { at_ms, .. } => {
                return Err(Ended::new(UNKNOWN, once.unknown(at_ms)));
            }
        };
        let ran = match self.run_command(&guards, signals).await {
            Ok(ran) => ran,
            Err(end) => {
                // It never ran.
                let _ = session.abandon_once(&attempt).await;
                return Err(end);
            }
        };
        let recorded = match (ran.success(), ran.lost) {
            (true, _) => session.finish_once(&attempt).await,
            (false, false) => session.abandon_once(&attempt).await,
            // It was stopped half-way: how far it came is for a person to find out.
            (false, true) => Ok(()),
        };
        match recorded {
            Ok(()) => Ok(ran.exit_code()),
            Err(not_done) if ran.success() => Err(Ended::new(
                UNKNOWN,
                format!(
                    "the command ended well, but that is not on record: {}",
                    in_shell_words(&not_done)
                ),
            )),
            Err(not_done) => {
                let why = in_shell_words(&not_done);
                complain!("testigo: the failed attempt is still on record: {why}");
                Ok(ran.exit_code())
            }
        }
    }

    async fn run_command(&self, guards: &[Guard], signals: &mut Signals) -> Result<Ran, Ended> {
        let child = Child {
            command: &self.command,
            environment: self.environment(guards),
            on_loss: self.on_loss,
            grace: self.grace(guards),
        };
        child.run(guards, signals).await.map_err(|error| {
            let why = format!("{} cannot run: {error}", self.command[0].display());
            let code = exit::code_of_unrunnable(&error);
            Ended::new(code, why)
        })
    }

    /// The time that the command gets to stop is taken from the end of the lock's own time, so it is no large part of it.
    fn grace(&self, guards: &[Guard]) -> Duration {
        let now = Instant::now();
        let left = |guard: &Guard| guard.deadline().saturating_duration_since(now);
        let shortest = guards.iter().map(left).min().unwrap_or_default();
        self.grace.0.min(shortest / 4)
    }

    fn environment(&self, guards: &[Guard]) -> Vec<(&'static str, Option<String>)> {
        let fence = |guard: &Guard| format!("{}={}", guard.gate(), guard.fence());
        let single = match guards {
            [guard] => Some(guard.fence().to_string()),
            _ => None,
        };
        let all: Vec<String> = guards.iter().map(fence).collect();
        vec![
            ("TESTIGO_FENCE", single),
            ("TESTIGO_FENCES", Some(all.join(" "))),
            ("TESTIGO_RESP", Some(self.reach.resp.to_string())),
        ]
    }

    fn request(&self) -> Request {
        let mode = match (self.shared, self.permits, &self.room) {
            (true, ..) => Mode::Shared,
            (_, Some(count), _) => Mode::Permits(count),
            (.., Some(room)) => Mode::Room(room.clone()),
            _ => Mode::Exclusive,
        };
        let mut request = Request::all(&self.names).mode(mode);
        let option = |span: Option<Span>| span.map(|Span(span)| span);
        if let Some(needs) = option(self.needs) {
            request = request.needs(needs);
        }
        if let Some(class) = self.class {
            request = request.class(class);
        }
        if let Some(wait) = option(self.wait) {
            request = request.wait(wait);
        }
        if let Some(reason) = &self.reason {
            request = request.reason(reason);
        }
        request
    }

    fn once_key(&self) -> Result<Option<Once>, Ended> {
        match (&self.once, self.every) {
            (Some(key), _) => Ok(Some(Once::for_ever(key))),
            (None, Some(Span(Duration::ZERO))) => {
                Err(Ended::bad_input("--every needs a span above 0"))
            }
            (None, Some(span)) => Ok(Some(Once::every(span, &self.names, self.now))),
            (None, None) if self.retry_unknown => {
                Err(Ended::bad_input("--retry-unknown needs --once or --every"))
            }
            (None, None) => Ok(None),
        }
    }
}

/// Whatever became of the session and its lock, the command has not run, and that is known.
fn not_run(not_done: NotDone) -> Ended {
    let ended = Ended::from(not_done);
    match ended.is_unknown() {
        true => Ended::new(UNREACHABLE, ended.why),
        false => ended,
    }
}

/// Closes a session, which gives everything back. If the node cannot be told, it finds out by itself after the TTL.
async fn close(session: Session) {
    let _ = timeout(CLOSE_PATIENCE, session.close()).await;
}
