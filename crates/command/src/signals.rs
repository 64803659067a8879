//! The signals that a command hears, and passes on to the command that it runs.

use std::task::Poll;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{self, SignalKind};

use crate::reach::Ended;

/// Those of a terminal that stop a process until SIGCONT comes.
const STOPPING: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];

/// Signals that end a process, as it says, and those of job control.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(crate) fn new() -> Result<Signals, Ended> {
        Signals::of(&[Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT])
    }

    pub(crate) fn of(ending: &[Signal]) -> Result<Signals, Ended> {
        let listen = |signal: &Signal| {
            let listening = unix::signal(SignalKind::from_raw(signal.as_raw()));
            let listening = listening.map_err(|error| Ended::bad_input(error.to_string()))?;
            Ok((*signal, listening))
        };
        let all = [Signal::CONT];
        let all = all.iter().chain(&STOPPING).chain(ending);
        all.map(listen).collect::<Result<_, _>>().map(Signals)
    }

    /// The next signal that ends this process. It is stopped and goes on meanwhile as its terminal says.
    pub(crate) async fn next(&mut self) -> Signal {
        loop {
            let signal = self.any().await;
            if !of_job_control(signal) {
                return signal;
            }
            stop_if_told(signal);
        }
    }

    /// The next signal of all. Who passes it on calls [`stop_if_told`] then.
    pub(crate) async fn any(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            let mut came = None;
            for (signal, listening) in &mut self.0 {
                if listening.poll_recv(context).is_ready() {
                    // A stop that has been taken back already is none.
                    let goes_on = came == Some(Signal::CONT) && stops(*signal);
                    if !goes_on {
                        came = Some(*signal);
                    }
                    if !goes_on && came != Some(Signal::CONT) {
                        break;
                    }
                }
            }
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Whether it stops a process or lets it go on.
pub(crate) fn of_job_control(signal: Signal) -> bool {
    signal == Signal::CONT || stops(signal)
}

fn stops(signal: Signal) -> bool {
    STOPPING.contains(&signal)
}

/// Does what a signal of job control does to a process that does not listen for it.
pub(crate) fn stop_if_told(signal: Signal) {
    if stops(signal) {
        // It comes to ourselves; whoever cannot be stopped goes on.
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// The exit code of who is ended by a signal.
pub(crate) fn code_of(signal: Signal) -> u8 {
    128 + signal.as_raw() as u8
}
