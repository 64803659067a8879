//! A fence exceeds that of every earlier grant that it conflicts with, even across crashes and deleted gates.

use std::collections::BTreeMap;

use super::units;
use crate::event::{Event, Turn};
use crate::fence::Fence;
use crate::gate::{Definition, Mode, Rule};
use crate::name::Name;

/// Watches the fences of all grants of each name.
#[derive(Clone, Debug, Default)]
pub struct FencesGrow {
    grants: BTreeMap<Name, Vec<(Mode, Fence)>>,
}

/// Cap on remembered grants per name; older ones were already below these.
const REMEMBERED: usize = 64;

impl FencesGrow {
    /// Shows an event.
    pub fn saw(
        &mut self,
        event: &Event,
        definition: impl Fn(&Name) -> Definition,
    ) -> Result<(), String> {
        let Event::Entered {
            gate,
            mode,
            fence,
            turn,
            session,
            ..
        } = event
        else {
            return Ok(());
        };
        let grants = self.grants.entry(gate.clone()).or_default();
        if !matches!(turn, Turn::Kept | Turn::Claimed { .. }) {
            for (earlier, its) in grants.iter() {
                if mode.conflicts(earlier) && fence <= its {
                    return Err(format!(
                        "gate {gate} granted fence {fence} to session {session}, though {its} conflicts and is not below"
                    ));
                }
            }
            let definition = definition(gate);
            let most = match (definition.rule, definition.capacity) {
                (Rule::Permits(k), _) => Some(k),
                (Rule::Rooms, capacity) => capacity,
                _ => None,
            };
            if let Some(most) = most {
                let newest = grants.iter().map(|(_, its)| *its).max();
                let same = grants.iter().filter(|(_, its)| its == fence);
                let shared: u64 = same.map(|(mode, _)| units(mode)).sum();
                let sound = newest.is_none_or(|newest| *fence >= newest)
                    && shared + units(mode) <= u64::from(most);
                if !sound {
                    return Err(format!(
                        "gate {gate} granted fence {fence} to more than fit together, or below {newest:?}"
                    ));
                }
            }
        }
        grants.push((mode.clone(), *fence));
        if grants.len() > REMEMBERED {
            grants.remove(0);
        }
        Ok(())
    }
}
