//! Who is let into a room that is in use: the option `--door`.

use std::fmt;
use std::str::FromStr;

use crate::SetupError;

/// The door policy of a room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Door {
    /// Open while the leader, for whom the room was opened, is inside. So every round ends, and whoever
    /// comes after the leader has left waits, even if nobody wants another room.
    #[default]
    Leader,
    /// Open while the leader is inside, and after that while nobody wants another room. Groups tell each
    /// other when they begin and cease to compete.
    OpenWhileUncontended,
}

impl Door {
    pub const ALL: [Door; 2] = [Door::Leader, Door::OpenWhileUncontended];

    pub fn name(self) -> &'static str {
        match self {
            Door::Leader => "leader",
            Door::OpenWhileUncontended => "open-while-uncontended",
        }
    }
}

impl FromStr for Door {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Door, SetupError> {
        let named = Door::ALL.into_iter().find(|door| door.name() == text);
        named.ok_or_else(|| {
            let names = Door::ALL.map(Door::name).join(" or ");
            SetupError(format!("`{text}` is not a door policy: use {names}"))
        })
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
