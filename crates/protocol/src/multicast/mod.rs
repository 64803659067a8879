//! Multicast to groups: what is sent to a group is delivered to its members, in an order or in none.

mod choices;
mod groups;
mod history;
mod layer;
mod received;
mod user;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod tests;

pub mod specimens;

pub use choices::{Delivery, Over};
pub use groups::{Group, Groups};
pub use user::{Ask, Cast, Multicast, Promises, Tell, User};

use basic::OverBasic;
use nack::OverNack;
use reliable::OverReliable;

crate::registry::family! { Multicast:
    basic,
    reliable,
    nack,
    fifo,
    causal,
    isis,
    sequencer,
}
