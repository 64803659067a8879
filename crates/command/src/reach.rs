//! How a command reaches its node, and how it ends when the node says no or nothing.

use std::process::ExitCode;

use clap::Args;
use testigo_client::{Address, Client, Connection, Connector, NotDone, Refusal, Word};
use tokio::runtime::{Builder, Runtime};

use crate::exit::{BAD_INPUT, Failure, Outcome, UNREACHABLE, WAIT_ENDED};

/// Which node a command talks to.
#[derive(Args)]
pub(crate) struct Reach {
    /// Where the node listens: HOST:PORT, or unix:PATH.
    #[arg(long, env = "TESTIGO_RESP", value_name = "ADDRESS", default_value = Address::DEFAULT)]
    pub(crate) resp: Address,
    /// The node's password.
    #[arg(
        long,
        env = "TESTIGO_PASSWORD",
        value_name = "TEXT",
        hide_env_values = true
    )]
    pub(crate) password: Option<String>,
}

impl Reach {
    pub(crate) async fn connect(&self) -> Result<Client, Ended> {
        let client = Client::connect(self.resp.clone(), self.password.clone()).await;
        client.map_err(|not_done| self.missed(not_done))
    }

    /// A bare connection, for jobs.
    pub(crate) async fn open(&self, name: &str) -> Result<Connection, Ended> {
        let connector = Connector::to(self.resp.clone());
        let connection = Connection::open(&connector, self.password.as_deref(), name).await;
        connection.map_err(|not_done| self.missed(not_done))
    }

    fn missed(&self, not_done: NotDone) -> Ended {
        let ended = Ended::from(not_done);
        let (address, why) = (&self.resp, &ended.why);
        match ended.code {
            UNREACHABLE => Ended::new(
                UNREACHABLE,
                format!("no node at {address}: {why}; start one with: testigo up"),
            ),
            _ => ended,
        }
    }

    /// Connects and runs a conversation with the node.
    pub(crate) fn talk(
        &self,
        conversation: impl AsyncFnOnce(Client) -> Result<ExitCode, Ended>,
    ) -> Outcome {
        ended(runtime()?.block_on(async { conversation(self.connect().await?).await }))
    }
}

impl Reach {
    /// Connects barely, for flows and jobs, and runs a conversation with the node.
    pub(crate) fn converse(
        &self,
        conversation: impl AsyncFnOnce(Connection) -> Result<ExitCode, Ended>,
    ) -> Outcome {
        let name = format!("{}/{}", machine_name(), std::process::id());
        ended(runtime()?.block_on(async { conversation(self.open(&name).await?).await }))
    }
}

/// What this machine is called, as others see it in a connection's name.
pub(crate) fn machine_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let fits = |c: &char| !c.is_control() && !c.is_whitespace();
    name.chars().filter(fits).take(64).collect()
}

/// One thread is enough for one conversation; and a command's process must be started by a thread that lives on.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// A command that could not do its work, with its exit code.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: u8,
    pub(crate) why: String,
    /// Whether nobody knows if it was done: the connection broke in between.
    pub(crate) unknown: bool,
}

impl Ended {
    pub(crate) fn new(code: u8, why: impl Into<String>) -> Ended {
        Ended {
            code,
            why: why.into(),
            unknown: false,
        }
    }

    pub(crate) fn bad_input(why: impl Into<String>) -> Ended {
        Ended::new(BAD_INPUT, why)
    }
}

/// Says why a command ended, if there is something to say.
pub(crate) fn ended(end: Result<ExitCode, Ended>) -> Outcome {
    Ok(end.unwrap_or_else(|Ended { code, why, .. }| {
        eprintln!("testigo: {why}");
        ExitCode::from(code)
    }))
}

impl From<NotDone> for Ended {
    fn from(not_done: NotDone) -> Ended {
        let unknown = not_done.word().is_none();
        let code = match not_done.word() {
            None | Some(Word::Unavailable | Word::Limit) => UNREACHABLE,
            Some(Word::Busy | Word::Deadlock | Word::Full) => WAIT_ENDED,
            Some(_) => BAD_INPUT,
        };
        let why = match not_done {
            NotDone::Refused(Refusal {
                word: Word::Unavailable,
                sentence,
            }) => sentence,
            other => other.to_string(),
        };
        Ended { code, why, unknown }
    }
}
