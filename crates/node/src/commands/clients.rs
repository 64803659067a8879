//! Who works on flows, and how to stop a worker: `FLOW CLIENTS` and `CLIENT END`. They do what the source's administration
//! server shows and does.

use testigo_core::{Command, HeldView, Refusal, Taken, Word};

use super::table::{Answered, Outcome};
use crate::house::{ActsFor, Blocked, Client, ClientId, House, fence_reply};
use crate::users::Deed;
use crate::wire::{Reply, Words, refuse};

impl House {
    /// `FLOW CLIENTS [flow [process]]`: every connection that is a process or has jobs in hand.
    pub(super) fn flow_clients(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let mut word = |what| (words.left() > 0).then(|| words.text(what)).transpose();
        let (flow, process) = (word("the flow's name")?, word("the process")?);
        words.end()?;
        match flow {
            Some(flow) => self.see_flow(id, flow)?,
            None => {
                self.no_process(id)?;
                self.allow(id, Deed::Admin, "")?;
            }
        }
        if let Some(flow) = flow {
            let scheme = &self.replicated().flow(flow)?.scheme;
            if let Some(process) = process.filter(|name| !scheme.processes.contains_key(*name)) {
                let why = format!("flow {flow} has no process {process}; FLOW SHOW lists them");
                return Err(refuse(Word::NoRight, why));
            }
        }
        let (flow, process) = (flow.map(str::to_owned), process.map(str::to_owned));
        let mut clients: Vec<ClientId> = self.connections.ids().collect();
        clients.sort_unstable();
        let mut rows = self.rows_for(id);
        let mut clients = clients.into_iter().peekable();
        self.in_slices(id, move |house, slice| {
            while slice.has_room()
                && let Some(client) = clients.next()
            {
                slice.spend(1);
                let client = house.connections.client(client);
                let wanted = |client: &&Client| match (&client.presented, &flow) {
                    (Some(who), Some(flow)) => {
                        *who.flow == **flow && process.as_ref().is_none_or(|p| *who.process == **p)
                    }
                    (None, Some(_)) => false,
                    (_, None) => house.works(client),
                };
                if let Some(client) = client.filter(wanted) {
                    let jobs = house.jobs_in_hand(client);
                    slice.spend(jobs.len());
                    rows.push(&house.client_reply(id, client, &jobs));
                }
            }
            house.check_rows(rows.count(), "clients")?;
            Ok(clients.peek().is_none().then(|| rows.array()))
        })?;
        Ok(Answered::Later)
    }

    /// `CLIENT END id|MACHINE address`: closes connections that work on flows; their jobs wait again, with a death each.
    pub(super) fn client_end(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let machine = match words.keyword("MACHINE") {
            true => Some(words.text("the machine's address")?),
            false => None,
        };
        let one = match machine {
            Some(_) => None,
            None => {
                let number = words.number("the client's id, or MACHINE")?;
                self.numbered(number)
            }
        };
        words.end()?;
        self.presented_first(id)?;
        self.no_process(id)?;
        self.allow(id, Deed::Admin, "")?;
        // Nobody ends itself, wherever the command is carried out.
        let asks = self.connections.client(id).and_then(Client::session);
        let clients = self.connections.iter().filter(|client| {
            client.id != id && (client.session().is_none() || client.session() != asks)
        });
        let clients = clients.filter(|client| match machine {
            Some(address) => machine_of(&client.address) == address,
            None => Some(client.id) == one,
        });
        let ended = clients.filter(|client| self.works(client));
        let ended: Vec<ClientId> = ended.map(|client| client.id).collect();
        for client in &ended {
            self.end_client(*client)?;
        }
        Ok(Answered::Now(Reply::number(ended.len() as u64)))
    }

    /// The jobs come first, so that they wait again whatever happens to the connection.
    fn end_client(&mut self, id: ClientId) -> Result<(), Refusal> {
        let Some(client) = self.connections.client(id) else {
            return Ok(());
        };
        let (place, session) = (client.acts_for, client.session());
        // At once, because it may never read its output.
        self.connections.cut_off(id, None);
        match (place, session) {
            (ActsFor::Implicit(session), _) => self.stand_up(session),
            (_, Some(session)) => {
                // What an opened session holds at gates does not concern flows.
                for HeldView { job, attempt, .. } in self.services.jobs_held(session) {
                    // A job that is settling is leaving its holder anyway.
                    let _ = self.ask(session, &Command::Fail(Taken { job, attempt }));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn works(&self, client: &Client) -> bool {
        client.presented.is_some() || !self.jobs_in_hand(client).is_empty()
    }

    fn jobs_in_hand(&self, client: &Client) -> Vec<HeldView> {
        let session = client.session();
        session.map_or_else(Vec::new, |session| self.services.jobs_held(session))
    }

    /// A connection as another may see it: without jobs of queues that the other may not look into.
    fn client_reply(&self, id: ClientId, client: &Client, jobs: &[HeldView]) -> Reply {
        let presented = client.presented.as_ref();
        let session = client.session();
        let jobs = jobs.iter().filter_map(|held| self.in_hand_reply(id, held));
        let waits = matches!(
            client.blocked,
            Some(Blocked::Waiting { .. } | Blocked::Calling { waits: true })
        );
        let mut row = vec![
            ("id", Reply::number(self.number_of(client.id))),
            (
                "flow",
                Reply::optional(presented.map(|who| who.flow.as_str()), Reply::text),
            ),
            (
                "process",
                Reply::optional(presented.map(|who| who.process.as_str()), Reply::text),
            ),
            ("machine", Reply::text(machine_of(&client.address))),
            ("address", Reply::text(client.address.as_str())),
            ("name", Reply::text(&*client.name)),
            (
                "session",
                Reply::optional(session.map(|session| session.number()), Reply::number),
            ),
            (
                "connected_ms",
                Reply::number(self.now().saturating_sub(client.since)),
            ),
            ("waits", Reply::flag(waits)),
            ("jobs", Reply::Array(jobs.collect())),
        ];
        // Only a cluster has this, so only there is it shown.
        if let Some(node) = self.member_number() {
            row.push(("node", Reply::number(node)));
        }
        Reply::Map(row)
    }

    fn in_hand_reply(&self, id: ClientId, held: &HeldView) -> Option<Reply> {
        let job = self.seen_job(id, held.job).ok()?;
        Some(Reply::Map(vec![
            ("id", Reply::number(job.id.0)),
            ("name", Reply::Name(job.name.clone())),
            ("queue", self.queue_reply(job.queue)),
            ("attempt", fence_reply(held.attempt)),
            (
                "held_ms",
                Reply::number(self.now().saturating_sub(held.since)),
            ),
        ]))
    }
}

/// The machine in a peer's address: the address without the port; for a Unix socket this machine.
fn machine_of(address: &str) -> &str {
    match address.parse::<std::net::SocketAddr>() {
        Ok(_) => {
            let end = address.rfind(':').unwrap_or(address.len());
            address[..end].trim_matches(['[', ']'])
        }
        Err(_) => "local",
    }
}

#[cfg(test)]
mod tests {
    use super::machine_of;

    #[test]
    fn a_machine_is_an_address_without_its_port() {
        assert_eq!(machine_of("10.1.2.3:4567"), "10.1.2.3");
        assert_eq!(machine_of("[::1]:4567"), "::1");
        assert_eq!(machine_of("/run/testigo.sock"), "local");
    }
}
