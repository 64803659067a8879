//! Jobs held by a [`Connection`]: taken, passed on, deleted, given back.

use std::time::Duration;

use tokio::time::timeout;

use crate::connection::Connection;
use crate::refusal::{Call, NotDone};
use crate::request::milliseconds;
use crate::value::Value;

/// How much longer than its wait the answer to a take may take. This is longer than it takes to notice that a connection is
/// gone, so it matters only for a node that stands still on a machine that does not.
const TAKE_PATIENCE: Duration = Duration::from_secs(20);

/// A job that a [`Connection`] has taken. Every change of the job names its attempt, so a late worker is refused.
///
/// ```
/// use testigo::{Job, Value};
///
/// let text = |text: &str| Value::Text(text.into());
/// let answer = [Value::Number(7), text("wheel"), text("shop/orders"), Value::Number(1), text("red")];
/// let job = Job::read(&Value::List(answer.into())).expect("an answer to JOB TAKE");
/// assert_eq!((job.id, job.name.as_str(), job.body.as_slice()), (7, "wheel", &b"red"[..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its ID.
    pub id: u64,
    /// Its name, which it keeps.
    pub name: String,
    /// The queue that it was taken from, `flow/queue`.
    pub queue: String,
    /// The number that every change of the job must name.
    pub attempt: u64,
    /// Its body.
    pub body: Vec<u8>,
}

impl Connection {
    /// From now on the connection is this process of the flow, and may do what the graph allows the process.
    pub async fn present(&mut self, flow: &str, process: &str) -> Call<()> {
        self.say(&["PRESENT", flow, process]).await.map(drop)
    }

    /// Takes the next job of the first of the queues that has one; `None` if the wait ended. Without a wait, answers at once.
    ///
    /// Write a queue named `name` or `wait` in full, `flow/queue`, unless it is the first one.
    ///
    /// If the node does not answer long after the wait, the connection is of no use any more: drop it.
    pub async fn take(&mut self, queues: &[String], wait: Option<Duration>) -> Call<Option<Job>> {
        let patience = TAKE_PATIENCE.saturating_add(wait.unwrap_or_default());
        let wait = wait.map(milliseconds);
        let mut words = vec!["JOB", "TAKE"];
        words.extend(queues.iter().map(String::as_str));
        words.extend(wait.iter().flat_map(|wait| ["WAIT", wait.as_str()]));
        let late = |_| NotDone::Unknown("the node does not answer".into());
        let answer = timeout(patience, self.say(&words)).await.map_err(late)?;
        match answer? {
            Value::Null => Ok(None),
            answer => match Job::read(&answer) {
                Some(job) => Ok(Some(job)),
                None => Err(NotDone::Unknown("the node's answer is no job".into())),
            },
        }
    }

    /// Moves a held job to another queue of its flow, with a new body or its present one.
    pub async fn pass(&mut self, job: &Job, queue: &str, body: Option<&[u8]>) -> Call<()> {
        let (id, attempt) = job.numbers();
        let mut words: Vec<&[u8]> = vec![b"JOB", b"PASS"];
        words.extend([id.as_bytes(), attempt.as_bytes(), queue.as_bytes()]);
        words.extend(body);
        self.ask(&words).await.map(drop)
    }

    /// Deletes a held job, because it is done.
    pub async fn delete(&mut self, job: &Job) -> Call<()> {
        let (id, attempt) = job.numbers();
        self.say(&["JOB", "DELETE", &id, &attempt]).await.map(drop)
    }

    /// Gives back a held job, which waits again; if it failed, that counts like a death of its worker.
    pub async fn give_back(&mut self, job: &Job, failed: bool) -> Call<()> {
        let (id, attempt) = job.numbers();
        let mut words = vec!["JOB", "BACK", &id, &attempt];
        words.extend(failed.then_some("FAILED"));
        self.say(&words).await.map(drop)
    }
}

impl Job {
    /// Reads the answer to `JOB TAKE`.
    pub fn read(answer: &Value) -> Option<Job> {
        let [id, name, queue, attempt, body] = answer.list()? else {
            return None;
        };
        Some(Job {
            id: id.number()?,
            name: name.text()?.to_owned(),
            queue: queue.text()?.to_owned(),
            attempt: attempt.number()?,
            body: body.bytes()?.to_owned(),
        })
    }

    fn numbers(&self) -> (String, String) {
        (self.id.to_string(), self.attempt.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_take_that_is_never_answered_ends_after_its_wait() {
        let (near, far) = tokio::io::duplex(4096);
        let mut connection = Connection::over(Box::new(near));
        let wait = Duration::from_secs(60);
        let begun = tokio::time::Instant::now();
        let taken = connection.take(&["q".into()], Some(wait)).await;
        assert!(matches!(taken, Err(NotDone::Unknown(_))), "{taken:?}");
        assert_eq!(begun.elapsed(), wait + TAKE_PATIENCE);
        drop(far);
    }

    #[test]
    fn an_answer_is_read_with_every_byte_of_its_body() {
        let text = |text: &str| Value::Text(text.into());
        let mut answer = vec![Value::Number(7), text("a"), text("f/q"), Value::Number(9)];
        answer.push(Value::Bytes(vec![0, 255]));
        let job = Job::read(&Value::List(answer.clone())).expect("a job");
        assert_eq!((job.id, job.attempt, job.body), (7, 9, vec![0, 255]));
        assert_eq!(Job::read(&Value::List(answer[..4].to_vec())), None);
        assert_eq!(Job::read(&Value::Null), None);
    }
}
