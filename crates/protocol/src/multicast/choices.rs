//! What a person may choose about a multicast: what it stands on, and when a message after a gap is delivered.

use std::fmt;
use std::str::FromStr;

use crate::SetupError;

/// The layer that an order stands on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Over {
    /// One send per member.
    #[default]
    Basic,
    /// Every member passes on what it delivers.
    Reliable,
    /// Negative acknowledgements.
    Nack,
}

impl Over {
    pub const ALL: [Over; 3] = [Over::Basic, Over::Reliable, Over::Nack];

    pub fn name(self) -> &'static str {
        match self {
            Over::Basic => "basic",
            Over::Reliable => "reliable",
            Over::Nack => "nack",
        }
    }
}

/// What becomes of a message while earlier ones of its sender are missing, with negative acknowledgements (§4.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Delivery {
    /// It is delivered.
    #[default]
    Immediate,
    /// It is held until they are there.
    Hold,
}

impl Delivery {
    pub const ALL: [Delivery; 2] = [Delivery::Immediate, Delivery::Hold];

    pub fn name(self) -> &'static str {
        match self {
            Delivery::Immediate => "immediate",
            Delivery::Hold => "hold",
        }
    }
}

/// Reads and prints a choice by its names.
macro_rules! by_name {
    ($choice:ty, $what:literal) => {
        impl FromStr for $choice {
            type Err = SetupError;

            fn from_str(text: &str) -> Result<$choice, SetupError> {
                let named = <$choice>::ALL.into_iter().find(|it| it.name() == text);
                named.ok_or_else(|| {
                    let names = <$choice>::ALL.map(<$choice>::name).join(", ");
                    SetupError(format!("`{text}` is not {}: use {names}", $what))
                })
            }
        }

        impl fmt::Display for $choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

by_name!(Over, "a layer to stand on");
by_name!(Delivery, "a way to deliver");
