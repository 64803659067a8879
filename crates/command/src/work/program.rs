//! One run of the program: fed with a body, its output collected, and stopped with everything that it started when its
//! job is not ours any more.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use testigo::node::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Sender;
use tokio::process::ChildStdout;

use crate::leash::{self, Leash, OnLoss, Reins, Stopped, Terms};

/// A program to run once.
pub(super) struct Program<'a> {
    pub(super) command: Vec<OsString>,
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// What it reads; without it there is nothing to read.
    pub(super) body: Option<&'a [u8]>,
    /// Whether what it prints is collected; else it is printed.
    pub(super) collect: bool,
    pub(super) grace: Duration,
    pub(super) leash: &'a Leash,
}

/// Refuses a program that is nowhere to be found, before a job is taken for it.
pub(super) fn expect(program: &OsStr) -> Result<(), crate::reach::Ended> {
    let path = Path::new(program);
    let places: Vec<PathBuf> = match path.components().count() > 1 {
        true => vec![path.to_owned()],
        false => {
            let places = std::env::var_os("PATH").unwrap_or_default();
            let places = std::env::split_paths(&places);
            places.map(|place| place.join(path)).collect()
        }
    };
    let found: Vec<&PathBuf> = places.iter().filter(|path| path.is_file()).collect();
    let runs = |path: &&PathBuf| access(path.as_path(), Access::EXEC_OK).is_ok();
    let (code, why) = match (found.is_empty(), found.iter().any(runs)) {
        (false, true) => return Ok(()),
        (false, false) => (126, "it may not be executed"),
        (true, _) => (127, "there is no such program"),
    };
    let program = program.display();
    Err(crate::reach::Ended::new(
        code,
        format!("{program} cannot run: {why}"),
    ))
}

/// How long a program may run on after the last sign that its job is still ours. A node takes a job from a connection that is
/// silent for 12 seconds, by its own clock.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ran<C> {
    /// By itself.
    Ended(Ended),
    /// It was stopped for this cause; for none, if the harness had been stopped itself, or its leash was killed.
    Stopped(Option<C>),
}

/// A run that ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    /// The exit code; none when a signal ended it.
    pub(super) code: Option<u8>,
    pub(super) output: Vec<u8>,
    status: ExitStatus,
}

impl Ended {
    /// Whether it printed more than a body may be.
    pub(super) fn too_much(&self) -> bool {
        self.output.len() > Limits::BODY_BYTES
    }

    pub(super) fn describe(&self) -> String {
        match (self.code, self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "ended".into(),
        }
    }
}

impl Program<'_> {
    /// Runs it to its end, or until there is a cause to stop it. `begun` is told how to reach it.
    pub(super) async fn run<C>(
        self,
        begun: impl FnOnce(Reins),
        cause: impl Future<Output = C>,
    ) -> io::Result<Ran<C>> {
        // Its job is not its own any more when the harness is gone: the node gives it to another at that moment.
        let terms = Terms {
            on_loss: OnLoss::Term,
            orphaned: OnLoss::Kill,
            grace: self.grace.min(GOOD_FOR / 4),
        };
        let mut command = leash::command(OnLoss::Kill)?;
        command.args(&self.command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.collect {
            command.stdout(Stdio::piped());
        }
        let (input, feed) = match self.body {
            None => (OwnedFd::from(File::open("/dev/null")?), None),
            Some(body) => {
                let (input, feed) = io::pipe()?;
                let feed = Sender::from_owned_fd(feed.into())?;
                (input.into(), Some((feed, body)))
            }
        };
        // A terminal's signals are for the harness, which lets what runs finish.
        let kept = (terms, Instant::now() + GOOD_FOR);
        let mut leashed = self.leash.begin(command, input.as_fd(), true, kept)?;
        drop(input);
        begun(leashed.reins());
        let output = leashed.child().stdout.take();
        let traffic = async { tokio::join!(drink(output), fill(feed)).0 };
        let run = leashed.run(traffic, cause, self.grace).await?;
        match run.stopped {
            None => {}
            Some(Stopped::For(cause)) => return Ok(Ran::Stopped(Some(cause))),
            Some(Stopped::Late | Stopped::Unleashed) => return Ok(Ran::Stopped(None)),
        }
        let status = run.status;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(Ran::Ended(Ended {
            code,
            output: run.traffic.unwrap_or_else(|| Ok(Vec::new()))?,
            status,
        }))
    }
}

/// Whether what is printed goes nowhere: the other end of standard output is gone.
pub(super) fn nobody_reads() -> bool {
    let out = io::stdout();
    let mut looked = [PollFd::new(&out, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let known = poll(&mut looked, Some(&at_once)).is_ok();
    let gone = PollFlags::ERR | PollFlags::HUP;
    known && looked[0].revents().intersects(gone)
}

/// Gives the program the body, of which it need not read all.
async fn fill(feed: Option<(Sender, &[u8])>) {
    if let Some((mut feed, body)) = feed {
        let _ = feed.write_all(body).await;
    }
}

/// All that it prints, up to a byte more than a body may have: then the pipe is closed.
async fn drink(output: Option<ChildStdout>) -> io::Result<Vec<u8>> {
    let mut collected = Vec::new();
    if let Some(output) = output {
        let most = Limits::BODY_BYTES as u64 + 1;
        output.take(most).read_to_end(&mut collected).await?;
    }
    Ok(collected)
}
