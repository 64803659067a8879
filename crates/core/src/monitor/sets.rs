//! A set enters all of its gates in one step.

use std::collections::BTreeMap;

use crate::event::Event;
use crate::session::SessionId;
use crate::wait::Ticket;

/// Watches steps.
#[derive(Clone, Debug, Default)]
pub struct SetsAtOnce;

impl SetsAtOnce {
    /// Shows all events of one step.
    pub fn saw(&mut self, step: &[Event]) -> Result<(), String> {
        let mut entered: BTreeMap<(SessionId, Option<Ticket>), (u32, u32)> = BTreeMap::new();
        for event in step {
            if let Event::Entered {
                session,
                ticket,
                together,
                ..
            } = event
                && *together > 1
            {
                let (count, _) = entered.entry((*session, *ticket)).or_insert((0, *together));
                *count += 1;
            }
        }
        match entered
            .iter()
            .find(|(_, (count, together))| count != together)
        {
            None => Ok(()),
            Some(((session, _), (count, together))) => Err(format!(
                "session {session} entered {count} of the {together} gates of a set"
            )),
        }
    }
}
