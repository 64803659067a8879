//! Gates whose ownership an algorithm moves (`USING`). Each node keeps its own clients' waits and holds at such a gate in its
//! own books, and lets clients in while the algorithm has let the node in. The shard's owner only begins each *instance* of
//! the algorithm: one per title, so that the next title turns everything that is on its way into the past.
//!
//! Between a new title and the new instance, the gate is like any other that is not open yet: homes report what their
//! sessions hold, and the owner keeps that in its books until it is given back. The owner is let in first, on behalf of all
//! holders; then the others may ask. So it does not matter how many nodes have readers inside when a view changes.

use std::collections::BTreeMap;

use testigo_protocol::{Recording, Records};

use super::ask::Call;
use super::frame::{BranchWord, Frame};
use super::marks::Marks;
use super::recall::Recalls;
use super::table::{Asked, What, ticket_of};
use super::{Broken, Estate, Out, Peer};
use crate::branch::{Branch, Counts, Doings, DoorStep, Plan, RunName};
use crate::codec::OwnedCommand;
use crate::command::{Answer, Command, Lock};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::gate::{Door, Using};
use crate::local::HoldCopy;
use crate::name::Name;
use crate::ownership::{Number, Shard, Span};
use crate::replicated::{Change, Replicated};
use crate::session::SessionId;

/// How long a `LOCK … WAIT 0` waits for the node to be let in, in milliseconds, because nobody here knows whether the gate is
/// free.
pub(super) const TRY_MS: u64 = 200;

/// This node's instances of all gates that are spread over the nodes.
#[derive(Debug, Default)]
pub(super) struct Spread {
    running: BTreeMap<Name, Running>,
    /// Gates that are being deleted.
    pub(super) recalls: Recalls,
    /// The shards that are to get another number, and their present numbers.
    renewed: BTreeMap<Shard, Number>,
    /// What ended instances counted.
    counts: BTreeMap<Name, Counts>,
    marks: Marks,
    /// What ended instances recorded.
    records: Records,
    /// Titles to be proposed.
    pub(super) proposals: Vec<Change>,
    /// Holds of sessions that have moved away, in the books that are being closed: nobody else can report them.
    pub(super) strays: Vec<HoldCopy>,
}

#[derive(Debug)]
struct Running {
    /// The title that it belongs to, by the number under which its owner became the owner.
    since: Number,
    /// The members, by their numbers in the instance.
    peers: Vec<Peer>,
    owner: Peer,
    branch: Branch,
}

/// The state of an instance at one node, for observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchView {
    /// Whether an instance has begun here.
    pub begun: bool,
    /// Whether the algorithm has let this node in, so that it may let its clients in.
    pub inside: bool,
    /// Whether this node has asked to be let in.
    pub asks: bool,
    /// What this node has counted since it started, over all instances.
    pub counts: Counts,
    /// Its present or last turn, where one node at a time is in.
    pub turn: Option<TurnView>,
}

/// A turn of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnView {
    /// The instance, and how many times it has let this node in.
    pub turn: (Number, u64),
    /// Whether another node is known to wait, or this cannot be known.
    pub wanted: bool,
}

impl Estate {
    /// Whether an algorithm moves the ownership of a gate between the nodes.
    pub fn is_spread(&self, replicated: &Replicated, gate: &str) -> bool {
        replicated.has_spread()
            && self.members.len() > 1
            && replicated
                .gate(gate)
                .is_some_and(|definition| definition.travels.using != Using::Log)
    }

    /// What the instance of a gate needs to know.
    pub fn plan(&self, replicated: &Replicated, gate: &str) -> Option<Plan> {
        let definition = replicated.gate(gate)?;
        Some(Plan {
            travels: definition.travels,
            overtakes: definition.overtakes,
            nodes: self.members.len(),
        })
    }

    /// The state of a gate's instance here.
    pub fn branch(&self, gate: &str) -> BranchView {
        let running = self.spread.running.get(gate);
        let before = self.spread.counts.get(gate).copied().unwrap_or_default();
        let now = running.map(|running| running.branch.counts());
        BranchView {
            begun: running.is_some(),
            inside: running.is_some_and(|running| running.branch.is_in()),
            asks: running.is_some_and(|running| running.branch.asks()),
            counts: before.and(now.unwrap_or_default()),
            turn: running.and_then(|running| {
                let (turns, wanted) = running.branch.turn()?;
                let turn = (running.since, turns);
                Some(TurnView { turn, wanted })
            }),
        }
    }

    /// What this node has counted since a moment, as far as its marks allow: never more than that.
    pub fn counts_since(&self, gate: &str, since: u64) -> Counts {
        let counts = self.branch(gate).counts;
        self.spread.marks.since(gate, since, counts)
    }

    fn mark(&mut self, gate: &Name) {
        if self.has_begun(gate) {
            let counts = self.branch(gate).counts;
            self.spread.marks.mark(self.now, gate, counts);
        }
    }

    /// The number of the instance that runs here.
    pub(super) fn instance(&self, gate: &str) -> Option<Number> {
        let running = self.spread.running.get(gate)?;
        Some(running.since)
    }

    /// Whether an instance has begun here, so that the books here know who waits.
    pub(super) fn has_begun(&self, gate: &str) -> bool {
        self.spread.running.contains_key(gate)
    }

    /// The node whose books have a hold of a session. For a spread gate that is the home itself, unless the hold is in the
    /// table.
    pub(super) fn keeper_of(
        &self,
        replicated: &Replicated,
        session: SessionId,
        gate: &str,
    ) -> Result<Peer, Refusal> {
        match self.is_spread(replicated, gate) {
            true if !self.table.has_hold(session, gate) => Ok(self.own),
            _ => self.owner_of(replicated, gate),
        }
    }

    /// Enters a spread gate: its clients wait in the books here, or for an instance to begin.
    pub(super) fn ask_spread(
        &mut self,
        replicated: &Replicated,
        call: &Call<'_>,
        lock: &Lock<'_>,
        gate: Name,
    ) -> Result<Answer, Refusal> {
        let session = call.session;
        self.local.check_words(lock.wait_ms, lock.reason, lock.id)?;
        if self.table.has_hold(session, &gate) {
            return Err(Refusal::new(
                Word::Held,
                format!("session {session} holds gate {gate} already"),
            ));
        }
        let tries = lock.wait_ms == Some(0);
        let deadline = match lock.wait_ms {
            Some(0) => self.now + TRY_MS,
            Some(wait_ms) => self.now.saturating_add(wait_ms),
            None => u64::MAX,
        };
        let begun = self.has_begun(&gate);
        // The home ends the wait, whatever happens to the instance meanwhile.
        let command = Command::Lock(Lock {
            wait_ms: (tries && begun && self.local.lets_in(&gate)).then_some(0),
            id: None,
            ..lock.clone()
        });
        let ticket = match begun {
            true => match self.in_books(replicated, session, &command)? {
                Answer::Waiting(ticket) => Some(ticket),
                answer => return Ok(answer),
            },
            false => None,
        };
        let asked = Asked {
            session,
            what: What::Enter(super::ask::mode_of(replicated, lock)),
            command: OwnedCommand::from(&command),
            since: self.now,
            deadline,
            ticket,
            gate,
            blocking: call.blocking,
            id: call.id.map(Box::from),
            set: call.set,
            again: false,
        };
        Ok(Answer::Waiting(ticket_of(self.table.add_ask(asked))))
    }

    /// Begins the instances of the gates in those shards of this node that are open.
    pub(super) fn begin_instances(
        &mut self,
        replicated: &Replicated,
        shards: impl Fn(Shard) -> bool,
        out: &mut Out,
    ) {
        if !replicated.has_spread() {
            return;
        }
        let gates = replicated.gates();
        let spread = gates.filter(|(_, definition)| definition.travels.using != Using::Log);
        let here = spread.filter(|(gate, _)| shards(Shard::of(gate)));
        let gates: Vec<Name> = here.map(|(gate, _)| gate.clone()).collect();
        for gate in gates {
            self.begin_instance(replicated, &gate, out);
        }
    }

    /// Begins the instance of a gate, if this node owns it and nothing prevents it.
    pub(super) fn begin_instance(&mut self, replicated: &Replicated, gate: &Name, out: &mut Out) {
        let shard = Shard::of(gate);
        let may = self.is_spread(replicated, gate)
            && self.owns(replicated, shard)
            && self.openings.is_open(shard)
            && !self.is_reserved(gate)
            && !self.spread.recalls.has(gate)
            && !self.has_begun(gate);
        if !may {
            return;
        }
        self.local
            .set_door(gate, Some(Door::Shut), &mut self.events);
        // If nobody is inside, nobody has to be let in first.
        let census = self.local.census(gate).unwrap_or_default();
        let go = census.inside == 0 || self.breaks(Broken::EarlyGo);
        for peer in self.members.clone() {
            self.send_branch(replicated, peer, gate, BranchWord::Begin { go });
        }
        self.start_branch(replicated, self.own, gate, go, out);
    }

    /// An instance begins here. Requests that waited for it now wait in the books.
    fn start_branch(
        &mut self,
        replicated: &Replicated,
        owner: Peer,
        gate: &Name,
        go: bool,
        out: &mut Out,
    ) {
        let shard = Shard::of(gate);
        let peers = self.members.clone();
        let place = |peer: Peer| peers.iter().position(|other| *other == peer);
        let (Some(plan), Some(own), Some(at), Some(title)) = (
            self.plan(replicated, gate),
            place(self.own),
            place(owner),
            replicated.ownership().title(shard),
        ) else {
            return;
        };
        let Some(mut branch) = Branch::new(&plan, own as u32, at as u32) else {
            return;
        };
        self.local
            .set_door(gate, Some(Door::Shut), &mut self.events);
        let census = match owner == self.own {
            true => self.local.census(gate).unwrap_or_default(),
            false => Default::default(),
        };
        self.spread.records.make_room();
        let run = RunName {
            gate,
            instance: (u64::from(shard.0), title.since.0.into()),
            nodes: peers.iter().map(|peer| format!("n{}", peer.0.0)).collect(),
        };
        branch.set_now(self.now);
        branch.record(&plan, run, self.spread.records.allowance());
        let mut doings = Doings::default();
        branch.begin(&census, &mut doings);
        if go {
            branch.go();
        }
        let running = Running {
            since: title.since,
            peers,
            owner,
            branch,
        };
        self.spread.running.insert(gate.clone(), running);
        self.carry(replicated, gate, doings);
        let mut asks = self.table.parked_at(gate);
        asks.sort_by_key(|ask| (self.table.ask(*ask).map(|asked| asked.since), *ask));
        for ask in asks {
            let Some(asked) = self.table.ask(ask).cloned() else {
                continue;
            };
            match self.in_books(replicated, asked.session, &asked.command.command()) {
                Ok(Answer::Waiting(ticket)) => self.table.set_ticket(ask, Some(ticket)),
                answer => self.finish(replicated, ask, answer, out),
            }
        }
        self.drive(replicated, gate);
    }

    /// Another member sends a word about an instance that has begun here, or begins now.
    pub(super) fn hear_branch(
        &mut self,
        replicated: &Replicated,
        from: Peer,
        gate: &Name,
        last: Fence,
        word: BranchWord,
        out: &mut Out,
    ) {
        if !self.breaks(Broken::SilentRelease) {
            let shard = Shard::of(gate);
            self.local.lift_fence(shard, last, &mut self.events);
        }
        self.mark(gate);
        let mut doings = Doings::default();
        if let Some(running) = self.spread.running.get_mut(gate) {
            running.branch.set_now(self.now);
        }
        match word {
            BranchWord::Begin { go } => {
                if !self.has_begun(gate) {
                    self.start_branch(replicated, from, gate, go, out);
                }
                return;
            }
            BranchWord::Go => {
                if let Some(running) = self.spread.running.get_mut(gate) {
                    running.branch.go();
                }
            }
            BranchWord::AskUse => {
                let used = self.is_used_here(gate);
                self.send_branch(replicated, from, gate, BranchWord::Use { used });
                return;
            }
            BranchWord::Use { used } => {
                self.spread.recalls.heard(gate, from, used);
                return;
            }
            BranchWord::Wish => {
                if let Some(running) = self.spread.running.get_mut(gate) {
                    running.branch.wished(&mut doings);
                }
            }
            BranchWord::Parcel(parcel) => {
                let Some(running) = self.spread.running.get_mut(gate) else {
                    return;
                };
                let sender = running.node_of(parcel.from);
                let refused = running.peers.get(sender as usize) != Some(&from)
                    || running.branch.receive(&parcel, &mut doings).is_err();
                if refused {
                    // The algorithm has lost what was sent: it begins anew.
                    self.renew(replicated, Shard::of(gate));
                }
            }
        }
        self.carry(replicated, gate, doings);
        self.drive(replicated, gate);
    }

    /// Shows the algorithms what has happened at their gates. Says whether anything had.
    pub(super) fn drive_stirred(&mut self, replicated: &Replicated) -> bool {
        let stirred = self.local.take_stirred();
        for gate in &stirred {
            self.drive(replicated, gate);
        }
        !stirred.is_empty()
    }

    /// Shows a gate's algorithm who is there, until it wants nothing more.
    fn drive(&mut self, replicated: &Replicated, gate: &Name) {
        self.mark(gate);
        // Without fences nobody can be admitted; the next number is on its way and will begin the instance anew.
        while self.local.has_fences(Shard::of(gate)) {
            let Some(census) = self.local.census(gate) else {
                return;
            };
            let Some(running) = self.spread.running.get_mut(gate) else {
                return;
            };
            let mut doings = Doings::default();
            running.branch.set_now(self.now);
            running.branch.look(&census, &mut doings);
            let first = running.owner == self.own && !running.branch.goes();
            let goes = first && running.branch.has_all_in(&census);
            if goes {
                running.branch.go();
            }
            let done = doings == Doings::default() && !goes;
            self.carry(replicated, gate, doings);
            if goes {
                for peer in self.members.clone() {
                    self.send_branch(replicated, peer, gate, BranchWord::Go);
                }
            }
            if done {
                break;
            }
        }
        // A record must begin with its instance. When it is nearly full, both begin anew.
        self.spread.records.make_room();
        let running = self.spread.running.get(gate);
        let recording = running.and_then(|running| running.branch.recording());
        if recording.is_some_and(Recording::is_full_soon) {
            self.renew(replicated, Shard::of(gate));
        }
    }

    /// The recordings of a gate's instances here, oldest first.
    pub fn recordings(&self, gate: &str) -> impl Iterator<Item = &Recording> {
        let running = self.spread.running.get(gate);
        let running = running.and_then(|running| running.branch.recording());
        self.spread.records.of(gate).chain(running)
    }

    /// Does what a branch wants done.
    fn carry(&mut self, replicated: &Replicated, gate: &Name, doings: Doings) {
        for order in doings.steps {
            let events = &mut self.events;
            match order {
                DoorStep::Open(None) => self.local.set_door(gate, Some(Door::Open), events),
                DoorStep::Open(Some(most)) => {
                    let door = Door::Ajar(most);
                    if self.broken == Some(Broken::FreshBurst) {
                        self.local.set_door(gate, Some(Door::Shut), events);
                    }
                    self.local.set_door(gate, Some(door), events);
                }
                DoorStep::Shut => self.local.set_door(gate, Some(Door::Shut), events),
                DoorStep::Admit(kind) => {
                    self.local.admit(gate, kind, events);
                }
                DoorStep::Wanted => self.local.tell_wanted(gate, events),
            }
        }
        for parcel in doings.parcels {
            let Some(running) = self.spread.running.get(gate) else {
                return;
            };
            let to = running.node_of(parcel.to);
            if let Some(&peer) = running.peers.get(to as usize) {
                self.send_branch(replicated, peer, gate, BranchWord::Parcel(parcel));
            }
        }
        if doings.wish {
            for peer in self.members.clone() {
                self.send_branch(replicated, peer, gate, BranchWord::Wish);
            }
        }
    }

    pub(super) fn send_branch(
        &mut self,
        replicated: &Replicated,
        to: Peer,
        gate: &Name,
        word: BranchWord,
    ) {
        let shard = Shard::of(gate);
        let title = replicated.ownership().title(shard);
        let frame = Frame::Branch {
            gate: gate.clone(),
            since: title.map_or(Number(0), |title| title.since),
            last: self.local.last_fence(shard),
            word,
        };
        self.send(to, frame);
    }

    /// Ends the instances of earlier titles. Their counts are kept.
    pub(super) fn end_instances(&mut self, replicated: &Replicated) {
        let over = |gate: &Name, running: &Running| {
            let title = replicated.ownership().title(Shard::of(gate));
            let spread = self.is_spread(replicated, gate);
            !spread || title.is_none_or(|title| title.since != running.since)
        };
        let running = self.spread.running.iter();
        let over = running.filter(|(gate, running)| over(gate, running));
        let over: Vec<Name> = over.map(|(gate, _)| gate.clone()).collect();
        for gate in over {
            self.end_instance(&gate);
        }
        let titles = replicated.ownership();
        self.spread
            .renewed
            .retain(|shard, number| titles.number(*shard) == *number);
    }

    fn end_instance(&mut self, gate: &Name) {
        if let Some(mut running) = self.spread.running.remove(gate) {
            if let Some(recording) = running.branch.take_recording() {
                self.spread.records.keep(recording);
            }
            let counts = self.spread.counts.entry(gate.clone()).or_default();
            *counts = counts.and(running.branch.counts());
        }
        self.local.set_door(gate, None, &mut self.events);
    }

    /// A gate was created. If it is spread, requests that its owner had received wait for the instance instead.
    pub(super) fn gate_created(&mut self, replicated: &Replicated, gate: &Name, out: &mut Out) {
        if self.is_spread(replicated, gate) {
            self.begin_instance(replicated, gate, out);
        }
    }

    /// A gate was deleted: requests that wait for it here go to its owner, as for any other name.
    pub(super) fn gate_deleted(&mut self, replicated: &Replicated, gate: &Name) {
        self.end_instance(gate);
        self.spread.records.forget(gate);
        self.arrivals.forget(gate);
        self.spread.counts.remove(gate);
        self.spread.marks.forget(gate);
        self.spread.recalls.over(gate);
        for ask in self.table.parked_at(gate) {
            if let Ok(owner) = self.owner_of(replicated, gate) {
                self.repeat_ask(replicated, owner, ask);
            }
        }
    }

    /// The instances of a shard's gates must begin anew: its owner gives it another number.
    pub(super) fn renew(&mut self, replicated: &Replicated, shard: Shard) {
        let Some(title) = replicated.ownership().title(shard) else {
            return;
        };
        // If the number has risen otherwise, the earlier proposal is void.
        if self.spread.renewed.insert(shard, title.number) == Some(title.number) {
            return;
        }
        match self.owns(replicated, shard) {
            true => self.spread.proposals.push(Change::Titles {
                shards: vec![Span::of(shard, title.number)],
                taker: self.own.0,
                start: self.own.1,
            }),
            false => {
                let since = title.since;
                self.send((title.owner, title.start), Frame::Renew { shard, since });
            }
        }
    }

    /// Titles that are to be proposed.
    pub(super) fn take_proposals(&mut self, out: &mut Out) {
        out.changes.append(&mut self.spread.proposals);
    }

    /// A session has left this home. Its holds at spread gates are in these books, and only a new number takes them to its
    /// new home.
    pub(super) fn see_off_spread(&mut self, replicated: &Replicated, session: SessionId) {
        for shard in self.stray_shards(replicated, session) {
            self.renew(replicated, shard);
        }
    }

    /// Other nodes' shards in which these books have holds of a session.
    pub(super) fn stray_shards(&self, replicated: &Replicated, session: SessionId) -> Vec<Shard> {
        if !replicated.has_spread() {
            return Vec::new();
        }
        let holds = self.local.holds_of(session);
        let shards = holds.iter().map(|hold| Shard::of(&hold.gate));
        shards
            .filter(|shard| !self.owns(replicated, *shard))
            .collect()
    }
}

impl Running {
    fn node_of(&self, member: u32) -> u32 {
        self.branch.node_of(member)
    }
}
