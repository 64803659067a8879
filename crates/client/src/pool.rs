//! Pools: the slots that a session takes. A slot is kept like a [`Guard`]: claimed when the session resumes, and lost with it.

use std::time::Duration;

use crate::client::Client;
use crate::driver::Errand;
use crate::guard::Guard;
use crate::machine::Again;
use crate::refusal::Call;
use crate::request::{milliseconds, words};
use crate::session::{CancelOnDrop, Session};
use crate::standing::{Loss, State};
use crate::value::Value;

/// A request for slots of a pool: for one, unless it says otherwise.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use std::time::Duration;
/// use testigo::{SessionOptions, Take};
///
/// testigo.create_pool("ports", 100, 0).await?;
/// let session = testigo.session(SessionOptions::default()).await?;
/// let ports = session.take_slots(Take::new("ports").count(2).wait(Duration::from_secs(30))).await?;
/// println!("ports {} and {}", ports[0].name(), ports[1].name());
/// session.give_slots(ports).await?;
/// # session.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    pub(crate) pool: String,
    many: Option<(&'static str, u32)>,
    label: Option<String>,
    wait: Option<Duration>,
}

impl Take {
    /// Asks for one slot, and does not wait.
    pub fn new(pool: impl Into<String>) -> Take {
        Take {
            pool: pool.into(),
            many: None,
            label: None,
            wait: None,
        }
    }

    /// Exactly this many, or none.
    pub fn count(mut self, count: u32) -> Take {
        self.many = Some(("COUNT", count));
        self
    }

    /// At least one, and up to this many.
    pub fn up_to(mut self, count: u32) -> Take {
        self.many = Some(("UPTO", count));
        self
    }

    /// Only slots with this label.
    pub fn label(mut self, label: impl Into<String>) -> Take {
        self.label = Some(label.into());
        self
    }

    /// How long to wait; by default not at all.
    pub fn wait(mut self, wait: Duration) -> Take {
        self.wait = Some(wait);
        self
    }

    /// The command, `waited` after it was first sent.
    pub(crate) fn line(&self, waited: Duration) -> Vec<String> {
        let mut line = words(["POOL", "TAKE", &self.pool]);
        if let Some((word, count)) = self.many {
            line.extend([word.to_owned(), count.to_string()]);
        }
        if let Some(label) = &self.label {
            line.extend(["WHERE".to_owned(), label.clone()]);
        }
        if let Some(wait) = self.wait {
            line.extend(["WAIT".into(), milliseconds(wait.saturating_sub(waited))]);
        }
        line.push("ASYNC".into());
        line
    }
}

impl From<&str> for Take {
    fn from(pool: &str) -> Take {
        Take::new(pool)
    }
}

/// A slot that the session has. Dropping it gives it back, as with a [`Guard`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{SessionOptions, State};
///
/// testigo.create_pool("ports", 100, 0).await?;
/// let session = testigo.session(SessionOptions::default()).await?;
/// let port = session.take_slots("ports").await?.pop().ok_or("no port is free")?;
/// assert_eq!((port.pool(), port.name(), port.state()), ("ports", "0", State::Held));
/// # drop(port);
/// # session.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Slot {
    guard: Guard,
    pool: String,
    name: String,
}

impl Slot {
    /// The pool that it belongs to.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its fence, which rises with every take of this slot.
    pub fn fence(&self) -> u64 {
        self.guard.fence()
    }

    /// How sure it is that the session still has it.
    pub fn state(&self) -> State {
        self.guard.state()
    }

    /// Waits until it is lost, and says why. This is the signal to stop using it.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// The guard that keeps it; the guard's gate is named pool/slot.
    pub fn into_guard(self) -> Guard {
        self.guard
    }
}

impl Session {
    /// Takes slots of a pool; none if there were not enough, or the wait ended. Dropping the future gives up the wait.
    ///
    /// If the answer is lost, it asks again as long as the session lives. Slots of the lost answer are given back when the session
    /// resumes, here or at another node.
    pub async fn take_slots(&self, take: impl Into<Take>) -> Call<Vec<Slot>> {
        let take = take.into();
        let mut cancel = CancelOnDrop::new(self.client());
        let token = cancel.token();
        let errand = |end| Errand::Take { take, token, end };
        let taken = self.client().errand(errand).await;
        cancel.disarm();
        let guards = taken?.unwrap_or_default();
        let slots = guards.into_iter().map(|inside| {
            let (pool, name) = slot_of(&inside.gate).unwrap_or_default();
            let (pool, name) = (pool.to_owned(), name.to_owned());
            let guard = self.guard(inside);
            Slot { guard, pool, name }
        });
        Ok(slots.collect())
    }

    /// Gives slots back; done once the node says so. `NOTHELD` if one was lost before; the others are given back.
    pub async fn give_slots(&self, slots: Vec<Slot>) -> Call<()> {
        let mut end = Ok(());
        for slot in slots {
            let given = slot.guard.release().await;
            end = end.and(given);
        }
        end
    }
}

impl Client {
    /// Creates a pool of numbered slots. Each node keeps `free_low` of them free. Creating the same pool again changes nothing.
    pub async fn create_pool(&self, pool: &str, slots: u32, free_low: u32) -> Call<()> {
        let (slots, free_low) = (slots.to_string(), free_low.to_string());
        let line = words([
            "POOL", "CREATE", pool, "SLOTS", &slots, "FREELOW", &free_low,
        ]);
        self.ask(line, Again::Always).await.map(drop)
    }

    /// A pool, with what each node has of it, as `POOL SHOW` answers.
    pub async fn show_pool(&self, pool: &str) -> Call<Value> {
        self.ask(words(["POOL", "SHOW", pool]), Again::Always).await
    }
}

/// A slot's name inside the client begins with this, as no gate's name can.
const SLOT: &str = "slot ";

pub(crate) fn inner_name(pool: &str, slot: &str) -> String {
    format!("{SLOT}{pool}\n{slot}")
}

/// The pool and the slot, if this is a slot's name.
pub(crate) fn slot_of(inner: &str) -> Option<(&str, &str)> {
    inner.strip_prefix(SLOT)?.split_once('\n')
}

/// Reads what was taken: slot, fence, slot, fence and so on.
pub(crate) fn read_taken(value: &Value) -> Option<Vec<(String, u64)>> {
    let taken = value.list()?.chunks(2).map(|pair| {
        let [slot, fence] = pair else { return None };
        Some((slot.text()?.to_owned(), fence.number()?))
    });
    taken.collect()
}
