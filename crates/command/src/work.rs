//! `testigo work`: the harness that makes any program a process of a flow.

mod aside;
mod duty;
mod files;
mod hand;
mod orphans;
mod program;
mod progress;
mod worker;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use testigo_client::{Connection, NotDone, Target, Word};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::exit::{NOT_GOOD, Outcome};
use crate::filesroot::{FilesRoot, FilesRootOption};
use crate::leash::{Leash, Reins};
use crate::reach::{Ended, Reach, connection_name};
use crate::signals::{Signals, of_job_control, stop_if_told};
use crate::span::Span;
use aside::Failures;
use duty::{Duty, Exit};
use progress::Progress;
use worker::Worker;

/// The most programs that one harness runs at once.
const JOBS_MAX: u16 = 1000;

/// Run a program as a process of a flow, once for each job.
///
/// Takes jobs from the queues that PROCESS takes from, and runs the command for each: the job's
/// body on its standard input, and what it prints is the body for the next queue. A process that
/// ends jobs prints to standard output instead. The command finds $TESTIGO_JOB (the id),
/// $TESTIGO_JOB_NAME, $TESTIGO_QUEUE (where it came from), $TESTIGO_ATTEMPT, $TESTIGO_FLOW and
/// $TESTIGO_PROCESS.
///
/// Its exit code says what becomes of the job:
///   0          on to the process' only output queue; deleted, if it has none
///   75         it waits again as if it had not been taken; there is a pause before the next
///   126, 127   the command cannot run: the job waits again and the harness ends
///   any other, or a signal: it failed. It waits again; when it fails more often than the queue's
///              `retries` allow, it goes to the reject queue. If there is none, others come first
///              and it is tried again after a pause, up to a second; with --drain it is then left
/// --exit CODE=WHAT says otherwise, where WHAT is a queue, or one of the words delete, back and
/// fail (a queue of such a name is written in brackets).
///
/// With --files the data are files in the queues' data directories, below --files-root: the words {in} and {out} of the
/// command, also as in --from={in}, and $TESTIGO_IN and $TESTIGO_OUT are their paths. In the text of
/// a shell write "$TESTIGO_IN": a name may hold what a shell would run. The output is on disk before
/// the job is passed on, and the input is removed only after that. What a crash left over there is
/// removed at the start.
///
/// SIGTERM, SIGINT and SIGHUP let what runs finish and take nothing new; a second one stops at
/// once and gives the jobs back. If the harness is killed, its jobs wait again at once, and what runs
/// is killed.
///
/// Exit code: 0 stopped, or drained; 1 with --once or --drain, a job failed; 2 bad input; 69 no
/// node reachable; 126 or 127 the command cannot run; 128+N stopped at once by signal N; 141 nobody
/// reads what is printed: the job waits again.
///
/// Examples:
///
///     testigo work orders price --jobs 4 -- ./price.py
///     testigo work orders check --exit 0=priced --exit 3=rework -- ./check.sh
///     testigo work pictures grey --files -- ./grey.py {in} {out}
///     testigo work words upper --files -- sh -c 'tr a-z A-Z < "$TESTIGO_IN" > "$TESTIGO_OUT"'
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Work {
    /// The flow.
    flow: String,
    /// The process of the flow that the command is.
    process: String,
    /// How many jobs at once, each with a command of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(JOBS_MAX)))]
    jobs: u16,
    /// The data are files in the queues' data directories.
    #[arg(long)]
    files: bool,
    #[command(flatten)]
    files_root: FilesRootOption,
    /// Pass the body, or the file, on as it came; what the command prints is printed.
    #[arg(long)]
    keep: bool,
    /// What an exit code means: CODE=QUEUE, CODE=delete, CODE=back or CODE=fail.
    #[arg(long, value_name = "CODE=WHAT")]
    exit: Vec<Exit>,
    /// End after one job.
    #[arg(long, conflicts_with = "jobs")]
    once: bool,
    /// End when no job waits but those that failed too often.
    #[arg(long)]
    drain: bool,
    /// A command that runs longer is stopped, and has failed.
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
    /// How long a command may take to stop after SIGTERM, before SIGKILL.
    #[arg(long, value_name = "SPAN", default_value = "5s")]
    grace: Span,
    /// Say nothing but what goes wrong.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    reach: Reach,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What all workers of a harness share.
struct Harness {
    work: Work,
    target: Target,
    /// What others see the connections called.
    name: String,
    progress: Progress,
    failures: Failures,
    leash: Leash,
    running: Mutex<BTreeMap<u64, Reins>>,
    stop: watch::Receiver<Stop>,
    root: FilesRoot,
}

/// How far the harness is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stop {
    No,
    /// What runs finishes; nothing new is taken.
    Drain,
    /// What runs is stopped and given back.
    Now,
}

impl Work {
    pub(crate) fn run(self) -> Outcome {
        let reach = self.reach.clone();
        reach.end_with(self.work())
    }

    async fn work(self) -> Result<ExitCode, Ended> {
        program::expect(&self.command[0])?;
        let mut signals = Signals::of(&[Signal::TERM, Signal::INT, Signal::HUP])?;
        let (stopper, stop) = watch::channel(Stop::No);
        let harness = Arc::new(Harness {
            target: self.reach.target()?,
            name: connection_name(),
            progress: Progress::new(self.quiet),
            failures: Failures::default(),
            leash: Leash::start().map_err(|error| Ended::bad_input(error.to_string()))?,
            running: Mutex::default(),
            root: self.files_root.open()?,
            stop,
            work: self,
        });
        harness.begin().await?;
        let mut workers = JoinSet::new();
        for number in 0..harness.work.jobs {
            workers.spawn(Worker::new(Arc::clone(&harness), number).run());
        }
        let (mut signalled, mut end) = (None, Ok(()));
        loop {
            tokio::select! {
                joined = workers.join_next() => match joined {
                    None => break,
                    Some(Ok(Ok(()))) => {}
                    Some(Ok(Err(ended))) => {
                        stopper.send_if_modified(|stop| raise(stop, Stop::Drain));
                        end = end.and(Err(ended));
                    }
                    Some(Err(panicked)) => {
                        stopper.send_if_modified(|stop| raise(stop, Stop::Drain));
                        end = end.and(Err(Ended::bad_input(panicked.to_string())));
                    }
                },
                signal = signals.any() => {
                    if of_job_control(signal) {
                        harness.running().values().for_each(|reins| reins.pass_on(signal));
                        stop_if_told(signal);
                        continue;
                    }
                    let so_far = *stopper.borrow();
                    let (to, line) = match so_far {
                        Stop::No => (Stop::Drain, "stopping: what runs finishes; once more stops it at once"),
                        _ => (Stop::Now, "stopping at once: what runs is given back"),
                    };
                    if to == Stop::Now {
                        signalled = Some(signal);
                    }
                    harness.progress.remark(line);
                    stopper.send_if_modified(|stop| raise(stop, to));
                }
            }
        }
        let left = harness.failures.jobs();
        if harness.work.drain && left > 0 {
            let line = format!("jobs that failed and stay where they are: {left}");
            harness.progress.say(&line);
        }
        let failed = harness.progress.end();
        end?;
        Ok(match signalled {
            Some(signal) => ExitCode::from(128 + signal.as_raw() as u8),
            None if failed && (harness.work.once || harness.work.drain) => ExitCode::from(NOT_GOOD),
            None => ExitCode::SUCCESS,
        })
    }
}

/// A harness only ever stops more.
fn raise(stop: &mut Stop, to: Stop) -> bool {
    let raised = to > *stop;
    *stop = to.max(*stop);
    raised
}

impl Harness {
    /// The programs that run, by their jobs.
    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Reins>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a node and a flow, and the options fit the process: said before anything runs.
    async fn begin(&self) -> Result<(), Ended> {
        if self.work.files {
            files::check(&self.work.command)?;
        }
        let mut connection = self.work.reach.open().await?;
        let duty = self.duty(&mut connection).await?;
        self.progress.remark(&duty.describe());
        if self.work.files {
            let removed = orphans::collect(&mut connection, &duty, &self.root).await?;
            if removed > 0 {
                let line = format!("removed {removed} files of ended attempts, which no job names");
                self.progress.remark(&line);
            }
        }
        Ok(())
    }

    async fn open(&self) -> Result<Connection, NotDone> {
        Connection::open(&self.target, &self.name).await
    }

    /// What the process is to do, as the flow is now.
    async fn duty(&self, connection: &mut Connection) -> Result<Duty, Ended> {
        let show = ["FLOW", "SHOW", &*self.work.flow];
        let shown = connection.say(&show).await;
        let flow = match shown {
            // A process sees its own flow, also where its user sees none, or works on flows only as one.
            Err(not_done) if not_done.word() == Some(&Word::Denied) => {
                let (flow, process) = (&self.work.flow, &self.work.process);
                if connection.present(flow, process).await.is_err() {
                    return Err(not_done.into());
                }
                connection.say(&show).await?
            }
            shown => shown?,
        };
        let duty = Duty::read(&flow, &self.work.process, &self.work.exit)?;
        if self.work.files {
            files::prepare(&duty, &self.root)?;
        }
        Ok(duty)
    }

    /// Comes when the harness is told to stop at least so far.
    async fn stopped(&self, far: Stop) {
        // Without its sender there is nobody left to stop.
        let _ = self.stop.clone().wait_for(|stop| *stop >= far).await;
    }

    fn stops(&self, far: Stop) -> bool {
        *self.stop.borrow() >= far
    }

    /// Pauses, or stops pausing because the harness stops so far.
    async fn pause(&self, pause: Duration, far: Stop) {
        let _ = tokio::time::timeout(pause, self.stopped(far)).await;
    }
}
