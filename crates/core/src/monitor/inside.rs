//! Only compatible holders are inside at once.

use std::collections::BTreeMap;

use super::units;
use crate::event::Event;
use crate::gate::{Definition, Mode, Rule};
use crate::name::Name;
use crate::session::SessionId;

/// Whether all of them may be inside a gate at once. It follows how the rules are explained, not how they are implemented.
pub fn together(definition: &Definition, modes: &[&Mode]) -> bool {
    match definition.rule {
        Rule::Mutex | Rule::Shared => {
            modes.len() <= 1 || modes.iter().all(|mode| **mode == Mode::Shared)
        }
        Rule::Election => modes.len() <= 1,
        Rule::Permits(k) => modes.iter().map(|mode| units(mode)).sum::<u64>() <= u64::from(k),
        Rule::Rooms => {
            let one_room = modes.iter().all(|mode| mode == &modes[0]);
            one_room
                && definition
                    .capacity
                    .is_none_or(|most| modes.len() <= most as usize)
        }
    }
}

/// Watches entries and exits.
#[derive(Clone, Debug, Default)]
pub struct CompatibleInside {
    inside: BTreeMap<Name, Vec<(SessionId, Mode)>>,
}

impl CompatibleInside {
    /// Shows an event.
    pub fn saw(
        &mut self,
        event: &Event,
        definition: impl Fn(&Name) -> Definition,
    ) -> Result<(), String> {
        match event {
            Event::Entered {
                session,
                gate,
                mode,
                ..
            } => {
                let inside = self.inside.entry(gate.clone()).or_default();
                if inside.iter().any(|(holder, _)| holder == session) {
                    return Err(format!("session {session} entered gate {gate} twice"));
                }
                inside.push((*session, mode.clone()));
                let modes: Vec<&Mode> = inside.iter().map(|(_, mode)| mode).collect();
                match together(&definition(gate), &modes) {
                    true => Ok(()),
                    false => Err(format!("{inside:?} are inside gate {gate} together")),
                }
            }
            Event::Left { session, gate, .. } => {
                let inside = self.inside.entry(gate.clone()).or_default();
                let before = inside.len();
                inside.retain(|(holder, _)| holder != session);
                match inside.len() < before {
                    true => Ok(()),
                    false => Err(format!(
                        "session {session} left gate {gate} without being inside"
                    )),
                }
            }
            _ => Ok(()),
        }
    }
}
