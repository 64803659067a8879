//! Rooms, or group mutual exclusion: users of one room are inside together, users of two rooms never.
//!
//! By the two-actor pattern, users ask their room's group, and the groups compete by a mutex: any of the
//! library's (`rooms-over:NAME`), or the thesis' own (`rooms-maekawa`).

mod door;
mod hall;
mod over;
mod user;

pub mod specimens;

pub use door::Door;
pub use over::{OVER, Plan};
pub use user::{Ask, Rooms, Tell, User};

pub(crate) use over::rooms_over;

crate::registry::family! { Rooms:
    maekawa,
}
