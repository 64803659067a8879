//! Elections: campaigns, leaders, and leaders that change what they say of themselves. A leadership is a [`Guard`]: its fence
//! is the term.

use std::time::Duration;

use crate::client::{Client, Events};
use crate::driver::Errand;
use crate::guard::Guard;
use crate::machine::Again;
use crate::pool::slot_of;
use crate::refusal::{Call, NotDone, Word};
use crate::request::{How, Lock, words};
use crate::session::Session;
use crate::value::Value;

/// A request to lead.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::Campaign;
///
/// // The least loaded is to lead, so the rank is the load below zero.
/// let load = 7;
/// let leads = testigo.campaign(Campaign::new("db").value("10.0.0.1:5432").rank(-load)).await?;
/// let leader = testigo.leader("db").await?.ok_or("nobody leads")?;
/// assert_eq!((leader.term, leader.text()), (leads.fence(), Some("10.0.0.1:5432")));
/// leads.release().await?;
/// assert!(testigo.leader("db").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    election: String,
    value: String,
    rank: i64,
    wait: Option<Duration>,
}

impl Campaign {
    /// Campaigns with an empty value and rank 0.
    pub fn new(election: impl Into<String>) -> Campaign {
        Campaign {
            election: election.into(),
            value: String::new(),
            rank: 0,
            wait: None,
        }
    }

    /// What is told of the leader: an address, or whatever its followers need.
    pub fn value(mut self, value: impl Into<String>) -> Campaign {
        self.value = value.into();
        self
    }

    /// The highest rank among the candidates is elected; of equal ones, the first to campaign.
    pub fn rank(mut self, rank: i64) -> Campaign {
        self.rank = rank;
        self
    }

    /// How long to wait; zero only tries. Without it the node's limit applies.
    pub fn wait(mut self, wait: Duration) -> Campaign {
        self.wait = Some(wait);
        self
    }

    fn lock(self) -> Lock {
        let Campaign {
            election,
            value,
            rank,
            wait,
        } = self;
        Lock::campaign(inner_name(&election), How::Lead { rank, value }, wait)
    }
}

impl From<&str> for Campaign {
    fn from(election: &str) -> Campaign {
        Campaign::new(election)
    }
}

/// The leader of an election.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// let leads = testigo.campaign("db").await?;
/// leads.update(3, "10.0.0.1:6000").await?;
/// let leader = testigo.leader("db").await?.ok_or("nobody leads")?;
/// assert_eq!((leader.rank, leader.candidates), (3, 0));
/// # leads.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its term, which rises with every leader.
    pub term: u64,
    /// What it says of itself.
    pub value: Vec<u8>,
    /// Its rank.
    pub rank: i64,
    /// Its session at the node.
    pub session: u64,
    /// How long it has led, as far as the node knows.
    pub since: Duration,
    /// How many others are candidates.
    pub candidates: u64,
}

impl Leader {
    /// Its value as text.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.value).ok()
    }

    fn read(value: &Value) -> Option<Leader> {
        let number = |name: &str| value.field(name)?.number();
        Some(Leader {
            term: number("term")?,
            value: value.field("value")?.bytes()?.to_vec(),
            rank: match value.field("rank")? {
                Value::Number(rank) => *rank,
                _ => return None,
            },
            session: number("session")?,
            since: Duration::from_millis(number("since_ms")?),
            candidates: number("candidates")?,
        })
    }
}

impl Session {
    /// Campaigns. Returns a guard, whose fence is the term, when the session leads; `None` if the wait ended. Dropping the
    /// future ends the candidacy. Giving the guard back resigns.
    pub async fn campaign(&self, campaign: impl Into<Campaign>) -> Call<Option<Guard>> {
        self.lock(campaign.into().lock()).await
    }
}

impl Guard {
    /// Changes what a leader says of itself, in the same term. `NOTHELD` if it no longer leads, `BADARG` for the guard of a
    /// gate.
    pub async fn update(&self, rank: i64, value: &str) -> Call<()> {
        let (hold, value) = (self.id, value.to_owned());
        let errand = |end| Errand::Update {
            hold,
            rank,
            value,
            end,
        };
        let answer = self.client.errand(errand).await?;
        let term = answer.number();
        if term == Some(self.fence()) {
            return Ok(());
        }
        // Meanwhile it was elected again, for which nobody has asked.
        if let Some(term) = term {
            let line = words(["ELECT", "RESIGN", self.gate(), &term.to_string()]);
            self.client.ask(line, Again::InSession).await?;
        }
        let why = format!("election {} is led by another, or by nobody", self.gate());
        Err(NotDone::refused(Word::NotHeld, why))
    }
}

impl Client {
    /// The leader of an election, if there is one.
    pub async fn leader(&self, election: &str) -> Call<Option<Leader>> {
        let line = words(["ELECT", "LEADER", election]);
        match self.ask(line, Again::Always).await? {
            Value::Null => Ok(None),
            value => {
                let unread =
                    || NotDone::Unknown("the answer to ELECT LEADER cannot be read".into());
                Leader::read(&value).map(Some).ok_or_else(unread)
            }
        }
    }

    /// An election with its leader, its candidates and its last terms, as the node shows it.
    pub async fn show_election(&self, election: &str) -> Call<Value> {
        let line = words(["ELECT", "SHOW", election]);
        self.ask(line, Again::Always).await
    }

    /// The elections whose names match a pattern, by name; `*` is any text.
    pub async fn list_elections(&self, pattern: &str) -> Call<Value> {
        let line = words(["ELECT", "LIST", pattern]);
        self.ask(line, Again::Always).await
    }

    /// Listens to who leads. Each event is a text that begins with `elected`, `changed` or `vacant`. Events are missed while
    /// the connection is broken.
    pub async fn watch_election(&self, election: &str) -> Call<Events> {
        self.watch(format!("elect:{election}")).await
    }
}

/// The prefix of elections inside the client, which no gate's name can have.
const ELECTION: &str = "election ";

pub(crate) fn inner_name(election: &str) -> String {
    format!("{ELECTION}{election}")
}

/// The election's name, if this is one.
pub(crate) fn election_of(inner: &str) -> Option<&str> {
    inner.strip_prefix(ELECTION)
}

/// The command that gives a gate or a slot back, or resigns.
pub(crate) fn release_line(gate: &str, fence: u64) -> Vec<String> {
    let fence = fence.to_string();
    match (election_of(gate), slot_of(gate)) {
        (Some(election), _) => words(["ELECT", "RESIGN", election, &fence]),
        (_, Some((pool, slot))) => words(["POOL", "GIVE", pool, slot]),
        (None, None) => words(["UNLOCK", gate, &fence]),
    }
}
