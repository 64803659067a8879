//! Where a session was granted something: the shards that it has *touched*. After a crash only those wait for it.
//!
//! The node stores what [`Local`] reports ([`Event::Touched`]) where a crash of the process does not reach, and gives it to
//! the next start. A touch is reported before the grant that made it, once per session and shard, so an uncontended `LOCK`
//! costs one set lookup.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Local;
use crate::event::Event;
use crate::ownership::Shard;
use crate::session::{SessionId, SessionKey};

/// What the node must know about an opened session before it tells a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The session was granted something in a shard.
    In {
        /// The session.
        session: SessionId,
        /// The shard.
        shard: Shard,
    },
    /// The session was granted things in more shards than are counted: it may hold anything.
    Everywhere {
        /// The session.
        session: SessionId,
    },
    /// Earlier touches of the session are void: it holds nothing except where later touches say so.
    Nowhere {
        /// The session.
        session: SessionId,
    },
}

/// The touches of all sessions, as a crash has left them. A session without any holds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches(FxHashMap<SessionId, Touched>);

impl Touches {
    /// Adds the next touch, in the order in which they were reported.
    pub fn note(&mut self, touch: Touch) {
        match touch {
            Touch::In { session, shard } => {
                self.0.entry(session).or_default().shards.insert(shard);
            }
            Touch::Everywhere { session } => drop(self.0.insert(session, Touched::unknown())),
            Touch::Nowhere { session } => drop(self.0.remove(&session)),
        }
    }

    pub(super) fn take(&mut self, session: SessionId) -> Touched {
        self.0.remove(&session).unwrap_or_default()
    }
}

impl FromIterator<Touch> for Touches {
    fn from_iter<T: IntoIterator<Item = Touch>>(touches: T) -> Touches {
        let mut all = Touches::default();
        touches.into_iter().for_each(|touch| all.note(touch));
        all
    }
}

/// The shards that one session has touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    everywhere: bool,
    shards: FxHashSet<Shard>,
}

impl Touched {
    /// For a session that may hold anything.
    pub(super) fn unknown() -> Touched {
        Touched {
            everywhere: true,
            shards: FxHashSet::default(),
        }
    }

    #[inline]
    pub(super) fn includes(&self, shard: Shard) -> bool {
        self.everywhere || self.shards.contains(&shard)
    }

    pub(super) fn everywhere(&self) -> bool {
        self.everywhere
    }

    pub(super) fn shards(&self) -> impl ExactSizeIterator<Item = Shard> {
        self.shards.iter().copied()
    }
}

impl Local {
    /// All touches of all sessions: what a node writes first when it begins a new record of them.
    pub fn touches(&self) -> impl Iterator<Item = Touch> {
        let sessions = self.sessions.iter().map(|(_, session)| session);
        sessions.flat_map(|session| {
            let (session, touched) = (session.id, &session.touched);
            let shards = touched.shards.iter();
            let shards = shards.map(move |shard| Touch::In {
                session,
                shard: *shard,
            });
            let everywhere = touched.everywhere.then_some(Touch::Everywhere { session });
            everywhere.into_iter().chain(shards)
        })
    }

    /// A session is granted something in a shard.
    #[inline]
    pub(super) fn touch(&mut self, s: SessionKey, shard: Shard, out: &mut Vec<Event>) {
        let session = &self.sessions[s];
        if !session.id.is_implicit() && !session.touched.includes(shard) {
            self.touch_first(s, shard, out);
        }
    }

    #[cold]
    fn touch_first(&mut self, s: SessionKey, shard: Shard, out: &mut Vec<Event>) {
        let most = self.limits.touched_shards_per_session;
        let full = |local: &Local| {
            let own = local.sessions[s].touched.shards.len();
            (own >= most, local.touched >= local.limits.touched_shards)
        };
        if full(self) != (false, false) {
            self.retouch(s, out);
            let (_, no_room) = full(self);
            // A session that stays close to the limit would be recounted with nearly every grant.
            if no_room || self.sessions[s].touched.shards.len() >= most.div_ceil(2) {
                let session = self.sessions[s].id;
                self.set_touched(s, Touched::unknown());
                return out.push(Event::Touched(Touch::Everywhere { session }));
            }
        }
        let session = &mut self.sessions[s];
        session.touched.shards.insert(shard);
        self.touched += 1;
        out.push(Event::Touched(Touch::In {
            session: session.id,
            shard,
        }));
    }

    /// Recounts what a session holds. Nobody need wait for it where it no longer holds anything.
    pub(super) fn retouch(&mut self, s: SessionKey, out: &mut Vec<Event>) {
        let session = self.sessions[s].id;
        let holds = self.sessions[s].holds.of_session(&self.holds);
        let shards: FxHashSet<Shard> = holds.map(|(_, hold)| self.gates[hold.gate].shard).collect();
        out.push(Event::Touched(Touch::Nowhere { session }));
        let touches = shards.iter().map(|shard| Touch::In {
            session,
            shard: *shard,
        });
        out.extend(touches.map(Event::Touched));
        let touched = Touched {
            everywhere: false,
            shards,
        };
        self.set_touched(s, touched);
    }

    pub(super) fn set_touched(&mut self, s: SessionKey, touched: Touched) {
        self.touched += touched.shards.len();
        let before = std::mem::replace(&mut self.sessions[s].touched, touched);
        self.touched -= before.shards.len();
    }
}
