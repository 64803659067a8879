//! A unit of work: changes of several jobs that a node makes together, in one entry of its log, or not at all.

use crate::connection::Connection;
use crate::job::Job;
use crate::refusal::{Call, NotDone};
use crate::value::Value;

/// Changes of jobs that belong together: at most 256, with at most 768 KiB of names and bodies.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let mut config = testigo::Config::embedded(data.path());
/// # config.resp = Some("127.0.0.1:0".parse()?);
/// # let node = testigo::node::Node::start(config)?;
/// # let address = node.resp_address().ok_or("it listens")?.to_string();
/// # let target = testigo::Target::from(address.parse::<testigo::Address>()?);
/// # let mut connection = testigo::Connection::open(&target, "splitter").await?;
/// # let flow = "intake -> [orders] -> split -> [parts] -> build";
/// # connection.say(&["FLOW", "APPLY", "shop", flow]).await?;
/// # connection.say(&["JOB", "CREATE", "shop/orders", "order-7", "wheel, frame"]).await?;
/// use testigo::Unit;
///
/// let order = connection.take(&["shop/orders".into()], None).await?.ok_or("no order")?;
/// let split = Unit::new()
///     .create("shop/parts", Some("order-7.a"), b"wheel")
///     .create("shop/parts", Some("order-7.b"), b"frame")
///     .delete(&order);
/// let parts = connection.carry_out(&split).await?;
/// assert_eq!(parts.len(), 2);
/// # node.stop()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    lines: Vec<Vec<Vec<u8>>>,
}

impl Unit {
    /// A unit without changes.
    pub fn new() -> Unit {
        Unit::default()
    }

    /// Creates a job; without a name it is named after its ID.
    pub fn create(self, queue: &str, name: Option<&str>, body: &[u8]) -> Unit {
        let name = name.unwrap_or("*");
        let words = ["JOB", "CREATE", queue, name].map(|word| word.as_bytes().to_vec());
        let mut line = Vec::from(words);
        line.push(body.to_vec());
        self.line(line)
    }

    /// Moves a held job to another queue of its flow, with a new body or its present one.
    pub fn pass(self, job: &Job, queue: &str, body: Option<&[u8]>) -> Unit {
        let mut line = held("PASS", job);
        line.push(queue.as_bytes().to_vec());
        line.extend(body.map(<[u8]>::to_vec));
        self.line(line)
    }

    /// Deletes a held job, because it is done.
    pub fn delete(self, job: &Job) -> Unit {
        self.line(held("DELETE", job))
    }

    /// Gives back a held job, which waits again; if it failed, that counts like a death of its worker.
    pub fn give_back(self, job: &Job, failed: bool) -> Unit {
        let mut line = held("BACK", job);
        line.extend(failed.then(|| b"FAILED".to_vec()));
        self.line(line)
    }

    fn line(mut self, line: Vec<Vec<u8>>) -> Unit {
        self.lines.push(line);
        self
    }
}

fn held(verb: &str, job: &Job) -> Vec<Vec<u8>> {
    let (id, attempt) = (job.id.to_string(), job.attempt.to_string());
    ["JOB", verb, &id, &attempt]
        .map(|word| word.as_bytes().to_vec())
        .into()
}

impl Connection {
    /// Carries out a unit of work, and returns the jobs that it created, in order. If it is refused, nothing was done; the
    /// refusal is that of the command that could not be done.
    pub async fn carry_out(&mut self, unit: &Unit) -> Call<Vec<u64>> {
        let word = |word: &str| vec![vec![word.as_bytes().to_vec()]];
        let lines = [word("MULTI"), unit.lines.clone(), word("EXEC")].concat();
        let mut answers = self.ask_all(&lines).await?;
        let exec = answers.pop();
        // The first refusal says more than that of EXEC.
        answers.into_iter().collect::<Call<Vec<Value>>>()?;
        let done = exec.unwrap_or_else(|| Err(NotDone::Unknown("no answer".into())))?;
        let replies = done.list().unwrap_or_default();
        Ok(replies.iter().filter_map(Value::number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_unit_is_aborted_or_of_unknown_end_as_the_node_says() {
        use crate::refusal::Word;
        use tokio::io::AsyncWriteExt;
        let (near, mut far) = tokio::io::duplex(4096);
        let mut connection = Connection::over(Box::new(near));
        let unit = Unit::new().create("f/q", None, b"");
        let mut carried_out = async |exec: &str| {
            let answers = format!("+OK\r\n+QUEUED\r\n-{exec}\r\n");
            far.write_all(answers.as_bytes()).await.unwrap();
            connection.carry_out(&unit).await.unwrap_err()
        };
        let aborted = carried_out("EXECABORT FULL command 1: no; nothing was done").await;
        assert_eq!(aborted.word(), Some(&Word::Full));
        let unknown = carried_out("UNKNOWN the disk failed").await;
        assert_eq!(unknown, NotDone::Unknown("the disk failed".into()));
    }

    #[test]
    fn a_unit_says_what_it_was_told() {
        let job = Job {
            id: 7,
            name: "a".into(),
            queue: "f/q".into(),
            attempt: 9,
            body: Vec::new(),
        };
        let unit = Unit::new()
            .create("f/q", None, &[0, 255])
            .pass(&job, "r", None)
            .delete(&job)
            .give_back(&job, true);
        let lines: Vec<String> = unit
            .lines
            .iter()
            .map(|line| String::from_utf8_lossy(&line.join(&b' ')).into_owned())
            .collect();
        assert_eq!(lines[0], "JOB CREATE f/q * \u{0}\u{fffd}");
        let rest = ["JOB PASS 7 9 r", "JOB DELETE 7 9", "JOB BACK 7 9 FAILED"];
        assert_eq!(lines[1..], rest);
    }
}
