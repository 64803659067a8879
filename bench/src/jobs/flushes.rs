//! Which flushes a loop waits for. They are not taken from documents: `strace` makes every flush of the server's processes
//! longer, and a step that gets longer by so many flushes waits for so many.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

use super::generator::{Load, Outcome};
use super::rounds::PATIENCE;
use super::systems::{System, Systems};
use crate::service::{Service, install};
use crate::tally::median;

/// What one loop of one client costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushes {
    /// That its create, take and delete wait for.
    pub(crate) waits: [u32; 3],
    /// That the server does for a loop, waited for or not; unknown where they could not be counted.
    done: Option<f64>,
    /// It writes to files that are flushed with every write, which is no call that could be counted.
    synchronous: bool,
}

/// Much longer than a flush takes, or than a busy machine keeps an answer waiting.
const DELAY: Duration = Duration::from_millis(60);
const SPAN: Duration = Duration::from_millis(1_500);

impl Flushes {
    /// Measures, or says why it cannot and falls back to what is known.
    pub(crate) fn measure(systems: &Systems, system: System) -> Result<Flushes, String> {
        let synchronous = is_synchronous(systems.service(system)?);
        match counted(systems, system) {
            Ok((waits, done)) => Ok(Flushes {
                waits,
                done: Some(done),
                synchronous,
            }),
            Err(why) => {
                println!("NOT COUNTED: {}: {}", system.name().trim(), why.trim());
                Ok(Flushes {
                    waits: system.flushes_by_settings(),
                    done: None,
                    synchronous,
                })
            }
        }
    }

    /// Whether it waits for the create's and for the delete's.
    pub(crate) fn both(&self) -> bool {
        self.synchronous || (self.waits[0] > 0 && self.waits[2] > 0)
    }

    pub(crate) fn print_head() {
        println!(
            "{:<34} {:>9} {:>9} {:>9} {:>9}",
            "FLUSHES THAT A LOOP WAITS FOR", "CREATE", "TAKE", "DELETE", "DONE"
        );
    }

    pub(crate) fn print(&self, system: System) {
        let [create, take, delete] = self.waits;
        let done = match self.done {
            Some(done) => format!("{done:.1}"),
            None => "by its settings, not counted".to_owned(),
        };
        let more = if self.synchronous {
            "  and writes to files that are flushed with every write"
        } else {
            ""
        };
        let name = system.name();
        println!("{name:<34} {create:>9} {take:>9} {delete:>9} {done:>9}{more}");
    }
}

/// The flushes that each step waits for, and all that are done for a loop.
fn counted(systems: &Systems, system: System) -> Result<([u32; 3], f64), String> {
    let run = |span| {
        let load = Load {
            warm_up: Duration::ZERO,
            span,
            patience: PATIENCE,
        };
        systems.measure(system, 1, load)
    };
    install("strace", "strace")?;
    let service = systems.service(system)?;
    let plain = run(SPAN)?;
    // The difference of a short and a long run is free of what it takes to begin.
    let traced = |span| {
        let tracer = Tracer::attach(service)?;
        let outcome = run(span);
        let flushes = tracer.end()?;
        outcome.map(|outcome| (outcome, flushes))
    };
    let (short, few) = traced(SPAN)?;
    let (long, many) = traced(SPAN * 2)?;
    let waits = [0, 1, 2].map(|step| {
        let longer = middle(&long, step) - middle(&plain, step);
        (longer / DELAY.as_secs_f64()).round().max(0.0) as u32
    });
    let loops = |outcome: &Outcome| outcome.steps[2].len() as f64;
    let loops = (loops(&long) - loops(&short)).max(1.0);
    Ok((waits, (many - few).max(0.0) / loops))
}

/// The median time of a step, in seconds.
fn middle(outcome: &Outcome, step: usize) -> f64 {
    median(outcome.steps[step].iter().map(|ns| f64::from(*ns) / 1e9))
}

/// Counts and lengthens the flushes of a service.
struct Tracer {
    strace: Child,
    log: NamedTempFile,
}

impl Tracer {
    fn attach(service: &Service) -> Result<Tracer, String> {
        let log = NamedTempFile::new().map_err(|e| format!("no temporary file: {e}"))?;
        let delay = DELAY.as_micros();
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=fsync,fdatasync", "-e"]);
        command.arg(format!("inject=fsync,fdatasync:delay_exit={delay}"));
        command.arg("-o").arg(log.path());
        let processes = service.processes();
        for process in &processes {
            command.args(["-p", &process.to_string()]);
        }
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let strace = command.stderr(Stdio::piped()).spawn();
        let mut strace = strace.map_err(|e| format!("cannot start strace: {e}"))?;
        let said = strace.stderr.take().ok_or("no pipe to strace")?;
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let (mut attached, mut last) = (0, String::new());
        while attached < processes.len() {
            let Some(line) = lines.next() else {
                let _ = strace.wait();
                return Err(format!("strace cannot attach: {last}"));
            };
            attached += usize::from(line.contains(" attached"));
            last = line;
        }
        // It speaks of every process that begins.
        thread::spawn(move || lines.for_each(drop));
        Ok(Tracer { strace, log })
    }

    /// Lets the service go; the flushes that it did.
    fn end(mut self) -> Result<f64, String> {
        let ended = kill_process(Pid::from_child(&self.strace), Signal::TERM);
        ended.map_err(|e| format!("cannot stop strace: {e}"))?;
        let ended = self.strace.wait();
        ended.map_err(|e| format!("cannot wait for strace: {e}"))?;
        let text = fs::read_to_string(self.log.path());
        let text = text.map_err(|e| format!("cannot read what strace saw: {e}"))?;
        let begun = |line: &&str| line.contains("fsync(") || line.contains("fdatasync(");
        Ok(text.lines().filter(begun).count() as f64)
    }
}

/// Whether it has a file open that is flushed with every write.
fn is_synchronous(service: &Service) -> bool {
    const O_DSYNC: u32 = 0o10_000;
    let files = service.processes().into_iter().flat_map(|process| {
        let files = fs::read_dir(format!("/proc/{process}/fdinfo"));
        files.into_iter().flatten().flatten()
    });
    let mut flags = files.filter_map(|file| {
        let text = fs::read_to_string(file.path()).ok()?;
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
        u32::from_str_radix(flags.trim(), 8).ok()
    });
    flags.any(|flags| flags & O_DSYNC != 0)
}
