//! One node's part of a cluster. Every hold and every wait is written down twice: in the *books* of the shard's owner (who is
//! inside?) and in the *table* of the session's home (what does it have?). The log says who keeps which. When a shard gets
//! another owner, the tables report to it; when a session gets another home, the books do; when both are lost, the client's
//! own claims are the third copy. So moving and recovering are the same thing.
//!
//! A hold whose session lives here and whose gate is owned here is in the books alone. That is the common case, and it costs
//! no frame.
//!
//! An estate does no I/O. It is told what clients ask ([`Estate::ask`]), what the log says ([`Estate::follow`]), what other
//! nodes send ([`Estate::receive`]) and what time it is ([`Estate::tick`]). It produces frames for other nodes, tells for
//! clients, and changes for the log.

mod arrivals;
mod ask;
mod broken;
mod elections;
mod frame;
mod knots;
mod lease;
mod look;
mod marks;
mod memos;
mod moves;
mod names;
mod opening;
mod recall;
mod resume;
mod rule;
mod seen;
mod serve;
mod sets;
mod spread;
mod suspend;
mod table;
mod takes;
mod tell;
mod titles;
mod walks;

pub use arrivals::{ARRIVAL_GATES_MAX, ARRIVALS_MAX, Arrival};
pub use broken::Broken;
pub use frame::{Ask, BranchWord, Frame, Held, InHand, TellWord};
pub use lease::{Landlord, Lease};
pub use look::Shut;
pub use recall::RECALLED;
pub use rule::{Order, Rule};
pub use seen::{GateSeen, Insider, Look, Queued, Seen, SessionSeen};
pub use spread::{BranchView, TurnView};
pub use takes::Stands;
pub use walks::CYCLE_SESSIONS;

use std::collections::{BTreeMap, BTreeSet};

use crate::command::Answer;
use crate::error::{Refusal, Word};
use crate::event::{Event, Loss};
use crate::fence::Fence;
use crate::limits::Limits;
use crate::local::Local;
use crate::name::Name;
use crate::ownership::{Index, NodeId, Ownership, Start};
use crate::replicated::{Applied, Change, Lost, Outcome, Replicated};
use crate::session::SessionId;
use crate::wait::Ticket;
use arrivals::Arrivals;
use moves::Moves;
use names::Reserved;
use opening::Openings;
use resume::{Owed, Resuming};
use spread::Spread;
use table::Table;
use walks::Walks;

/// A start of a node.
pub type Peer = (NodeId, Start);

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    /// The answer to its request.
    Answered {
        /// The session.
        session: SessionId,
        /// The request's ticket.
        ticket: Ticket,
        /// The answer.
        answer: Result<Answer, Refusal>,
    },
    /// Others wait for what it holds.
    Wanted {
        session: SessionId,
        gate: Name,
        fence: Fence,
    },
    /// It has lost a hold.
    Lost {
        /// The session.
        session: SessionId,
        /// The gate.
        gate: Name,
        /// The hold's fence.
        fence: Fence,
        /// Why.
        loss: Loss,
    },
    /// The node does not know whether it is still a member, so what the session holds may be lost.
    Suspect {
        /// The session.
        session: SessionId,
    },
    /// The session has ended; its connection is closed.
    Closed {
        /// The session.
        session: SessionId,
    },
    /// A take waited here for a queue that this node no longer owns, or for a session that has left its home. It got nothing;
    /// whoever still wants it asks the queue's present owner.
    Moved {
        /// The session.
        session: SessionId,
        /// The request's ticket.
        ticket: Ticket,
    },
    /// For the node itself: workers died or failed. Nobody holds their jobs until the log has been told
    /// ([`JobChange::Lose`](crate::JobChange::Lose)).
    Died {
        /// The jobs.
        jobs: Vec<Lost>,
    },
}

/// What an estate wants done.
#[derive(Clone, Debug, Default)]
pub struct Out {
    /// For clients.
    pub tells: Vec<Tell>,
    /// For the log.
    pub changes: Vec<Change>,
    /// What else happened in the books: for those who observe gates, and for counters.
    pub events: Vec<Event>,
}

impl Out {
    /// Whether there is nothing to be done.
    pub fn is_empty(&self) -> bool {
        self.tells.is_empty() && self.changes.is_empty() && self.events.is_empty()
    }
}

/// One node's part of a cluster, for one start of it.
#[derive(Debug)]
pub struct Estate {
    own: Peer,
    now: u64,
    local: Local,
    table: Table,
    /// Frames to be sent to other members, in order.
    outbox: Vec<(Peer, Frame)>,
    lease: Lease,
    /// Whether the lease was over at the last look.
    suspended: bool,
    /// When the node last began to act again.
    back: u64,
    /// Whether this start was ever a member.
    joined: bool,
    /// Whether connections are closed here because the node stops.
    stops: bool,
    openings: Openings,
    /// Asks of other homes that wait here.
    guests: BTreeMap<Ticket, Guest>,
    /// Takes that wait here, and the homes of their sessions.
    takers: BTreeMap<Ticket, Peer>,
    /// Names whose definitions are on their way through the log.
    reserved: BTreeMap<Name, Reserved>,
    moves: Moves,
    /// Frames that wait: for a lease, for an entry not applied here yet, or behind such a frame of the same node.
    early: Vec<(Peer, Frame)>,
    resuming: BTreeMap<SessionId, Resuming>,
    walks: Walks,
    spread: Spread,
    arrivals: Arrivals,
    /// What new homes of sessions have yet to be told.
    owed: Vec<Owed>,
    /// The titles and members as of the last entry followed.
    titles: Ownership,
    members: Vec<Peer>,
    /// The latest start of each node that was a member.
    latest: BTreeMap<NodeId, Start>,
    events: Vec<Event>,
    /// A rule that a test breaks on purpose.
    pub broken: Option<Broken>,
}

/// An ask of another home that waits here.
#[derive(Clone, Debug)]
struct Guest {
    home: Peer,
    ask: u64,
    session: SessionId,
    gate: Name,
    /// Whether it is for a set that is not complete yet.
    reserved: bool,
}

impl Estate {
    /// The estate of a node that has just started, with the log applied up to here. It does nothing until its start is in a
    /// view.
    pub fn new(
        now: u64,
        (node, start): Peer,
        lease_ms: u64,
        limits: Limits,
        seed: u64,
        replicated: &Replicated,
    ) -> Estate {
        let mut local = Local::bare(now, limits, seed, replicated);
        local.keep_departures();
        local.guard_lines(replicated);
        local.freeze(true, replicated, &mut Vec::new());
        let mut estate = Estate {
            own: (node, start),
            now,
            local,
            table: Table::default(),
            outbox: Vec::new(),
            lease: Lease::new(lease_ms),
            suspended: true,
            back: 0,
            joined: false,
            stops: false,
            openings: Openings::default(),
            guests: BTreeMap::new(),
            takers: BTreeMap::new(),
            reserved: BTreeMap::new(),
            moves: Moves::default(),
            early: Vec::new(),
            resuming: BTreeMap::new(),
            walks: Walks::default(),
            spread: Spread::default(),
            arrivals: Arrivals::default(),
            owed: Vec::new(),
            titles: replicated.ownership().clone(),
            members: Vec::new(),
            latest: BTreeMap::new(),
            events: Vec::new(),
            broken: None,
        };
        estate.follow_members(replicated);
        estate
    }

    /// Takes over the frames that this start received before a snapshot replaced its log: the links have delivered them, and
    /// nobody will send them again.
    pub fn inherit(&mut self, before: &mut Estate) {
        self.early = std::mem::take(&mut before.early);
        self.broken = before.broken;
    }

    /// The node stops and closes its connections. What they held becomes free with the view that leaves this start out, and
    /// no earlier: otherwise the next holder could be granted before the previous one hears of its end.
    pub fn close_doors(&mut self) {
        self.stops = true;
    }

    /// This node and its start.
    pub fn own(&self) -> Peer {
        self.own
    }

    /// The books, for observers.
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// Whether the node may act: it has a lease and is a member, as far as it can know.
    pub fn acts(&self, now: u64) -> bool {
        self.lease.holds(now) && self.is_member()
    }

    /// When the node's lease is over.
    pub fn lease_until(&self) -> u64 {
        self.lease.until()
    }

    /// The node's lease, to send asks and record answers.
    pub fn lease(&mut self) -> &mut Lease {
        &mut self.lease
    }

    /// A lease was answered, and the log is applied as far as the answer said.
    pub fn leased(&mut self, ask: u64, replicated: &Replicated) {
        let index = replicated.index();
        self.lease.answer(ask, index);
        self.lease.applied(index, self.is_member());
    }

    /// Whether this start is a member.
    pub fn is_in(&self) -> bool {
        self.is_member()
    }

    /// The other members, as of the last view.
    pub fn others(&self) -> impl Iterator<Item = Peer> {
        let members = self.members.iter().copied();
        members.filter(|peer| *peer != self.own)
    }

    /// See [`Local::observe`].
    pub fn observe(&mut self, observed: bool) {
        self.local.observe(observed);
    }

    /// See [`Local::was_absent`].
    pub fn was_absent(&mut self, ms: u64) {
        self.local.was_absent(ms);
    }

    fn is_member(&self) -> bool {
        self.members.contains(&self.own)
    }

    /// Whether this start of a node, or a later one, was a member of a view that was followed here.
    fn was_in(&self, (node, start): Peer) -> bool {
        self.latest
            .get(&node)
            .is_some_and(|latest| *latest >= start)
    }

    fn follow_members(&mut self, replicated: &Replicated) -> Vec<Peer> {
        let members = self.members_of(replicated);
        for (node, start) in &members {
            let latest = self.latest.entry(*node).or_default();
            *latest = (*latest).max(*start);
        }
        std::mem::replace(&mut self.members, members)
    }

    fn members_of(&self, replicated: &Replicated) -> Vec<Peer> {
        let members = replicated.view().members.iter();
        members.map(|member| (member.node, member.start)).collect()
    }

    fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    /// Follows an entry of the log that was applied.
    pub fn follow(&mut self, now: u64, replicated: &Replicated, applied: &Applied, out: &mut Out) {
        // The books stay frozen until they know what the log says: another node may own their gates now.
        let acts = self.see_lease(now, replicated, out);
        // Without a lease nothing is due: whatever was promised until then is for others to end.
        let due = if acts { self.now } else { 0 };
        if let Outcome::Jobs(outcomes) = applied.outcome() {
            self.strike_by_log(replicated, outcomes);
        }
        match applied.outcome() {
            Outcome::Viewed | Outcome::Entitled => self.retitle(replicated, out),
            Outcome::SessionOpened { session, .. } => {
                if self.home(replicated, *session) == Some(self.own) {
                    self.table.host(*session, replicated.index());
                    self.local
                        .follow(due, replicated, applied, &mut self.events);
                }
            }
            Outcome::SessionMoved { session, from, .. } => {
                self.session_moved(replicated, *session, *from, out);
            }
            Outcome::SessionClosed { session, .. } => self.session_closed(*session, out),
            Outcome::FlowApplied { .. } | Outcome::FlowDeleted { .. } => {
                self.local
                    .follow(due, replicated, applied, &mut self.events);
                self.set_lines(replicated);
            }
            _ => self
                .local
                .follow(due, replicated, applied, &mut self.events),
        }
        match applied.outcome() {
            Outcome::GateCreated { gate, .. } => self.gate_created(replicated, gate, out),
            Outcome::GateDeleted { gate } => self.gate_deleted(replicated, gate),
            _ => {}
        }
        if self.acts(self.now) {
            self.local.freeze(false, replicated, &mut self.events);
        }
        let index = replicated.index();
        self.lease.applied(index, self.is_member());
        self.go_on(replicated, out);
    }

    /// Advances time: ends what is due, as long as the lease lasts.
    pub fn tick(&mut self, now: u64, replicated: &Replicated, out: &mut Out) {
        self.expire(now, replicated, out);
        self.judge_silence(now, replicated, out);
    }

    /// Like [`Estate::tick`], but judges nobody's silence.
    pub fn expire(&mut self, now: u64, replicated: &Replicated, out: &mut Out) {
        if !self.wake(now, replicated, out) {
            return;
        }
        self.local.expire(self.now, &mut self.events);
        self.end_overdue(replicated, out);
        self.end_recalls(replicated, out);
        self.go_on(replicated, out);
        self.walk_if_due(replicated, out);
        self.go_on(replicated, out);
    }

    /// Ends the sessions of this home that were silent for too long. All that they said before `heard` has been heard.
    pub fn judge_silence(&mut self, heard: u64, replicated: &Replicated, out: &mut Out) {
        if self.acts(self.now) {
            self.hear_blocked(replicated);
            self.local.tick(heard, &mut self.events);
            self.go_on(replicated, out);
        }
    }

    /// When [`Estate::tick`] should be called next.
    pub fn next_deadline(&self) -> Option<u64> {
        if self.suspended {
            // What is due in the books waits for a lease, and so do received frames.
            let acts = self.acts(self.now);
            return Some(if acts {
                self.now
            } else {
                self.lease.next_due()
            });
        }
        let times = [
            self.local.next_deadline(),
            self.table.next_deadline(),
            self.walks.next(self.table.blocked_since()),
            self.next_recall(),
            Some(self.lease.until()),
            Some(self.lease.next_due()),
        ];
        times.into_iter().flatten().min()
    }

    /// Whether anything is to be sent.
    pub fn has_frames(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Frames to other members, in order, for links that deliver once and in order as long as both starts are members.
    pub fn take_frames(&mut self) -> Vec<(Peer, Frame)> {
        std::mem::take(&mut self.outbox)
    }

    /// Receives a frame. Without a lease it waits, and so do the frames behind it, in order.
    pub fn receive(
        &mut self,
        now: u64,
        replicated: &Replicated,
        from: Peer,
        frame: Frame,
        out: &mut Out,
    ) {
        self.early.push((from, frame));
        if self.wake(now, replicated, out) {
            self.go_on(replicated, out);
        }
    }

    pub(in crate::estate) fn send(&mut self, to: Peer, frame: Frame) {
        if to != self.own && self.members.contains(&to) {
            self.outbox.push((to, frame));
        }
    }

    /// Looks at the clock before anything is given out, and says whether the node acts. Otherwise its books are frozen.
    pub(in crate::estate) fn wake(
        &mut self,
        now: u64,
        replicated: &Replicated,
        out: &mut Out,
    ) -> bool {
        let acts = self.see_lease(now, replicated, out);
        if acts {
            self.local.freeze(false, replicated, &mut self.events);
        }
        acts
    }

    /// Like [`Estate::wake`], but frozen books stay frozen.
    fn see_lease(&mut self, now: u64, replicated: &Replicated, out: &mut Out) -> bool {
        self.now = self.now.max(now);
        let acts = self.acts(self.now);
        if !acts {
            self.local.freeze(true, replicated, &mut self.events);
            self.suspend(replicated, out);
        } else if std::mem::take(&mut self.suspended) {
            self.back = self.now;
        }
        acts
    }

    /// Until when the client of a session of this home may rely on what it was answered while the node could not act.
    pub fn believed_until(&self, replicated: &Replicated, session: SessionId) -> u64 {
        // Silence may be judged before anybody has noticed that the lease is back.
        let back = match self.suspended {
            true => self.now,
            false => self.back,
        };
        let record = replicated.session(session);
        record.map_or(0, |record| back.saturating_add(record.ttl_ms))
    }

    /// The home of a session. An implicit session names its home itself.
    fn home(&self, replicated: &Replicated, session: SessionId) -> Option<Peer> {
        match session.is_implicit() {
            true => {
                let mut members = self.members.iter();
                members.find(|peer| session.is_of(peer.0, peer.1)).copied()
            }
            false => {
                let home = replicated.session(session)?.home;
                Some((home.node, home.start))
            }
        }
    }

    fn home_index(&self, replicated: &Replicated, session: SessionId) -> Index {
        let record = replicated.session(session);
        record.map_or(Index(0), |record| record.home.index)
    }

    fn no_lease() -> Refusal {
        Estate::unavailable(suspend::NO_LEASE)
    }

    fn unavailable(why: &str) -> Refusal {
        Refusal::new(Word::Unavailable, why)
    }

    /// Passes on what happened in the books, opens shards, and takes early frames, until nothing is left to do.
    fn go_on(&mut self, replicated: &Replicated, out: &mut Out) {
        loop {
            self.pass_on(replicated, out);
            if !self.acts(self.now) {
                return;
            }
            for session in std::mem::take(&mut self.table.ending) {
                self.end_own(session);
            }
            let opened = self.open_ready(replicated, out);
            let taken = self.take_frames_in_order(replicated, out);
            let answered = self.answer_resumed(replicated, out);
            let driven = self.drive_stirred(replicated);
            if self.events.is_empty() && !opened && !answered && !taken && !driven {
                break;
            }
        }
        self.keep_arrivals(replicated);
        self.take_proposals(out);
        self.follow_use(replicated, out);
    }

    /// Takes the frames that can be taken; says whether there were any. A frame that waits for the log holds up all later
    /// ones of the same node: a claim must not be heard before the report that it follows, nor a request before the release
    /// of what it asks for. Gates and jobs do not wait for each other, because a reply to a take is never kept back here.
    fn take_frames_in_order(&mut self, replicated: &Replicated, out: &mut Out) -> bool {
        let mut taken = false;
        let (mut kept, mut waits) = (Vec::new(), BTreeSet::new());
        for (from, frame) in std::mem::take(&mut self.early) {
            let member = self.members.contains(&from);
            if !member && (self.was_in(from) || self.breaks(Broken::Stranger)) {
                continue;
            }
            let line = (from, frame.is_of_job());
            let overtakes = self.breaks(Broken::Overtaking);
            let behind = waits.contains(&line) && !overtakes;
            // A start that was never a member is let in by an entry that has not arrived here yet.
            match !member || behind || self.is_early(replicated, &frame) {
                true => {
                    waits.insert(line);
                    kept.push((from, frame));
                }
                false => {
                    self.take_frame(replicated, from, frame, out);
                    taken = true;
                }
            }
        }
        // Frames that this node sent itself meanwhile come last.
        kept.append(&mut self.early);
        self.early = kept;
        taken
    }

    /// Does everything that is due, and passes it on. Otherwise a cancel would not find a grant that nobody has heard of yet,
    /// and nobody would give it back.
    pub(in crate::estate) fn settle_up(&mut self, replicated: &Replicated, out: &mut Out) {
        self.local.expire(self.now, &mut self.events);
        self.pass_on(replicated, out);
    }
}
