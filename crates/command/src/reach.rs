//! How a command reaches its node, and how it ends when the node says no or nothing.

use std::process::ExitCode;

use clap::Args;
use testigo_client::{Address, Client, Credentials, NotDone, Refusal, Target, Word};
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
    password: Option<String>,
}

impl Reach {
    pub(crate) async fn connect(&self) -> Result<Client, Ended> {
        let mut target = Target::from(self.resp.clone());
        if let Some(password) = &self.password {
            target = target.user(Credentials::DEFAULT_USER, password);
        }
        let client = Client::connect(target).await;
        client.map_err(|not_done| {
            let Ended { code, why } = Ended::from(not_done);
            let address = &self.resp;
            match code {
                UNREACHABLE => Ended {
                    code,
                    why: format!("no node at {address}: {why}; start one with: testigo up"),
                },
                _ => Ended { code, why },
            }
        })
    }

    /// Connects and runs a conversation with the node.
    pub(crate) fn talk(
        &self,
        conversation: impl AsyncFnOnce(Client) -> Result<ExitCode, Ended>,
    ) -> Outcome {
        ended(runtime()?.block_on(async { conversation(self.connect().await?).await }))
    }
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
}

impl Ended {
    pub(crate) fn bad_input(why: impl Into<String>) -> Ended {
        Ended {
            code: BAD_INPUT,
            why: why.into(),
        }
    }
}

/// Says why a command ended, if there is something to say.
pub(crate) fn ended(end: Result<ExitCode, Ended>) -> Outcome {
    Ok(end.unwrap_or_else(|Ended { code, why }| {
        eprintln!("testigo: {why}");
        ExitCode::from(code)
    }))
}

impl From<NotDone> for Ended {
    fn from(not_done: NotDone) -> Ended {
        let code = match not_done.word() {
            None | Some(Word::Unavailable | Word::Limit) => UNREACHABLE,
            Some(Word::Busy | Word::Deadlock) => WAIT_ENDED,
            Some(_) => BAD_INPUT,
        };
        let why = match not_done {
            NotDone::Refused(Refusal {
                word: Word::Unavailable,
                sentence,
            }) => sentence,
            other => other.to_string(),
        };
        Ended { code, why }
    }
}
