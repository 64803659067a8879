//! Founds a cluster of one with everything in a backup or in the one surviving directory. It belongs to a higher generation,
//! so that none of its fences, starts and names was ever given out before.

use std::collections::BTreeMap;
use std::path::Path;

use testigo_core::{Change, ClusterId, NodeId, Replicated, Start};
use testigo_engine::{Engine, GENERATION_STARTS, Opening, Setup, Start as EngineStart};

use super::file::{Backup, BackupError};
use crate::clock::wall_ms;
use crate::generation;
use crate::house::written;
use crate::open::State;

/// What was founded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refounded {
    /// The only node of the cluster.
    pub node: u64,
    /// The cluster's identity, if it is one.
    pub cluster: Option<String>,
    /// Its generation.
    pub generation: u32,
    /// The highest number of a shard.
    pub number: u32,
}

/// Makes a new data directory of this node from a backup, once it may begin a generation (see [`generation_wait_secs`]).
///
/// [`generation_wait_secs`]: crate::generation_wait_secs
pub fn refound(backup: &Backup, data: &Path, node: u64) -> Result<Refounded, BackupError> {
    let made = backup.header.made_ms;
    if made > wall_ms() {
        return Err(BackupError::Behind(made - wall_ms()));
    }
    let generation = generation::next().map_err(BackupError::NotRaised)?;
    refound_in(backup, data, node, generation)
}

fn refound_in(
    backup: &Backup,
    data: &Path,
    node: u64,
    generation: u32,
) -> Result<Refounded, BackupError> {
    let records = backup.records("the backup")?;
    let mut replicated = Replicated::restore(records);
    let generation = generation.max(replicated.view().generation.saturating_add(1));
    let start = raise(&mut replicated, NodeId(node), generation)?;
    let setup = Setup {
        node,
        ..Setup::default()
    };
    Engine::refound(data, setup, start, &written(replicated.records()))?;
    Ok(Refounded {
        node,
        cluster: replicated.cluster().id().map(|id| id.to_string()),
        generation: replicated.view().generation,
        number: replicated.ownership().highest().0,
    })
}

/// Everything in the directory of one node, whether or not it is known to be committed, because all of it may have been
/// acknowledged. Nothing in the directory is changed. Its node must not run.
pub fn salvage(data: &Path, node: u64) -> Result<Backup, BackupError> {
    let unreadable = |why: String| BackupError::Unreadable {
        path: data.display().to_string(),
        why,
    };
    if !data.join("store").exists() {
        return Err(unreadable("is no data directory".into()));
    }
    let setup = Setup {
        node,
        // A directory that was never let in has nothing to keep.
        joins: true,
        ..Setup::default()
    };
    let found = Engine::examine_as(data, Opening::Ordinary, setup)?;
    let state = State::replay(found.snapshot(), &found.everything()?);
    let state = state.map_err(|error| unreadable(error.to_string()))?;
    if state.replicated.view().members.is_empty() {
        return Err(unreadable(
            "has never been in a view: it has nothing to recover".into(),
        ));
    }
    Ok(Backup::of(&state.replicated))
}

/// Begins the next generation, with only this node in it, under a start above all that the node may have had.
fn raise(
    replicated: &mut Replicated,
    node: NodeId,
    generation: u32,
) -> Result<EngineStart, BackupError> {
    let mut starts: BTreeMap<NodeId, Start> = BTreeMap::from([(node, Start(0))]);
    starts.extend(
        replicated
            .cluster()
            .addresses()
            .map(|(node, _)| (node, Start(0))),
    );
    starts.extend(
        replicated
            .view()
            .members
            .iter()
            .map(|member| (member.node, member.start)),
    );
    for (node, start) in &mut starts {
        let last = replicated.cluster().last_start(*node).max(*start);
        *start = Start(last.0 + u64::from(GENERATION_STARTS));
    }
    let start = starts[&node];
    let others: Vec<NodeId> = starts
        .keys()
        .copied()
        .filter(|other| *other != node)
        .collect();
    let everybody = Change::View {
        before: replicated.view().index,
        members: starts.into_iter().collect(),
        generation: replicated.view().generation,
    };
    // This tells the log how far starts may have come, so that it lets no node in with an earlier one.
    apply(replicated, everybody)?;
    let alone = replicated.view_alone(node, start, generation);
    apply(replicated, alone)?;
    if replicated.cluster().id().is_some() {
        let cluster = draw_cluster_id()?;
        apply(replicated, Change::Found { cluster })?;
    }
    for node in others {
        let address = None;
        apply(replicated, Change::Address { node, address })?;
    }
    let number = u32::try_from(start.0);
    let number = number.map_err(|_| BackupError::NotRaised("the starts are used up".into()))?;
    Ok(EngineStart::new(number, generation))
}

fn apply(replicated: &mut Replicated, change: Change) -> Result<(), BackupError> {
    let applied = replicated.apply(wall_ms(), &change);
    let refused = |why| {
        let sentence = format!("the backup cannot be raised to a higher generation: {why}");
        BackupError::NotRaised(sentence)
    };
    applied.map(drop).map_err(refused)
}

fn draw_cluster_id() -> Result<ClusterId, BackupError> {
    let mut bytes = [0; 16];
    crate::random::fill(&mut bytes).map_err(|error| {
        BackupError::NotRaised(format!("the system gives no random numbers: {error}"))
    })?;
    Ok(ClusterId(u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::node::Node;
    use testigo_core::{Address, Definition, Limits, Number, Rule};

    /// A log of three nodes, in which node 2 was started seven times.
    fn of_three() -> Replicated {
        let mut log = Replicated::new(Limits::default());
        for members in [vec![(1, 1)], vec![(1, 1), (2, 7), (3, 1)]] {
            let members = members
                .into_iter()
                .map(|(node, start)| (NodeId(node), Start(start)));
            let view = Change::View {
                before: log.view().index,
                members: members.collect(),
                generation: 0,
            };
            apply(&mut log, view).unwrap();
        }
        let cluster = ClusterId(5);
        apply(&mut log, Change::Found { cluster }).unwrap();
        for node in 1..=3 {
            let address = Some(Address {
                peer: format!("node{node}:7700"),
                client: None,
            });
            let node = NodeId(node);
            apply(&mut log, Change::Address { node, address }).unwrap();
        }
        log
    }

    #[test]
    fn what_is_founded_anew_is_above_everything_of_before() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let before = of_three();
        let refounded = refound_in(&Backup::of(&before), &data, 2, 9).unwrap();
        assert_eq!(refounded.generation, 9);
        let first = Number::first_of(9).unwrap();
        assert_eq!(refounded.number, first.0);
        assert_ne!(refounded.cluster, Some(ClusterId(5).to_string()));

        let salvaged = salvage(&data, 2).unwrap();
        let after = Replicated::restore(salvaged.records("").unwrap());
        let members: Vec<_> = after
            .view()
            .members
            .iter()
            .map(|m| (m.node.0, m.start.0))
            .collect();
        assert_eq!(members, [(2, 7 + u64::from(GENERATION_STARTS))]);
        let addresses: Vec<u64> = after
            .cluster()
            .addresses()
            .map(|(node, _)| node.0)
            .collect();
        assert_eq!(addresses, [2], "nobody of before is dialled");
        let last = after.cluster().last_start(NodeId(3));
        assert!(last > Start(u64::from(GENERATION_STARTS)), "{last}");
        for shard in (0..=u16::MAX).map(testigo_core::Shard) {
            assert_eq!(after.ownership().number(shard), first, "{shard}");
        }
    }

    #[test]
    fn a_node_that_was_alone_is_restored_with_its_gates() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        let node = Node::start(Config::embedded(&old)).unwrap();
        let created = node.create_gate("deploy", Definition::new(Rule::Mutex));
        created.unwrap().wait().unwrap();
        let fence = |node: &Node| {
            let session = node.session().unwrap();
            let lock = testigo_core::Lock {
                gate: "deploy",
                ..testigo_core::Lock::default()
            };
            session.lock(&lock).unwrap().unwrap().fence.0
        };
        let before = fence(&node);
        node.stop().unwrap();
        refound_in(&salvage(&old, 1).unwrap(), &new, 1, 9).unwrap();
        let node = Node::start(Config::embedded(&new)).unwrap();
        assert_eq!(node.gates("*").unwrap().len(), 1);
        let after = fence(&node);
        assert!(before < Number::first_of(9).unwrap().floor().0);
        assert!(after > Number::first_of(9).unwrap().floor().0, "{after}");
        node.stop().unwrap();
    }

    #[test]
    fn a_backup_from_later_than_the_clock_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut backup = Backup::of(&of_three());
        backup.header.made_ms += 60_000;
        let refused = refound(&backup, &dir.path().join("data"), 2).unwrap_err();
        assert!(matches!(refused, BackupError::Behind(_)), "{refused}");
    }

    #[test]
    fn a_backup_that_is_restored_again_begins_above_the_first_time() {
        let dir = tempfile::tempdir().unwrap();
        let backup = Backup::of(&of_three());
        let in_slot = |backup: &Backup, name: &str, slot| {
            refound_in(backup, &dir.path().join(name), 2, slot).unwrap()
        };
        let first = in_slot(&backup, "first", 100);
        let recovered = salvage(&dir.path().join("first"), 2).unwrap();
        let second = in_slot(&recovered, "second", 101);
        let third = in_slot(&backup, "third", 102);
        assert!(third.number > second.number && second.number > first.number);
        // Even if the clock was set back in between.
        let fourth = in_slot(&recovered, "fourth", 50);
        assert!(fourth.number > first.number && fourth.generation > first.generation);
    }

    #[test]
    fn a_directory_of_another_node_or_of_nobody_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(salvage(&dir.path().join("nothing"), 1).is_err());
        let data = dir.path().join("data");
        refound_in(&Backup::of(&of_three()), &data, 2, 9).unwrap();
        let refused = salvage(&data, 3).unwrap_err().to_string();
        assert!(refused.contains("node 2's"), "{refused}");
        let again = refound_in(&Backup::of(&of_three()), &data, 2, 9).unwrap_err();
        assert!(matches!(again, BackupError::Refound(_)), "{again}");
    }
}
