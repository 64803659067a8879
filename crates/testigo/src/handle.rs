//! The handle to a node, wherever it is.

use std::ops::Deref;

use testigo_client::{
    Addresses, Call, Client, Connector, Credentials, NotDone, Refusal, Session, SessionOptions,
    Target, Word,
};
use testigo_node::{Node, StopError};

/// A node, inside this process or elsewhere. [`Testigo::lock`] enters a gate; [`Testigo::session`] is for programs that enter
/// many. It is also a [`Client`], for everything that needs no session: gates, views, events, once-keys.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// let held = testigo.lock("deploy").await?;
/// assert!(testigo.check_fence("deploy", held.fence()).await?);
/// held.release().await?;
/// testigo.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Testigo {
    client: Client,
    /// Gives every session a connection of its own.
    connector: Connector,
    credentials: Option<Credentials>,
    node: Option<Node>,
}

/// Connects to the node at an address, `HOST:PORT` or `unix:PATH`; or, with several addresses separated by commas, to the
/// nodes of a cluster: when one is gone, the handle and its sessions move on to the next.
///
/// ```no_run
/// # async fn example() -> testigo::Call<()> {
/// let testigo = testigo::connect("a.example:7600,b.example:7600").await?;
/// println!("{:?}", testigo.status().await?);
/// # Ok(())
/// # }
/// ```
pub async fn connect(address: &str) -> Call<Testigo> {
    match address.parse::<Addresses>() {
        Ok(addresses) => Testigo::reach(addresses).await,
        Err(bad) => Err(refused(Word::BadArg, &bad)),
    }
}

impl Testigo {
    /// Connects as a user, over TLS, or both.
    ///
    /// ```no_run
    /// use testigo::{Address, Target, Testigo, Tls};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let address: Address = "locks.example:7600".parse()?;
    /// let target = Target::from(address).user("alice", "secret").tls(Tls::new(None, None)?);
    /// let testigo = Testigo::reach(target).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reach(target: impl Into<Target>) -> Call<Testigo> {
        let target = target.into();
        Testigo::over(Connector::to(&target), target.credentials, None).await
    }

    pub(crate) async fn over(
        connector: Connector,
        credentials: Option<Credentials>,
        node: Option<Node>,
    ) -> Call<Testigo> {
        Ok(Testigo {
            client: Client::over(connector.clone(), credentials.clone()).await?,
            connector,
            credentials,
            node,
        })
    }

    /// Opens a session, on a connection of its own.
    pub async fn session(&self, options: SessionOptions) -> Call<Session> {
        let connector = self.connector.clone();
        let client = Client::over(connector, self.credentials.clone()).await?;
        client.open(options).await
    }

    /// The node, if it is inside this process, for its low-level interface.
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// Waits until the disk of a node inside this process fails, and says why. Such a node stops by itself; the program may
    /// end, or repair the disk and embed a node again. For a node elsewhere this waits for ever.
    pub async fn disk_failure(&self) -> String {
        match &self.node {
            Some(node) => node.disk_failure().await,
            None => std::future::pending().await,
        }
    }

    /// Closes the connection, and stops the node if it is inside this process; holders and waiters are kept for the next
    /// start. Sessions that are still used find that no node answers.
    pub async fn stop(self) -> Result<(), StopError> {
        let Testigo { client, node, .. } = self;
        drop(client);
        let Some(node) = node else {
            return Ok(());
        };
        let stopped = tokio::task::spawn_blocking(|| node.stop()).await;
        stopped.unwrap_or(Err(StopError::Failed))
    }
}

impl Deref for Testigo {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

pub(crate) fn refused(word: Word, why: &impl ToString) -> NotDone {
    NotDone::Refused(Refusal {
        word,
        sentence: why.to_string(),
    })
}
