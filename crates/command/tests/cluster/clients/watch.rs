//! The one who watches: asks every node who leads and who owns what, again and again.

use crate::door::{Door, Heard, number};
use crate::net::Party;
use crate::stage::Stage;

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) term: i64,
    pub(crate) leader: Option<i64>,
    pub(crate) applied: i64,
}

pub(crate) fn run(stage: &Stage) {
    let mut doors: Vec<Option<Door>> = (0..stage.nodes).map(|_| None).collect();
    while stage.goes_on_after(100) {
        for (node, door) in (1..).zip(&mut doors) {
            look(stage, node, door);
        }
    }
}

fn look<'a>(stage: &'a Stage, node: Party, door: &mut Option<Door<'a>>) {
    if door.as_ref().is_none_or(Door::is_broken) {
        *door = Door::open(stage, node);
    }
    let Some(door) = door else {
        return;
    };
    let Some(standing) = standing(door) else {
        return;
    };
    if let Some(leader) = standing.leader {
        let found = stage.records().reigns.leads(standing.term, leader);
        stage.must(found);
    }
    for gate in stage.gates.all() {
        let Heard::Answer(title) = door.call(&["OWNER", gate]).heard else {
            continue;
        };
        let [shard, rank, owner] = ["shard", "number", "owner"].map(|key| number(&title, key));
        if let (Some(shard), Some(rank), Some(owner)) = (shard, rank, owner) {
            let found = stage.records().reigns.owns(shard, rank, owner);
            stage.must(found);
        }
    }
}

pub(crate) fn standing(door: &mut Door<'_>) -> Option<Standing> {
    let Heard::Answer(status) = door.call(&["CLUSTER", "STATUS"]).heard else {
        return None;
    };
    Some(Standing {
        term: number(&status, "term")?,
        leader: number(&status, "leader"),
        applied: number(&status, "applied")?,
    })
}
