//! What the nodes have recorded of the instances of their gates is replayed in the laboratory: the same algorithms, given the
//! same, must do the same, message by message.

use std::collections::BTreeMap;

use testigo_lab::{LabError, Trace};
use testigo_protocol::{Record, Recording};

use crate::world::World;

/// How much was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// Instances of which every node had its record.
    pub(crate) whole: u64,
    /// Instances of which a node had lost its record in a crash.
    pub(crate) partial: u64,
    pub(crate) entries: u64,
    /// Stays that are remembered, and that were of another node's client.
    pub(crate) stays: u64,
    pub(crate) guests: u64,
}

impl World {
    /// Replays all instances that the nodes have on record.
    pub(crate) fn replay(&self, sum: &mut Replayed) -> Result<(), String> {
        for gate in (0..self.plan.gates).map(|at| self.plan.name(at)) {
            let mut instances: BTreeMap<(u64, u64), Vec<Record>> = BTreeMap::new();
            for node in self.nodes.iter().filter(|node| node.up) {
                for arrival in node.estate.arrivals(&gate).0 {
                    sum.stays += 1;
                    sum.guests += u64::from(arrival.node != node.id.0);
                }
                for record in node.estate.recordings(&gate).map(Recording::record) {
                    let records = instances.entry(record.head.instance).or_default();
                    records.push(record);
                }
            }
            for (instance, records) in instances {
                let trace = Trace::live(&records);
                let text = |error: LabError| format!("{gate} {instance:?}: {error}");
                let trace = trace.map_err(text)?;
                let replayed = trace.replay().map_err(text)?;
                // The order that Sanders' source promises is broken by a slow voter: its profile says so.
                let is_wrong = |what: &&String| !what.starts_with("order");
                if let Some(wrong) = replayed.violations.iter().find(is_wrong) {
                    return Err(format!("{gate} {instance:?}: {wrong}"));
                }
                let lost = trace.to_string().contains(" is lost");
                sum.whole += u64::from(!lost);
                sum.partial += u64::from(lost);
                sum.entries += replayed.entries;
            }
        }
        Ok(())
    }
}
