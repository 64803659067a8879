//! Monitors: independent code that watches what the local half reports and says when a promise is broken. Tests and chaos
//! runs show them every event (the local half must be [observed](crate::Local::observe)). They share nothing with the code
//! that they watch except the definitions of gates.

mod claims;
mod fences;
mod inside;
mod jobs;
mod overtakes;
mod sets;
mod wakeups;

pub use claims::NothingStolen;
pub use fences::FencesGrow;
pub use inside::{CompatibleInside, together};
pub use jobs::{Fate, JobLedger};
pub use overtakes::BoundedOvertaking;
pub use sets::SetsAtOnce;
pub use wakeups::nobody_waits_needlessly;

use std::collections::BTreeMap;

use crate::event::Event;
use crate::gate::{Definition, Mode, Rule};
use crate::name::Name;

/// All monitors of events. Tell it each definition when it is made; a gate without one is implicit.
#[derive(Clone, Debug, Default)]
pub struct Monitors {
    definitions: BTreeMap<Name, Definition>,
    inside: CompatibleInside,
    fences: FencesGrow,
    overtakes: BoundedOvertaking,
    sets: SetsAtOnce,
    claims: NothingStolen,
}

impl Monitors {
    /// A gate was created, or got another definition.
    pub fn define(&mut self, gate: Name, definition: Definition) {
        self.definitions.insert(gate, definition);
    }

    /// The node has crashed and restarted: forgets who is inside and who waits, but no fences.
    pub fn restarted(&mut self) {
        self.inside = CompatibleInside::default();
        self.overtakes = BoundedOvertaking::default();
        self.claims = NothingStolen::default();
    }

    /// Shows the events of one step, in their order.
    pub fn saw(&mut self, step: &[Event]) -> Result<(), String> {
        let Monitors {
            definitions,
            inside,
            fences,
            overtakes,
            sets,
            claims,
        } = self;
        let definition = |gate: &Name| {
            let implicit = || match gate.as_election() {
                Some(_) => Definition::election(),
                None => Definition::new(Rule::Shared),
            };
            definitions.get(gate).cloned().unwrap_or_else(implicit)
        };
        for event in step {
            inside.saw(event, definition)?;
            fences.saw(event, definition)?;
        }
        overtakes.saw(step, definition)?;
        sets.saw(step)?;
        claims.saw(step)
    }
}

/// Units that a mode takes of a `PERMITS` gate.
fn units(mode: &Mode) -> u64 {
    match mode {
        Mode::Permits(h) => u64::from(*h),
        _ => 1,
    }
}
