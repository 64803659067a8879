//! `testigo trace`: what the nodes of a cluster have done for a gate, as a trace for the laboratory.

mod gathered;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use testigo_client::{Client, NotDone, Word};
use testigo_lab::{Event, Trace as LabTrace};
use testigo_protocol::Record;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::exit::{Outcome, complain, good_if};
use crate::reach::{Ended, Reach};
use crate::visible::Output;
use gathered::Gathered;

/// Write what the nodes did for a gate that was created USING an algorithm, as traces for the laboratory.
///
/// Each node records the steps of its own part of the algorithm, always, within a bound. They are
/// put together by their messages. A new view or a hand-over begins a new instance of the
/// algorithm; each instance is a trace of its own, and those that are on record follow each other.
///
/// With --follow, an instance is written when the next one has begun, and the last one at the end:
/// press Ctrl-C, or send SIGTERM. Meanwhile a node that is killed loses only its last second.
///
/// Exit code: 0; 1 nothing is on record, or records that contradict each other; 69 no node reachable.
///
/// Example: testigo trace site --out site.trace && testigo lab replay site.trace
/// Example: testigo trace site --follow --out site.trace
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Trace {
    /// The gate.
    gate: String,
    /// Go on until Ctrl-C, with every instance that begins.
    #[arg(long)]
    follow: bool,
    /// Where the traces go, instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    reach: Reach,
}

/// How often nodes are asked with `--follow`.
const LOOK: Duration = Duration::from_secs(1);

impl Trace {
    pub(crate) fn run(self) -> Outcome {
        let reach = self.reach.clone();
        reach.talk(async move |client| self.write(client).await)
    }

    async fn write(self, client: Client) -> Result<ExitCode, Ended> {
        let mut writer = Writer::new(self.out.as_ref())?;
        let mut gathered = Gathered::default();
        if self.follow {
            self.follow(&client, &mut gathered, &mut writer).await?;
        } else {
            gathered.look(&client, &self.gate).await?;
        }
        for records in gathered.take_all() {
            writer.write(&records)?;
        }
        if writer.seen == 0 {
            complain!(
                "testigo: nothing is on record for gate {}: only gates USING an algorithm are recorded, in a cluster",
                self.gate
            );
        }
        Ok(good_if(writer.seen > 0 && writer.good))
    }

    /// Asks again and again, and writes the instances that are over, until it is told to stop or the gate is gone.
    async fn follow(
        &self,
        client: &Client,
        gathered: &mut Gathered,
        writer: &mut Writer,
    ) -> Result<(), Ended> {
        let listen = |kind| signal(kind).map_err(|error| Ended::bad_input(error.to_string()));
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let mut troubled = false;
        loop {
            let next = Instant::now() + LOOK;
            let looked = tokio::select! {
                looked = gathered.look(client, &self.gate) => looked,
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
            };
            match looked {
                Ok(()) => troubled = false,
                Err(NotDone::Refused(refusal))
                    if refusal.word == Word::NoGate && writer.seen > 0 =>
                {
                    return Ok(());
                }
                Err(NotDone::Refused(refusal)) if refusal.word != Word::Unavailable => {
                    return Err(NotDone::Refused(refusal).into());
                }
                Err(not_done) => {
                    if !std::mem::replace(&mut troubled, true) {
                        complain!("testigo: {}; trying again", Ended::from(not_done).why);
                    }
                }
            }
            for records in gathered.take_over() {
                writer.write(&records)?;
            }
            tokio::select! {
                () = sleep_until(next) => {}
                // The last instance as it stands now.
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
            }
        }
        let _ = gathered.look(client, &self.gate).await;
        Ok(())
    }
}

/// Where traces go.
struct Writer {
    out: Box<dyn Write>,
    seen: usize,
    good: bool,
}

impl Writer {
    fn new(out: Option<&PathBuf>) -> Result<Writer, Ended> {
        let out: Box<dyn Write> = match out {
            None => Box::new(Output),
            Some(path) => {
                let file = File::create(path);
                let bad = |error| Ended::bad_input(format!("{}: {error}", path.display()));
                Box::new(file.map_err(bad)?)
            }
        };
        Ok(Writer {
            out,
            seen: 0,
            good: true,
        })
    }

    /// Writes the trace of one instance.
    fn write(&mut self, records: &[Record]) -> Result<(), Ended> {
        self.seen += 1;
        let (shard, number) = records
            .first()
            .map_or((0, 0), |record| record.head.instance);
        let trace = match LabTrace::live(records) {
            Ok(trace) => trace,
            Err(error) => {
                complain!("testigo: instance {shard}.{number}: {error}");
                self.good = false;
                return Ok(());
            }
        };
        let written = write!(self.out, "{trace}").and_then(|()| self.out.flush());
        written.map_err(|error| Ended::bad_input(error.to_string()))?;
        if let Some((_, Event::Stop(why))) = trace.events.last() {
            let events = trace.events.len();
            complain!("testigo: instance {shard}.{number}: {events} events; {why}");
        }
        Ok(())
    }
}
