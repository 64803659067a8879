//! Algorithms kept in order to be refuted: each claims what it breaks, and the checker must find
//! the schedule that shows it.

use super::Mutex;

crate::registry::family! { Mutex:
    maekawa_slides,
    maekawa_basic,
    maekawa_published,
    ricart_agrawala_no_update,
    sanders_printed,
    central_lifo,
    chang_adopting,
}
