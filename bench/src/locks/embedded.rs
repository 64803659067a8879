//! A node inside of this program: what a pair costs without a socket.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use testigo_core::{Definition, Lock, Rule};
use testigo_node::{Config, Node};

use super::referee::Referee;
use crate::report::{Bar, Report, Unit};
use crate::tally::median;

/// Pairs between two looks at the clock.
const PAIRS: u32 = 50_000;

/// The node and what was measured on it so far.
pub(crate) struct Embedded {
    node: Node,
    _data: TempDir,
    /// Seconds a pair, of each round, for a created gate and for an implicit one.
    measured: [(&'static str, Vec<f64>); 2],
}

impl Embedded {
    pub(crate) fn start() -> Result<Embedded, String> {
        let data = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
        let node = Node::start(Config::embedded(data.path())).map_err(|e| e.to_string())?;
        node.create_gate("created", Definition::new(Rule::Mutex))
            .and_then(|submitted| submitted.wait())
            .map_err(|e| e.to_string())?;
        Ok(Embedded {
            node,
            _data: data,
            measured: ["created", "implicit"].map(|gate| (gate, Vec::new())),
        })
    }

    /// One round of both gates.
    pub(crate) fn measure(&mut self, span: Duration) -> Result<(), String> {
        let session = self.node.session().map_err(|e| e.to_string())?;
        for (gate, seconds) in &mut self.measured {
            let mut referee = Referee::new(1, 1);
            let lock = Lock {
                gate,
                ..Lock::default()
            };
            let (begin, mut pairs) = (Instant::now(), 0.0);
            while begin.elapsed() < span {
                for _ in 0..PAIRS {
                    let grant = session.lock(&lock).map_err(|e| e.to_string())?;
                    let grant = grant.ok_or("somebody else is inside")?;
                    referee.asks(0, 0);
                    referee.enters(0, 0, Some(grant.fence.0))?;
                    referee.leaves(0, 0)?;
                    let left = session.unlock(gate, Some(grant.fence));
                    left.map_err(|e| e.to_string())?;
                }
                pairs += f64::from(PAIRS);
            }
            seconds.push(begin.elapsed().as_secs_f64() / pairs);
        }
        Ok(())
    }

    pub(crate) fn report(self, report: &mut Report) -> Result<(), String> {
        for (gate, seconds) in self.measured {
            report.row(
                &format!("embedded: a pair on one thread, {gate} gate"),
                Bar::AtMost(1e-6, Unit::Seconds),
                median(seconds),
                "",
            );
        }
        self.node.stop().map_err(|e| e.to_string())
    }
}
