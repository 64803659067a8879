//! A client: one connection, to one node at a time, shared by all its handles. Calls of many tasks travel over it together.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{broadcast, mpsc, oneshot};

use crate::connector::Connector;
use crate::driver::{Driver, Errand};
use crate::machine::{Again, Machine};
use crate::refusal::{Call, NotDone, Word};
use crate::request::{Definition, words};
use crate::session::{Session, SessionOptions};
use crate::target::{Credentials, Target};
use crate::value::Value;

/// How many events a slow listener may be behind before it misses some.
const EVENTS_KEPT: usize = 1024;

/// A handle to the connection. Cloning it is cheap; the connection ends with the last handle, session or guard.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{Definition, Rule, Value};
///
/// testigo.create_gate("printers", &Definition::new(Rule::Permits(3))).await?;
/// let shown = testigo.show_gate("printers").await?;
/// assert_eq!(shown.field("rule").and_then(Value::text), Some("PERMITS 3"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) errands: mpsc::UnboundedSender<Errand>,
    pub(crate) published: broadcast::Sender<(String, Vec<u8>)>,
    tokens: Arc<AtomicU64>,
}

impl Client {
    /// Connects to a node, so that a wrong address or password is noticed at once.
    ///
    /// Must be called inside a tokio runtime, which runs the connection from then on.
    pub async fn connect(target: impl Into<Target>) -> Call<Client> {
        let target = target.into();
        let seed = RandomState::new().build_hasher().finish();
        let connector = Connector::to(&target);
        let machine = Machine::new(target.credentials, seed, connector.nodes()).named(target.name);
        Client::driven(connector, machine).await
    }

    /// Like [`Client::connect`], over connections of any kind.
    pub async fn over(connector: Connector, credentials: Option<Credentials>) -> Call<Client> {
        let seed = RandomState::new().build_hasher().finish();
        let machine = Machine::new(credentials, seed, connector.nodes());
        Client::driven(connector, machine).await
    }

    async fn driven(connector: Connector, machine: Machine) -> Call<Client> {
        let (errands, received) = mpsc::unbounded_channel();
        let (published, _) = broadcast::channel(EVENTS_KEPT);
        let driver = Driver::new(machine, connector, received, published.clone());
        tokio::spawn(driver.run());
        let client = Client {
            errands,
            published,
            tokens: Arc::default(),
        };
        match client.ask(words(["PING"]), Again::Always).await {
            // The user must open a session first, which it may still do.
            Err(NotDone::Refused(refusal)) if refusal.word == Word::Denied => Ok(client),
            answer => answer.map(|_| client),
        }
    }

    /// Opens the session of this connection, which keeps the session alive and resumes it when the connection breaks.
    pub async fn open(&self, options: SessionOptions) -> Call<Session> {
        let SessionOptions { ttl, label } = options;
        let opened = self.errand(|end| Errand::Open { ttl, label, end }).await?;
        Ok(Session::new(self.clone(), opened))
    }

    /// Creates a gate. Creating the same gate again changes nothing.
    pub async fn create_gate(&self, gate: &str, definition: &Definition) -> Call<()> {
        let line = definition.line(gate);
        self.ask(line, Again::Always).await.map(drop)
    }

    /// A gate with its holders and waiters, as the node shows it.
    pub async fn show_gate(&self, gate: &str) -> Call<Value> {
        let line = words(["GATE", "SHOW", gate]);
        self.ask(line, Again::Always).await
    }

    /// The gates whose names match a pattern, by name; `*` is any text. They are fetched in pages, so there may be any number
    /// of them; a gate that comes or goes meanwhile may be missing.
    pub async fn list_gates(&self, pattern: &str) -> Call<Value> {
        let (mut gates, mut cursor) = (BTreeMap::new(), "0".to_owned());
        loop {
            let line = words(["GATE", "LIST", pattern, "CURSOR", &cursor]);
            let page = self.ask(line, Again::Always).await?;
            let Some([next, rows]) = page.list() else {
                return Ok(page);
            };
            for row in rows.list().unwrap_or_default() {
                let name = row.list().and_then(|row| row.first()?.text());
                gates.insert(name.unwrap_or_default().to_owned(), row.clone());
            }
            cursor = next.text().unwrap_or("0").to_owned();
            if cursor == "0" {
                return Ok(Value::List(gates.into_values().collect()));
            }
        }
    }

    /// Deletes a gate that nobody uses. If the answer is lost, the outcome is unknown: another client may have created the
    /// gate again.
    pub async fn delete_gate(&self, gate: &str) -> Call<()> {
        let line = words(["GATE", "DELETE", gate]);
        self.ask(line, Again::Never).await.map(drop)
    }

    /// Whether a fence is that of a present holder of the gate.
    pub async fn check_fence(&self, gate: &str, fence: u64) -> Call<bool> {
        let line = words(["FENCE", "CHECK", gate, &fence.to_string()]);
        let answer = self.ask(line, Again::Always).await?;
        Ok(answer.number() == Some(1))
    }

    /// Every session that the node knows.
    pub async fn list_sessions(&self) -> Call<Value> {
        self.ask(words(["SESSION", "LIST"]), Again::Always).await
    }

    /// Ends a session, whoever owns it. What it holds goes to those who wait.
    pub async fn end_session(&self, session: u64) -> Call<()> {
        let line = words(["SESSION", "END", &session.to_string()]);
        self.ask(line, Again::Never).await.map(drop)
    }

    /// The status of the node.
    pub async fn status(&self) -> Call<Value> {
        self.ask(words(["STATUS"]), Again::Always).await
    }

    /// The status of the node's cluster, as far as that node knows.
    pub async fn cluster_status(&self) -> Call<Value> {
        self.ask(words(["CLUSTER", "STATUS"]), Again::Always).await
    }

    /// Which node owns a name, or how much each node owns.
    pub async fn owner(&self, name: Option<&str>) -> Call<Value> {
        let mut line = words(["OWNER"]);
        line.extend(name.map(str::to_owned));
        self.ask(line, Again::Always).await
    }

    /// What the nodes have recorded about a gate whose ownership an algorithm moves: an outline per node and instance.
    pub async fn records(&self, gate: &str) -> Call<Value> {
        self.ask(words(["TRACE", gate]), Again::Always).await
    }

    /// The stays at a gate since a time of day in milliseconds, one row per stay.
    pub async fn arrivals(&self, gate: &str, since: u64) -> Call<Value> {
        let line = words(["TRACE", gate, "ARRIVALS", &since.to_string()]);
        self.ask(line, Again::Always).await
    }

    /// A piece of a node's record of an instance, from a byte on.
    pub async fn record_piece(
        &self,
        gate: &str,
        node: u64,
        instance: &str,
        from: usize,
    ) -> Call<Value> {
        let (node, from) = (node.to_string(), from.to_string());
        let line = words(["TRACE", gate, &node, instance, &from]);
        self.ask(line, Again::Always).await
    }

    /// Deletes the record of a once-key, done or not. Says whether there was one.
    pub async fn forget_once(&self, key: &str) -> Call<bool> {
        let line = words(["ONCE", "FORGET", key]);
        let answer = self.ask(line, Again::Always).await?;
        Ok(answer != Value::Null)
    }

    /// Listens to what happens at a gate. Each event is a text that begins with a word such as `entered`. Events are missed
    /// while the connection is broken.
    pub async fn watch_gate(&self, gate: &str) -> Call<Events> {
        self.watch(format!("gate:{gate}")).await
    }

    pub(crate) async fn watch(&self, channel: String) -> Call<Events> {
        let received = self.published.subscribe();
        let errand = |end| Errand::Subscribe {
            channel: channel.clone(),
            end,
        };
        self.errand(errand).await?;
        Ok(Events { channel, received })
    }

    /// Any non-blocking command of the wire, for what has no method here. It is not repeated if its answer is lost.
    pub async fn call<const N: usize>(&self, line: [&str; N]) -> Call<Value> {
        self.ask(words(line), Again::Never).await
    }

    pub(crate) async fn ask(&self, line: Vec<String>, again: Again) -> Call<Value> {
        self.errand(|end| Errand::Ask { line, again, end }).await
    }

    pub(crate) async fn errand<T>(
        &self,
        errand: impl FnOnce(oneshot::Sender<Call<T>>) -> Errand,
    ) -> Call<T> {
        let (end, answer) = oneshot::channel();
        let gone = || NotDone::refused(Word::Unavailable, "the client's runtime has stopped");
        self.errands.send(errand(end)).map_err(|_| gone())?;
        let stopped = "the client's runtime has stopped";
        let lost = |_| NotDone::Unknown(stopped.to_owned());
        answer.await.map_err(lost)?
    }

    pub(crate) fn next_token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }
}

/// What happens at a gate or in an election, in order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// let mut events = testigo.watch_gate("deploy").await?;
/// let held = testigo.lock("deploy").await?;
/// let event = events.next().await.ok_or("the client is gone")?;
/// assert!(event.starts_with(&format!("entered {}", held.fence())), "{event}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Events {
    channel: String,
    received: broadcast::Receiver<(String, Vec<u8>)>,
}

impl Events {
    /// The next event; `None` when the client is gone. A listener that is too slow misses the oldest events.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            match self.received.recv().await {
                Ok((channel, line)) if channel == self.channel => {
                    return Some(String::from_utf8_lossy(&line).into_owned());
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
