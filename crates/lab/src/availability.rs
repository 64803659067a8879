//! Availability as it is measured: an algorithm is run with every set of dead nodes, and it is seen whether
//! anybody still gets in. Held against the probability that a quorum is alive.

use testigo_protocol::{NodeId, Setup};
use testigo_sim::Time;

use crate::arrivals::Arrivals;
use crate::family::{KnownAlgorithm, LabError};
use crate::world::World;

/// Which sets of live nodes an algorithm went on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredAvailability {
    pub algorithm: &'static str,
    nodes: usize,
    /// Sets with which somebody got in, by the number of live nodes.
    goes_on: Vec<u64>,
}

impl MeasuredAvailability {
    /// More nodes have more sets than anybody waits for.
    pub const NODES_MAX: usize = 12;

    /// Runs the algorithm once for every set of nodes that is not all dead: all live nodes ask once, the
    /// others are dead from the start.
    pub fn of(algorithm: &KnownAlgorithm, setup: &Setup) -> Result<MeasuredAvailability, LabError> {
        let nodes = algorithm.shape(setup)?.nodes();
        if nodes > Self::NODES_MAX {
            return Err(LabError::new(format!(
                "{nodes} nodes have too many sets of dead ones to run them all: at most {}",
                Self::NODES_MAX
            )));
        }
        let mut measured = MeasuredAvailability {
            algorithm: algorithm.profile.name,
            nodes,
            goes_on: vec![0; nodes + 1],
        };
        for live in 1..1_u32 << nodes {
            let alive = |node: &NodeId| live & 1 << node.0 != 0;
            let asks = NodeId::all(setup.users)
                .filter(alive)
                .map(|node| (node.0, Time::ZERO));
            let dead = NodeId::all(nodes).filter(|node| !alive(node));
            let halts = dead.map(|node| format!("halt:{node}@0").parse());
            let arrivals = Arrivals::Script(asks.collect());
            let world = World {
                entries: setup.users as u64,
                arrivals,
                faults: halts
                    .collect::<Result<_, _>>()
                    .map_err(|error| LabError::new(format!("{error}")))?,
                ..World::default()
            };
            let setup = Setup {
                delay_bound: world.delay_bound().0,
                ..setup.clone()
            };
            let report = algorithm.run(&setup, &world, false)?.report;
            measured.goes_on[live.count_ones() as usize] += u64::from(report.entries > 0);
        }
        Ok(measured)
    }

    /// The probability that somebody gets in, where every node is alive with probability `p`.
    pub fn at(&self, p: f64) -> f64 {
        let of_size = |(live, &sets): (usize, &u64)| {
            let dead = self.nodes - live;
            sets as f64 * p.powi(live as i32) * (1.0 - p).powi(dead as i32)
        };
        self.goes_on.iter().enumerate().map(of_size).sum()
    }

    /// How many sets it was run with, and with how many of them somebody got in.
    pub fn sets(&self) -> (u64, u64) {
        ((1 << self.nodes) - 1, self.goes_on.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use testigo_protocol::quorum::{Construction, NodeSet};

    use super::*;

    /// Tree, cohorts and the second group: exactly the formula, at every p.
    #[test]
    fn the_living_go_on_exactly_while_a_quorum_is_alive() {
        for (name, construction) in [
            ("tree-quorum", Construction::Tree),
            ("cohort-quorum", Construction::Cohorts),
            ("agrawal-jalote", Construction::AgrawalJalote),
        ] {
            let algorithm = KnownAlgorithm::find(name).expect("known");
            for nodes in [3, 6, 7] {
                let measured =
                    MeasuredAvailability::of(&algorithm, &Setup::new(nodes)).expect("few");
                let structure = construction.structure(nodes).expect("a structure");
                let listed = structure.list().expect("few quorums");
                for p in [0.1, 0.5, 0.7, 0.9, 0.99] {
                    let alive = (1..1_u128 << nodes)
                        .filter(|&bits| listed.serves(NodeSet::from_bits(bits)));
                    let chance = |bits: u128| {
                        let live = bits.count_ones() as i32;
                        f64::powi(p, live) * f64::powi(1.0 - p, nodes as i32 - live)
                    };
                    let formula: f64 = alive.map(chance).sum();
                    let found = measured.at(p);
                    assert!(
                        (found - formula).abs() < 1e-12,
                        "{name}, {nodes}, {p}: {found}, {formula}"
                    );
                }
            }
        }
    }

    /// An algorithm that waits for the dead falls below its quorums.
    #[test]
    fn maekawa_does_not_replace_the_dead() {
        let algorithm = KnownAlgorithm::find("maekawa").expect("known");
        let measured = MeasuredAvailability::of(&algorithm, &Setup::new(4)).expect("few");
        assert!(measured.at(0.9) < 1.0);
        assert!(MeasuredAvailability::of(&algorithm, &Setup::new(13)).is_err());
    }
}
