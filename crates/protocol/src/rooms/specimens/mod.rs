//! Rooms kept in order to be refuted: the thesis' arbiter as printed, and one broken hall for each promise.

use super::Rooms;

crate::registry::family! { Rooms:
    maekawa_printed,
    maekawa_unmerged,
    impatient,
    shut_door,
    open_door,
}
