//! How a command reaches its node, and how it ends when the node says no or nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::{Args, CommandFactory};
use testigo_client::{
    Address, Addresses, Client, Connection, Credentials, Identity, NotDone, Target, Tls, Word,
};
use tokio::runtime::{Builder, Runtime};

use crate::Cli;
use crate::exit::{
    BAD_INPUT, Failure, NOT_GOOD, Outcome, UNKNOWN, UNREACHABLE, WAIT_ENDED, complain,
};
use crate::names::{meant, missing, names};
use crate::speech::in_shell_words;

/// Which node, or which nodes of a cluster, a command talks to.
#[derive(Args, Clone)]
pub(crate) struct Reach {
    /// Where the node listens: HOST:PORT, or unix:PATH. Several, separated by commas: when one is gone, the next is tried.
    #[arg(long, visible_alias = "node", env = "TESTIGO_RESP", value_name = "ADDRESS", default_value = Address::DEFAULT)]
    pub(crate) resp: Addresses,
    /// As which user; the password is in $TESTIGO_PASSWORD or in --password-file.
    #[arg(long, env = "TESTIGO_USER", value_name = "NAME")]
    user: Option<String>,
    /// A file whose first line is the password, instead of $TESTIGO_PASSWORD.
    #[arg(long, env = "TESTIGO_PASSWORD_FILE", value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Over TLS, believing the authorities of this system.
    #[arg(long, env = "TESTIGO_TLS", value_parser = BoolishValueParser::new())]
    tls: bool,
    /// Over TLS, believing the authorities, or the certificate, in this file.
    #[arg(long, env = "TESTIGO_TLS_CA", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// This client's certificate, for a node that asks for one.
    #[arg(
        long,
        env = "TESTIGO_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key"
    )]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert.
    #[arg(
        long,
        env = "TESTIGO_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    tls_key: Option<PathBuf>,
}

impl Reach {
    /// Where to connect to, and as whom.
    pub(crate) fn target(&self) -> Result<Target, Ended> {
        let mut target = Target::from(self.resp.clone()).name(connection_name());
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let identity = files.map(|(cert, key)| Identity { cert, key });
        if self.tls || self.tls_ca.is_some() || identity.is_some() {
            let tls = Tls::new(self.tls_ca.as_deref(), identity.as_ref());
            target = target.tls(tls.map_err(|error| Ended::bad_input(error.to_string()))?);
        }
        let user = self.user.as_deref();
        match (self.password()?, user) {
            (Some(password), user) => {
                Ok(target.user(user.unwrap_or(Credentials::DEFAULT_USER), password))
            }
            (None, None) => Ok(target),
            (None, Some(user)) => Err(Ended::bad_input(format!(
                "user {user} needs a password: set TESTIGO_PASSWORD, or say --password-file FILE"
            ))),
        }
    }

    /// The option that says where, for a command that is to be pasted; empty if it need not be said.
    pub(crate) fn as_said(&self) -> String {
        let addresses = self.resp.to_string();
        let known = std::env::var("TESTIGO_RESP").unwrap_or_else(|_| Address::DEFAULT.into());
        match addresses == known {
            true => String::new(),
            false => format!(" --resp {addresses}"),
        }
    }

    /// Never an argument: whoever lists processes would see it.
    fn password(&self) -> Result<Option<String>, Ended> {
        let Some(path) = &self.password_file else {
            let set = std::env::var("TESTIGO_PASSWORD").ok();
            return Ok(set.filter(|password| !password.is_empty()));
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Ended::bad_input(format!("{}: {error}", path.display())))?;
        let first = text.lines().next().unwrap_or_default();
        match first.is_empty() {
            true => Err(Ended::bad_input(format!(
                "{}: its first line is empty",
                path.display()
            ))),
            false => Ok(Some(first.to_owned())),
        }
    }

    pub(crate) async fn connect(&self) -> Result<Client, Ended> {
        let client = Client::connect(self.target()?).await;
        client.map_err(|not_done| self.missed(not_done))
    }

    /// A bare connection, for jobs.
    pub(crate) async fn open(&self) -> Result<Connection, Ended> {
        let connection = Connection::open(&self.target()?, &connection_name()).await;
        connection.map_err(|not_done| self.missed(not_done))
    }

    /// A bare connection to a node that serves, or if there is none, to the first that answers: it can say why.
    pub(crate) async fn open_any(&self) -> Result<Connection, Ended> {
        let missed = match self.open().await {
            Err(missed) if self.resp.count() > 1 => missed,
            opened => return opened,
        };
        for address in self.resp.iter() {
            let mut target = self.target()?;
            target.addresses = Addresses::from(address.clone());
            if let Ok(connection) = Connection::open(&target, &connection_name()).await {
                return Ok(connection);
            }
        }
        Err(missed)
    }

    fn missed(&self, not_done: NotDone) -> Ended {
        let ended = Ended::from(not_done);
        let (address, why) = (&self.resp, &ended.why);
        match ended.code {
            // Nothing was asked for yet, so nothing is unknown.
            UNREACHABLE | UNKNOWN => Ended::new(
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
        self.end_with(async { conversation(self.connect().await?).await })
    }

    /// Connects barely, for flows and jobs, and runs a conversation with the node.
    pub(crate) fn converse(
        &self,
        conversation: impl AsyncFnOnce(Connection) -> Result<ExitCode, Ended>,
    ) -> Outcome {
        self.end_with(async { conversation(self.open().await?).await })
    }

    /// Runs a command to its end. A name that the node does not know and that is nearly one that it knows is pointed out.
    pub(crate) fn end_with(&self, work: impl Future<Output = Result<ExitCode, Ended>>) -> Outcome {
        ended(runtime()?.block_on(async {
            let mut end = work.await;
            if let Err(ended) = &mut end
                && let Some((kind, wrong)) = missing(&ended.why)
                && let Ok(mut node) = self.open().await
                && let Some(meant) = meant(wrong, &names(&mut node, kind).await)
            {
                ended.why = format!("there is no {kind} {wrong}; did you mean {meant}?");
            }
            end
        }))
    }
}

/// How others see a session of this process: `host:pid command`.
pub(crate) fn label() -> String {
    let (place, command) = place_and_command();
    format!("{place} {command}")
}

/// How others see a connection of this process: `host:pid/command`, as a connection's name has no blanks.
pub(crate) fn connection_name() -> String {
    let (place, command) = place_and_command();
    format!("{place}/{}", command.replace(' ', "-"))
}

/// Which process this is, and which command of `testigo` it runs: the words before the first option or name.
fn place_and_command() -> (String, String) {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let fits = |c: &char| !c.is_control() && !c.is_whitespace();
    let host: String = name.chars().filter(fits).take(64).collect();
    let mut words = Vec::new();
    let mut known = &Cli::command();
    for word in std::env::args_os().skip(1) {
        let Some(next) = known.find_subcommand(word) else {
            break;
        };
        words.push(next.get_name().to_owned());
        known = next;
    }
    (format!("{host}:{}", std::process::id()), words.join(" "))
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
    pub(crate) fn new(code: u8, why: impl Into<String>) -> Ended {
        Ended {
            code,
            why: why.into(),
        }
    }

    /// Whether it may have been done all the same.
    pub(crate) fn is_unknown(&self) -> bool {
        self.code == UNKNOWN
    }

    pub(crate) fn bad_input(why: impl Into<String>) -> Ended {
        Ended::new(BAD_INPUT, why)
    }
}

/// Says why a command ended, if there is something to say.
pub(crate) fn ended(end: Result<ExitCode, Ended>) -> Outcome {
    Ok(end.unwrap_or_else(|Ended { code, why }| {
        complain!("testigo: {why}");
        ExitCode::from(code)
    }))
}

impl From<NotDone> for Ended {
    fn from(not_done: NotDone) -> Ended {
        let code = match not_done.word() {
            None => UNKNOWN,
            Some(Word::Limit) if is_for_good(&not_done) => BAD_INPUT,
            Some(Word::Unavailable | Word::Limit) => UNREACHABLE,
            Some(Word::Busy | Word::Deadlock | Word::Full) => WAIT_ENDED,
            Some(_) => BAD_INPUT,
        };
        let why = in_shell_words(&not_done);
        Ended { code, why }
    }
}

/// Something else has the name or the number: the same call would be refused again, so nobody should try again (75).
pub(crate) fn refused_for_good(not_done: NotDone) -> Ended {
    let ended = Ended::from(not_done);
    let taken = [
        "with another definition",
        "remove it first",
        "is the peer address of",
    ];
    match ended.code == WAIT_ENDED && taken.iter().any(|words| ended.why.contains(words)) {
        true => Ended::new(NOT_GOOD, ended.why),
        false => ended,
    }
}

/// Whether a limit is reached by what was asked for, and not by what is there already.
fn is_for_good(not_done: &NotDone) -> bool {
    matches!(not_done, NotDone::Refused(refusal) if refusal.sentence.contains(" is above the limit "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testigo_client::Refusal;

    #[test]
    fn an_unknown_end_has_an_exit_code_of_its_own() {
        let unknown = Ended::from(NotDone::Unknown("the disk failed".into()));
        assert_eq!((unknown.code, unknown.is_unknown()), (UNKNOWN, true));
        assert_eq!(unknown.why, "unknown whether it was done: the disk failed");
        for (word, code) in [
            (Word::Unavailable, UNREACHABLE),
            (Word::Busy, WAIT_ENDED),
            (Word::BadArg, BAD_INPUT),
        ] {
            let sentence = String::new();
            let refused = Ended::from(NotDone::Refused(Refusal { word, sentence }));
            assert_eq!((refused.code, refused.is_unknown()), (code, false));
        }
    }
}
