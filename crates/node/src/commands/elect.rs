//! `ELECT CAMPAIGN|RESIGN|LEADER|SHOW|LIST`.

use std::collections::BTreeSet;
use std::sync::Arc;

use testigo_core::{
    Answer, Ask, Change, Command, Fence, GateView, Lock, Name, Refusal, Shard, WaiterView,
};

use super::lock::waits;
use super::show::text;
use super::table::{Answered, Outcome, unknown_word};
use crate::house::{
    ActsFor, Answers, Asking, ClientId, House, Leader, Term, Wanted, fence_reply, vacancy_word,
};
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg};

/// Cap on candidates that are shown; their number is always given.
const SHOWN_MAX: usize = 200;

/// A row is much work: it looks up who leads.
const ROW_WEIGHT: usize = 4;

impl House {
    pub(super) fn elect(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("CAMPAIGN") {
            self.campaign(id, words)
        } else if words.keyword("RESIGN") {
            let election = named(&mut words)?;
            let term = match words.left() {
                0 => None,
                _ => Some(Fence(words.number("the term")?)),
            };
            words.end()?;
            self.resign(id, &election, term)
        } else if words.keyword("LEADER") {
            let election = named(&mut words)?;
            words.end()?;
            self.allow(id, Deed::Show, &election)?;
            let view = self.election(&election, 0)?;
            let leader = view.as_ref().and_then(Leader::of);
            Ok(Answered::Now(Reply::optional(leader, |leader| {
                leader_reply(&election, leader, self.now())
            })))
        } else if words.keyword("SHOW") {
            let election = named(&mut words)?;
            words.end()?;
            self.allow(id, Deed::Show, &election)?;
            self.election_show(&election)
        } else if words.keyword("LIST") {
            self.election_list(id, words)
        } else {
            let known = "CAMPAIGN, RESIGN, LEADER, SHOW, LIST";
            Err(unknown_word("ELECT", words.text("a word")?, known))
        }
    }

    /// `ELECT CAMPAIGN name value [RANK n] [TTL ms] [WAIT ms] [ASYNC] [RECEIPT|GRANT]`.
    fn campaign(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let line = words;
        let election = named(&mut words)?;
        let value = words.next_bytes();
        let value = value.ok_or_else(|| bad_arg("the value is missing; it may be empty"))?;
        let (mut rank, mut ttl_ms, mut form) = (0, None, None);
        let mut lock = Lock {
            gate: &election,
            ..Lock::default()
        };
        while words.left() > 0 {
            if words.keyword("RANK") {
                rank = words.integer("RANK")?;
            } else if words.keyword("TTL") {
                ttl_ms = Some(words.number("TTL")?);
            } else if !waits(&mut words, &mut lock, &mut form)? {
                words.end()?;
            }
        }
        lock.ask = Ask::Lead { rank, value };
        self.allow(id, Deed::Use, &election)?;
        if let Some(ttl_ms) = ttl_ms
            && !self.lives_for(id, ttl_ms)?
        {
            return self.open_first(id, ttl_ms, line);
        }
        let wanted = form.map(|form| Wanted {
            form,
            gates: [election.as_str().into()].into(),
        });
        self.enter(id, lock.asynchronous, wanted, &Command::Lock(lock))
    }

    /// Whether a connection has opened a session with this TTL. A session with another TTL is refused: the leadership would
    /// not live as long as the caller says.
    fn lives_for(&mut self, id: ClientId, ttl_ms: u64) -> Result<bool, Refusal> {
        let session = match self.connections[id].acts_for {
            ActsFor::Opened(session) => session,
            ActsFor::Ended(_) => return self.session_of(id).map(|_| false),
            _ => return Ok(false),
        };
        let record = self.replicated().session(session);
        match record.map(|record| record.ttl_ms) {
            Some(own) if own != ttl_ms => Err(bad_arg(format!(
                "session {session} is open with TTL {own}, not {ttl_ms}; leave TTL out, or say {own}"
            ))),
            _ => Ok(true),
        }
    }

    /// Opens a session for a connection, and then carries out its command.
    fn open_first(&mut self, id: ClientId, ttl_ms: u64, line: Words<'_>) -> Outcome {
        self.leave_implicit(id)?;
        let change = Change::OpenSession {
            session: self.draw_session()?,
            ttl_ms,
            label: None,
            user: self.user(id)?.mark().map(str::to_owned),
        };
        self.submit(change, Answers::Again(id, line.kept()))?;
        Ok(Answered::Later)
    }

    /// `ELECT RESIGN name [term]`. With a term, only that leadership is given up.
    fn resign(&mut self, id: ClientId, election: &Name, term: Option<Fence>) -> Outcome {
        let session = self.session_of(id)?;
        let gate = election;
        let command = match term {
            Some(_) => Command::Unlock { gate, fence: term },
            None => Command::Resign { election },
        };
        match self.ask(session, &command)? {
            Answer::Waiting(ticket) => {
                self.block_on_asking(id, ticket, Asking::Unlock);
                Ok(Answered::Later)
            }
            _ => Ok(Answered::Now(Reply::Ok)),
        }
    }

    /// `ELECT SHOW name`: the leader, the first candidates, and the ended terms.
    fn election_show(&self, election: &Name) -> Outcome {
        let now = self.now();
        let view = self.election(election, SHOWN_MAX)?;
        let leader = view.as_ref().and_then(Leader::of);
        let leader = Reply::optional(leader, |leader| leader_reply(election, leader, now));
        let candidates = view.iter().flat_map(|view| &view.waiters);
        let candidates = candidates.map(|candidate| candidate_reply(candidate, now));
        let terms = self.terms_of(election).map(|term| term_reply(term, now));
        let waiting = view.as_ref().map_or(0, |view| view.waiting);
        Ok(Answered::Now(Reply::Map(vec![
            ("name", plain(election)),
            ("leader", leader),
            ("waiting", Reply::number(waiting as u64)),
            ("candidates", Reply::Array(candidates.collect())),
            ("terms", Reply::Array(terms.collect())),
        ])))
    }

    /// `ELECT LIST [pattern]`: by name.
    fn election_list(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pattern = words.pattern()?;
        words.end()?;
        let user = Arc::clone(self.user(id)?);
        let mut rows = self.rows_for(id);
        let (mut at, mut found) = (0, BTreeSet::new());
        self.in_slices(id, move |house, slice| {
            let end = house.local().gate_places();
            let places = slice.places_of(&mut at, end, pattern.weight());
            let wanted = |name: &Name| {
                name.as_election().is_some()
                    && user.sees(name, &pattern)
                    && house.services.owns(Shard::of(name))
            };
            found.extend(house.local().gates_in(places, wanted).map(|gate| gate.name));
            house.check_rows(found.len(), "elections")?;
            while at >= end && slice.has_room() {
                let Some(name) = found.pop_first() else {
                    return Ok(Some(rows.array()));
                };
                slice.spend(ROW_WEIGHT);
                let view = house.local().gate_with(&name, 1);
                rows.extend(view.ok().map(|view| list_row(&name, &view)));
            }
            Ok(None)
        })?;
        Ok(Answered::Later)
    }
}

/// The election that the next word names.
fn named(words: &mut Words<'_>) -> Result<Name, Refusal> {
    Name::election(words.text("the election's name")?)
}

fn plain(election: &Name) -> Reply {
    Reply::text(election.as_election().unwrap_or_default())
}

/// Name, term, session and value of the leader, and the number of candidates.
fn list_row(name: &Name, view: &GateView) -> Reply {
    let leader = Leader::of(view);
    let of_leader = |reply: fn(&Leader) -> Reply| Reply::optional(leader.as_ref(), reply);
    Reply::Array(vec![
        plain(name),
        of_leader(|leader| fence_reply(leader.term)),
        of_leader(|leader| Reply::number(leader.session.number())),
        of_leader(|leader| Reply::Body(leader.value.clone())),
        Reply::number(view.waiting as u64),
    ])
}

fn leader_reply(election: &Name, leader: Leader, now: u64) -> Reply {
    Reply::Map(vec![
        ("name", plain(election)),
        ("term", fence_reply(leader.term)),
        ("value", Reply::Body(leader.value)),
        ("rank", Reply::Int(leader.rank)),
        ("session", Reply::number(leader.session.number())),
        ("label", text(&leader.label)),
        ("since_ms", Reply::number(now.saturating_sub(leader.since))),
        ("candidates", Reply::number(leader.candidates as u64)),
    ])
}

fn candidate_reply(candidate: &WaiterView, now: u64) -> Reply {
    let candidacy = candidate.mode.candidacy();
    Reply::Map(vec![
        ("session", Reply::number(candidate.session.number())),
        ("label", text(&candidate.label)),
        ("rank", Reply::Int(candidacy.map_or(0, |of| of.rank))),
        (
            "value",
            Reply::optional(candidacy, |of| Reply::Body(of.value.clone())),
        ),
        (
            "waited_ms",
            Reply::number(now.saturating_sub(candidate.since)),
        ),
    ])
}

fn term_reply(term: &Term, now: u64) -> Reply {
    Reply::Map(vec![
        ("term", fence_reply(term.term)),
        ("session", Reply::number(term.session.number())),
        ("rank", Reply::Int(term.candidacy.rank)),
        ("value", Reply::Body(term.candidacy.value.clone())),
        (
            "led_ms",
            Reply::number(term.until.saturating_sub(term.since)),
        ),
        ("ended_ms", Reply::number(now.saturating_sub(term.until))),
        ("why", Reply::text(vacancy_word(term.why))),
    ])
}
