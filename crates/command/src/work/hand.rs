//! One job in hand: the program runs for it, and its end decides what becomes of it.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testigo::node::Limits;
use testigo_client::{Backoff, Connection, Job, NotDone, Value, Word};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::duty::{Duty, Way};
use super::files::{self, Paths};
use super::program::{Ended as ProgramEnded, GOOD_FOR, Program, Ran, nobody_reads};
use super::progress::End;
use super::{Harness, Stop};
use crate::exit::{NOBODY_READS, code_of_unrunnable};
use crate::reach::Ended;
use crate::speech::in_shell_words;
use crate::visible::Output;

/// How often the node is asked whether it is still there while a program runs.
const ASKED_EVERY: Duration = Duration::from_millis(2_500);

/// How long it may take to answer: the program is stopped before its leash has to do so.
const ANSWER_PATIENCE: Duration = Duration::from_millis(4_500);

/// A job, and everything that is needed to work on it.
pub(super) struct Hand<'a> {
    pub(super) harness: &'a Harness,
    pub(super) connection: &'a mut Connection,
    pub(super) duty: &'a Duty,
    pub(super) job: Job,
}

/// What a worker does after a job.
#[derive(Debug)]
pub(super) enum After {
    Next,
    /// Next; the job failed.
    Failed,
    /// Next, after a pause: something was not ready for it.
    Later,
    /// The connection is of no use any more.
    Reconnect(String),
    /// The whole harness ends.
    End(Ended),
}

/// What is to become of a job.
#[derive(Clone, Copy, Debug)]
enum Fate<'a> {
    /// To that queue, with that body or its own.
    Pass(&'a str, Option<&'a [u8]>),
    Delete,
}

/// Why a program is stopped.
#[derive(Debug)]
enum Cause {
    Lost(String),
    TooLong,
    Told,
}

impl Hand<'_> {
    pub(super) async fn work(mut self) -> After {
        let harness = self.harness;
        harness.progress.begun();
        let begun = Instant::now();
        let (end, after) = self.handle().await;
        if matches!(end, End::Passed(_) | End::Deleted) {
            harness.failures.forget(&self.job);
        }
        harness.progress.ended(&self.job, &end, begun.elapsed());
        after
    }

    async fn handle(&mut self) -> (End, After) {
        if self.unread() {
            return self.stop_unread().await;
        }
        let queue = self.job.queue.clone();
        let queue = self.duty.bare(&queue);
        let paths = match self.harness.work.files {
            false => None,
            true => {
                let home = self.home(queue).await;
                let paths = Paths::of(&self.job, &home, self.duty);
                let root = &self.harness.root;
                match paths.and_then(|paths| paths.check(root).map(|()| paths)) {
                    Ok(paths) => Some(paths),
                    Err(why) => return self.give_back(true, why).await,
                }
            }
        };
        let (end, after) = match self.run(queue, paths.as_ref()).await {
            Ok(Ran::Ended(ran)) => self.settle(queue, ran, paths.as_ref()).await,
            Ok(Ran::Stopped(cause)) => match cause.flatten() {
                Some(Cause::TooLong) => self.give_back(true, "it ran too long").await,
                Some(Cause::Told) => self.give_back(false, "the harness stops").await,
                Some(Cause::Lost(why)) => (
                    End::Dropped(format!("the node was lost while its program ran ({why})")),
                    After::Reconnect(why),
                ),
                None => {
                    self.give_back(false, "the harness was stopped for too long")
                        .await
                }
            },
            Err(error) => {
                let program = self.harness.work.command[0].display();
                let why = format!("{program} cannot run: {error}");
                let code = code_of_unrunnable(&error);
                self.stop(Ended::new(code, why)).await
            }
        };
        if let Some(paths) = &paths
            && !matches!(end, End::Passed(_))
        {
            paths.discard(&self.harness.root);
        }
        (end, after)
    }

    /// The queue in whose directory the file of a job with an empty body lies: its own, or the last one where it was that
    /// has it. Who rejects or moves a job does not touch files.
    async fn home(&mut self, queue: &str) -> String {
        let (duty, job, root) = (self.duty, &self.job, &self.harness.root);
        if !job.body.is_empty() || files::lies_in(queue, &job.name, duty, root) {
            return queue.to_owned();
        }
        let id = job.id.to_string();
        let shown = self.connection.say(&["JOB", "SHOW", &id]).await;
        let shown = shown.unwrap_or(Value::Null);
        let hops = shown.field("hops").and_then(Value::list);
        let hops = hops.unwrap_or_default().iter().rev();
        let mut were = hops.filter_map(|hop| Some(duty.bare(hop.field("queue")?.text()?)));
        let home = were.find(|queue| files::lies_in(queue, &job.name, duty, root));
        home.unwrap_or(queue).to_owned()
    }

    /// Whether what the program prints is for the next queue; else it is for whoever reads the harness.
    fn collects(&self) -> bool {
        let work = &self.harness.work;
        !work.files && !work.keep && !self.duty.destinations().is_empty()
    }

    /// Whether the program prints for whoever reads the harness, and nobody does.
    fn unread(&self) -> bool {
        !self.collects() && nobody_reads()
    }

    async fn run(
        &mut self,
        queue: &str,
        paths: Option<&Paths>,
    ) -> std::io::Result<Ran<Option<Cause>>> {
        let (harness, duty, job) = (self.harness, self.duty, &self.job);
        let work = &harness.work;
        let text = |name, text: &str| (name, OsString::from(text));
        let mut environment = vec![
            text("TESTIGO_JOB", &job.id.to_string()),
            text("TESTIGO_JOB_NAME", &job.name),
            text("TESTIGO_ATTEMPT", &job.attempt.to_string()),
            text("TESTIGO_QUEUE", queue),
            text("TESTIGO_FLOW", &duty.flow),
            text("TESTIGO_PROCESS", &duty.process),
            text("TESTIGO_RESP", &work.reach.resp.to_string()),
        ];
        if let Some(paths) = paths {
            let told = |path: &PathBuf| harness.root.told(path).into();
            environment.push(("TESTIGO_IN", told(&paths.input)));
            let output = paths.output.as_ref().map(told);
            environment.extend(output.map(|output| ("TESTIGO_OUT", output)));
        }
        let program = Program {
            command: match paths {
                Some(paths) => paths.fill(&work.command, &harness.root),
                None => work.command.clone(),
            },
            environment,
            body: paths.is_none().then_some(&job.body),
            collect: self.collects(),
            grace: work.grace.0,
            leash: &harness.leash,
        };
        let (id, over, caused) = (job.id, Notify::new(), AtomicBool::new(false));
        let mut cause = pin!(async {
            let cause = watch(harness, id, &mut *self.connection, &over).await;
            caused.store(true, Ordering::Relaxed);
            cause
        });
        let begun = |reins| drop(harness.running().insert(id, reins));
        let ran = program.run(begun, &mut cause).await;
        harness.running().remove(&id);
        if !caused.load(Ordering::Relaxed) {
            // An answer that is under way would be taken for that of the next question.
            over.notify_one();
            cause.await;
        }
        ran
    }

    async fn settle(
        &mut self,
        queue: &str,
        ran: ProgramEnded,
        paths: Option<&Paths>,
    ) -> (End, After) {
        // Its exit code tells little: the pipe was closed before it had printed all.
        if ran.too_much() {
            let most = Limits::BODY_BYTES;
            let why = format!("it printed more than a body's {most} bytes");
            return self.give_back(true, why).await;
        }
        match self.duty.way(queue, ran.code) {
            Way::Pass(to) => self.pass(&to, ran.output, paths).await,
            Way::Delete => self.delete(&ran.output, paths).await,
            // Whatever its exit code: it had nowhere to print to.
            Way::Fail if self.unread() => self.stop_unread().await,
            Way::Fail => self.give_back(true, ran.describe()).await,
            Way::Back => self.give_back(false, ran.describe()).await,
            Way::Stop(code) => {
                let program = self.harness.work.command[0].display();
                let why = format!("{program} cannot run, by its exit code {code}");
                self.stop(Ended::new(code, why)).await
            }
        }
    }

    async fn pass(&mut self, to: &str, output: Vec<u8>, paths: Option<&Paths>) -> (End, After) {
        let keep = self.harness.work.keep;
        let mut place = None;
        let body = match paths {
            None if keep => None,
            None => Some(output),
            Some(paths) => match paths.publish(to, self.duty, &self.harness.root, keep) {
                Ok(published) => {
                    place = Some(published.clone());
                    Some(published.into_os_string().into_encoded_bytes())
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let why = format!("it ended well and wrote no output for {to}: {error}");
                    return self.give_back(true, why).await;
                }
                Err(error) => {
                    let why = format!("its output cannot be put in place: {error}");
                    return self.give_back(false, why).await;
                }
            },
        };
        let (end, after, known) = self.bring_about(Fate::Pass(to, body.as_deref())).await;
        match (&end, place) {
            (End::Passed(_), _) => self.remove_input(paths),
            // Nobody will look for it. Whether it is gone matters to nobody either.
            (_, Some(place)) if known => drop(self.harness.root.remove(&place)),
            _ => {}
        }
        (end, after)
    }

    async fn delete(&mut self, output: &[u8], paths: Option<&Paths>) -> (End, After) {
        // First printed, then deleted: rather twice than not at all.
        if let Err(error) = print(output) {
            let why = format!("what its program printed cannot be written: {error}");
            let code = NOBODY_READS as u8;
            return self.stop(Ended::new(code, why)).await;
        }
        let (end, after, _) = self.bring_about(Fate::Delete).await;
        if let End::Deleted = end {
            self.remove_input(paths);
        }
        (end, after)
    }

    /// Asks for it until the node can do it; says at last whether it is known what became of the job.
    async fn bring_about(&mut self, fate: Fate<'_>) -> (End, After, bool) {
        let known = |(end, after)| (end, after, true);
        let (what, end) = match fate {
            Fate::Pass(to, _) => (format!("passed to {to}"), End::Passed(to.to_owned())),
            Fate::Delete => ("deleted".to_owned(), End::Deleted),
        };
        let mut backoff = Backoff::new(self.job.attempt);
        let mut said = false;
        loop {
            let asked = match fate {
                Fate::Pass(to, body) => self.connection.pass(&self.job, to, body).await,
                Fate::Delete => self.connection.delete(&self.job).await,
            };
            match asked {
                Ok(()) => return known((end, After::Next)),
                // Nothing has changed; later it may work, and the work is done already.
                Err(not_done) if may_wait(&not_done) => {
                    if !std::mem::replace(&mut said, true) {
                        let id = self.job.id;
                        let why = in_shell_words(&not_done);
                        let line = format!("job {id} waits to be {what}: {why}");
                        self.harness.progress.say(&line);
                    }
                    let pause = backoff.pause();
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = self.harness.stopped(Stop::Now) => {
                            return known(self.give_back(false, "the harness stops").await);
                        }
                        why = self.connection.lost() => {
                            let dropped = format!("the node was lost before it could be {what} ({why})");
                            return known((End::Dropped(dropped), After::Reconnect(why)));
                        }
                    }
                }
                Err(not_done) => {
                    let is_known = not_done.word().is_some();
                    let (end, after) = self.refused(not_done).await;
                    return (end, after, is_known);
                }
            }
        }
    }

    /// The input's time is over only when the node has said that the job is elsewhere.
    fn remove_input(&self, paths: Option<&Paths>) {
        let Some(Paths { input, .. }) = paths else {
            return;
        };
        if let Err(error) = self.harness.root.remove(input) {
            let input = input.display();
            let line = format!("{input} is of no use any more and cannot be removed: {error}");
            self.harness.progress.say(&line);
        }
    }

    async fn give_back(&mut self, failed: bool, why: impl Into<String>) -> (End, After) {
        let why = why.into();
        if failed {
            // Before anybody else can take it.
            self.harness.failures.note(self.duty, &self.job);
        }
        match self.connection.give_back(&self.job, failed).await {
            Ok(()) if failed => (End::Failed(why), After::Failed),
            Ok(()) => (End::Back(why), After::Later),
            // The node gives it back by itself when it sees the connection end.
            Err(not_done) => (
                End::Dropped(format!("{why}; {}", in_shell_words(&not_done))),
                After::Reconnect(in_shell_words(&not_done)),
            ),
        }
    }

    async fn stop(&mut self, ended: Ended) -> (End, After) {
        let (end, _) = self.give_back(false, ended.why.clone()).await;
        (end, After::End(ended))
    }

    async fn stop_unread(&mut self) -> (End, After) {
        let why = "nobody reads what its program prints";
        self.stop(Ended::new(NOBODY_READS as u8, why)).await
    }

    /// The node says no to what was to become of the job.
    async fn refused(&mut self, not_done: NotDone) -> (End, After) {
        match not_done.word() {
            None => (
                End::Dropped(in_shell_words(&not_done)),
                After::Reconnect(in_shell_words(&not_done)),
            ),
            Some(Word::Stale | Word::NotYours | Word::NoJob) => {
                (End::Dropped(in_shell_words(&not_done)), After::Next)
            }
            // The flow is another by now: look at it anew.
            Some(_) => {
                let why = in_shell_words(&not_done);
                let (end, _) = self.give_back(false, why.clone()).await;
                (end, After::Reconnect(why))
            }
        }
    }
}

/// Waits for a cause to stop the program of a job, and asks the node now and then whether it is still there, for as long as
/// its leash is told so. Ends without a cause when all is over.
async fn watch(
    harness: &Harness,
    job: u64,
    connection: &mut Connection,
    over: &Notify,
) -> Option<Cause> {
    let mut limit = pin!(async {
        match harness.work.timeout {
            Some(limit) => sleep(limit.0).await,
            None => std::future::pending().await,
        }
    });
    loop {
        tokio::select! {
            why = connection.lost() => return Some(Cause::Lost(why)),
            () = &mut limit => return Some(Cause::TooLong),
            () = harness.stopped(Stop::Now) => return Some(Cause::Told),
            () = over.notified() => return None,
            () = sleep(ASKED_EVERY) => {}
        }
        let asked = Instant::now();
        match timeout(ANSWER_PATIENCE, connection.say(&["PING"])).await {
            Ok(Err(not_done)) if not_done.word().is_none() => {
                return Some(Cause::Lost(in_shell_words(&not_done)));
            }
            Ok(_) => {
                if let Some(reins) = harness.running().get(&job) {
                    reins.good_until(asked + GOOD_FOR);
                }
            }
            Err(_) => return Some(Cause::Lost("it does not answer".into())),
        }
    }
}

fn print(output: &[u8]) -> std::io::Result<()> {
    Output.write_all(output)?;
    Output.flush()
}

/// A full queue gets room, and a node's disk too.
fn may_wait(not_done: &NotDone) -> bool {
    matches!(not_done.word(), Some(Word::Full | Word::Unavailable))
}
