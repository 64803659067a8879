//! A worker: one connection, one job at a time. The connection's implicit session is what holds the job, so that the job
//! waits again the moment the worker, its harness or its machine is gone; nothing has to run out first. A session that
//! outlives its connection would buy nothing: a restarted node counts attempts anew, and no old one is accepted.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use testigo::node::Limits;
use testigo_client::{Backoff, Call, Connection, Job, NotDone, Word};
use tokio::time::timeout;

use super::aside::Aside;
use super::duty::Duty;
use super::hand::{After, Hand};
use super::{Harness, Stop};
use crate::reach::Ended;
use crate::speech::in_shell_words;

/// How long a take waits at the node before it is asked again, and how old what is known of the flow may become meanwhile:
/// what is applied anew is noticed by then.
const LOOKED_EVERY: Duration = Duration::from_secs(5);
/// How long a take waits where another window of queues is to be asked soon.
const WINDOW_WAIT: Duration = Duration::from_millis(500);
/// How long the node may take to show the flow. Later than a connection is noticed to be gone.
const LOOK_PATIENCE: Duration = Duration::from_secs(20);
/// How long the node may take to end such a wait.
const UNBLOCK_PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Worker {
    harness: Arc<Harness>,
    backoff: Backoff,
    /// Where the next take begins, so that no queue is always last.
    turn: usize,
}

impl Worker {
    pub(super) fn new(harness: Arc<Harness>, number: u16) -> Worker {
        let seed = u64::from(std::process::id()) << 16 | u64::from(number);
        Worker {
            harness,
            backoff: Backoff::new(seed),
            turn: usize::from(number),
        }
    }

    /// Works until the harness stops, or there is nothing to do where it should end then.
    pub(super) async fn run(mut self) -> Result<(), Ended> {
        let mut troubled = String::new();
        while !self.harness.stops(Stop::Drain) {
            let why = match self.connect().await? {
                Ok((mut connection, duty)) => {
                    if !std::mem::take(&mut troubled).is_empty() {
                        self.harness.progress.say("connected again");
                    }
                    self.backoff.reset();
                    match self.serve(&mut connection, duty).await {
                        After::End(ended) => return Err(ended),
                        After::Reconnect(why) => why,
                        After::Next | After::Failed | After::Later => return Ok(()),
                    }
                }
                Err(not_done) => in_shell_words(&not_done),
            };
            if why != troubled {
                self.harness.progress.say(&format!("trying again: {why}"));
                troubled = why;
            }
            self.harness.pause(self.backoff.pause(), Stop::Drain).await;
        }
        Ok(())
    }

    /// Connects as the process. What will not be better later ends the harness.
    async fn connect(&self) -> Result<Result<(Connection, Duty), NotDone>, Ended> {
        let harness = &*self.harness;
        let mut connection = match harness.open().await {
            Ok(connection) => connection,
            Err(not_done) => return later(not_done),
        };
        let duty = match harness.duty(&mut connection).await {
            Ok(duty) => duty,
            Err(ended) if ended.code == crate::exit::BAD_INPUT => return Err(ended),
            Err(ended) => return Ok(Err(NotDone::Unknown(ended.why))),
        };
        match connection.present(&duty.flow, &duty.process).await {
            Ok(()) => Ok(Ok((connection, duty))),
            Err(not_done) => later(not_done),
        }
    }

    /// Job after job. Ends with `Next` when there is nothing more to do.
    async fn serve(&mut self, connection: &mut Connection, duty: Duty) -> After {
        let seed = u64::from(std::process::id());
        let mut aside = Aside::new(seed, self.harness.work.drain);
        let after = self.work_off(connection, duty, &mut aside).await;
        // A connection that does not answer is closed, which gives back too.
        let _ = timeout(UNBLOCK_PATIENCE, aside.give_back(connection)).await;
        after
    }

    async fn work_off(
        &mut self,
        connection: &mut Connection,
        mut duty: Duty,
        aside: &mut Aside,
    ) -> After {
        let harness = Arc::clone(&self.harness);
        let mut given_back = Backoff::new(u64::from(std::process::id()));
        let mut looked = Instant::now();
        while !harness.stops(Stop::Drain) {
            if looked.elapsed() >= LOOKED_EVERY {
                duty = match self.look_again(connection).await {
                    Ok(duty) => duty,
                    Err(after) => return after,
                };
                looked = Instant::now();
            }
            let due = aside.take(Instant::now());
            let again = due.is_some();
            let taken = match due {
                Some(job) => Ok(Some(job)),
                None => self.take(connection, &duty, aside).await,
            };
            let job = match taken {
                Err(not_done) => return untaken(not_done),
                // It came while the harness was being stopped.
                Ok(Some(job)) if harness.stops(Stop::Drain) => {
                    let _ = connection.give_back(&job, false).await;
                    return After::Next;
                }
                Ok(None) if harness.work.drain => return After::Next,
                Ok(None) => continue,
                Ok(Some(job)) => job,
            };
            if !again
                && harness
                    .failures
                    .others_first(&duty, &job, harness.work.drain)
            {
                if !aside.is_full() {
                    aside.put(job, Instant::now());
                    continue;
                }
                let pause = aside.pause();
                if let Some(pause) = pause {
                    harness.pause(pause, Stop::Drain).await;
                }
                if pause.is_none() || harness.stops(Stop::Drain) {
                    let _ = connection.give_back(&job, false).await;
                    return After::Next;
                }
            }
            let hand = Hand {
                harness: &harness,
                connection: &mut *connection,
                duty: &duty,
                job,
            };
            match hand.work().await {
                After::Next | After::Failed | After::Later if harness.work.once => break,
                After::Next if again => aside.relax(),
                After::Next | After::Failed => given_back.reset(),
                After::Later => harness.pause(given_back.pause(), Stop::Drain).await,
                after => return after,
            }
        }
        After::Next
    }

    /// What the process is to do by now: its flow may have been applied anew.
    async fn look_again(&self, connection: &mut Connection) -> Result<Duty, After> {
        match timeout(LOOK_PATIENCE, self.harness.duty(connection)).await {
            Ok(Ok(duty)) => Ok(duty),
            Ok(Err(ended)) if ended.code == crate::exit::BAD_INPUT => Err(After::End(ended)),
            Ok(Err(ended)) => Err(After::Reconnect(ended.why)),
            Err(_) => Err(After::Reconnect("the node does not answer".into())),
        }
    }

    /// The next job. Where one take may not name all queues they are asked in windows, and only the last window waits.
    async fn take(
        &mut self,
        connection: &mut Connection,
        duty: &Duty,
        aside: &Aside,
    ) -> Call<Option<Job>> {
        let whole = |queue: &String| format!("{}/{queue}", duty.flow);
        let mut queues: Vec<String> = duty.inputs.iter().map(whole).collect();
        let turn = self.turn % queues.len();
        queues.rotate_left(turn);
        self.turn = self.turn.wrapping_add(1);
        let mut windows = queues.chunks(Limits::default().take_queues).peekable();
        let longest = match windows.len() {
            1 => LOOKED_EVERY,
            _ => WINDOW_WAIT,
        };
        let rest = aside.rest(Instant::now()).unwrap_or(longest);
        let wait = (!self.harness.work.drain).then_some(rest.min(longest));
        while let Some(window) = windows.next() {
            let wait = wait.filter(|_| windows.peek().is_none());
            let job = self.ask(connection, window, wait).await?;
            if job.is_some() || self.harness.stops(Stop::Drain) {
                return Ok(job);
            }
        }
        Ok(None)
    }

    /// One take. A wait for a job is ended from a second connection when the harness stops: to just hang up could lose
    /// the race with a job, which would count as its worker's death.
    async fn ask(
        &self,
        connection: &mut Connection,
        queues: &[String],
        wait: Option<Duration>,
    ) -> Call<Option<Job>> {
        let harness = &*self.harness;
        let id = connection.id().to_string();
        let mut asked = pin!(connection.take(queues, wait));
        tokio::select! {
            biased;
            answer = &mut asked => return answer,
            () = harness.stopped(Stop::Drain) => {}
        }
        if let Ok(mut second) = harness.open().await {
            let _ = second.say(&["CLIENT", "UNBLOCK", &id]).await;
        }
        let late = |_| NotDone::Unknown("the node does not end the wait for a job".into());
        timeout(UNBLOCK_PATIENCE, asked).await.map_err(late)?
    }
}

/// What a worker does whose take is refused. The flow may be another by now; words that are wrong stay wrong.
fn untaken(not_done: NotDone) -> After {
    match not_done.word() {
        Some(Word::BadArg) => After::End(not_done.into()),
        _ => After::Reconnect(in_shell_words(&not_done)),
    }
}

/// Whether to try again, or to end because it will be wrong again.
fn later<T>(not_done: NotDone) -> Result<Result<T, NotDone>, Ended> {
    match not_done.word() {
        None | Some(Word::Unavailable | Word::Limit | Word::Busy) => Ok(Err(not_done)),
        Some(_) => Err(Ended::from(not_done)),
    }
}

#[cfg(test)]
mod tests {
    use testigo_client::Refusal;

    use super::*;
    use crate::exit::BAD_INPUT;

    #[test]
    fn a_take_that_is_wrong_in_itself_ends_the_harness() {
        let refused = |word| {
            untaken(NotDone::Refused(Refusal {
                word,
                sentence: "no".into(),
            }))
        };
        let wrong = refused(Word::BadArg);
        assert!(
            matches!(&wrong, After::End(ended) if ended.code == BAD_INPUT),
            "{wrong:?}"
        );
        for word in [Word::NoQueue, Word::NoRight, Word::Unavailable] {
            let again = refused(word);
            assert!(matches!(again, After::Reconnect(_)), "{again:?}");
        }
    }
}
