//! One node's part of a cluster. Every hold and every wait is written down twice: in the *books* of the shard's owner (who is
//! inside?) and in the *table* of the session's home (what does it have?). The log says who keeps which. When a shard gets
//! another owner, the tables report to it; when a session gets another home, the books do; when both are lost, the client's
//! own claims are the third copy. So moving and recovering are the same thing.
//!
//! What is at home and owned here is in the books alone: that is the common case, and it costs no frame.
//!
//! An estate does no I/O. It is told what clients ask ([`Estate::ask`]), what the log says ([`Estate::follow`]), what other
//! nodes send ([`Estate::receive`]) and what time it is ([`Estate::tick`]); it gives packets for other nodes, tells for
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
pub use recall::RECALLED;
pub use rule::{Order, Rule};
pub use seen::{GateSeen, Insider, Look, Queued, Seen, SessionSeen};
pub use spread::{BranchView, TurnView};
pub use takes::Stands;

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
    /// What it asked for has its answer.
    Answered {
        /// Whose.
        session: SessionId,
        /// Which request.
        ticket: Ticket,
        /// What.
        answer: Result<Answer, Refusal>,
    },
    /// Others wait for what it holds.
    Wanted {
        /// Who.
        session: SessionId,
        /// What.
        gate: Name,
        /// With which fence.
        fence: Fence,
    },
    /// It holds no longer.
    Lost {
        /// Who.
        session: SessionId,
        /// What.
        gate: Name,
        /// With which fence.
        fence: Fence,
        /// Why.
        loss: Loss,
    },
    /// The node does not know whether it is still in: what the session holds may be lost.
    Suspect {
        /// Who.
        session: SessionId,
    },
    /// The session is over; its connection is closed.
    Closed {
        /// Which.
        session: SessionId,
    },
    /// A take waited here for a queue that this node does not own any more, or for a session that has left its home. It has
    /// got nothing; whoever still wants it asks where the queue is owned now.
    Moved {
        /// Whose.
        session: SessionId,
        /// Which request.
        ticket: Ticket,
    },
    /// For the node itself: workers died or failed. Their jobs are in nobody's hands until the log has been told
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
    /// What happened in the books here that concerns neither: for whoever listens to gates, and for what is counted.
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
    /// What is to be sent to other members, in order.
    outbox: Vec<(Peer, Frame)>,
    lease: Lease,
    /// Whether the lease was over when somebody last looked.
    suspended: bool,
    /// When the node began to act the last time.
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
    /// Frames that wait: for a lease, for what the log has not said here yet, or behind such a frame of the same node.
    early: Vec<(Peer, Frame)>,
    resuming: BTreeMap<SessionId, Resuming>,
    walks: Walks,
    spread: Spread,
    arrivals: Arrivals,
    /// What new homes of sessions are to be told.
    owed: Vec<Owed>,
    /// The titles and members that were followed last.
    titles: Ownership,
    members: Vec<Peer>,
    /// The latest start of each node that was a member.
    latest: BTreeMap<NodeId, Start>,
    events: Vec<Event>,
    /// A rule that is broken on purpose, for tests.
    pub broken: Option<Broken>,
}

/// An ask of another home that waits here.
#[derive(Clone, Debug)]
struct Guest {
    home: Peer,
    ask: u64,
    session: SessionId,
    gate: Name,
    /// Whether it is for a set that is not whole yet.
    reserved: bool,
}

impl Estate {
    /// The part of a node that has just started, in a cluster whose log was applied so far. It does nothing before a view has
    /// its start.
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

    /// Takes over what the same start was sent before a snapshot replaced its log: the links have delivered it, and nobody
    /// will send it again.
    pub fn inherit(&mut self, before: &mut Estate) {
        self.early = std::mem::take(&mut before.early);
        self.broken = before.broken;
    }

    /// The node stops, and closes its connections. What was held by them is free with the view without this start, and not
    /// before: whoever held it may hear of the end later than the next one of its grant.
    pub fn close_doors(&mut self) {
        self.stops = true;
    }

    /// Which start this is.
    pub fn own(&self) -> Peer {
        self.own
    }

    /// The books, for whoever watches.
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// Whether the node may act: it is a member, as far as it can know.
    pub fn acts(&self, now: u64) -> bool {
        self.lease.holds(now) && self.is_member()
    }

    /// When the node's lease is over.
    pub fn lease_until(&self) -> u64 {
        self.lease.until()
    }

    /// The node's lease, to be asked for and answered.
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

    /// As [`Local::observe`].
    pub fn observe(&mut self, observed: bool) {
        self.local.observe(observed);
    }

    /// As [`Local::was_absent`].
    pub fn was_absent(&mut self, ms: u64) {
        self.local.was_absent(ms);
    }

    fn is_member(&self) -> bool {
        self.members.contains(&self.own)
    }

    /// Whether a start, or a later one of its node, was a member in a view that was followed here.
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

    /// An entry of the log was applied.
    pub fn follow(&mut self, now: u64, replicated: &Replicated, applied: &Applied, out: &mut Out) {
        // The books stay frozen until they know what the log says: another node may own the gates in them now.
        let acts = self.see_lease(now, replicated, out);
        // Without a lease nothing is due: what others were promised by then is theirs to say.
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

    /// Time goes on: what is due happens, as long as the lease lasts.
    pub fn tick(&mut self, now: u64, replicated: &Replicated, out: &mut Out) {
        self.expire(now, replicated, out);
        self.judge_silence(now, replicated, out);
    }

    /// As [`Estate::tick`], but nobody's silence is judged.
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

    /// Ends the sessions of this home that were silent for too long: everything said before `heard` has been heard.
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
            // What is due in the books waits for a lease, and so does what others have sent.
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

    /// What is to be sent to other members, in this order, over links that deliver once and in order as long as both starts
    /// are members.
    pub fn take_frames(&mut self) -> Vec<(Peer, Frame)> {
        std::mem::take(&mut self.outbox)
    }

    /// Another member sends something. Without a lease it waits; so does what comes behind it, in order.
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

    /// Looks at the clock before anything is given out: whether the node acts. Its books are frozen while it does not.
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

    /// As [`Estate::wake`], but books that were frozen stay so.
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

    /// Until when the client of a session of this home may go by what it was answered while the node could not act.
    pub fn believed_until(&self, replicated: &Replicated, session: SessionId) -> u64 {
        // Silence may be judged before anybody has looked whether the lease is back.
        let back = match self.suspended {
            true => self.now,
            false => self.back,
        };
        let record = replicated.session(session);
        record.map_or(0, |record| back.saturating_add(record.ttl_ms))
    }

    /// The home of a session: that of an implicit one is in its name.
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

    /// Passes on what happened in the books, opens what can be opened, and takes frames that were early, until nothing more
    /// comes of it.
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

    /// Takes the frames that can be taken. Behind one that waits for the log, all of the same node wait: a claim must not be
    /// heard before the report that it follows, nor a request before the release of what it asks for. Gates and jobs do not
    /// wait for each other, because a reply to whoever takes a job is not kept back here. Whether any was taken.
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
            // Whoever was never in is let in by an entry that has not come here yet.
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
        // What was said to this node itself meanwhile comes last.
        kept.append(&mut self.early);
        self.early = kept;
        taken
    }

    /// Lets everything happen that is due, and passes it on. A cancel that came first would not find a grant that nobody has
    /// heard of yet, and nobody would give it back.
    pub(in crate::estate) fn settle_up(&mut self, replicated: &Replicated, out: &mut Out) {
        self.local.expire(self.now, &mut self.events);
        self.pass_on(replicated, out);
    }
}
