//! Three estates that follow one log at once, links with latency that keep their order, and people who hold and wait.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use testigo_core::estate::{Broken, Estate, Frame, Out, Peer, Tell};
use testigo_core::{
    Answer, Ask, Change, Command, Definition, Fence, GateView, HolderView, Index, Limits, Lock,
    LockAll, Name, NodeId, Origin, Refusal, Replicated, Rule, SessionId, Settled, Shard, Span,
    Stamp, Start, Ticket, Word,
};

use crate::oracle;
use crate::random::Random;

pub(crate) const NODES: usize = 3;
const TICK_MS: u64 = 10;
/// A deadlock is found so soon.
const FOUND_MS: u64 = 1_000;

/// What happened, to see that something did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) grants: u64,
    pub(crate) deadlocks: u64,
    pub(crate) victims: u64,
    /// Victims that were found by a walk, and not by the books of one node at once.
    pub(crate) by_walks: u64,
    /// Frames of walks.
    pub(crate) walked: u64,
    /// How long the slowest deadlock lasted.
    pub(crate) slowest_ms: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.grants += other.grants;
        self.deadlocks += other.deadlocks;
        self.victims += other.victims;
        self.by_walks += other.by_walks;
        self.walked += other.walked;
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
    }
}

/// Somebody with a session.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) session: SessionId,
    pub(crate) home: usize,
    /// What it holds, as it was told.
    pub(crate) held: Vec<(String, Fence)>,
    /// What it is blocked for.
    pub(crate) waits: Option<(Vec<String>, Ticket)>,
    /// Whether it was refused.
    pub(crate) refused: bool,
    /// Whether what it asks for is the last thing that it wants.
    pub(crate) last: bool,
    /// When it came, by the log.
    began: Index,
}

impl Person {
    /// The gate that it waits for; of a set, whichever its home is at.
    pub(crate) fn waits_for(&self) -> Option<&str> {
        match self.waits.as_ref() {
            Some((gates, _)) if gates.len() == 1 => Some(&gates[0]),
            _ => None,
        }
    }
}

enum Event {
    Frame(Peer, Peer, Frame),
    Tick(usize),
}

pub(crate) struct Town {
    pub(crate) random: Random,
    pub(crate) now: u64,
    pub(crate) replicated: Replicated,
    pub(crate) estates: Vec<Estate>,
    pub(crate) people: Vec<Person>,
    pub(crate) gates: Vec<String>,
    sequences: [u64; NODES],
    serial: u64,
    events: BTreeMap<(u64, u64), Event>,
    /// When the last frame arrives on each link.
    arrives: BTreeMap<(Peer, Peer), u64>,
    /// Once in so many frames one takes long.
    pub(crate) slow_one_in: u64,
    /// Whether everybody in a circle is there in the same way, so that the youngest holder is the victim.
    pub(crate) plain: bool,
    /// Who is deadlocked, and since when.
    deadlock: Option<(BTreeSet<SessionId>, u64)>,
    /// When each was last deadlocked.
    last: BTreeMap<SessionId, u64>,
    pub(crate) tally: Tally,
    /// A deadlock is found so soon, where no link is slow.
    pub(crate) found_ms: u64,
}

fn peer(at: usize) -> Peer {
    (NodeId(at as u64 + 1), Start(1))
}

impl Town {
    pub(crate) fn new(seed: u64, broken: Option<Broken>) -> Town {
        let replicated = Replicated::new(Limits::default());
        let estates = (0..NODES).map(|at| {
            let limits = Limits::default();
            let mut estate = Estate::new(0, peer(at), 3_000, limits, seed, &replicated);
            estate.broken = broken;
            estate
        });
        let mut town = Town {
            random: Random::new(seed),
            now: 1_000,
            estates: estates.collect(),
            replicated,
            people: Vec::new(),
            gates: Vec::new(),
            sequences: [0; NODES],
            serial: 0,
            events: BTreeMap::new(),
            arrives: BTreeMap::new(),
            slow_one_in: u64::MAX,
            plain: false,
            deadlock: None,
            last: BTreeMap::new(),
            tally: Tally::default(),
            found_ms: FOUND_MS,
        };
        let members = (0..NODES).map(peer).collect();
        let view = Change::View {
            before: Index(0),
            members,
            generation: 0,
        };
        town.log(0, view);
        for at in 0..NODES {
            let offset = town.random.below(TICK_MS);
            town.after(offset, Event::Tick(at));
        }
        town
    }

    fn after(&mut self, ms: u64, event: Event) {
        self.serial += 1;
        self.events.insert((self.now + ms, self.serial), event);
    }

    /// Everybody applies a change.
    fn log(&mut self, by: usize, change: Change) {
        self.sequences[by] += 1;
        let (node, start) = peer(by);
        let sequence = self.sequences[by];
        let origin = Some(Origin {
            node,
            start,
            sequence,
        });
        let stamp = Stamp {
            at: 0,
            origin,
            term: 0,
        };
        let applied = self.replicated.apply(stamp, &change);
        let applied = applied.expect("it rests on what is so");
        for at in 0..NODES {
            let mut out = Out::default();
            self.estates[at].follow(self.now, &self.replicated, &applied, &mut out);
            self.carry_out(at, out).expect("nobody waits yet");
        }
    }

    /// Makes a gate that is owned by a node.
    pub(crate) fn make_gate(&mut self, rule: Rule, owner: usize) -> String {
        let gate = format!("gate{}", self.gates.len());
        let (shard, (taker, start)) = (Shard::of(&gate), peer(owner));
        let title = self.replicated.ownership().title(shard);
        let before = title.expect("a view gave it").owner;
        if before != taker {
            let number = self.replicated.ownership().number(shard);
            let shards = vec![Span::of(shard, number)];
            let titles = Change::Titles {
                shards,
                taker,
                start,
            };
            self.log(before.0 as usize - 1, titles);
        }
        if rule != Rule::Mutex {
            let number = self.replicated.ownership().number(shard);
            let create = Change::CreateGate {
                gate: Name::new(&gate).expect("it is short"),
                definition: Definition::new(rule),
                number,
            };
            self.log(owner, create);
        }
        self.gates.push(gate.clone());
        gate
    }

    /// Somebody comes to a node.
    pub(crate) fn arrive(&mut self, home: usize) -> usize {
        let who = self.people.len();
        let (node, start) = peer(home);
        // Some with a session that is logged, some without.
        let session = match self.random.one_in(2) {
            true => {
                let session = SessionId::opened(self.random.next());
                let open = Change::OpenSession {
                    session,
                    ttl_ms: 60_000,
                    label: None,
                    user: None,
                };
                self.log(home, open);
                session
            }
            false => SessionId::of_connection(node, start, who as u64 + 1),
        };
        self.people.push(Person {
            session,
            home,
            held: Vec::new(),
            waits: None,
            refused: false,
            last: false,
            began: self.replicated.index(),
        });
        if session.is_implicit() {
            let connected = self.ask(who, &Command::Connect).expect("no phantom");
            connected.expect("the node acts");
        }
        who
    }

    pub(crate) fn ask(
        &mut self,
        who: usize,
        command: &Command<'_>,
    ) -> Result<Result<Answer, Refusal>, String> {
        let (session, at) = (self.people[who].session, self.people[who].home);
        let mut out = Out::default();
        let answer = self.estates[at].ask(self.now, &self.replicated, session, command, &mut out);
        self.carry_out(at, out)?;
        Ok(answer)
    }

    /// Somebody asks for gates.
    pub(crate) fn lock(
        &mut self,
        who: usize,
        gates: &[(&str, Ask<'_>)],
        wait_ms: Option<u64>,
    ) -> Result<(), String> {
        let names: Vec<String> = gates.iter().map(|(gate, _)| (*gate).to_owned()).collect();
        let command = match gates {
            [(gate, ask)] => Command::Lock(Lock {
                gate,
                ask: *ask,
                wait_ms,
                ..Lock::default()
            }),
            _ => Command::LockAll(LockAll {
                gates: gates.to_vec().into(),
                wait_ms,
                ..LockAll::default()
            }),
        };
        match self.ask(who, &command)? {
            Ok(Answer::Waiting(ticket)) => self.people[who].waits = Some((names, ticket)),
            Ok(Answer::Settled(settled)) => self.settled(who, names, settled),
            Err(refusal) if refusal.word == Word::Deadlock => {
                // The books of one node saw it coming: it never came to be.
                self.people[who].refused = true;
                self.tally.victims += 1;
                self.tally.deadlocks += 1;
            }
            Err(refusal) => return Err(format!("person {who} was refused: {refusal}")),
            Ok(answer) => return Err(format!("person {who} was answered {answer:?}")),
        }
        Ok(())
    }

    fn settled(&mut self, who: usize, gates: Vec<String>, settled: Settled) {
        let grants = match settled {
            Settled::Entered(grant) => vec![grant],
            Settled::EnteredAll(grants) => grants.into_vec(),
            _ => Vec::new(),
        };
        self.tally.grants += grants.len() as u64;
        let held = gates
            .into_iter()
            .zip(grants.iter().map(|grant| grant.fence));
        self.people[who].held.extend(held);
    }

    /// Somebody gives back what it got last.
    pub(crate) fn unlock(&mut self, who: usize) -> Result<(), String> {
        let (gate, fence) = self.people[who].held.pop().expect("it holds something");
        let unlock = Command::Unlock {
            gate: &gate,
            fence: Some(fence),
        };
        match self.ask(who, &unlock)? {
            Ok(_) => Ok(()),
            Err(refusal) => Err(format!("person {who} could not leave {gate}: {refusal}")),
        }
    }

    /// Nothing arrives on a link for so long.
    pub(crate) fn slow_down(&mut self, from: usize, to: usize, ms: u64) {
        self.arrives.insert((peer(from), peer(to)), self.now + ms);
    }

    /// Lets time go on.
    pub(crate) fn pass(&mut self, ms: u64) -> Result<(), String> {
        let until = self.now + ms;
        while let Some(next) = self.events.first_entry() {
            if next.key().0 > until {
                break;
            }
            let ((at, _), event) = next.remove_entry();
            self.now = at;
            // Only these end in a refusal.
            if matches!(event, Event::Tick(_) | Event::Frame(_, _, Frame::Seen(_))) {
                self.watch()?;
            }
            let mut out = Out::default();
            let at = match event {
                Event::Frame(from, to, frame) => {
                    let at = to.0.0 as usize - 1;
                    self.tally.walked += u64::from(matches!(frame, Frame::Look(_)));
                    self.estates[at].receive(self.now, &self.replicated, from, frame, &mut out);
                    at
                }
                Event::Tick(at) => {
                    self.after(TICK_MS, Event::Tick(at));
                    let estate = &mut self.estates[at];
                    if let Some(ask) = estate.lease().due(self.now) {
                        estate.leased(ask, &self.replicated);
                    }
                    estate.tick(self.now, &self.replicated, &mut out);
                    at
                }
            };
            self.carry_out(at, out)?;
        }
        self.now = until;
        Ok(())
    }

    /// How long the second round of a walk may take, while people change their minds.
    fn second_round_ms(&self) -> u64 {
        match self.slow_one_in {
            u64::MAX => 0,
            _ => 1_900,
        }
    }

    /// Notes since when there is a deadlock; one that stays is a failure.
    fn watch(&mut self) -> Result<(), String> {
        let stuck = oracle::deadlocked(self);
        self.last
            .extend(stuck.iter().map(|session| (*session, self.now)));
        if stuck.is_empty() {
            if let Some((_, since)) = self.deadlock.take() {
                self.tally.slowest_ms = self.tally.slowest_ms.max(self.now - since);
            }
            return Ok(());
        }
        let since = match &mut self.deadlock {
            Some((known, since)) => {
                *known = stuck;
                *since
            }
            None => {
                self.tally.deadlocks += 1;
                self.deadlock = Some((stuck, self.now));
                self.now
            }
        };
        let found_ms = match self.slow_one_in {
            u64::MAX => self.found_ms,
            // Where links are slow, so are walks.
            _ => 8 * FOUND_MS,
        };
        match self.now > since + found_ms {
            true => Err(format!(
                "nobody was refused for {found_ms} ms: {:?} {:#?}",
                self.deadlock, self.people
            )),
            false => Ok(()),
        }
    }

    fn carry_out(&mut self, at: usize, out: Out) -> Result<(), String> {
        for (to, frame) in self.estates[at].take_frames() {
            let wait = match self.random.one_in(self.slow_one_in) {
                true => self.random.between(100, 900),
                false => self.random.between(1, 20),
            };
            let link = (peer(at), to);
            let arrives = (self.now + wait).max(self.arrives.get(&link).copied().unwrap_or(0));
            self.arrives.insert(link, arrives);
            self.after(arrives - self.now, Event::Frame(peer(at), to, frame));
        }
        for tell in out.tells {
            self.hear(tell)?;
        }
        Ok(())
    }

    fn hear(&mut self, tell: Tell) -> Result<(), String> {
        let Tell::Answered {
            session,
            ticket,
            answer,
        } = tell
        else {
            return Ok(());
        };
        let who = self
            .people
            .iter()
            .position(|person| person.session == session);
        let who = who.expect("somebody asked");
        let own = |(_, own): &mut (Vec<String>, Ticket)| *own == ticket;
        let Some((gates, _)) = self.people[who].waits.take_if(own) else {
            return Ok(());
        };
        match answer {
            Ok(Answer::Settled(settled)) => self.settled(who, gates, settled),
            Err(refusal) if refusal.word == Word::Deadlock => {
                let known = self.deadlock.as_ref();
                // Real means: so at one time between the rounds. Somebody may have changed its mind since.
                let since = self.now.saturating_sub(self.second_round_ms());
                if self.last.get(&session).is_none_or(|last| *last < since) {
                    return Err(format!("{session} is in no deadlock: {refusal} {known:?}"));
                }
                if refusal
                    .cycle
                    .first()
                    .is_none_or(|link| link.session != session)
                {
                    return Err(format!(
                        "the cycle does not begin with {session}: {refusal}"
                    ));
                }
                let stuck = known.map(|(stuck, _)| stuck.clone()).unwrap_or_default();
                let holders = stuck.iter().map(|session| self.person(*session));
                let holders = holders.filter(|person| !person.held.is_empty());
                let youngest = holders.max_by_key(|person| (person.began, person.session));
                if self.plain && youngest.is_none_or(|person| person.session != session) {
                    return Err(format!("{session} is not the youngest: {youngest:?}"));
                }
                self.people[who].refused = true;
                self.tally.victims += 1;
                self.tally.by_walks += 1;
            }
            other => return Err(format!("person {who} was answered {other:?}")),
        }
        Ok(())
    }

    pub(crate) fn gate(&self, gate: &str) -> Option<GateView> {
        let title = self.replicated.ownership().title(Shard::of(gate))?;
        let owner = &self.estates[title.owner.0 as usize - 1];
        owner.local().gate(gate).ok()
    }

    pub(crate) fn person(&self, session: SessionId) -> &Person {
        let mut people = self.people.iter();
        let person = people.find(|person| person.session == session);
        person.expect("only people have sessions")
    }

    /// Whether a holder knows that it is one, or its set does.
    pub(crate) fn knows(&self, session: SessionId, gate: &str, holder: &HolderView) -> bool {
        let person = self.person(session);
        let held = person.held.iter();
        let told = held
            .clone()
            .any(|(own, fence)| own == gate && *fence == holder.fence);
        told || holder.reserved && person.waits.is_some()
    }
}
