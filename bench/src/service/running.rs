//! A server that runs, and what all of them need to be started and stopped.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A server that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    /// What it calls itself.
    pub(crate) version: String,
    /// What stops it fast and cleanly, where an interrupt does not.
    pub(super) stop: Signal,
    /// The server, and what else was started for it; stopped in this order.
    children: Vec<Child>,
    data: Option<TempDir>,
}

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Service {
    pub(super) fn new(
        address: SocketAddr,
        version: String,
        child: Child,
        data: TempDir,
    ) -> Service {
        Service {
            address,
            version,
            stop: Signal::INT,
            children: vec![child],
            data: Some(data),
        }
    }

    /// Has another process stopped after the server.
    pub(super) fn with(mut self, companion: Child) -> Service {
        self.children.push(companion);
        self
    }

    pub(crate) fn process(&self) -> u32 {
        self.children.first().map_or(0, Child::id)
    }

    /// The server and all that descend from it.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut found = vec![self.process()];
        let mut next = 0;
        while let Some(&parent) = found.get(next) {
            next += 1;
            let others = fs::read_dir("/proc").into_iter().flatten().flatten();
            let others = others.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            found.extend(others.filter(|other| parent_of(*other) == Some(parent)));
        }
        found
    }

    /// Where its data are.
    pub(crate) fn data(&self) -> Option<&Path> {
        self.data.as_ref().map(TempDir::path)
    }

    /// Ends it as a failing machine would, and gives back what is on its disk.
    pub(crate) fn kill(mut self) -> Result<TempDir, String> {
        for child in &mut self.children {
            let ended = child.kill().and_then(|()| child.wait());
            ended.map_err(|e| format!("cannot kill {}: {e}", self.version))?;
        }
        self.children.clear();
        self.data.take().ok_or("it has no data".into())
    }

    /// Asks until there is an answer.
    pub(super) fn once_it_answers(
        mut self,
        probe: impl Fn(&mut TcpStream) -> Result<(), String>,
    ) -> Result<Service, String> {
        let start = Instant::now();
        loop {
            let answered = TcpStream::connect(self.address)
                .and_then(|stream| {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    Ok(stream)
                })
                .map_err(|e| e.to_string())
                .and_then(|mut stream| probe(&mut stream));
            let Err(why) = answered else {
                return Ok(self);
            };
            let ended = self.children.first_mut().map(Child::try_wait);
            if let Some(Ok(Some(status))) = ended {
                return Err(format!("{} ended at its start: {status}", self.version));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{} does not answer: {why}", self.version));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = kill_process(Pid::from_child(child), self.stop);
            let start = Instant::now();
            let mut runs = true;
            while runs && start.elapsed() < PATIENCE {
                runs = matches!(child.try_wait(), Ok(None));
                if runs {
                    thread::sleep(LOOK_AGAIN);
                }
            }
            if runs {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn parent_of(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The state and the parent follow the name, which ends with a parenthesis.
    let (_, fields) = text.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

/// Starts a process that reads nothing.
pub(super) fn start(command: &mut Command) -> Result<Child, String> {
    let name = command.get_program().to_owned();
    let child = command.stdin(Stdio::null()).spawn();
    child.map_err(|error| format!("cannot start {}: {error}", name.display()))
}

/// As [`start`], with all that it says in the file `log` of its data.
pub(super) fn start_quietly(command: &mut Command, data: &Path) -> Result<Child, String> {
    let log = fs::File::create(data.join("log"));
    let log = log.and_then(|log| Ok((log.try_clone()?, log)));
    let (out, err) = log.map_err(|e| format!("cannot write a log: {e}"))?;
    start(command.stdout(out).stderr(err))
}

/// What a program says, if it ends well.
pub(super) fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {}: {error}", name.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{} failed: {why}", name.display()))
        }
    }
}

pub(crate) fn directory() -> Result<TempDir, String> {
    tempfile::tempdir().map_err(|e| format!("cannot make a temporary directory: {e}"))
}

/// A port that was free a moment ago.
pub(crate) fn free_address() -> Result<SocketAddr, String> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|e| format!("no free port: {e}"))
}
