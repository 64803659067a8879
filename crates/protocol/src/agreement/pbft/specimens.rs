//! PBFT with too few replicas and with a phase left out, kept in order to be refuted: coordination and agreement §5.7.

use super::{Command, Config, Flaw, Pbft, ReplicatedLog, Slot, replicas};
use crate::{Algorithm, Channels, Faults, NodeId, Profile, Telling};

pub(crate) const THREE: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "pbft-three",
        title: "PBFT with three replicas and quorums of two",
        source: "coordination and agreement §5.7",
        specimen: Some("unsafe: two quorums share only the liar, and two requests get one number"),
        tolerates: |_| Faults::liars(1),
        costs: &[],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..super::ALGORITHM.profile
    },
    machine: |setup| {
        setup.at_least(3)?;
        let config = Config {
            replicas: 3,
            f: 1,
            quorum: 2,
            delay_bound: 1,
            flaw: None,
            start: |_| None,
        };
        replicas(setup, config)
    },
};

/// It begins after p0, the first primary, has executed a request that p1 and p2 have only heard of, and p3 has not.
pub(crate) const NO_COMMIT: Algorithm<ReplicatedLog> = Algorithm {
    profile: Profile {
        name: "pbft-no-commit",
        title: "PBFT that executes what is prepared",
        source: "coordination and agreement §5.7",
        specimen: Some(
            "unsafe: what one replica has prepared and executed is lost in a view change",
        ),
        channels: Channels::Fifo,
        tolerates: |_| Faults::NONE,
        costs: &[],
        telling_proposers: Some(2),
        ..super::ALGORITHM.profile
    },
    machine: |setup| {
        setup.at_least(4)?;
        let config = Config {
            replicas: 4,
            f: 1,
            quorum: 3,
            delay_bound: 1,
            flaw: Some(Flaw::SkipsCommit),
            start: one_is_ahead,
        };
        replicas(setup, config)
    },
};

fn one_is_ahead(replica: NodeId) -> Option<Pbft> {
    // The last in the order in which a primary takes requests up.
    let command = Command {
        client: NodeId(3),
        number: 0,
    };
    let digest = Some(command);
    let mut node = Pbft::first(replica);
    let backups = [NodeId(1), NodeId(2)].map(|backup| (backup, digest));
    let slot = |prepares: &[(NodeId, super::Digest)]| Slot {
        pre_prepare: Some(digest),
        prepares: prepares.iter().copied().collect(),
        ..Slot::default()
    };
    match replica.0 {
        0 => {
            let slot = Slot {
                prepared: true,
                committed: true,
                ..slot(&backups)
            };
            node.slots.insert((0, 1), slot);
            node.prepared.insert(1, (0, digest));
            node.executed.push(digest);
            node.seq = 1;
        }
        1 | 2 => {
            let own = &backups[replica.index() - 1..replica.index()];
            node.slots.insert((0, 1), slot(own));
            node.requests.insert(command);
        }
        _ => return None,
    }
    Some(node)
}
