//! `CLIENT ID|SETINFO|SETNAME|GETNAME|UNBLOCK|LIST|INFO|END`.

use std::sync::Arc;

use testigo_core::Command;

use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Blocked, Cancelled, Client, ClientId, House};
use crate::users::{Deed, User};
use crate::wire::{Protocol, Reply, Words, bad_arg};

impl House {
    pub(super) fn client(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("ID") {
            words.end()?;
            return Ok(Answered::Now(Reply::number(self.number_of(id))));
        }
        if words.keyword("SETINFO") {
            return self.client_set_info(id, words);
        }
        if words.keyword("SETNAME") {
            let name = words.text("the name")?;
            words.end()?;
            self.check_client_text(name)?;
            if let Some(client) = self.connections.client_mut(id) {
                client.name = name.into();
                client.signature = None;
            }
            return Ok(Answered::Now(Reply::Ok));
        }
        if words.keyword("GETNAME") {
            words.end()?;
            let name = self
                .connections
                .client(id)
                .map_or("", |client| &client.name);
            let reply = match name {
                "" => Reply::Null,
                name => Reply::text(name),
            };
            return Ok(Answered::Now(reply));
        }
        if words.keyword("UNBLOCK") {
            return self.client_unblock(id, words);
        }
        if words.keyword("LIST") {
            words.end()?;
            return self.client_list(id);
        }
        if words.keyword("INFO") {
            words.end()?;
            let client = self.connections.client(id);
            let line = client.map(|client| self.client_row(client, true));
            return Ok(Answered::Now(Reply::text(line.unwrap_or_default())));
        }
        if words.keyword("END") {
            return self.client_end(id, words);
        }
        if words.keyword("REDIRECT") {
            let redirected = match words.keyword("ON") {
                true => true,
                false if words.keyword("OFF") => false,
                false => return Err(bad_arg("CLIENT REDIRECT is ON or OFF")),
            };
            words.end()?;
            if let Some(client) = self.connections.client_mut(id) {
                client.redirected = redirected;
            }
            return Ok(Answered::Now(Reply::Ok));
        }
        let known = "ID, SETINFO, SETNAME, GETNAME, UNBLOCK, LIST, INFO, END, REDIRECT";
        Err(unknown_word("CLIENT", words.text("a word")?, known))
    }

    /// `CLIENT LIST`: the connections that the user may see, by ID.
    fn client_list(&mut self, id: ClientId) -> Outcome {
        self.check_rows(self.connections.len(), "connections")?;
        let user = Arc::clone(self.user(id)?);
        let mut clients: Vec<ClientId> = self.connections.ids().collect();
        clients.sort_unstable();
        let mut lines = self.rows_for(id);
        let mut at = 0;
        self.in_slices(id, move |house, slice| {
            for other in &clients[slice.places(&mut at, clients.len())] {
                let client = house.connections.client(*other);
                let seen = |client: &&Client| own(&user, client) || user.may(Deed::Admin, "");
                if let Some(client) = client.filter(seen) {
                    lines.push_line(&house.client_row(client, *other == id));
                }
            }
            Ok((at == clients.len()).then(|| lines.text()))
        })?;
        Ok(Answered::Later)
    }

    /// `CLIENT SETINFO LIB-NAME|LIB-VER text`.
    fn client_set_info(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let name = words.keyword("LIB-NAME");
        if !name && !words.keyword("LIB-VER") {
            let what = words.text("LIB-NAME or LIB-VER")?;
            return Err(unknown_word("CLIENT SETINFO", what, "LIB-NAME, LIB-VER"));
        }
        let text = words.text("the text")?;
        words.end()?;
        self.check_client_text(text)?;
        if let Some(client) = self.connections.client_mut(id) {
            match name {
                true => client.library.0 = text.into(),
                false => client.library.1 = text.into(),
            }
        }
        Ok(Answered::Now(Reply::Ok))
    }

    /// `CLIENT UNBLOCK id [TIMEOUT|ERROR]`: ends another connection's wait.
    fn client_unblock(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let number = words.number("the connection")?;
        let error = words.keyword("ERROR");
        if !error {
            words.keyword("TIMEOUT");
        }
        words.end()?;
        let Some(other) = self.numbered(number) else {
            return Ok(Answered::Now(Reply::flag(false)));
        };
        let user = Arc::clone(self.user(id)?);
        let admin = user.check(Deed::Admin, "");
        let client = self.connections.client_mut(other);
        let Some(client) = client.filter(|client| own(&user, client) || admin.is_ok()) else {
            // A user that may see all sessions is told what right is missing; others are not even told whether the connection
            // exists.
            return match user.may(Deed::Show, "") {
                true if self.connections.client(other).is_some() => admin.map(|()| Answered::Later),
                _ => Ok(Answered::Now(Reply::flag(false))),
            };
        };
        let Some(Blocked::Waiting { ticket, .. }) = client.blocked else {
            return Ok(Answered::Now(Reply::flag(false)));
        };
        client.blocked = Some(Blocked::Waiting {
            ticket,
            cancelled: match error {
                true => Cancelled::Unblocked,
                false => Cancelled::Null,
            },
        });
        let session = self.identity(other);
        let cancelled = self.ask(session, &Command::Cancel { ticket }).is_ok();
        Ok(Answered::Now(Reply::flag(cancelled)))
    }

    /// A connection's line. `asks` says whether it asks for this itself, which does not count as being blocked.
    fn client_row(&self, client: &Client, asks: bool) -> String {
        let session = client
            .session()
            .map_or("-".to_owned(), |session| session.to_string());
        let version = match client.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        };
        let blocked = match client.blocked {
            None if client.has_under_way() => "log",
            None => "no",
            Some(Blocked::Waiting { .. }) => "gate",
            Some(Blocked::Asking(_) | Blocked::Calling { .. }) => "node",
            Some(Blocked::Reading) => "log",
            Some(Blocked::Logging) => "log",
            Some(Blocked::Slicing) if asks => "no",
            Some(Blocked::Slicing) => "answer",
            Some(Blocked::Password) => "password",
        };
        // Only a cluster has this, so only there is it shown.
        let node = self.member_number().map(|node| format!(" node={node}"));
        format!(
            "id={} addr={} name={} user={} age={} resp={version} session={session} blocked={blocked} sub={} psub={} lib-name={} lib-ver={}{}\n",
            self.number_of(client.id),
            client.address,
            client.name,
            client.user.as_ref().map_or("-", |user| user.name()),
            self.now().saturating_sub(client.since) / 1000,
            client.channels.len(),
            client.patterns.len(),
            client.library.0,
            client.library.1,
            node.unwrap_or_default(),
        )
    }
}

fn own(user: &User, client: &Client) -> bool {
    let other = client.user.as_ref();
    other.is_some_and(|other| other.name() == user.name())
}
