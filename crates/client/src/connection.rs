//! A bare connection to one node: one question at a time, every byte unchanged, nothing repeated and nothing resumed. Its
//! implicit session ends with it, so a worker that dies gives its jobs back at once.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use redis_protocol::resp3::encode::complete::extend_encode_borrowed;
use redis_protocol::resp3::types::BorrowedFrame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::addresses::Addresses;
use crate::connector::{BoxStream, Connector};
use crate::refusal::{Call, NotDone, Word};
use crate::target::{Credentials, Target};
use crate::value::{Received, Value, decode};

/// The longest that connecting and greeting may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// A connection that is asked one thing at a time. Workers use it for jobs: it repeats nothing, and gives its jobs back when
/// it ends.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let mut config = testigo::Config::embedded(data.path());
/// # config.resp = Some("127.0.0.1:0".parse()?);
/// # let node = testigo::node::Node::start(config)?;
/// # let address = node.resp_address().ok_or("it listens")?.to_string();
/// use testigo::{Address, Connection, Target};
///
/// let target = Target::from(address.parse::<Address>()?);
/// let mut connection = Connection::open(&target, "packer").await?;
/// connection.say(&["FLOW", "APPLY", "shop", "intake -> [orders] -> pack"]).await?;
/// connection.say(&["JOB", "CREATE", "shop/orders", "*", "a wheel"]).await?;
///
/// connection.present("shop", "pack").await?;
/// if let Some(job) = connection.take(&["orders".into()], None).await? {
///     assert_eq!(job.body, b"a wheel");
///     connection.delete(&job).await?;
/// }
/// # node.stop()?;
/// # Ok(())
/// # }
/// ```
pub struct Connection {
    stream: BoxStream,
    received: BytesMut,
    id: u64,
    /// The nodes among which it was chosen, and which of them it is.
    among: Option<(Addresses, usize)>,
}

impl Connection {
    /// Connects to the first node that is there and can serve, and greets it under a name that others see.
    pub async fn open(target: &Target, name: &str) -> Call<Connection> {
        let mut tries = target.addresses.count();
        loop {
            tries -= 1;
            let (at, _) = target.addresses.current();
            match Connection::open_one(target, name).await {
                Err(NotDone::Refused(refusal)) if refusal.cannot_serve() && tries > 0 => {
                    target.addresses.left(at);
                }
                Err(not_done) => return Err(not_done),
                Ok(mut connection) => {
                    connection.among = Some((target.addresses.clone(), at));
                    return Ok(connection);
                }
            }
        }
    }

    async fn open_one(target: &Target, name: &str) -> Call<Connection> {
        let connector = Connector::to(target);
        let unreachable = |why: String| NotDone::refused(Word::Unavailable, why);
        let greeted = async {
            let stream = connector.connect().1.await;
            let stream = stream.map_err(|error| unreachable(error.to_string()))?;
            let mut connection = Connection::over(stream);
            let mut hello = vec!["HELLO", "3", "SETNAME", name];
            if let Some(Credentials { user, password }) = &target.credentials {
                hello.extend(["AUTH", user, password]);
            }
            let answer = connection.say(&hello).await?;
            connection.id = answer.field("id").and_then(Value::number).unwrap_or(0);
            if target.addresses.count() > 1 {
                connection.expect_service().await?;
            }
            Ok(connection)
        };
        match timeout(CONNECT_PATIENCE, greeted).await {
            Ok(Err(NotDone::Unknown(why))) => Err(unreachable(why)),
            Ok(greeted) => greeted,
            Err(_) => Err(unreachable("it does not answer".into())),
        }
    }

    pub(crate) fn over(stream: BoxStream) -> Connection {
        Connection {
            stream,
            received: BytesMut::new(),
            id: 0,
            among: None,
        }
    }

    /// Fails if the node is there and cannot serve, because others can. Any other answer is as good as yes.
    async fn expect_service(&mut self) -> Call<()> {
        match self.say(&["CLUSTER", "LEASE"]).await {
            Err(NotDone::Refused(refusal)) if !refusal.cannot_serve() => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// The connection's number at the node, for `CLIENT UNBLOCK`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Asks in words that are text, and waits for the answer.
    pub async fn say(&mut self, words: &[&str]) -> Call<Value> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.ask(&words).await
    }

    /// Asks and waits for the answer. If the connection breaks meanwhile, the outcome is unknown.
    ///
    /// Dropping the future leaves an answer behind that would be taken for the next question's: drop the connection, too.
    pub async fn ask(&mut self, words: &[&[u8]]) -> Call<Value> {
        let mut out = BytesMut::new();
        encode(words, &mut out);
        let answer = match self.send(&out).await {
            Ok(()) => self.answer().await,
            Err(broken) => Err(broken),
        };
        self.look_elsewhere(&answer);
        answer
    }

    /// If the connection is broken, or this node cannot serve, the next connection goes to the next node.
    fn look_elsewhere<T>(&self, answer: &Call<T>) {
        let gone = match answer {
            Ok(_) => false,
            Err(NotDone::Unknown(_)) => true,
            Err(NotDone::Refused(refusal)) => refusal.cannot_serve(),
        };
        if let Some((addresses, at)) = self.among.as_ref().filter(|_| gone) {
            addresses.left(*at);
        }
    }

    /// Asks several things at once, and waits for all answers: an inner refusal concerns one of them.
    pub(crate) async fn ask_all(&mut self, lines: &[Vec<Vec<u8>>]) -> Call<Vec<Call<Value>>> {
        let answers = self.ask_in_one_go(lines).await;
        self.look_elsewhere(&answers);
        answers
    }

    async fn ask_in_one_go(&mut self, lines: &[Vec<Vec<u8>>]) -> Call<Vec<Call<Value>>> {
        let mut out = BytesMut::new();
        for line in lines {
            let words: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
            encode(&words, &mut out);
        }
        self.send(&out).await?;
        let mut answers = Vec::with_capacity(lines.len());
        for _ in lines {
            match self.answer().await {
                Err(NotDone::Unknown(why)) => return Err(NotDone::Unknown(why)),
                answer => answers.push(answer),
            }
        }
        Ok(answers)
    }

    async fn send(&mut self, out: &[u8]) -> Call<()> {
        self.stream.write_all(out).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)
    }

    async fn answer(&mut self) -> Call<Value> {
        loop {
            match decode(&mut self.received) {
                Ok(Some(Received::Answer(Value::Error(refusal)))) => {
                    return Err(NotDone::told(refusal));
                }
                Ok(Some(Received::Answer(value))) => return Ok(value),
                Ok(Some(Received::Push(_))) => {}
                Ok(None) => self.fill().await.map_err(broken)?,
                Err(garbled) => {
                    return Err(NotDone::Unknown(garbled.0));
                }
            }
        }
    }

    /// Waits, with nothing asked, until the connection is lost, and says why. It may be dropped and called again.
    pub async fn lost(&mut self) -> String {
        loop {
            if let Err(error) = self.fill().await {
                let why = error.to_string();
                self.look_elsewhere::<()>(&Err(broken(error)));
                return why;
            }
            // News about the session come before its end does.
            while let Ok(Some(Received::Push(_))) = decode(&mut self.received) {}
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the node closed it",
            )),
            _ => Ok(()),
        }
    }
}

fn broken(error: io::Error) -> NotDone {
    NotDone::Unknown(format!("the connection broke: {error}"))
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.id)
    }
}

/// Appends a command of any bytes.
fn encode(words: &[&[u8]], out: &mut BytesMut) {
    let words: Vec<BorrowedFrame<'_>> = words
        .iter()
        .map(|data| BorrowedFrame::BlobString {
            data,
            attributes: None,
        })
        .collect();
    let frame = BorrowedFrame::Array {
        data: &words,
        attributes: None,
    };
    extend_encode_borrowed(out, &frame, false).expect("an array of strings is always encodable");
}
