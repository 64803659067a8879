//! One run of the program: fed with a body, its output collected, and stopped with everything that it started when its
//! job is not ours any more.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use testigo::node::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use super::reaper::Reaper;
use crate::lock::leash;

/// A program to run once.
pub(super) struct Program<'a> {
    pub(super) command: Vec<OsString>,
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// What it reads; without it there is nothing to read.
    pub(super) body: Option<&'a [u8]>,
    /// Whether what it prints is collected; else it is printed.
    pub(super) collect: bool,
    pub(super) grace: Duration,
    pub(super) reaper: &'a Reaper,
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

/// How often it is looked whether all of a stopped program's processes are gone.
const LOOKED_EVERY: Duration = Duration::from_millis(5);

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ran<C> {
    /// By itself.
    Ended(Ended),
    /// It was stopped for this cause.
    Stopped(C),
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
    /// Runs it to its end, or until there is a cause to stop it.
    pub(super) async fn run<C>(self, cause: impl Future<Output = C>) -> io::Result<Ran<C>> {
        let mut child = self.start()?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let _watched = self.reaper.watch(pid);
        let send = |signal| {
            // One that is gone already needs no signal.
            let _ = pid.map(|pid| kill_process_group(pid, signal));
        };
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut all =
            pin!(async { tokio::join!(feed(input, self.body), drink(output), child.wait()) });
        let cause = tokio::select! {
            biased;
            ((), output, status) = &mut all => return ended(output?, status?),
            cause = cause => cause,
        };
        send(Signal::TERM);
        let mut over = false;
        let gone = async {
            let _ = (&mut all).await;
            over = true;
            // What it started may take longer than itself.
            while pid.is_some_and(|pid| test_kill_process_group(pid).is_ok()) {
                sleep(LOOKED_EVERY).await;
            }
        };
        if timeout(self.grace, gone).await.is_err() {
            send(Signal::KILL);
            if !over {
                // Who has left the group may keep the pipe open; it is not waited for.
                let _ = timeout(self.grace, &mut all).await;
            }
        }
        Ok(Ran::Stopped(cause))
    }

    fn start(&self) -> io::Result<tokio::process::Child> {
        // It dies with the harness: the node gives its job to another at that moment.
        // The reaper is told of it before it begins: what it starts must not outlive the harness either.
        let mut command = leash::waiting_command("kill")?;
        command.args(&self.command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped());
        if self.collect {
            command.stdout(Stdio::piped());
        }
        // A terminal's signals are for the harness, which lets what runs finish.
        command.process_group(0);
        Command::from(command).kill_on_drop(true).spawn()
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

fn ended<C>(output: Vec<u8>, status: ExitStatus) -> io::Result<Ran<C>> {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Ran::Ended(Ended {
        code,
        output,
        status,
    }))
}

/// Lets the program begin, and gives it the body, of which it need not read all.
async fn feed(input: Option<ChildStdin>, body: Option<&[u8]>) {
    let Some(mut input) = input else {
        return;
    };
    let begin = match body {
        Some(_) => leash::BEGIN_READING,
        None => leash::BEGIN,
    };
    if input.write_all(&[begin]).await.is_ok() {
        let _ = input.write_all(body.unwrap_or_default()).await;
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
