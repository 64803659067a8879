//! A session: it holds and waits, survives a lost connection, and ends by closing or by silence.

use std::time::Duration;

use tokio::sync::watch;

use crate::client::Client;
use crate::driver::{Errand, Inside, Opened};
use crate::guard::Guard;
use crate::machine::Again;
use crate::once::{Attempt, OnceStart, once_start, start_line};
use crate::refusal::{Call, NotDone, Word};
use crate::request::Lock;
use crate::standing::SessionStanding;

/// The options of a session.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use std::time::Duration;
/// use testigo::SessionOptions;
///
/// let options = SessionOptions {
///     ttl: Duration::from_secs(30),
///     label: Some("backup of db1".into()),
/// };
/// let session = testigo.session(options).await?;
/// # session.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// How long it may be silent before the node ends it; between 100 ms and 60 s.
    pub ttl: Duration,
    /// The label that people see.
    pub label: Option<String>,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            ttl: Duration::from_secs(10),
            label: None,
        }
    }
}

/// An open session. It is kept alive and resumed in the background until the last handle and the last guard are gone.
///
/// Dropping a session does not wait. What it holds is given back like a dropped [`Guard`]; [`Session::close`] waits.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use std::time::Duration;
/// use testigo::{Lock, SessionOptions};
///
/// let session = testigo.session(SessionOptions::default()).await?;
/// let first = Lock::new("a").wait(Duration::from_secs(30)).reason("release 7");
/// if let Some(guard) = session.lock(first).await? {
///     guard.release().await?;
/// }
/// session.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    client: Client,
    id: u64,
    pub(crate) standing: watch::Receiver<SessionStanding>,
}

impl Session {
    pub(crate) fn new(client: Client, (id, standing): Opened) -> Session {
        Session {
            client,
            id,
            standing,
        }
    }

    /// The session's number at the node.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The connection, for everything that needs no session.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Enters one gate. Returns a guard; `None` if the wait ended. Dropping the future gives up the wait.
    ///
    /// If the answer is lost, the request is repeated under the same `ID` as long as the session lives. Only when it does not
    /// is the outcome unknown, and then the guard would be lost anyway.
    pub async fn lock(&self, lock: Lock) -> Call<Option<Guard>> {
        if lock.gates.len() != 1 {
            return Err(bad("lock takes one gate; use lock_all for a set"));
        }
        let guards = self.enter(lock).await?;
        Ok(guards.and_then(|guards| guards.into_iter().next()))
    }

    /// Enters several gates at once, all or none. Returns their guards in the order of the request; `None` if the wait ended.
    pub async fn lock_all(&self, set: Lock) -> Call<Option<Vec<Guard>>> {
        if set.gates.is_empty() {
            return Err(bad("a set needs at least one gate"));
        }
        self.enter(set).await
    }

    async fn enter(&self, lock: Lock) -> Call<Option<Vec<Guard>>> {
        let mut cancel = CancelOnDrop::new(&self.client);
        let token = cancel.token();
        let errand = |end| Errand::Lock { lock, token, end };
        let entered = self.client.errand(errand).await;
        cancel.disarm();
        let guards = |all: Vec<Inside>| all.into_iter().map(|inside| self.guard(inside)).collect();
        Ok(entered?.map(guards))
    }

    pub(crate) fn guard(&self, inside: Inside) -> Guard {
        Guard::new(self.client.clone(), self.standing.clone(), inside)
    }

    /// Records that the command of a once-key is about to run, and says whether it should. The period is 0 for a key without
    /// periods. Asking again before the attempt has ended returns the same attempt.
    pub async fn start_once(&self, key: &str, period: u64, retry_unknown: bool) -> Call<OnceStart> {
        let line = start_line(key, period, retry_unknown);
        let answer = self.client.ask(line, Again::InSession).await?;
        once_start(key, period, &answer)
    }

    /// Records that the command of a once-key is done: from then on it is not run again.
    pub async fn finish_once(&self, attempt: &Attempt) -> Call<()> {
        let line = attempt.done_line();
        self.client.ask(line, Again::Always).await.map(drop)
    }

    /// Deletes an attempt from the record: the command failed, and may be tried again.
    pub async fn abandon_once(&self, attempt: &Attempt) -> Call<()> {
        let line = attempt.abandon_line();
        self.client.ask(line, Again::Never).await.map(drop)
    }

    /// Closes the session. Everything that it holds is given back.
    pub async fn close(self) -> Call<()> {
        self.client
            .errand(|end| Errand::Close { end })
            .await
            .map(drop)
    }
}

/// Gives up a wait whose future is dropped.
pub(crate) struct CancelOnDrop<'a> {
    client: &'a Client,
    token: u64,
    armed: bool,
}

impl<'a> CancelOnDrop<'a> {
    pub(crate) fn new(client: &'a Client) -> CancelOnDrop<'a> {
        CancelOnDrop {
            client,
            token: client.next_token(),
            armed: true,
        }
    }

    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// The wait has ended by itself.
    pub(crate) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            // Without its task there is no wait either.
            let _ = self
                .client
                .errands
                .send(Errand::Cancel { token: self.token });
        }
    }
}

fn bad(why: &str) -> NotDone {
    NotDone::refused(Word::BadArg, why)
}
