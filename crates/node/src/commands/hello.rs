//! What clients say when they connect: `HELLO`, `AUTH`, and `RESET` and `QUIT` when they are done.

use testigo_core::Refusal;

use super::table::{Answered, Outcome};
use crate::house::{ClientId, House};
use crate::wire::{Protocol, Reply, Words, bad_arg};

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
        let mut name = None;
        while words.left() > 0 {
            if words.keyword("AUTH") {
                let (user, password) = (words.text("the user")?, words.text("the password")?);
                if let Some(refused) = self.authenticate(id, Some(user), password) {
                    return Ok(Answered::Now(refused));
                }
            } else if words.keyword("SETNAME") {
                name = Some(words.text("the name")?);
            } else {
                words.end()?;
            }
        }
        if let Some(name) = name {
            self.check_client_text(name)?;
        }
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(Answered::Later);
        };
        if !client.authenticated {
            let error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
                         <proto> AUTH <user> <pass> option can be used to authenticate the client";
            return Ok(Answered::Now(Reply::Error(error.into())));
        }
        if let Some(name) = name {
            client.name = name.into();
        }
        if let Some(protocol) = protocol {
            client.protocol = protocol;
        }
        let version = match client.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        };
        Ok(Answered::Now(Reply::Map(vec![
            ("server", Reply::text("testigo")),
            ("version", Reply::text(env!("CARGO_PKG_VERSION"))),
            ("proto", Reply::Int(version)),
            ("id", Reply::number(id.0)),
            ("mode", Reply::text("standalone")),
            ("role", Reply::text("master")),
            ("modules", Reply::Array(Vec::new())),
        ])))
    }

    /// `AUTH [user] password`.
    pub(super) fn auth(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let user = match words.left() {
            1 => None,
            _ => Some(words.text("the user")?),
        };
        let password = words.text("the password")?;
        words.end()?;
        let refused = self.authenticate(id, user, password);
        Ok(Answered::Now(refused.unwrap_or(Reply::Ok)))
    }

    /// Gives the error, or nothing when the password is right.
    fn authenticate(&mut self, id: ClientId, user: Option<&str>, given: &str) -> Option<Reply> {
        let Some(password) = self.password.as_deref() else {
            let error = "BADARG AUTH was given, and this node has no password";
            return user.is_none().then(|| Reply::Error(error.into()));
        };
        let right = user.is_none_or(|user| user == "default") & same(password, given);
        if !right {
            let error = "WRONGPASS invalid username-password pair or user is disabled.";
            return Some(Reply::Error(error.into()));
        }
        if let Some(client) = self.clients.get_mut(&id) {
            client.authenticated = true;
        }
        None
    }

    /// `RESET`: the connection is as new. Its session ends or, if it was opened, waits to be resumed.
    pub(super) fn reset(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        let open = self.password.is_none();
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(Answered::Later);
        };
        let session = client.session();
        client.place = crate::house::Place::Nowhere;
        client.presented = None;
        client.protocol = Protocol::Resp2;
        client.authenticated = open;
        client.name = "".into();
        let channels = std::mem::take(&mut client.channels);
        let patterns = std::mem::take(&mut client.patterns);
        for channel in &channels {
            self.channels.leave(channel, id);
        }
        for pattern in &patterns {
            self.channels.leave_pattern(pattern, id);
        }
        self.observe();
        if let Some(session) = session {
            self.stand_up(session);
        }
        Ok(Answered::Now(Reply::Simple("RESET")))
    }

    /// `QUIT`.
    pub(super) fn quit(&mut self, id: ClientId, _: Words<'_>) -> Outcome {
        self.send(id, Reply::Ok);
        self.dismiss(id);
        Ok(Answered::Later)
    }

    pub(super) fn check_client_text(&self, text: &str) -> Result<(), Refusal> {
        let most = self.wire.client_text_bytes;
        if text.len() > most || text.contains(|c: char| c.is_control() || c == ' ') {
            return Err(bad_arg(format!(
                "a name has at most {most} bytes and neither blanks nor control characters"
            )));
        }
        Ok(())
    }
}

/// Compares in a time that does not tell how much of the password was right.
fn same(password: &str, given: &str) -> bool {
    let (password, given) = (password.as_bytes(), given.as_bytes());
    let differences = password
        .iter()
        .zip(given.iter().chain(std::iter::repeat(&0)))
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    differences == 0 && password.len() == given.len()
}
