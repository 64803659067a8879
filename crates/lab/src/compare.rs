//! Algorithms side by side on the same arrivals.

use serde::Serialize;
use testigo_protocol::Setup;

use crate::family::{Entry, LabError};
use crate::run::{Published, Report};
use crate::simulate::World;

/// One algorithm at one number of nodes. Its field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub algorithm: &'static str,
    pub nodes: usize,
    pub safe: bool,
    pub live: bool,
    pub messages_per_entry: Option<f64>,
    pub published_messages_per_entry: Option<Published>,
    pub message_bytes: Option<f64>,
    pub waiting_time: Option<f64>,
    pub response_time: Option<f64>,
    pub synchronisation_delay: Option<f64>,
    pub overtakes_max: u64,
}

impl From<Report> for Row {
    fn from(report: Report) -> Row {
        Row {
            algorithm: report.algorithm,
            nodes: report.nodes,
            safe: report.safe,
            live: report.live,
            messages_per_entry: report.messages_per_entry,
            published_messages_per_entry: report.published_messages_per_entry,
            message_bytes: report.message_bytes,
            waiting_time: report.waiting_time,
            response_time: report.response_time,
            synchronisation_delay: report.synchronisation_delay,
            overtakes_max: report.overtakes_max,
        }
    }
}

/// Runs every algorithm at every size in the same world.
pub fn compare(
    entries: &[Entry],
    sizes: &[usize],
    setup: &Setup,
    world: &World,
) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    for entry in entries {
        for &users in sizes {
            let setup = Setup {
                users,
                ..setup.clone()
            };
            rows.push(entry.run(&setup, world, false)?.report.into());
        }
    }
    Ok(rows)
}
