//! The interface for programs without an async runtime: every call blocks its thread until it is answered.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let data = tempfile::tempdir()?;
//! # let mut config = testigo::Config::embedded(data.path());
//! # config.resp = Some("127.0.0.1:0".parse()?);
//! # let node = testigo::node::Node::start(config)?;
//! # let address = node.resp_address().ok_or("it listens")?.to_string();
//! # let address = address.as_str();
//! // let address = "127.0.0.1:7600";
//! let held = testigo::blocking::Testigo::connect(address)?.lock("deploy")?;
//! println!("inside with fence {}", held.fence());
//! held.release()?;
//! # node.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! A background thread keeps sessions alive, so a program may compute for as long as it likes while it holds a guard. The
//! thread ends with the last handle and the last guard. These calls panic inside an async runtime, whose threads must not
//! block: use [`crate::Testigo`] there.

use std::future::Future;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use testigo_client::{
    Addresses, Call, Campaign, GroupEvent, Join, Leader, Lock, Loss, SessionOptions, Target, Word,
};
use testigo_node::{Config, StopError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::handle::refused;

/// How long a dropped guard waits for the node to confirm that the gate is given back.
const DROP_PATIENCE: Duration = Duration::from_secs(3);
/// How often a thread that is no longer needed checks whether the sessions are closed.
const CLOSED_YET: Duration = Duration::from_millis(10);

/// A node, inside this process or elsewhere, for a program without an async runtime.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// use testigo::{Config, blocking::Testigo};
///
/// let testigo = Testigo::embed(Config::embedded(data.path()))?;
/// let held = testigo.lock("deploy")?;
/// assert!(testigo.try_lock("deploy")?.is_none());
/// drop(held);
/// // What has no method here is asked of the async handle.
/// let status = testigo.block_on(testigo.handle().status())?;
/// assert!(status.field("sessions").is_some());
/// testigo.stop()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Testigo {
    handle: crate::Testigo,
    background: Background,
}

impl Testigo {
    /// Connects to the node at an address, or to the nodes of a cluster; see [`crate::connect`].
    pub fn connect(address: &str) -> Call<Testigo> {
        match address.parse::<Addresses>() {
            Ok(addresses) => Testigo::reach(addresses),
            Err(bad) => Err(refused(Word::BadArg, &bad)),
        }
    }

    /// Connects as a user, over TLS, or both; see [`crate::Testigo::reach`].
    pub fn reach(target: impl Into<Target>) -> Call<Testigo> {
        Testigo::made_by(crate::Testigo::reach(target))
    }

    /// Starts a node in this process; see [`crate::embed()`].
    pub fn embed(config: Config) -> Call<Testigo> {
        Testigo::made_by(crate::embed(config))
    }

    fn made_by(made: impl Future<Output = Call<crate::Testigo>>) -> Call<Testigo> {
        let background = Background::start();
        let background = background.map_err(|error| refused(Word::Unavailable, &error))?;
        let handle = background.handle.block_on(made)?;
        Ok(Testigo { handle, background })
    }

    /// Waits for a gate and enters it; see [`crate::Testigo::lock`].
    pub fn lock(&self, lock: impl Into<Lock>) -> Call<Guard> {
        let guard = self.block_on(self.handle.lock(lock))?;
        Ok(self.guard(guard))
    }

    /// Campaigns until it leads; see [`crate::Testigo::campaign`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = tempfile::tempdir()?;
    /// use testigo::{Campaign, Config, blocking::Testigo};
    ///
    /// let testigo = Testigo::embed(Config::embedded(data.path()))?;
    /// let leads = testigo.campaign(Campaign::new("db").value("10.0.0.1:5432"))?;
    /// let leader = testigo.leader("db")?.ok_or("nobody leads")?;
    /// assert_eq!(leader.term, leads.fence());
    /// leads.release()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn campaign(&self, campaign: impl Into<Campaign>) -> Call<Guard> {
        let guard = self.block_on(self.handle.campaign(campaign))?;
        Ok(self.guard(guard))
    }

    /// The leader of an election, if there is one.
    pub fn leader(&self, election: &str) -> Call<Option<Leader>> {
        self.block_on(self.handle.leader(election))
    }

    /// Proposes a value, and returns the decided one; see [`crate::Client::decide`].
    pub fn decide(&self, name: &str, value: &str) -> Call<Vec<u8>> {
        self.block_on(self.handle.decide(name, value))
    }

    /// Enters several gates at once, all or none; see [`crate::Testigo::lock_all`].
    pub fn lock_all(&self, set: Lock) -> Call<Vec<Guard>> {
        let guards = self.block_on(self.handle.lock_all(set))?;
        Ok(guards.into_iter().map(|guard| self.guard(guard)).collect())
    }

    /// Enters a gate if that is possible now; see [`crate::Testigo::try_lock`].
    pub fn try_lock(&self, lock: impl Into<Lock>) -> Call<Option<Guard>> {
        let guard = self.block_on(self.handle.try_lock(lock))?;
        Ok(guard.map(|guard| self.guard(guard)))
    }

    /// Opens a session, for a program that enters often or holds one gate while it waits for another.
    pub fn session(&self, options: SessionOptions) -> Call<Session> {
        let session = self.block_on(self.handle.session(options))?;
        Ok(Session {
            session,
            background: self.background.clone(),
        })
    }

    /// The async handle, for everything that has no method here.
    pub fn handle(&self) -> &crate::Testigo {
        &self.handle
    }

    /// Blocks until a future is done, for example one from [`Testigo::handle`].
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.background.handle.block_on(future)
    }

    /// Closes the connection, and stops the node if it is inside this process; see [`crate::Testigo::stop`].
    pub fn stop(self) -> Result<(), StopError> {
        self.background.handle.block_on(self.handle.stop())
    }

    fn guard(&self, guard: crate::Guard) -> Guard {
        Guard::new(guard, &self.background)
    }
}

/// An open session: see [`crate::Session`]. It ends when it is closed; if it is dropped, with its last guard.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// use testigo::{Config, Lock, SessionOptions, blocking::Testigo};
///
/// let testigo = Testigo::embed(Config::embedded(data.path()))?;
/// let session = testigo.session(SessionOptions::default())?;
/// for part in ["a", "b", "c"] {
///     if let Some(guard) = session.lock(Lock::new(part))? {
///         guard.release()?;
///     }
/// }
/// session.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    session: crate::Session,
    background: Background,
}

impl Session {
    /// Enters one gate. Returns a guard; `None` if the wait ended.
    pub fn lock(&self, lock: impl Into<Lock>) -> Call<Option<Guard>> {
        let handle = &self.background.handle;
        let guard = handle.block_on(self.session.lock(lock.into()))?;
        Ok(guard.map(|guard| Guard::new(guard, &self.background)))
    }

    /// Campaigns. Returns a guard when the session leads; `None` if the wait ended.
    pub fn campaign(&self, campaign: impl Into<Campaign>) -> Call<Option<Guard>> {
        let handle = &self.background.handle;
        let guard = handle.block_on(self.session.campaign(campaign))?;
        Ok(guard.map(|guard| Guard::new(guard, &self.background)))
    }

    /// Enters several gates at once, all or none. Returns their guards; `None` if the wait ended.
    pub fn lock_all(&self, set: Lock) -> Call<Option<Vec<Guard>>> {
        let handle = &self.background.handle;
        let Some(guards) = handle.block_on(self.session.lock_all(set))? else {
            return Ok(None);
        };
        let guards = guards.into_iter();
        Ok(Some(
            guards
                .map(|guard| Guard::new(guard, &self.background))
                .collect(),
        ))
    }

    /// Joins a group; see [`crate::Session::join_group`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = tempfile::tempdir()?;
    /// use testigo::{Config, GroupEvent, SessionOptions, blocking::Testigo};
    ///
    /// let testigo = Testigo::embed(Config::embedded(data.path()))?;
    /// let session = testigo.session(SessionOptions::default())?;
    /// let mut member = session.join_group("talk")?;
    /// let sent = member.send(b"hello")?;
    /// assert!(matches!(member.wait_for_next()?, GroupEvent::Delivered { number, .. } if number == sent));
    /// member.leave()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn join_group(&self, join: impl Into<Join>) -> Call<Member> {
        let handle = &self.background.handle;
        let member = handle.block_on(self.session.join_group(join))?;
        let background = self.background.clone();
        Ok(Member { member, background })
    }

    /// Closes the session. Everything that it holds is given back.
    pub fn close(self) -> Call<()> {
        self.background.handle.block_on(self.session.close())
    }
}

/// A session's membership of a group: a [`crate::Member`] for which a plain thread can wait.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// use testigo::{Config, SessionOptions, blocking::Testigo};
///
/// let testigo = Testigo::embed(Config::embedded(data.path()))?;
/// let member = testigo.session(SessionOptions::default())?.join_group("talk")?;
/// assert_eq!(member.send(b"hello")?, member.joined_after() + 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Member {
    member: crate::Member,
    background: Background,
}

impl Member {
    /// Sends to all members; see [`crate::Member::send`].
    pub fn send(&self, body: &[u8]) -> Call<u64> {
        let handle = &self.background.handle;
        handle.block_on(self.member.send(body))
    }

    /// Blocks until there is an event; see [`crate::Member::next`].
    pub fn wait_for_next(&mut self) -> Call<GroupEvent> {
        let handle = &self.background.handle;
        handle.block_on(self.member.next())
    }

    /// Leaves the group; returns once that is durable.
    pub fn leave(self) -> Call<()> {
        self.background.handle.block_on(self.member.leave())
    }
}

impl Deref for Member {
    type Target = crate::Member;

    fn deref(&self) -> &crate::Member {
        &self.member
    }
}

/// Being inside a gate: a [`crate::Guard`] for which a plain thread can wait.
///
/// Dropping it gives the gate back, and waits at most 3 seconds for the node to confirm that. If the node cannot be reached
/// for that long, it gives the gate to others when the session's TTL is over. Inside an async runtime a drop does not wait,
/// like that of a [`crate::Guard`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// use testigo::{Config, State, blocking::Testigo};
///
/// let testigo = Testigo::embed(Config::embedded(data.path()))?;
/// let held = testigo.lock("deploy")?;
/// for step in ["build", "copy", "switch"] {
///     assert_eq!(held.state(), State::Held, "stop before {step}");
/// }
/// held.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Guard {
    /// `None` only while it is given back.
    guard: Option<crate::Guard>,
    background: Background,
}

impl Guard {
    fn new(guard: crate::Guard, background: &Background) -> Guard {
        Guard {
            guard: Some(guard),
            background: background.clone(),
        }
    }

    /// Blocks until the guard is lost, and says why. Call it on its own thread, and stop the work when it returns.
    pub fn wait_until_lost(&self) -> Loss {
        self.background.handle.block_on(self.lost())
    }

    /// Changes what a leader says of itself; see [`crate::Guard::update`].
    pub fn update(&self, rank: i64, value: &str) -> Call<()> {
        let guard: &crate::Guard = self;
        self.background.handle.block_on(guard.update(rank, value))
    }

    /// Gives the gate back; returns once the node confirms it. `NOTHELD` if it was lost before.
    pub fn release(mut self) -> Call<()> {
        match self.guard.take() {
            Some(guard) => self.background.handle.block_on(guard.release()),
            None => Ok(()),
        }
    }
}

impl Deref for Guard {
    type Target = crate::Guard;

    fn deref(&self) -> &crate::Guard {
        self.guard.as_ref().expect("only a release takes it")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        if Handle::try_current().is_ok() {
            return drop(guard);
        }
        let released = async { timeout(DROP_PATIENCE, guard.release()).await };
        // Nobody can be told, and a late release goes on without this thread.
        drop(self.background.handle.block_on(released));
    }
}

/// Every session without a handle closes itself, which is the last thing that its task does.
async fn sessions_closed() {
    while Handle::current().metrics().num_alive_tasks() > 0 {
        sleep(CLOSED_YET).await;
    }
}

/// The thread that runs all connections, until nobody needs it any more.
#[derive(Clone, Debug)]
struct Background {
    handle: Handle,
    /// Dropped with the last clone, which ends the thread.
    _alive: Arc<oneshot::Sender<()>>,
}

impl Background {
    fn start() -> io::Result<Background> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, gone) = oneshot::channel();
        let carry = move || {
            // This ends with an error, which is how a channel reports that the other end is gone.
            let _ = runtime.block_on(gone);
            let _ = runtime.block_on(async { timeout(DROP_PATIENCE, sessions_closed()).await });
        };
        thread::Builder::new().name("testigo".into()).spawn(carry)?;
        Ok(Background {
            handle,
            _alive: Arc::new(alive),
        })
    }
}
