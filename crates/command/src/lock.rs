//! `testigo lock`: runs a command while it holds a lock, stops it when the lock is lost, and, with `--once` or `--every`,
//! runs it once and not only one at a time.

pub(crate) mod held;
mod once;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args};
use testigo_client::{Guard, Lock as Request, Mode, OnceStart, Session};

use crate::exit::{Outcome, UNKNOWN, WAIT_ENDED, complain};
use crate::reach::{Ended, Reach};
use crate::signals::{Signals, code_of};
use crate::span::Span;
use crate::speech::in_shell_words;
use held::{Held, Ran, close, not_run};
use once::Once;

/// Run a command while holding a lock.
///
/// Waits for the gate NAME, runs the command, and gives the gate back. Several names are
/// entered together, all or none. The command finds its fences in $TESTIGO_FENCES, as
/// name=fence name=fence, and that of a single gate in $TESTIGO_FENCE, too; hand it to
/// whatever the lock protects, for example with `testigo guard`. Fences of different gates
/// cannot be compared, so for several gates there is no $TESTIGO_FENCE.
///
/// When the lock is about to be lost because the node is silent, or because this program is
/// stopped (Ctrl-Z), the command is stopped before another can enter: a process apart, its
/// leash, does that.
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
    #[command(flatten)]
    held: Held,
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

impl Lock {
    pub(crate) fn run(self) -> Outcome {
        self.reach.end_with(async {
            let mut signals = Signals::new()?;
            self.work(&mut signals).await
        })
    }

    async fn work(&self, signals: &mut Signals) -> Result<ExitCode, Ended> {
        let once = self.once_key()?;
        let open = async { self.held.open(&self.reach.connect().await?).await };
        let session = tokio::select! {
            session = open => session?,
            signal = signals.next() => return Ok(ExitCode::from(code_of(signal))),
        };
        let guards = tokio::select! {
            guards = session.lock_all(self.request()) => guards.map_err(not_run),
            signal = signals.next() => {
                close(session).await;
                return Ok(ExitCode::from(code_of(signal)));
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
        let environment = self.environment(guards);
        self.held
            .run(&self.command, environment, ("the lock", guards), signals)
            .await
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
