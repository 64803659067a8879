//! What an ask or a tell is, by what it does to its user.

use testigo_protocol::Phase;

/// An ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskKind {
    /// The user waits from now on.
    Requests,
    /// The user was inside, and leaves.
    Leaves,
    /// Neither.
    Says,
}

/// A tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TellKind {
    /// The user is inside from now on.
    Enters,
    /// The user has what it waited for, and there is no inside.
    Serves,
    /// Neither.
    Says,
}

impl AskKind {
    pub(super) const ALL: [AskKind; 3] = [AskKind::Requests, AskKind::Leaves, AskKind::Says];

    /// By the phases of the user that the problem defines.
    pub(crate) fn of(before: Phase, after: Phase) -> AskKind {
        match (before, after) {
            (Phase::Idle, Phase::Waiting) => AskKind::Requests,
            (Phase::Inside, Phase::Idle) => AskKind::Leaves,
            _ => AskKind::Says,
        }
    }

    /// Of a gate's member, or of a trace of the first format: these have the text alone, and there is no third kind.
    pub(crate) fn read(text: &str) -> AskKind {
        match text.starts_with("Enter") {
            true => AskKind::Requests,
            false => AskKind::Leaves,
        }
    }

    /// Its word in a trace.
    pub(super) fn word(self) -> &'static str {
        match self {
            AskKind::Requests => "ask",
            AskKind::Leaves => "leave",
            AskKind::Says => "say",
        }
    }
}

impl TellKind {
    pub(super) const ALL: [TellKind; 3] = [TellKind::Enters, TellKind::Serves, TellKind::Says];

    /// By the phases of the user that the problem defines.
    pub(crate) fn of(before: Phase, after: Phase) -> TellKind {
        match (before, after) {
            (Phase::Waiting, Phase::Inside) => TellKind::Enters,
            (Phase::Waiting, Phase::Idle) => TellKind::Serves,
            _ => TellKind::Says,
        }
    }

    /// Of a gate's member, or of a trace of the first format, as [`AskKind::read`].
    pub(crate) fn read(text: &str) -> TellKind {
        match text.starts_with("Entered") {
            true => TellKind::Enters,
            false => TellKind::Says,
        }
    }

    /// Its word in a trace.
    pub(super) fn word(self) -> &'static str {
        match self {
            TellKind::Enters => "enter",
            TellKind::Serves => "serve",
            TellKind::Says => "tell",
        }
    }
}
