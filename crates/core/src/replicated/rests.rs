//! What changes rest on: the view before, the numbers of shards, the homes of sessions. If any of it has changed meanwhile,
//! the change is void, on every node alike; nobody has to guess whether it came in time.

use super::{Change, Home, Outcome, Records, Replicated, Stamp, no_session};
use crate::error::{Refusal, Word};
use crate::name::Name;
use crate::ownership::{Index, NodeId, Number, Origin, Shard, Span, Start};
use crate::session::SessionId;

/// How many places of the log each generation has to itself.
const GENERATION_INDEX_BITS: u32 = 24;

impl Replicated {
    /// Installs a checked view.
    pub(super) fn view_by(
        &mut self,
        members: &[(NodeId, Start)],
        generation: u32,
        origin: Option<Origin>,
    ) -> Outcome {
        let Records {
            index,
            view,
            ownership,
            cluster,
            pools,
            groups,
            closings,
            ..
        } = &mut self.records;
        let restored = generation != view.generation;
        let begins = restored.then(|| Number::first_of(generation).expect("it was checked"));
        if restored {
            // Attempts of once-keys are places in the log, so these must rise, too.
            index.0 = index.0.max(u64::from(generation) << GENERATION_INDEX_BITS);
        }
        *view = view.next(*index, members, generation, origin);
        cluster.follow(view);
        ownership.follow(view, begins, &self.spread);
        let raise = begins.map(|number| number.0);
        pools.follow(*index, &cluster.staying(view), raise, &mut self.delivered);
        closings.end_all(&mut self.reopened);
        groups.view(*index);
        Outcome::Viewed
    }

    /// Whether a view could follow the present one.
    pub(super) fn check_view(
        &self,
        before: Index,
        members: &[(NodeId, Start)],
        generation: u32,
    ) -> Result<(), Refusal> {
        let Records {
            view, ownership, ..
        } = &self.records;
        view.check_next(before, members, generation)?;
        match ownership.can_rise(view, generation) {
            true => Ok(()),
            false => Err(no_number()),
        }
    }

    /// Whether shards could be handed to a member: the taker is still in, and the giver still owns them.
    pub(super) fn check_titles(
        &self,
        shards: &[Span],
        taker: NodeId,
        start: Start,
    ) -> Result<(), Refusal> {
        let Records {
            view, ownership, ..
        } = &self.records;
        if !view.has(taker, start) {
            return Err(Refusal::new(
                Word::Stale,
                format!("node {taker}, start {start}, is not in; the shards stay where they are"),
            ));
        }
        if !ownership.are_so(shards) {
            return Err(Refusal::new(
                Word::Stale,
                "the shards have other numbers by now; they stay where they are",
            ));
        }
        match shards.iter().all(|span| span.number < Number::MAX) {
            true => Ok(()),
            false => Err(no_number()),
        }
    }

    /// Whether a gate's owner is still the one at the submission.
    pub(super) fn check_gate_rests(&self, gate: &Name, number: Number) -> Result<(), Refusal> {
        let shard = Shard::of(gate);
        if self.records.ownership.holds(shard, number) {
            return Ok(());
        }
        Err(Refusal::new(
            Word::Stale,
            format!(
                "gate {gate} changed hands meanwhile (its number is {}, not {number}); nothing came of it, try again",
                self.records.ownership.number(shard)
            ),
        ))
    }

    /// Whether a session's home is still the one at the submission of its end.
    pub(super) fn check_close(&self, session: SessionId, home: Index) -> Result<(), Refusal> {
        let Some(record) = self.records.sessions.get(&session) else {
            return Err(no_session(session));
        };
        if record.home.index == home {
            return Ok(());
        }
        Err(Refusal::new(
            Word::Stale,
            format!("session {session} has moved meanwhile; it goes on where it is now"),
        ))
    }

    /// Whether a session's client has not resumed it later than this. An older resume that arrives now, over a connection
    /// that the client has given up, knows nothing of what the session has got since.
    pub(super) fn check_serial(
        &self,
        session: SessionId,
        serial: Option<u64>,
    ) -> Result<(), Refusal> {
        let last = self.records.serials.get(&session);
        match (serial, last) {
            (Some(serial), Some(last)) if serial <= *last => {
                Err(late_resume(session, serial, *last))
            }
            _ => Ok(()),
        }
    }

    /// The home of a session that this change opens. An older log has one member.
    pub(super) fn home_of(&self, origin: Option<Origin>) -> Home {
        let Records { index, view, .. } = &self.records;
        let submitter = origin.map(|origin| (origin.node, origin.start));
        let members = view.members.iter();
        let alone = || members.map(|member| (member.node, member.start)).next();
        let (node, start) = submitter.or_else(alone).unwrap_or_default();
        Home {
            node,
            start,
            index: *index,
        }
    }
}

/// Case M: whether the leader that proposed a view still led when the view was logged.
pub(super) fn check_term(stamp: Stamp, change: &Change) -> Result<(), Refusal> {
    match change {
        Change::ViewInTerm { term, .. } if *term != stamp.term => Err(Refusal::new(
            Word::Stale,
            format!(
                "the view was proposed in term {term}, and the log got it in term {}; its leader leads no more",
                stamp.term
            ),
        )),
        _ => Ok(()),
    }
}

pub(super) fn no_number() -> Refusal {
    Refusal::new(
        Word::Limit,
        format!(
            "a shard would have a number above {}; fences would exceed 2^53",
            Number::MAX
        ),
    )
}

/// The refusal of a resume that comes after a later one of its session.
pub fn late_resume(session: SessionId, serial: u64, last: u64) -> Refusal {
    let why = format!(
        "session {session} was resumed with SERIAL {last}; SERIAL {serial} comes late, the next one is above {last}"
    );
    Refusal::new(Word::Stale, why)
}
