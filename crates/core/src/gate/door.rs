//! The door of a gate whose ownership an algorithm moves: it says whether this node may let anybody in, and counts who waits.

use super::Mode;

/// Whether this node may let anybody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// The node is out: lets nobody in.
    Shut,
    /// The node is in: lets in whoever the rule admits.
    Open,
    /// The node is in, and another one waits: lets in this many in this turn.
    Ajar(u32),
}

/// What the box office knows about how somebody wants in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A writer of the most urgent class.
    Urgent,
    /// Any other writer.
    Writer,
    Reader,
}

impl Kind {
    pub(crate) fn of(mode: &Mode, class: u32) -> Kind {
        match (mode, class) {
            (Mode::Shared, _) => Kind::Reader,
            (_, 0) => Kind::Urgent,
            _ => Kind::Writer,
        }
    }
}

/// The door of such a gate, with its counts.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    pub(crate) door: Door,
    /// How many were let in since the door was last shut.
    pub(crate) granted: u32,
    /// How many wait, by kind.
    pub(crate) waiting: [u32; 3],
}

impl Keeper {
    pub(crate) fn lets_in(&self) -> bool {
        self.door != Door::Shut && self.left() != Some(0)
    }

    /// How many more may enter, where that is limited.
    pub(crate) fn left(&self) -> Option<u32> {
        match self.door {
            Door::Ajar(most) => Some(most.saturating_sub(self.granted)),
            Door::Open | Door::Shut => None,
        }
    }

    /// Counts an entry.
    pub(crate) fn count(&mut self) {
        self.granted = self.granted.saturating_add(1);
    }
}
