//! The leash of a command: what ends the commands of a process when the right to run them ends, also where that process is
//! stopped or killed and can do nothing itself. The [`Keeper`](keeper::Keeper) is a process of its own, told through a pipe
//! what to watch and until when all is well.

mod aim;
mod begin;
mod keeper;

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, getpgrp};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

pub(crate) use aim::Aim;
pub(crate) use begin::Begin;
pub(crate) use keeper::Keep;
use keeper::{Word, clock};

/// What becomes of a command when what it holds is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum OnLoss {
    /// SIGTERM, and SIGKILL after the grace; begun early enough to be over by the time of the loss.
    Term,
    /// SIGKILL.
    Kill,
    /// Let it run on: its fence tells it from the next holder.
    Ignore,
}

/// How a command is kept.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// What becomes of it when the time is over.
    pub(crate) on_loss: OnLoss,
    /// What becomes of it when the process that started it is gone.
    pub(crate) orphaned: OnLoss,
    /// How long it may take to stop after SIGTERM, at the end of its time.
    pub(crate) grace: Duration,
}

/// How often it is looked whether all processes of a stopped command are gone.
const LOOKED_EVERY: Duration = Duration::from_millis(5);
/// How long the keeper may take to say how a command ended. Only one that is stopped itself takes longer.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

/// The keeper of this process' commands, as this process sees it.
pub(crate) struct Leash {
    pipe: Arc<OwnedFd>,
    reports: Arc<Reports>,
    gone: watch::Receiver<bool>,
}

/// Who waits to be told whether the keeper has stopped a command.
#[derive(Default)]
struct Reports(Mutex<BTreeMap<i32, oneshot::Sender<bool>>>);

/// A command that is to begin on a leash, to which its words are still to be added. `orphaned` is for the case that its leash
/// is killed together with this process.
pub(crate) fn command(orphaned: OnLoss) -> io::Result<Command> {
    let mut command = this_program()?;
    let orphaned = orphaned.to_possible_value().expect("no word is skipped");
    command.args([begin::NAME, orphaned.get_name()]);
    command.args([&std::process::id().to_string(), "--"]);
    Ok(command)
}

/// This program itself, to which its words are still to be added.
fn this_program() -> io::Result<Command> {
    // By this name a program finds itself even after its file was replaced.
    Ok(match cfg!(target_os = "linux") {
        true => Command::new("/proc/self/exe"),
        false => Command::new(std::env::current_exe()?),
    })
}

impl Leash {
    pub(crate) fn start() -> io::Result<Leash> {
        let mut command = this_program()?;
        command.arg(keeper::NAME).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        // Signals for this process and its terminal are not for it.
        let mut keeper = command.process_group(0).spawn()?;
        let piped = || io::Error::other("a child without its pipes");
        let pipe = keeper.stdin.take().ok_or_else(piped)?;
        let said = keeper.stdout.take().ok_or_else(piped)?;
        let reports = Arc::new(Reports::default());
        let (gone, is_gone) = watch::channel(false);
        tokio::spawn(listen(
            BufReader::new(said).lines(),
            Arc::clone(&reports),
            gone,
        ));
        Ok(Leash {
            // It does not block: a keeper that is stopped holds nobody up.
            pipe: Arc::new(pipe.into_owned_fd()?),
            reports,
            gone: is_gone,
        })
    }

    /// Begins a [`command`] that reads from `stdin`. In the group of this process it can read from the terminal; in one of
    /// its own, everything that it starts is on the leash too.
    pub(crate) fn begin(
        &self,
        mut command: Command,
        stdin: BorrowedFd<'_>,
        own_group: bool,
        (terms, until): (Terms, Instant),
    ) -> io::Result<Leashed<'_>> {
        let (gate, theirs) = UnixStream::pair()?;
        command.stdin(OwnedFd::from(theirs)).kill_on_drop(true);
        match own_group {
            true => command.process_group(0),
            false => command.process_group(getpgrp().as_raw_nonzero().get()),
        };
        let child = command.spawn()?;
        // Our end is the only one to be open here: without us the command does not begin.
        drop(command);
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pid = pid.ok_or_else(|| io::Error::other("a child without a number"))?;
        let aim = Aim::new(pid, own_group);
        let reins = Reins {
            pipe: Arc::clone(&self.pipe),
            aim,
        };
        let at = at(until);
        if !reins.tell(&Word::Begin { aim, terms, at }) {
            return Err(io::Error::other("its leash is gone"));
        }
        open(&gate, stdin)?;
        Ok(Leashed {
            leash: self,
            child,
            terms,
            reins,
        })
    }

    async fn gone(&self) {
        // Without its sender nobody listens to the keeper any more.
        let _ = self.gone.clone().wait_for(|gone| *gone).await;
    }
}

/// Hands the command what it reads from, which lets it begin.
fn open(gate: &UnixStream, stdin: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut handed = SendAncillaryBuffer::new(&mut space);
    let all = [stdin];
    handed.push(SendAncillaryMessage::ScmRights(&all));
    let word = [IoSlice::new(&[begin::WORD])];
    sendmsg(gate, &word, &mut handed, SendFlags::empty())?;
    Ok(())
}

/// Hears what the keeper says, until it is gone.
async fn listen(
    mut said: Lines<BufReader<ChildStdout>>,
    reports: Arc<Reports>,
    gone: watch::Sender<bool>,
) {
    while let Ok(Some(line)) = said.next_line().await {
        let Ok((pid, stopped)) = serde_json::from_str(&line) else {
            break;
        };
        if let Some(end) = reports.all().remove(&pid) {
            // Who does not wait for it any more goes without.
            let _ = end.send(stopped);
        }
    }
    gone.send_replace(true);
    reports.all().clear();
}

impl Reports {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, oneshot::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The deadline on the keeper's clock. Whoever is stopped between the two looks at a clock gives a time that is too early.
fn at(deadline: Instant) -> u64 {
    let now = clock();
    let left = deadline.saturating_duration_since(Instant::now());
    now.saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
}

/// How a command is reached that is on a leash.
#[derive(Clone)]
pub(crate) struct Reins {
    pipe: Arc<OwnedFd>,
    aim: Aim,
}

impl Reins {
    /// Its right to run has been renewed. If that cannot be told, the time that was told before counts.
    pub(crate) fn good_until(&self, deadline: Instant) {
        let (pid, at) = (self.aim.pid(), at(deadline));
        self.tell(&Word::Until { pid, at });
    }

    /// Passes a signal on to the command.
    pub(crate) fn pass_on(&self, signal: Signal) {
        if !self.aim.has_heard(signal) {
            self.aim.send(signal);
        }
    }

    /// Has it stopped now, if that is not done yet; false if there is nobody who would.
    fn stop(&self, on_loss: OnLoss, grace: Duration) -> bool {
        let pid = self.aim.pid();
        self.tell(&Word::Stop {
            pid,
            on_loss,
            grace,
        })
    }

    /// Whether the keeper will read it.
    fn tell(&self, word: &Word) -> bool {
        let mut line = serde_json::to_vec(word).expect("plain data");
        line.push(b'\n');
        // A line is shorter than what a pipe takes as a whole or not at all.
        rustix::io::write(&self.pipe, &line).is_ok_and(|written| written == line.len())
    }
}

/// A command and what it has started.
fn all_of(aim: Aim, family: &[Aim]) -> impl Iterator<Item = Aim> {
    std::iter::once(aim).chain(family.iter().copied())
}

/// A command on a leash.
pub(crate) struct Leashed<'a> {
    leash: &'a Leash,
    child: Child,
    terms: Terms,
    reins: Reins,
}

/// How a command on a leash ended.
pub(crate) struct Run<T, C> {
    pub(crate) status: ExitStatus,
    /// What came of its input and output; nothing if somebody else keeps them open.
    pub(crate) traffic: Option<T>,
    /// Why it was stopped.
    pub(crate) stopped: Option<Stopped<C>>,
}

/// Why a command was stopped.
pub(crate) enum Stopped<C> {
    /// There was a cause.
    For(C),
    /// Its time was over.
    Late,
    /// Its leash was killed.
    Unleashed,
}

impl Leashed<'_> {
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn reins(&self) -> Reins {
        self.reins.clone()
    }

    /// Runs it until it and its `traffic` end, or until there is a `cause` to stop it, within a grace.
    pub(crate) async fn run<T, C>(
        mut self,
        traffic: impl Future<Output = T>,
        cause: impl Future<Output = C>,
        grace: Duration,
    ) -> io::Result<Run<T, C>> {
        let (mut traffic, mut cause) = (pin!(traffic), pin!(cause));
        let (mut moved, mut status, mut stopped) = (None, None, None);
        let leash = self.leash;
        while stopped.is_none() && (moved.is_none() || status.is_none()) {
            tokio::select! {
                biased;
                ended = self.child.wait(), if status.is_none() => status = Some(ended?),
                all = &mut traffic, if moved.is_none() => moved = Some(all),
                cause = &mut cause => stopped = Some(Stopped::For(cause)),
                () = leash.gone(), if self.terms.on_loss != OnLoss::Ignore => {
                    stopped = Some(Stopped::Unleashed);
                }
            }
        }
        if stopped.is_some() {
            let on_loss = match self.terms.on_loss {
                OnLoss::Kill => OnLoss::Kill,
                OnLoss::Term | OnLoss::Ignore => OnLoss::Term,
            };
            let aim = self.reins.aim;
            let family = aim.family();
            if *leash.gone.borrow() || !self.reins.stop(on_loss, grace) {
                all_of(aim, &family).for_each(|one| one.stop(on_loss));
            }
            let gone = async {
                if status.is_none() {
                    status = self.child.wait().await.ok();
                }
                if moved.is_none() {
                    moved = Some((&mut traffic).await);
                }
                // What it started may take longer than itself.
                while all_of(aim, &family).any(Aim::is_there) {
                    sleep(LOOKED_EVERY).await;
                }
            };
            if timeout(grace, gone).await.is_err() {
                // The keeper does the same; but it may be stopped itself.
                all_of(aim, &family).for_each(|one| one.send(Signal::KILL));
            }
        }
        let status = match status {
            Some(status) => status,
            None => self.child.wait().await?,
        };
        if moved.is_none() {
            // Who has left the group may keep a pipe open; it is not waited for.
            moved = timeout(grace, traffic).await.ok();
        }
        if self.end().await && stopped.is_none() {
            stopped = Some(Stopped::Late);
        }
        Ok(Run {
            status,
            traffic: moved,
            stopped,
        })
    }

    /// Takes it off the leash, and says whether the keeper has stopped it.
    async fn end(&self) -> bool {
        let pid = self.reins.aim.pid();
        let (end, ended) = oneshot::channel();
        self.leash.reports.all().insert(pid, end);
        if *self.leash.gone.borrow() || !self.reins.tell(&Word::End { pid }) {
            return false;
        }
        matches!(timeout(REPORT_PATIENCE, ended).await, Ok(Ok(true)))
    }
}

impl Drop for Leashed<'_> {
    fn drop(&mut self) {
        let pid = self.reins.aim.pid();
        self.leash.reports.all().remove(&pid);
        // Of one that has ended it knows nothing any more.
        self.reins.tell(&Word::End { pid });
    }
}
