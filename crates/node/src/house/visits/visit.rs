//! The owner's side: carries out commands of other nodes' clients, and tells nodes with listeners what happens at gates.

use testigo_core::estate::{Peer, RECALLED, Stands};
use testigo_core::{Command, Index, Name, Number, SessionId, Shard, Taken, Ticket};

use super::{Asks, CALL_MS_MAX, Call, Caller, RETRY_MS, Replied, VISITS_MAX, Visit, Waiting};
use crate::commands::{Effect, Known, Route};
use crate::house::letters::Letter;
use crate::house::{ActsFor, Blocked, Client, ClientId, House, Outlet, Presented, Waiter, Worker};
use crate::wire::{KeptCommand, RawCommand};

/// How often the owners of other shards are asked for them, in milliseconds.
const WANT_MS: u64 = 50;

impl House {
    /// Another node, or this one, wants a command carried out.
    pub(crate) fn take_call(&mut self, from: Peer, call: Call) {
        if self.visits.here.len() + self.visits.waiting.len() >= VISITS_MAX {
            return self.reply(from, call.call, Replied::Nothing);
        }
        let waiting = Waiting {
            from,
            call,
            due: self.now + CALL_MS_MAX,
            retry_at: self.now,
            want_at: self.now,
        };
        self.visits.waiting.push(waiting);
        self.try_waiting();
    }

    /// Carries out the calls that can be carried out by now.
    pub(super) fn try_waiting(&mut self) {
        if self.visits.waiting.is_empty() {
            return;
        }
        for mut waiting in std::mem::take(&mut self.visits.waiting) {
            let stands = match self.acts() {
                true => self.call_stands(&mut waiting),
                false => Stands::Wait,
            };
            let (from, call) = (waiting.from, waiting.call.call);
            match stands {
                Stands::Now => self.carry_out_call(from, waiting.call),
                Stands::Moved => self.reply(from, call, Replied::Moved),
                // Nothing was done: a client that still wants it asks again.
                Stands::Wait if waiting.due <= self.now => self.reply(from, call, Replied::Moved),
                Stands::Wait => {
                    waiting.retry_at = self.now + RETRY_MS;
                    self.visits.waiting.push(waiting);
                }
            }
        }
    }

    /// Whether a call can be carried out: this node owns what it is about, knows everything about it, and the caller's home
    /// is where it says.
    fn call_stands(&mut self, waiting: &mut Waiting) -> Stands {
        let session = waiting.call.caller.session;
        let is_unit = matches!(waiting.call.asks, Asks::Unit(_));
        let mut missing: Vec<Shard> = Vec::new();
        for (at, named) in waiting.call.shards.iter().enumerate() {
            // The first shard stays where it is; the others come to it, under other numbers.
            let follows = is_unit && at > 0;
            let number = match follows {
                true => self.replicated().ownership().number(named.0),
                false => named.1,
            };
            match self.stands((named.0, number), session) {
                Stands::Now => {}
                Stands::Moved if follows => missing.push(named.0),
                other => return other,
            }
        }
        if missing.is_empty() {
            return Stands::Now;
        }
        if waiting.want_at <= self.now {
            waiting.want_at = self.now + WANT_MS;
            self.want_shards(missing);
        }
        Stands::Wait
    }

    /// Whether a call about a shard can be carried out here.
    fn stands(&self, named: (Shard, Number), session: Option<(SessionId, Index)>) -> Stands {
        let Some(estate) = self.services.estate() else {
            return Stands::Now;
        };
        let nobody = (self.implicit_of(ClientId(0)), Index(0));
        estate.call_stands(self.replicated(), named, session.unwrap_or(nobody))
    }

    /// Where a command goes. What this node owns, and knows everything about, needs no call.
    pub(crate) fn nearest(&self, route: Route) -> Route {
        let (shard, effect) = match &route {
            Route::Owner(shard, effect) => (*shard, *effect),
            Route::Node(to, _) if *to == self.own => return Route::Here,
            Route::Unit(shards) => {
                let stands = |shard: &Shard| {
                    let owned = self.owner_of(*shard);
                    let owned = owned.filter(|(owner, _)| *owner == self.own);
                    owned.is_some_and(|(_, number)| {
                        self.stands((*shard, number), None) == Stands::Now
                            && !self.is_moving(*shard)
                    })
                };
                return match self.acts() && shards.iter().all(stands) {
                    true => Route::Here,
                    false => route,
                };
            }
            _ => return route,
        };
        let owned = self.owner_of(shard).filter(|(owner, _)| *owner == self.own);
        let stands = owned.map(|(_, number)| self.stands((shard, number), None));
        match (stands, effect) {
            (Some(Stands::Now), _) if !self.acts() => route,
            (Some(Stands::Now), Effect::ReadsLog) => Route::Read,
            // The log may refuse it; then a call is routed again.
            (Some(Stands::Now), Effect::Changes)
                if self.is_moving(shard) || self.replicated().is_spread(shard) =>
            {
                route
            }
            (Some(Stands::Now), _) => Route::Here,
            _ => route,
        }
    }

    fn is_moving(&self, shard: Shard) -> bool {
        let estate = self.services.estate();
        estate.is_some_and(|estate| estate.is_moving(self.replicated(), shard))
    }

    /// Asks the owners of shards to hand them over.
    fn want_shards(&mut self, missing: Vec<Shard>) {
        for shard in missing {
            if let Some((owner, _)) = self.owner_of(shard)
                && owner != self.own
            {
                let shards = vec![shard];
                self.say(owner, &Letter::Want { shards });
            }
        }
    }

    /// Another node wants shards of this one, for a unit of work.
    pub(in crate::house) fn take_want(&mut self, from: Peer, shards: &[Shard]) {
        if let Some(change) = self.services.wanted_shards(self.now, from, shards) {
            let under_way = self.submissions.changes().any(|other| *other == change);
            if !under_way {
                let _ = self.submit(change, crate::house::Answers::Nobody);
            }
        }
    }

    fn carry_out_call(&mut self, from: Peer, call: Call) {
        let Call {
            call,
            shards,
            caller,
            asks,
        } = call;
        let Some(client) = self.visitor(&caller) else {
            let who = caller.user.unwrap_or_default();
            let node = self.own.0;
            let error =
                format!("-NOAUTH user {who} is not known at node {node}, which owns it\r\n");
            return self.reply(from, call, Replied::Written(error.into(), None));
        };
        let id = client.id;
        let visit = Visit {
            from,
            call,
            shards,
            taken: None,
        };
        self.visits.here.insert(id, visit);
        self.connections.add_visit(client);
        match asks {
            Asks::Command(line) => self.serve_now(id, line.raw()),
            Asks::Unit(steps) => {
                if let Some(client) = self.connections.client_mut(id) {
                    client.unit = Some(House::stepped(steps));
                }
                self.serve_now(id, KeptCommand::of([&b"EXEC"[..]]).raw());
            }
        }
        self.send_replies();
    }

    /// The client without a socket that carries out a call.
    fn visitor(&mut self, caller: &Caller) -> Option<Client> {
        let user = match &caller.user {
            Some(name) => self.users.named(name)?,
            None => self.users.program(),
        };
        let presented = caller.presented.as_ref().and_then(|(flow, process)| {
            Some(Presented {
                flow: Name::new(flow).ok()?,
                process: Name::new(process).ok()?,
            })
        });
        let mut client = self.stranger(Outlet::Visit, caller.address.clone());
        client.protocol = caller.protocol();
        client.user = Some(user);
        client.name = caller.name.as_str().into();
        // It is counted as its process; its presence is counted at its own node.
        let process = presented
            .as_ref()
            .and_then(|who| self.stats.process(&who.flow, &who.process));
        client.worker = process.map(|process| Worker {
            process,
            since: self.now,
        });
        client.presented = presented;
        if let Some((session, _)) = caller.session {
            client.acts_for = ActsFor::Guest(session);
        }
        Some(client)
    }

    /// A visitor was given a job.
    pub(in crate::house) fn visit_took(&mut self, id: ClientId, taken: Taken) {
        if let Some(visit) = self.visits.here.get_mut(&id) {
            visit.taken = Some(taken);
        }
    }

    /// Sends the answers that are written.
    pub(in crate::house) fn send_replies(&mut self) {
        for id in self.connections.take_answered_visits() {
            let bytes = self.connections.take_written(id);
            let visit = self.visits.here.remove(&id);
            self.end_visit(id);
            let Some(visit) = visit else {
                continue;
            };
            // The log has refused it, because there is another owner by now.
            let refused = bytes.starts_with(b"-STALE ") || bytes.starts_with(b"-EXECABORT STALE ");
            let first = visit.shards.first();
            let moved = |named: &(Shard, Number)| self.stands(*named, None) == Stands::Moved;
            // Or the gate is called in from the other nodes, and its owner must be asked again.
            let recalled = bytes.starts_with(b"-UNAVAILABLE gate ")
                && bytes
                    .windows(RECALLED.len())
                    .any(|part| part == RECALLED.as_bytes());
            let replied = match recalled || refused && first.is_some_and(moved) {
                true => Replied::Moved,
                false => Replied::Written(bytes.to_vec(), visit.taken),
            };
            self.reply(visit.from, visit.call, replied);
        }
    }

    pub(super) fn reply(&mut self, to: Peer, call: u64, replied: Replied) {
        match to == self.own {
            true => self.replied(to, call, replied),
            false => self.say(to, &Letter::Reply { call, replied }),
        }
    }

    /// A take that waited here must now wait at another owner; true if a visit wanted it.
    pub(in crate::house) fn visit_moved(&mut self, ticket: Ticket) -> bool {
        let Some(Waiter::Blocked(id)) = self.tickets.get(&ticket) else {
            return false;
        };
        let id = *id;
        let Some(visit) = self.visits.here.remove(&id) else {
            return false;
        };
        self.tickets.remove(&ticket);
        self.end_visit(id);
        self.reply(visit.from, visit.call, Replied::Moved);
        true
    }

    /// The caller no longer waits. What is under way ends in whatever way, and is answered.
    pub(crate) fn visit_called_off(&mut self, from: Peer, call: u64) {
        let is = |waiting: &Waiting| waiting.from == from && waiting.call.call == call;
        if let Some(at) = self.visits.waiting.iter().position(is) {
            self.visits.waiting.remove(at);
            return self.reply(from, call, Replied::Nothing);
        }
        let mut here = self.visits.here.iter();
        let found = here.find(|(_, visit)| visit.from == from && visit.call == call);
        let Some((&id, _)) = found else {
            return;
        };
        let Some(client) = self.connections.client(id) else {
            return;
        };
        if let (ActsFor::Guest(session), Some(Blocked::Waiting { ticket, .. })) =
            (client.acts_for, client.blocked)
        {
            let _ = self.ask(session, &Command::Cancel { ticket });
        }
    }

    pub(super) fn end_visit(&mut self, id: ClientId) {
        self.connections.forget_visit(id);
        self.farewell_visit(id);
    }

    /// Tells other nodes what happens at a gate, if their clients listen.
    pub(in crate::house) fn publish_away(&mut self, gate: &str, message: &[u8]) {
        for to in self.visits.listeners.clone() {
            let (gate, message) = (gate.to_owned(), message.to_owned());
            self.say(to, &Letter::Publish { gate, message });
        }
    }

    /// Whether clients of other nodes listen.
    pub(in crate::house) fn listened_to(&self) -> bool {
        !self.visits.listeners.is_empty()
    }

    /// Clients of another node listen to channels, or none does any more.
    pub(in crate::house) fn listens(&mut self, peer: Peer, listens: bool) {
        match listens {
            true => self.visits.listeners.insert(peer),
            false => self.visits.listeners.remove(&peer),
        };
        self.observe();
    }

    /// Tells the others whether clients of this node listen.
    pub(super) fn tell_listening(&mut self) {
        let listens = self.connections.channels.any();
        if !listens && self.visits.told_listening.is_empty() {
            return;
        }
        let Some(estate) = self.services.estate() else {
            return;
        };
        let others: Vec<Peer> = estate.others().collect();
        for peer in others {
            let told = match listens {
                true => self.visits.told_listening.insert(peer),
                false => self.visits.told_listening.remove(&peer),
            };
            if told {
                self.say(peer, &Letter::Listens { listens });
            }
        }
        if !listens {
            self.visits.told_listening.clear();
        }
    }

    /// Serves a command of a visitor, or of a connection that has waited for its turn.
    pub(super) fn serve_now(&mut self, id: ClientId, line: RawCommand<'_>) {
        crate::commands::serve_settled(self, id, line, Known::Little);
    }

    pub(super) fn route_of(&self, id: ClientId, line: RawCommand<'_>) -> Route {
        crate::commands::route_of(self, id, line)
    }

    fn farewell_visit(&mut self, id: ClientId) {
        let Some(client) = self.connections.client(id) else {
            return;
        };
        if let (ActsFor::Guest(session), Some(Blocked::Waiting { ticket, .. })) =
            (client.acts_for, client.blocked)
        {
            self.tickets.remove(&ticket);
            let _ = self.ask(session, &Command::Cancel { ticket });
        }
        if let Some(client) = self.connections.client_mut(id) {
            client.worker = None;
        }
        self.farewell(id);
    }
}
