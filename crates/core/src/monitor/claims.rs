//! A claim without proof takes nothing from anybody, and a proven one takes only what is weaker: holds without proof or with
//! lower fences.

use std::collections::BTreeMap;

use crate::event::{Event, Loss, Turn};
use crate::fence::Fence;
use crate::name::Name;
use crate::session::SessionId;

/// Watches who loses a gate to whose claim.
#[derive(Clone, Debug, Default)]
pub struct NothingStolen {
    /// Whether each hold is known to have been granted.
    proven: BTreeMap<(Name, SessionId), bool>,
}

/// A hold that a claim has ended.
struct Victim {
    gate: Name,
    session: SessionId,
    fence: Fence,
    proven: bool,
}

impl NothingStolen {
    /// Shows the events of one step, in their order.
    pub fn saw(&mut self, step: &[Event]) -> Result<(), String> {
        let mut left = BTreeMap::new();
        let mut victims: Vec<Victim> = Vec::new();
        for event in step {
            match event {
                Event::Left { session, gate, .. } => {
                    let key = (gate.clone(), *session);
                    if let Some(proven) = self.proven.remove(&key) {
                        left.insert(key, proven);
                    }
                }
                Event::Lost {
                    session,
                    gate,
                    fence,
                    loss: Loss::Claim,
                } => victims.push(Victim {
                    gate: gate.clone(),
                    session: *session,
                    fence: *fence,
                    proven: left.get(&(gate.clone(), *session)).copied().unwrap_or(true),
                }),
                Event::Entered {
                    session,
                    gate,
                    fence,
                    turn,
                    ..
                } => {
                    let key = (gate.clone(), *session);
                    let proven = match turn {
                        Turn::Claimed { proven } => *proven,
                        Turn::Kept => left.get(&key).copied().unwrap_or(true),
                        Turn::Order | Turn::Door | Turn::Dependents | Turn::Algorithm => true,
                    };
                    self.proven.insert(key, proven);
                    if let Turn::Claimed { proven } = turn {
                        let (mine, rest) = victims.into_iter().partition(|v| v.gate == *gate);
                        victims = rest;
                        judge(*session, *fence, *proven, mine)?;
                    }
                }
                _ => {}
            }
        }
        match victims.first() {
            None => Ok(()),
            Some(Victim { gate, session, .. }) => Err(format!(
                "session {session} lost gate {gate} to a claim that came to nothing"
            )),
        }
    }
}

fn judge(
    claimer: SessionId,
    claimed: Fence,
    proven: bool,
    victims: Vec<Victim>,
) -> Result<(), String> {
    for victim in victims {
        let Victim {
            gate,
            session,
            fence,
            ..
        } = victim;
        if !proven {
            return Err(format!(
                "session {claimer} took gate {gate} from session {session} by a claim without proof"
            ));
        }
        if victim.proven && fence >= claimed {
            return Err(format!(
                "session {claimer} took gate {gate} with fence {claimed} from session {session} with {fence}"
            ));
        }
    }
    Ok(())
}
