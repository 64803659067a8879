//! The services: both halves of `core`, and what they have reported and nobody has passed on yet. Each half can be read
//! directly; there is one way in for what a session asks, one for what the log says, and one for the passing of time.
//!
//! Alone, the local half is a bare `Local`: the node owns everything and is every session's home. A member of a cluster has
//! an `Estate` around it, which knows what others own.

use rustc_hash::{FxHashMap, FxHashSet};
use testigo_core::estate::{Estate, Frame, Out, Peer};
use testigo_core::pool::{
    Desk, DeskOut, NamedSlot, PoolAnswer, PoolGroup, PoolTake, Said, Shelves, SlotClaim, find_slots,
};
use testigo_core::{
    Answer, Change, Claim, Command, Event, HeldView, HoldView, Image, Limits, Local, Name, Origin,
    Outcome, Refusal, Replicated, SessionId, SessionView, Shard, Stamp, Taken, Ticket, Word,
    late_resume, no_session,
};

use crate::wire::refuse;

/// Both halves.
#[derive(Debug)]
pub(crate) struct Services {
    half: Half,
    replicated: Replicated,
    /// What sessions have of the pools.
    pub(super) desk: Desk,
    /// Set if a process group, and not the log, shares the pools.
    pub(super) group: Option<Box<PoolGroup>>,
    /// The number of the last resume of each session that arrived here.
    serials: FxHashMap<SessionId, u64>,
    limits: Limits,
    events: Vec<Event>,
    /// What the estate wants done.
    out: Out,
}

/// What only this node knows.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of them, and alone it is reached without a detour"
)]
pub(crate) enum Half {
    /// The node is alone.
    Alone(Local),
    /// It is a member of a cluster.
    Member(Box<Estate>),
}

/// Where a desk reads the pools: in the log or in a group.
fn shelves<'a>(replicated: &'a Replicated, group: &'a Option<Box<PoolGroup>>) -> &'a dyn Shelves {
    match group {
        None => replicated,
        Some(group) => group.shelves(),
    }
}

impl Services {
    pub(super) fn new(
        now: u64,
        own: Peer,
        half: Half,
        replicated: Replicated,
        limits: Limits,
    ) -> Services {
        let mut desk = Desk::new(now, own, &replicated);
        desk.set_limits(&limits);
        Services {
            half,
            desk,
            group: None,
            replicated,
            serials: FxHashMap::default(),
            limits,
            events: Vec::new(),
            out: Out::default(),
        }
    }

    pub(crate) fn local(&self) -> &Local {
        match &self.half {
            Half::Alone(local) => local,
            Half::Member(estate) => estate.local(),
        }
    }

    pub(crate) fn replicated(&self) -> &Replicated {
        &self.replicated
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Takes slots of a pool.
    pub(super) fn take_slots(
        &mut self,
        now: u64,
        session: SessionId,
        take: PoolTake<'_>,
    ) -> Result<PoolAnswer, Refusal> {
        let shelves = shelves(&self.replicated, &self.group);
        self.desk.take(now, shelves, session, take)
    }

    /// A session gets no more slots: its end is on its way to the log.
    pub(super) fn session_ran_out(&mut self, session: SessionId) {
        let estate = self.estate();
        let until = estate.map_or(0, |estate| estate.believed_until(&self.replicated, session));
        let shelves = shelves(&self.replicated, &self.group);
        self.desk.run_out(session, until, shelves);
    }

    /// Gives slots back; returns a change for those that were taken elsewhere.
    pub(super) fn give_slots(
        &mut self,
        now: u64,
        session: SessionId,
        pool: &str,
        slots: &[&str],
    ) -> Result<Option<Change>, Refusal> {
        let shelves = shelves(&self.replicated, &self.group);
        self.desk.give(now, shelves, session, pool, slots)
    }

    /// A session has ended, or its connection has.
    pub(crate) fn end_slots(&mut self, session: SessionId) {
        if self.desk.has(session) {
            let shelves = shelves(&self.replicated, &self.group);
            self.desk.end(session, shelves);
        }
    }

    /// A session was resumed, and has said which slots it has. Returns those that it does not have.
    pub(super) fn claim_slots(
        &mut self,
        session: SessionId,
        named: Vec<NamedSlot>,
    ) -> Vec<NamedSlot> {
        // The log has heard of them with the session's move.
        if let (Half::Member(_), None) = (&self.half, &self.group) {
            return self.desk.lost_of(session, named, &self.replicated);
        }
        let shelves = shelves(&self.replicated, &self.group);
        let numbers = find_slots(&named, |pool| Some(&shelves.shelf(pool)?.definition.slots));
        let claim = |((pool, _, fence), slot): (&NamedSlot, &Option<u32>)| {
            Some((pool.clone(), (*slot)?, *fence))
        };
        let claims: Vec<SlotClaim> = named.iter().zip(&numbers).filter_map(claim).collect();
        // What a process of a group had given out ended with that process.
        if self.group.is_none() {
            self.desk.resume(session, &claims, &self.replicated);
        }
        self.desk.keep_only(session, &claims, shelves);
        let has = |pool: &Name, slot, fence| self.desk.has_slot(session, pool, slot, fence);
        let lost = named
            .into_iter()
            .zip(numbers)
            .filter(|((pool, _, fence), slot)| !slot.is_some_and(|slot| has(pool, slot, *fence)));
        lost.map(|(named, _)| named).collect()
    }

    /// The slots of this node that a session has.
    pub(super) fn own_slots(&self, session: SessionId) -> Vec<NamedSlot> {
        self.desk.held_by(session, self.shelves())
    }

    /// A connection resumes a session. A late resume, over a connection that the client has given up, is refused.
    pub(super) fn number_resume(
        &mut self,
        session: SessionId,
        serial: Option<u64>,
    ) -> Result<(), Refusal> {
        if let Some(serial) = serial
            && self.replicated.session(session).is_some()
        {
            let here = self.serials.get(&session).copied();
            if let Some(last) = here.max(self.replicated.serial(session))
                && serial <= last
            {
                return Err(late_resume(session, serial, last));
            }
            self.serials.insert(session, serial);
        }
        Ok(())
    }

    /// Ends a wait for slots; false if there is none.
    pub(super) fn cancel_slots(&mut self, ticket: Ticket) -> bool {
        let shelves = shelves(&self.replicated, &self.group);
        self.desk.cancel(ticket, shelves)
    }

    /// Ends many waits for slots.
    pub(super) fn cancel_all_slots(&mut self, tickets: &FxHashSet<Ticket>) {
        let shelves = shelves(&self.replicated, &self.group);
        self.desk.cancel_all(tickets, shelves);
    }

    /// What the desk wants done.
    pub(super) fn take_desk_out(&mut self) -> Option<DeskOut> {
        self.desk.has_out().then(|| self.desk.take_out())
    }

    /// Continues the desk of the previous start: what is in use stays in use.
    pub(super) fn inherit_desk(&mut self, now: u64, own: Peer, before: &mut Services) {
        std::mem::swap(&mut self.desk, &mut before.desk);
        std::mem::swap(&mut self.group, &mut before.group);
        if self.group.is_none() {
            let (replicated, known) = (&self.replicated, &before.replicated);
            self.desk.go_on_as(now, own, replicated, known);
        }
    }

    /// Where the desk reads the pools.
    pub(crate) fn shelves(&self) -> &dyn Shelves {
        shelves(&self.replicated, &self.group)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The estate of a member of a cluster.
    pub(crate) fn estate(&self) -> Option<&Estate> {
        match &self.half {
            Half::Alone(_) => None,
            Half::Member(estate) => Some(estate),
        }
    }

    pub(super) fn estate_mut(&mut self) -> Option<&mut Estate> {
        match &mut self.half {
            Half::Alone(_) => None,
            Half::Member(estate) => Some(estate),
        }
    }

    /// How a session is inside a gate, wherever the gate is owned.
    pub(crate) fn hold_of(&self, session: SessionId, gate: &str) -> Option<HoldView<'_>> {
        match &self.half {
            Half::Alone(local) => local.hold_of(session, gate),
            Half::Member(estate) => estate.hold_of(session, gate),
        }
    }

    /// A session, with all that it holds and waits for on any node.
    pub(crate) fn session_view(&self, session: SessionId) -> Option<SessionView> {
        match &self.half {
            Half::Alone(local) => local.session_view(session),
            Half::Member(estate) => estate.session_view(session),
        }
    }

    /// Whether a session holds or waits for anything but slots.
    pub(crate) fn is_busy(&self, session: SessionId) -> bool {
        let view = self.session_view(session);
        view.is_some_and(|view| !view.holds.is_empty() || !view.waits.is_empty())
            || !self.jobs_held(session).is_empty()
    }

    /// The jobs that a session has in hand, wherever their queues are owned.
    pub(crate) fn jobs_held(&self, session: SessionId) -> Vec<HeldView> {
        match &self.half {
            Half::Alone(local) => local.jobs_of(session),
            Half::Member(estate) => estate.jobs_held(session),
        }
    }

    /// When something is due next.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let half = match &self.half {
            Half::Alone(local) => local.next_deadline(),
            Half::Member(estate) => estate.next_deadline(),
        };
        [half, self.desk.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Carries out a session's command.
    pub(super) fn ask(
        &mut self,
        now: u64,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        let Services {
            half,
            replicated,
            events,
            out,
            ..
        } = self;
        if let Command::Cancel { ticket } = command
            && self.desk.waits_for(session, *ticket)
            && self.desk.cancel(*ticket, shelves(replicated, &self.group))
        {
            return Ok(Answer::Done);
        }
        match (half, command) {
            (Half::Alone(local), _) => local.apply(now, replicated, session, command, events),
            (Half::Member(_), Command::Resume { claims }) => self
                .resume(now, session, claims, Said::default())
                .map(Answer::Waiting),
            (Half::Member(estate), _) => match guest_home(estate, replicated, session) {
                Some(home) => estate.ask_as_guest(now, replicated, home, session, command, out),
                None => estate.ask(now, replicated, session, command, out),
            },
        }
    }

    /// A session moves to this member of a cluster, and may say more than what it holds.
    pub(super) fn resume(
        &mut self,
        now: u64,
        session: SessionId,
        claims: &[Claim<'_>],
        said: Said,
    ) -> Result<Ticket, Refusal> {
        if self.replicated.session(session).is_none() {
            return Err(no_session(session));
        }
        let resumed = match &mut self.half {
            Half::Alone(_) => None,
            Half::Member(estate) => {
                let out = &mut self.out;
                let said = Some(said).filter(|said| *said != Said::default());
                estate.resume(now, &self.replicated, session, claims, said, out)
            }
        };
        resumed.ok_or_else(|| {
            refuse(
                Word::Unavailable,
                "this node is not in, or has not heard from a majority; resume at another one",
            )
        })
    }

    /// Applies an entry of the log to both halves, unless the first refuses it.
    pub(super) fn apply(
        &mut self,
        now: u64,
        stamp: Stamp,
        change: &Change,
    ) -> Result<Outcome, Refusal> {
        let acts = self.estate().is_none_or(|estate| estate.acts(now));
        let applied = self.replicated.apply(stamp, change)?;
        let Services {
            half,
            replicated,
            events,
            out,
            ..
        } = self;
        match half {
            Half::Alone(local) => local.follow(now, replicated, &applied, events),
            Half::Member(estate) => estate.follow(now, replicated, &applied, out),
        }
        if let Outcome::SessionClosed { session, .. } = applied.outcome() {
            self.serials.remove(session);
        }
        match (&self.group, applied.outcome()) {
            (None, _) => {
                self.desk.follow(now, acts, &self.replicated, &applied);
            }
            (Some(group), Outcome::SessionClosed { session, .. }) => {
                self.desk.end(*session, group.shelves());
            }
            (Some(_), _) => {}
        }
        Ok(applied.into_outcome())
    }

    /// Ends the holds and waits that are due, but no session.
    pub(super) fn expire(&mut self, now: u64) {
        let shelves = shelves(&self.replicated, &self.group);
        self.desk.expire(now, shelves);
        match &mut self.half {
            Half::Alone(local) => local.expire(now, &mut self.events),
            Half::Member(estate) => estate.expire(now, &self.replicated, &mut self.out),
        }
    }

    /// Like [`Services::expire`], and ends sessions that were silent for too long: everything said before `now` has been
    /// heard.
    pub(super) fn tick(&mut self, now: u64) {
        match &mut self.half {
            Half::Alone(local) => local.tick(now, &mut self.events),
            Half::Member(estate) => {
                estate.judge_silence(now, &self.replicated, &mut self.out);
            }
        }
    }

    /// The node could not hear anybody for this long.
    pub(super) fn was_absent(&mut self, ms: u64) {
        match &mut self.half {
            Half::Alone(local) => local.was_absent(ms),
            Half::Member(estate) => estate.was_absent(ms),
        }
    }

    /// See [`Local::reorder`].
    pub(super) fn reorder(&mut self) {
        match &mut self.half {
            Half::Alone(local) => local.reorder(&self.replicated),
            Half::Member(estate) => estate.reorder(&self.replicated),
        };
    }

    /// Sets whether entries and exits are reported.
    pub(super) fn observe(&mut self, observed: bool) {
        match &mut self.half {
            Half::Alone(local) => local.observe(observed),
            Half::Member(estate) => estate.observe(observed),
        }
    }

    /// The node stops: jobs in hand wait again, and no death is counted. The jobs of a member's sessions stay in hand,
    /// because the queues' owners know.
    pub(super) fn lay_down(&mut self) {
        if let Half::Alone(local) = &mut self.half {
            local.lay_down();
        }
    }

    /// Who holds and who waits, for the next start. A member has handed over what it owned.
    pub(super) fn image(&mut self, now: u64) -> Option<Image> {
        match &mut self.half {
            Half::Alone(local) => local.image(now),
            Half::Member(_) => None,
        }
    }

    /// Receives a frame from another member.
    pub(super) fn receive(&mut self, now: u64, from: Peer, frame: Frame) {
        if let Half::Member(estate) = &mut self.half {
            estate.receive(now, &self.replicated, from, frame, &mut self.out);
        }
    }

    /// A lease was answered, and the log is applied as far as the answer said.
    pub(super) fn leased(&mut self, ask: u64) {
        if let Half::Member(estate) = &mut self.half {
            estate.leased(ask, &self.replicated);
        }
    }

    /// A clean stop: everything that this node owns goes to the others. Call it until the node owns nothing.
    pub(super) fn hand_over_all(&mut self, now: u64) -> Vec<Change> {
        match &mut self.half {
            Half::Alone(_) => Vec::new(),
            Half::Member(estate) => estate.hand_over_all(now, &self.replicated),
        }
    }

    /// Whether this node owns no shard any more.
    pub(super) fn owns_nothing(&self) -> bool {
        let estate = self.estate();
        estate.is_some_and(|estate| estate.owns_nothing(&self.replicated))
    }

    /// The log has refused to move a session here.
    pub(super) fn not_moved(&mut self, session: SessionId, serial: Option<u64>, refusal: Refusal) {
        if let Half::Member(estate) = &mut self.half {
            let resume = (session, serial);
            estate.not_moved(&self.replicated, resume, refusal, &mut self.out);
        }
    }

    /// Whether an entry of the log is this start's; a lone node has no others.
    pub(super) fn is_own(&self, origin: Option<&Origin>) -> bool {
        origin.is_none_or(|origin| (origin.node, origin.start) == self.desk.own())
    }

    /// Whether this start is the home of an opened session.
    pub(super) fn is_home(&self, session: SessionId) -> bool {
        let home = self.replicated.session(session).map(|record| record.home);
        home.is_some_and(|home| (home.node, home.start) == self.desk.own())
    }

    /// Hands shards to a member that needs them, if nothing prevents it.
    pub(super) fn wanted_shards(
        &mut self,
        now: u64,
        from: Peer,
        shards: &[Shard],
    ) -> Option<Change> {
        match &mut self.half {
            Half::Alone(_) => None,
            Half::Member(estate) => estate.wanted_shards(now, &self.replicated, from, shards),
        }
    }

    /// Whether a client may hear of a job that another node gave it.
    pub(super) fn tell_take(&mut self, session: SessionId, taken: Taken) -> bool {
        match &mut self.half {
            Half::Alone(_) => true,
            Half::Member(estate) => estate.tell_take(session, taken),
        }
    }

    /// A client gives back a job that another node gave it.
    pub(super) fn gives_up(&mut self, session: SessionId, taken: Taken) {
        if let Half::Member(estate) = &mut self.half {
            estate.gives_up(session, taken);
        }
    }

    /// Reserves a gate's name until the log has decided on its definition.
    pub(super) fn reserve_name(&mut self, now: u64, change: &Change) -> Result<(), Refusal> {
        match &mut self.half {
            Half::Alone(_) => Ok(()),
            Half::Member(estate) => {
                estate.reserve_name(now, &self.replicated, change, &mut self.out)
            }
        }
    }

    /// The log has decided on it.
    pub(super) fn release_name(&mut self, now: u64, change: &Change) {
        if let Half::Member(estate) = &mut self.half {
            estate.release_name(now, &self.replicated, change, &mut self.out);
        }
    }

    /// Whether this node owns a shard; alone it owns all of them.
    pub(crate) fn owns(&self, shard: Shard) -> bool {
        let Half::Member(estate) = &self.half else {
            return true;
        };
        let title = self.replicated.ownership().title(shard);
        title.is_some_and(|title| (title.owner, title.start) == estate.own())
    }

    /// Another member's snapshot has replaced everything, at a start that has done nothing yet.
    pub(super) fn restore(&mut self, now: u64, half: Half, replicated: Replicated) {
        let own = self.desk.own();
        let mut next = Services::new(now, own, half, replicated, self.limits.clone());
        next.inherit_desk(now, own, self);
        *self = next;
    }

    /// Whether anything was reported since the last call.
    pub(super) fn has_told(&self) -> bool {
        match &self.half {
            Half::Alone(_) => !self.events.is_empty(),
            Half::Member(estate) => !self.out.is_empty() || estate.has_frames(),
        }
    }

    /// What was reported since the last call. Return the list with [`Services::put_back`].
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Takes the empty list back, to reuse its memory.
    pub(super) fn put_back(&mut self, events: Vec<Event>) {
        debug_assert!(self.events.is_empty(), "passing on makes no events");
        self.events = events;
    }

    /// What the estate wants done, and the frames that it sends.
    pub(super) fn take_out(&mut self) -> (Out, Vec<(Peer, Frame)>) {
        let frames = match &mut self.half {
            Half::Alone(_) => Vec::new(),
            Half::Member(estate) => estate.take_frames(),
        };
        (std::mem::take(&mut self.out), frames)
    }

    #[cfg(test)]
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// The home of a session that lives elsewhere.
fn guest_home(estate: &Estate, replicated: &Replicated, session: SessionId) -> Option<Peer> {
    let home = match replicated.session(session) {
        Some(record) => Some((record.home.node, record.home.start)),
        None if session.is_implicit() => {
            let mut others = estate.others();
            others.find(|peer| session.is_of(peer.0, peer.1))
        }
        None => None,
    };
    home.filter(|home| *home != estate.own())
}
