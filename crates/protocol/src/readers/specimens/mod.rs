//! The box office as the slides print it, and with one defect at a time: each claims what it breaks, and the checker must find the schedule that shows it.

use super::{Classes, Readers};
use crate::{Setup, SetupError};

crate::registry::family! { Readers:
    slides,
    two_writers,
    reader_beside_writer,
    early_return,
    second_token,
    forgetful_list,
    deaf_to_returns,
    asks_others,
    ring_from_holder,
    forgetful_token,
    no_limit,
    never_reset,
    ignores_stop,
    growing_session,
    stops_for_cancels,
}

/// The smallest users and limits that show a defect, unless others were chosen.
fn unless_chosen(
    setup: &Setup,
    classes: &str,
    overtakes: Option<u32>,
    burst: Option<u32>,
) -> Result<Setup, SetupError> {
    let mut setup = setup.clone();
    if setup.classes == Classes::default() {
        setup.classes = classes.parse()?;
    }
    setup.overtakes = setup.overtakes.or(overtakes);
    setup.burst = setup.burst.or(burst);
    Ok(setup)
}
