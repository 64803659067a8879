//! A lock in one line: each has its own session, on its own connection, which the program need not see.

use std::time::Duration;

use testigo_client::{Call, Campaign, Guard, Lock, NotDone, SessionOptions, Word};

use crate::handle::{Testigo, refused};

impl Testigo {
    /// Waits for a gate and enters it. `BUSY` if the wait ends without entering: after [`Lock::wait`] or, if that is not set,
    /// at the node's limit, which is an hour unless configured otherwise.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = tempfile::tempdir()?;
    /// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
    /// let held = testigo.lock("deploy").await?;
    /// println!("inside with fence {}", held.fence());
    /// held.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Behind the guard is a session of its own with the default TTL, 10 seconds. So two tasks of one program keep each other
    /// out, and the session ends with the guard. [`Guard`] says what dropping it does.
    ///
    /// A session costs a connection and an entry of the node's log. A program that enters many times per second should open
    /// one [`Testigo::session`] and lock through it. So should a program that holds one gate while it waits for another: the
    /// node finds deadlocks between sessions.
    pub async fn lock(&self, lock: impl Into<Lock>) -> Call<Guard> {
        let session = self.session(SessionOptions::default()).await?;
        session.lock(lock.into()).await?.ok_or_else(ended)
    }

    /// Campaigns until it leads. The guard's fence is the term; giving it back resigns. `BUSY` if the wait ends before.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = tempfile::tempdir()?;
    /// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
    /// use testigo::Campaign;
    ///
    /// let leads = testigo.campaign(Campaign::new("db").value("10.0.0.1:5432")).await?;
    /// println!("leads in term {}", leads.fence());
    /// # leads.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Behind the guard is a session of its own, as with [`Testigo::lock`].
    pub async fn campaign(&self, campaign: impl Into<Campaign>) -> Call<Guard> {
        let session = self.session(SessionOptions::default()).await?;
        session.campaign(campaign).await?.ok_or_else(|| {
            let why = "the wait ended: somebody else leads; `testigo elect leader` says who";
            refused(Word::Busy, &why)
        })
    }

    /// Enters several gates at once, all or none, with one session behind all of their guards.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = tempfile::tempdir()?;
    /// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
    /// use testigo::Lock;
    ///
    /// let held = testigo.lock_all(Lock::all(["accounts/1", "accounts/2"])).await?;
    /// assert_eq!(held.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lock_all(&self, set: Lock) -> Call<Vec<Guard>> {
        let session = self.session(SessionOptions::default()).await?;
        session.lock_all(set).await?.ok_or_else(ended)
    }

    /// Enters a gate if that is possible now; otherwise returns `None`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = tempfile::tempdir()?;
    /// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
    /// let held = testigo.try_lock("deploy").await?;
    /// assert!(held.is_some());
    /// assert!(testigo.try_lock("deploy").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_lock(&self, lock: impl Into<Lock>) -> Call<Option<Guard>> {
        let session = self.session(SessionOptions::default()).await?;
        session.lock(lock.into().wait(Duration::ZERO)).await
    }
}

fn ended() -> NotDone {
    let why =
        "the wait ended: somebody else is inside; wait longer, or see `testigo top` for who it is";
    refused(Word::Busy, &why)
}
