//! What clients say when they connect, `HELLO`, and when they are done, `RESET` and `QUIT`.

use testigo_core::Refusal;

use super::auth::Afterwards;
use super::table::{Answered, Outcome};
use crate::house::{ClientId, House};
use crate::wire::{Protocol, Reply, Words, bad_arg};

/// What `HELLO` asks for.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    protocol: Option<Protocol>,
    name: Option<Box<str>>,
}

impl House {
    /// `HELLO [2|3 [AUTH user password] [SETNAME name]]`.
    pub(super) fn hello(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let protocol = match words.next_bytes() {
            None => None,
            Some(b"2") => Some(Protocol::Resp2),
            Some(b"3") => Some(Protocol::Resp3),
            Some(_) => {
                let error = "NOPROTO unsupported protocol version; 2 and 3 are spoken here";
                return Ok(Answered::Now(Reply::Error(error.into())));
            }
        };
        let (mut name, mut credentials) = (None, None);
        while words.left() > 0 {
            if words.keyword("AUTH") {
                credentials = Some((words.text("the user")?, words.text("the password")?));
            } else if words.keyword("SETNAME") {
                name = Some(words.text("the name")?);
            } else {
                words.end()?;
            }
        }
        if let Some(name) = name {
            self.check_client_text(name)?;
        }
        let name = name.map(Box::from);
        let hello = Hello { protocol, name };
        match credentials {
            Some((user, password)) => {
                self.authenticate(id, user, password, Afterwards::Hello(hello))
            }
            None => Ok(Answered::Now(self.greet(id, hello))),
        }
    }

    /// Answers `HELLO` to a connection that has authenticated, if it must.
    pub(super) fn greet(&mut self, id: ClientId, Hello { protocol, name }: Hello) -> Reply {
        let number = self.number_of(id);
        let Some(client) = self.connections.client_mut(id) else {
            return Reply::Null;
        };
        if client.user.is_none() {
            let error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
                         <proto> AUTH <user> <pass> option can be used to authenticate the client";
            return Reply::Error(error.into());
        }
        if let Some(name) = name {
            client.name = name;
            client.signature = None;
        }
        if let Some(protocol) = protocol {
            client.protocol = protocol;
        }
        let version = match client.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        };
        Reply::Map(vec![
            ("server", Reply::text("testigo")),
            ("version", Reply::text(env!("CARGO_PKG_VERSION"))),
            ("proto", Reply::Int(version)),
            ("id", Reply::number(number)),
            ("mode", Reply::text("standalone")),
            ("role", Reply::text("master")),
            ("modules", Reply::Array(Vec::new())),
        ])
    }

    /// `RESET`: makes the connection like new. Its session ends or, if it was opened, waits to be resumed.
    pub(super) fn reset(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        let anybody = self.users().anybody();
        let Some(client) = self.connections.client_mut(id) else {
            return Ok(Answered::Later);
        };
        let session = client.session();
        let forgets = client.pushed;
        client.acts_for = crate::house::ActsFor::Nobody;
        client.presented = None;
        client.unit = None;
        client.protocol = Protocol::Resp2;
        client.user = anybody;
        client.name = "".into();
        let channels = std::mem::take(&mut client.channels);
        let patterns = std::mem::take(&mut client.patterns);
        for channel in &channels {
            self.connections.channels.leave(channel, id);
        }
        for pattern in &patterns {
            self.connections.channels.leave_pattern(pattern, id);
        }
        self.observe();
        self.count_worker(id, None);
        self.connections.await_auth(id);
        if let Some(session) = session {
            if session.is_implicit() {
                self.give_back_all(session);
            }
            self.stand_up(session);
        }
        if forgets {
            self.forget_pushed(id);
        }
        // A connection that only takes slots has no session that ends with the seat.
        self.services.end_slots(self.implicit_of(id));
        Ok(Answered::Now(Reply::Simple("RESET")))
    }

    /// `QUIT`.
    pub(super) fn quit(&mut self, id: ClientId, _: Words<'_>) -> Outcome {
        self.connections.send(id, Reply::Ok);
        self.connections.dismiss(id);
        Ok(Answered::Later)
    }

    pub(super) fn check_client_text(&self, text: &str) -> Result<(), Refusal> {
        let most = self.connections.wire().client_text_bytes;
        if text.len() > most || text.contains(|c: char| c.is_control() || c == ' ') {
            return Err(bad_arg(format!(
                "a name has at most {most} bytes and neither blanks nor control characters"
            )));
        }
        Ok(())
    }
}
