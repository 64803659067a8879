//! The home's side: sends commands away, and answers their connections.

use std::collections::BTreeSet;

use bytes::BytesMut;
use testigo_core::estate::Peer;
use testigo_core::{Command, Refusal, SessionId, Taken, Word};

use super::merge_rows::MergedRows;
use super::{CALL_MS_MAX, Call, Errand, LOOK_MS_MAX, RETRY_MS, Replied, Sent};
use crate::commands::{Answered, Effect, Known, Merge, Outcome, Route};
use crate::house::letters::Letter;
use crate::house::{Answer, Blocked, ClientId, House, Step, there};
use crate::wire::{KeptCommand, Protocol, RawCommand, Reply, Words, encode, refuse};

impl House {
    /// Sends a command where its route leads; its connection waits for the answer.
    pub(crate) fn send_away(
        &mut self,
        id: ClientId,
        route: Route,
        line: RawCommand<'_>,
    ) -> Outcome {
        if route == Route::Read {
            return self.read_later(id, line.to_kept());
        }
        self.check_acts()?;
        if let Some(moved) = self.redirection(id, &route) {
            return Ok(Answered::Now(moved));
        }
        let mut waits = false;
        let mut due = self.now + CALL_MS_MAX;
        let mut unit = None;
        match &route {
            Route::All(merge, _) if merge.names_missing() => due = self.now + LOOK_MS_MAX,
            Route::Take(_) => {
                there(self.connections.client(id))?.may_take_jobs()?;
                self.any_session_of(id)?;
                waits = true;
                let wait_ms = wait_ms(line.words()).unwrap_or(0);
                due = due.saturating_add(wait_ms);
            }
            Route::Unit(_) => {
                self.any_session_of(id)?;
                line.words().end()?;
                let client = self.connections.client_mut(id);
                let collected = client.and_then(|client| client.unit.take());
                unit = collected.map(|unit| unit.into_steps()).transpose()?;
            }
            Route::Owner(_, Effect::Changes) if is_job(line) => {
                self.any_session_of(id)?;
                self.give_up_first(id, line.words());
            }
            _ => {}
        }
        let session = self
            .connections
            .client(id)
            .and_then(|client| client.session());
        let errand = Errand {
            line: line.to_kept(),
            unit,
            route,
            session,
            due,
            calls: Default::default(),
            replies: Default::default(),
            merge: None,
            page: None,
            unserved: false,
        };
        self.visits.dues.insert((errand.due, id));
        self.visits.errands.insert(id, errand);
        if let Some(client) = self.connections.client_mut(id) {
            client.blocked = Some(Blocked::Calling { waits });
        }
        self.go(id);
        Ok(Answered::Later)
    }

    /// Where the owner is, for a client that goes there itself.
    fn redirection(&self, id: ClientId, route: &Route) -> Option<Reply> {
        let Route::Owner(shard, _) = route else {
            return None;
        };
        let redirected = self.connections.client(id)?.redirected;
        let title = self.replicated().ownership().title(*shard)?;
        if !redirected || (title.owner, title.start) == self.own {
            return None;
        }
        let address = self.replicated().cluster().address(title.owner)?;
        let client = address.client.as_ref()?;
        Some(Reply::Error(format!("MOVED {} {client}", shard.0)))
    }

    /// A job that is being given back is reported to no new owner, whatever happens to the call.
    fn give_up_first(&mut self, id: ClientId, mut words: Words<'_>) {
        let plain = words.keyword("BACK") && words.left() == 2;
        let numbers = (words.nth_text(0), words.nth_text(1));
        let session = self
            .connections
            .client(id)
            .and_then(|client| client.session());
        if let ((Some(job), Some(attempt)), Some(session)) = (numbers, session)
            && plain
            && let (Ok(job), Ok(attempt)) = (job.parse(), attempt.parse())
        {
            let taken = Taken {
                job: testigo_core::JobId(job),
                attempt: testigo_core::Fence(attempt),
            };
            self.services.gives_up(session, taken);
        }
    }

    /// Sends the calls of an errand.
    fn go(&mut self, id: ClientId) {
        let Some(errand) = self.visits.errands.get(&id) else {
            return;
        };
        let calls = match self.plan(errand) {
            Some(plan) => plan,
            None => return self.go_later(id),
        };
        let (merge, page) = (calls.merge, calls.page);
        if let Some(errand) = self.visits.errands.get_mut(&id) {
            (errand.merge, errand.page) = (merge, page);
            errand.unserved = false;
            errand.replies.clear();
        }
        let Some(caller) = self.caller(id) else {
            return;
        };
        // All are registered before the first is carried out, because this node answers itself at once.
        let mut calls_to = Vec::new();
        for leg in calls.legs {
            self.visits.next_call += 1;
            let call = self.visits.next_call;
            let Some(errand) = self.visits.errands.get_mut(&id) else {
                return;
            };
            errand.calls.insert(call);
            let sent = Sent {
                to: leg.to,
                client: Some(id),
                session: errand.session,
                effect: leg.effect,
            };
            self.visits.calls.insert(call, sent);
            let call = Call {
                call,
                shards: leg.shards,
                caller: caller.clone(),
                asks: leg.asks,
            };
            calls_to.push((leg.to, call));
        }
        for (to, call) in calls_to {
            // If an earlier call has answered the errand, this one is not made.
            let sent = self.visits.calls.get(&call.call);
            if sent.is_none_or(|sent| sent.client.is_none()) {
                self.visits.calls.remove(&call.call);
                continue;
            }
            match to == self.own {
                true => self.take_call(self.own, call),
                false => self.say(to, &Letter::Call(Box::new(call))),
            }
        }
    }

    fn go_later(&mut self, id: ClientId) {
        self.visits.again.insert((self.now + RETRY_MS, id));
    }

    /// Another node, or this one, has answered a call.
    pub(crate) fn replied(&mut self, from: Peer, call: u64, replied: Replied) {
        let known = self
            .visits
            .calls
            .get(&call)
            .is_some_and(|sent| sent.to == from);
        let Some(sent) = self.visits.calls.remove(&call).filter(|_| known) else {
            return;
        };
        let waits = sent
            .client
            .filter(|id| self.visits.errands.contains_key(id));
        let Some(id) = waits else {
            // The client that wanted it has gone.
            if let (Replied::Written(_, Some(taken)), Some(session)) = (replied, sent.session) {
                self.give_back(session, taken);
            }
            return;
        };
        let Some(errand) = self.visits.errands.get_mut(&id) else {
            return;
        };
        errand.calls.remove(&call);
        if !self.acts() {
            // A node without a lease tells its clients nothing on which they could rely.
            let refusal = unanswered(None, sent.effect == Effect::Changes);
            return self.end_errand(id, refusal);
        }
        let Some(errand) = self.visits.errands.get_mut(&id) else {
            return;
        };
        let is_take = matches!(errand.route, Route::Take(_));
        let session = errand.session;
        match replied {
            Replied::Moved => errand.unserved = true,
            // That node will be named as missing.
            Replied::Nothing if errand.merge.is_some_and(Merge::names_missing) => {}
            Replied::Nothing => {
                let why = "the other node has too much to do, or is ending; nothing was done";
                return self.end_errand(id, refuse(Word::Unavailable, why));
            }
            Replied::Written(bytes, taken) => {
                if let (Some(taken), Some(session)) = (taken, session) {
                    return match self.services.tell_take(session, taken) {
                        true => self.finish(id, BytesMut::from(&bytes[..])),
                        false => {
                            // The log has overtaken it.
                            errand_again(self, id);
                        }
                    };
                }
                if is_take && !is_null(&bytes) {
                    return self.finish(id, BytesMut::from(&bytes[..]));
                }
                if let Some(errand) = self.visits.errands.get_mut(&id) {
                    errand.replies.insert(from, bytes);
                }
            }
        }
        self.go_on_with(id);
    }

    /// Ends an errand if all its calls are answered, or routes it again.
    fn go_on_with(&mut self, id: ClientId) {
        let Some(errand) = self.visits.errands.get(&id) else {
            return;
        };
        if errand.unserved {
            let waiting = matches!(errand.route, Route::Take(_)) && !errand.calls.is_empty();
            if !waiting || errand.merge.is_some() {
                errand_again(self, id);
            }
            return;
        }
        if !errand.calls.is_empty() {
            return;
        }
        self.answer_errand(id);
    }

    /// Answers an errand with what has come.
    fn answer_errand(&mut self, id: ClientId) {
        let (Some(errand), Some(client)) =
            (self.visits.errands.get(&id), self.connections.client(id))
        else {
            return;
        };
        let protocol = client.protocol;
        if errand.merge == Some(Merge::PoolUse)
            && let Some(used) = super::merge::numbers(&errand.replies)
        {
            let pool = errand.line.raw().word(2).unwrap_or_default();
            let pool = String::from_utf8_lossy(pool).into_owned();
            self.call_off(id);
            if let Err(refusal) = self.delete_unused(id, &pool, &used) {
                self.connections.unblock(id, refusal.into());
            }
            return;
        }
        if let Some(Merge::Rows(what)) = errand.merge {
            let replies = self
                .visits
                .errands
                .get_mut(&id)
                .map(|errand| &mut errand.replies);
            let replies = replies.map(std::mem::take).unwrap_or_default();
            let rows_max = self.connections.wire().list_rows;
            let mut rows = MergedRows::new(what, rows_max, replies.into_values().collect());
            self.call_off(id);
            let begun = self.in_slices(id, move |_, slice| {
                let bytes = rows.slice(slice)?;
                Ok(bytes.map(Answer::Written))
            });
            if let Err(refusal) = begun {
                self.connections.unblock(id, refusal.into());
            }
            return;
        }
        let merged = match (errand.merge, errand.page) {
            (Some(merge), _) => {
                let members = self.replicated().view().members.iter();
                let members: Vec<Peer> =
                    members.map(|member| (member.node, member.start)).collect();
                let to = (self.own, &members[..]);
                super::merge::merged(merge, &errand.replies, to, protocol)
            }
            (None, Some(page)) => {
                let after = self.node_after(page);
                super::merge::page(&errand.replies, page.0.0, after, protocol)
            }
            (None, None) => {
                let bytes = errand.replies.values().next();
                Ok(BytesMut::from(bytes.map_or(&b""[..], |bytes| bytes)))
            }
        };
        match merged {
            Ok(bytes) => self.finish(id, bytes),
            Err(refusal) => self.end_errand(id, refusal),
        }
    }

    /// Whether a client carries out a command for another node.
    pub(crate) fn is_visit(&self, id: ClientId) -> bool {
        self.visits.here.contains_key(&id)
    }

    /// Sends a connection its answer.
    fn finish(&mut self, id: ClientId, bytes: BytesMut) {
        self.call_off(id);
        self.connections.unblock_with(id, bytes);
    }

    fn end_errand(&mut self, id: ClientId, refusal: Refusal) {
        let unit = self
            .visits
            .errands
            .get(&id)
            .is_some_and(|errand| errand.unit.is_some());
        let reply = match unit {
            true => crate::house::aborted(&refusal),
            false => refusal.into(),
        };
        let protocol = self.connections.client(id).map(|client| client.protocol);
        let mut bytes = BytesMut::new();
        encode(&reply, protocol.unwrap_or(Protocol::Resp2), &mut bytes);
        self.finish(id, bytes);
    }

    /// Nobody waits for an errand any more: cancels its calls, and gives back what they bring.
    pub(crate) fn call_off(&mut self, id: ClientId) {
        self.visits.reads.forget(id);
        let Some(errand) = self.visits.errands.remove(&id) else {
            return;
        };
        self.visits.dues.remove(&(errand.due, id));
        self.visits.again.retain(|(_, client)| *client != id);
        for call in errand.calls {
            let Some(sent) = self.visits.calls.get_mut(&call) else {
                continue;
            };
            sent.client = None;
            let to = sent.to;
            match to == self.own {
                true => self.visit_called_off(to, call),
                false => self.say(to, &Letter::CallOff { call }),
            }
        }
    }

    fn give_back(&mut self, session: SessionId, taken: Taken) {
        let _ = self.ask(session, &Command::GiveBack(taken));
    }

    /// Does what is due: routes errands again, or gives them up.
    pub(in crate::house) fn visits_turn(&mut self) {
        while let Some(&(at, id)) = self.visits.again.first()
            && at <= self.now
        {
            self.visits.again.pop_first();
            self.route_again(id);
        }
        while let Some(&(due, id)) = self.visits.dues.first()
            && due <= self.now
        {
            self.visits.dues.pop_first();
            let errand = self.visits.errands.get(&id);
            let looks = |errand: &Errand| errand.merge.is_some_and(Merge::names_missing);
            if errand.is_some_and(|errand| looks(errand) && !errand.replies.is_empty()) {
                self.answer_errand(id);
                continue;
            }
            let refusal = self.not_in_time(id);
            self.end_errand(id, refusal);
        }
        self.ask_for_reads();
        self.try_waiting();
        self.tell_listening();
    }

    /// Why there is no answer, and from whom.
    fn not_in_time(&self, id: ClientId) -> Refusal {
        let errand = self.visits.errands.get(&id);
        let calls = errand.into_iter().flat_map(|errand| &errand.calls);
        let sent: Vec<&Sent> = calls
            .filter_map(|call| self.visits.calls.get(call))
            .collect();
        let changes = sent.iter().any(|sent| sent.effect == Effect::Changes);
        let nodes: BTreeSet<u64> = sent.iter().map(|sent| sent.to.0.0).collect();
        let nodes: Vec<String> = nodes.iter().map(|node| format!("node {node}")).collect();
        let who = Some(nodes.join(" and ")).filter(|who| !who.is_empty());
        unanswered(who.as_deref(), changes)
    }

    /// The words may lead elsewhere by now.
    fn route_again(&mut self, id: ClientId) {
        let Some(errand) = self.visits.errands.get(&id) else {
            return;
        };
        let line = errand.line.clone();
        if errand.unit.is_none() {
            match self.route_of(id, line.raw()) {
                Route::Here | Route::Read => return self.serve_here(id, &line, Known::Little),
                route => {
                    if let Some(errand) = self.visits.errands.get_mut(&id) {
                        errand.route = route;
                    }
                }
            }
        }
        self.go(id);
    }

    /// Carries out a command here that was to be carried out elsewhere.
    pub(super) fn serve_here(&mut self, id: ClientId, line: &KeptCommand, known: Known) {
        self.call_off(id);
        if let Some(client) = self.connections.client_mut(id) {
            client.blocked = None;
            crate::commands::serve_settled(self, id, line.raw(), known);
            let blocked = self
                .connections
                .client(id)
                .is_some_and(|client| client.blocked.is_some());
            if !blocked {
                self.connections.let_go_on(id);
            }
        }
    }

    /// Members have left: calls to them are routed again, or have an unknown outcome.
    pub(in crate::house) fn callees_left(&mut self) {
        let view = self.replicated().view();
        let calls = self.visits.calls.iter();
        let lost = calls.filter(|(_, sent)| !view.has(sent.to.0, sent.to.1));
        let lost: Vec<u64> = lost.map(|(call, _)| *call).collect();
        let here = self.visits.here.iter();
        let gone = here.filter(|(_, visit)| !view.has(visit.from.0, visit.from.1));
        let gone: Vec<ClientId> = gone.map(|(id, _)| *id).collect();
        let (services, visits) = (&self.services, &mut self.visits);
        let is_in = |peer: Peer| services.replicated().view().has(peer.0, peer.1);
        visits.waiting.retain(|waiting| is_in(waiting.from));
        visits.listeners.retain(|peer| is_in(*peer));
        visits.told_listening.retain(|peer| is_in(*peer));
        for id in gone {
            self.visits.here.remove(&id);
            self.end_visit(id);
        }
        self.observe();
        for call in lost {
            let Some(sent) = self.visits.calls.remove(&call) else {
                continue;
            };
            let Some(id) = sent.client else {
                continue;
            };
            match sent.effect {
                Effect::Changes => {
                    let why = "the node that owns it was lost; whether it was done shows there";
                    self.end_errand(id, refuse(Word::Unknown, why));
                }
                Effect::Reads | Effect::ReadsLog => {
                    if let Some(errand) = self.visits.errands.get_mut(&id) {
                        errand.calls.remove(&call);
                        errand.unserved = true;
                        errand_again(self, id);
                    }
                }
            }
        }
    }
}

/// Cancels what is under way, and routes the errand again in a moment.
fn errand_again(house: &mut House, id: ClientId) {
    let Some(errand) = house.visits.errands.get_mut(&id) else {
        return;
    };
    errand.unserved = true;
    for call in std::mem::take(&mut errand.calls) {
        let Some(sent) = house.visits.calls.get_mut(&call) else {
            continue;
        };
        sent.client = None;
        let to = sent.to;
        match to == house.own {
            true => house.visit_called_off(to, call),
            false => house.say(to, &Letter::CallOff { call }),
        }
    }
    house.go_later(id);
}

/// The end of a command that was not answered in time.
fn unanswered(who: Option<&str>, changes: bool) -> Refusal {
    match (changes, who) {
        (true, who) => {
            let who = who.unwrap_or("the node that owns it");
            let why = format!("{who} has not answered in time; whether it was done shows there");
            refuse(Word::Unknown, why)
        }
        (false, Some(who)) => refuse(
            Word::Unavailable,
            format!("{who} has not answered in time; nothing was done"),
        ),
        (false, None) => refuse(
            Word::Unavailable,
            "nobody who owns it has answered in time; nothing was done",
        ),
    }
}

fn is_job(line: RawCommand<'_>) -> bool {
    line.word(0)
        .is_some_and(|name| name.eq_ignore_ascii_case(b"JOB"))
}

fn is_null(bytes: &[u8]) -> bool {
    matches!(bytes, b"$-1\r\n" | b"_\r\n" | b"*-1\r\n")
}

/// `WAIT ms` at the end of a take.
fn wait_ms(mut words: Words<'_>) -> Option<u64> {
    words.next_bytes();
    words.next_bytes();
    while words.left() > 1 {
        if words.keyword("WAIT") {
            return words.number("WAIT").ok();
        }
        words.next_bytes();
    }
    None
}

impl House {
    pub(super) fn stepped(steps: Vec<Step>) -> Box<crate::house::Unit> {
        Box::new(crate::house::Unit::of(steps))
    }
}
