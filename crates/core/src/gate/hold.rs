//! One session inside one gate. Holds live in one arena and are linked into two lists, their gate's (in order of entry) and
//! their session's, so that entering and leaving allocate nothing.

use super::mode::Mode;
use super::{GateKey, Kind};
use crate::arena::{Arena, Key};
use crate::fence::Fence;
use crate::session::SessionKey;

pub(crate) type HoldKey = Key<Hold>;

#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) gate: GateKey,
    pub(crate) session: SessionKey,
    pub(crate) mode: Mode,
    pub(crate) fence: Fence,
    pub(crate) since: u64,
    /// When it was asked for; `None` if it was inside before these books knew of it.
    pub(crate) asked: Option<u64>,
    pub(crate) kind: Kind,
    /// When the hold limit ends it; `u64::MAX` for never.
    pub(crate) until: u64,
    /// Distinguishes this hold from an earlier one in the same place.
    pub(crate) serial: u64,
    /// Whether the holder knows that others wait.
    pub(crate) told: bool,
    /// Whether it entered a crowded gate and is indexed.
    pub(crate) crowded: bool,
    /// Whether this node knows that it was granted. Only a hold claimed without proof after a crash is not proven.
    pub(crate) proven: bool,
    /// Whether it is part of an incomplete set, so that its session was not told of it.
    pub(crate) reserved: bool,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) in_gate: Links,
    pub(crate) in_session: Links,
}

/// A hold's neighbours in one list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    before: Option<HoldKey>,
    after: Option<HoldKey>,
}

/// A list of holds, linked through the holds themselves.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    first: Option<HoldKey>,
    last: Option<HoldKey>,
    len: u32,
}

/// Which of a hold's two links a chain runs through.
type Side = fn(&mut Hold) -> &mut Links;

impl Chain {
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, holds: &mut Arena<Hold>, key: HoldKey, side: Side) {
        *side(&mut holds[key]) = Links {
            before: self.last,
            after: None,
        };
        match self.last {
            Some(last) => side(&mut holds[last]).after = Some(key),
            None => self.first = Some(key),
        }
        self.last = Some(key);
        self.len += 1;
    }

    #[inline]
    pub(crate) fn remove(&mut self, holds: &mut Arena<Hold>, key: HoldKey, side: Side) {
        let Links { before, after } = *side(&mut holds[key]);
        match before {
            Some(before) => side(&mut holds[before]).after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => side(&mut holds[after]).before = before,
            None => self.last = before,
        }
        self.len -= 1;
    }

    /// The holds inside a gate, in order of entry.
    pub(crate) fn inside<'a>(
        &self,
        holds: &'a Arena<Hold>,
    ) -> impl Iterator<Item = (HoldKey, &'a Hold)> {
        self.walk(holds, |hold| hold.in_gate.after)
    }

    /// The holds of a session, in order of entry.
    pub(crate) fn of_session<'a>(
        &self,
        holds: &'a Arena<Hold>,
    ) -> impl Iterator<Item = (HoldKey, &'a Hold)> {
        self.walk(holds, |hold| hold.in_session.after)
    }

    fn walk<'a>(
        &self,
        holds: &'a Arena<Hold>,
        after: fn(&Hold) -> Option<HoldKey>,
    ) -> impl Iterator<Item = (HoldKey, &'a Hold)> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let key = next?;
            let hold = &holds[key];
            next = after(hold);
            Some((key, hold))
        })
    }
}
