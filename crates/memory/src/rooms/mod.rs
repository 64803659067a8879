//! Group exclusion among threads: any number inside, all in one room.

mod alone;
mod contention;
mod ctp;
mod one_actor;
mod peterson;
mod two_actors;

use crate::{PROCESSES_MAX, Plan, PlanError, ThreadAlgorithm};

pub use alone::Alone;
pub use contention::Contention;
pub use one_actor::OneActor;
pub use two_actors::{TwoActors, TwoActorsPrinted};

/// Every algorithm here, in the order in which they are listed to people; specimens last.
pub static ALGORITHMS: &[&ThreadAlgorithm] = &[
    &ctp::CTP,
    &peterson::PETERSON_GME,
    &one_actor::ONE_ACTOR,
    &two_actors::EMG_TOURNAMENT,
    &two_actors::ADAPTIVE_GME,
    &two_actors::ADAPTIVE_GME_LOCAL,
    &one_actor::ONE_ACTOR_PRINTED,
    &two_actors::EMG_TOURNAMENT_PRINTED,
    &two_actors::EMG_TOURNAMENT_RETURNING,
    &alone::ADAPTIVE_GME_PRINTED,
    &alone::ADAPTIVE_GME_LOCAL_PRINTED,
];

/// The numbers of processes and rooms, if there can be so many.
fn sizes(plan: &Plan) -> Result<(usize, usize), PlanError> {
    let processes = plan.processes(1, PROCESSES_MAX)?;
    match plan.rooms {
        rooms @ 1..=PROCESSES_MAX => Ok((processes, rooms)),
        rooms => Err(PlanError(format!(
            "{rooms} rooms: there are from 1 to {PROCESSES_MAX}"
        ))),
    }
}
