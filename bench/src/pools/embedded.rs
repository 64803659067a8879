//! A node inside this program: what a take and a give cost without a socket.

use std::time::{Duration, Instant};

use testigo_core::pool::{Many, PoolDefinition, PoolTake, SlotNames};
use testigo_node::{Config, Node};

use super::POOL;
use crate::report::{Bar, Report, Unit};
use crate::tally::median;

/// Pairs between two looks at the clock.
const PAIRS: u32 = 50_000;

pub(super) fn measure(rounds: usize, span: Duration, report: &mut Report) -> Result<(), String> {
    let data = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let node = Node::start(Config::embedded(data.path())).map_err(|e| e.to_string())?;
    for slots in [64, 100_000] {
        let definition = PoolDefinition {
            slots: SlotNames::Numbered(slots),
            free_low: 0,
        };
        let pool = format!("{POOL}-{slots}");
        let created = node.create_pool(&pool, definition);
        let created = created.and_then(|submitted| submitted.wait());
        created.map_err(|e| e.to_string())?;
        let session = node.session().map_err(|e| e.to_string())?;
        let take = PoolTake {
            pool: &pool,
            many: Many::Exactly(1),
            label: None,
            wait_ms: None,
        };
        let mut seconds = Vec::new();
        // Half of the slots are in use during the measurement.
        let half = PoolTake {
            many: Many::Exactly(slots / 2),
            ..take
        };
        let others = node.session().map_err(|e| e.to_string())?;
        others.take_slots(half).map_err(|e| e.to_string())?;
        let mut fences = vec![0; slots as usize];
        for _ in 0..rounds {
            let (begin, mut pairs) = (Instant::now(), 0.0);
            while begin.elapsed() < span {
                for _ in 0..PAIRS {
                    let taken = session.take_slots(take).map_err(|e| e.to_string())?;
                    let [taken] = &taken[..] else {
                        return Err(format!("{} slots were taken instead of one", taken.len()));
                    };
                    let slot: usize = taken.slot.parse().map_err(|_| "it has no number")?;
                    let last = std::mem::replace(&mut fences[slot], taken.fence.0);
                    if taken.fence.0 <= last {
                        return Err(format!("fence {} after {last}", taken.fence));
                    }
                    let given = session.give_slots(&pool, &[&taken.slot]);
                    given.map_err(|e| e.to_string())?;
                }
                pairs += f64::from(PAIRS);
            }
            seconds.push(begin.elapsed().as_secs_f64() / pairs);
        }
        report.row(
            &format!("embedded: a pair on one thread, {slots} slots"),
            Bar::AtMost(1e-6, Unit::Seconds),
            median(seconds),
            "",
        );
    }
    node.stop().map_err(|e| e.to_string())
}
