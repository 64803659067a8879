//! A large pool on many nodes over one log, in virtual time: one node takes every slot, then another does, and each slot
//! is in use once.

use std::collections::HashSet;
use std::time::Instant;

use testigo_core::pool::{Desk, Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames};
use testigo_core::{
    Change, Index, Limits, Name, NodeId, Origin, Replicated, SessionId, Stamp, Start,
};

use super::POOL;
use crate::report::{Report, Unit, memory_peak};

const NODES: u64 = 8;
const SLOTS: u32 = 100_000;

struct Node {
    id: NodeId,
    replicated: Replicated,
    desk: Desk,
    sequence: u64,
}

pub(super) fn measure(report: &mut Report) -> Result<(), String> {
    let (begin, memory) = (Instant::now(), memory_peak()?);
    let pool = Name::new(POOL).map_err(|e| e.to_string())?;
    let mut first = Replicated::new(Limits::default());
    let members: Vec<_> = (1..=NODES).map(|id| (NodeId(id), Start(1))).collect();
    let view = Change::View {
        before: Index(0),
        members: members.clone(),
        generation: 0,
    };
    let definition = PoolDefinition {
        slots: SlotNames::Numbered(SLOTS),
        free_low: 0,
    };
    let definition = Box::new(definition);
    for change in [view, Change::CreatePool { pool, definition }] {
        let applied = first.apply(Stamp::default(), &change);
        // Nobody has a desk yet.
        let _ = applied.map_err(|e| e.to_string())?;
    }
    let mut nodes: Vec<Node> = members
        .iter()
        .map(|member| Node {
            id: member.0,
            desk: Desk::new(0, *member, &first),
            replicated: first.clone(),
            sequence: 0,
        })
        .collect();
    let mut entries = 0;
    for at in [0, NODES as usize - 1] {
        entries += gather(&mut nodes, at)?;
    }
    let moved = format!("{entries} entries of the log, every slot at node 1, then at node {NODES}");
    let seconds = begin.elapsed().as_secs_f64();
    let what = format!("{SLOTS} slots on {NODES} simulated nodes");
    report.show(&what, seconds, Unit::Seconds, &moved);
    let grown = (memory_peak()? - memory) as f64 / NODES as f64;
    report.show("  memory per node", grown, Unit::Bytes, "");
    Ok(())
}

/// One session waits for every slot, takes them all, and gives them back. Returns how many entries that took.
fn gather(nodes: &mut [Node], at: usize) -> Result<u64, String> {
    let node = &mut nodes[at];
    let session = SessionId::of_connection(node.id, Start(1), 1);
    let take = PoolTake {
        pool: POOL,
        many: Many::Exactly(SLOTS),
        label: None,
        wait_ms: Some(1_000_000),
    };
    let answer = node.desk.take(0, &node.replicated, session, take);
    let PoolAnswer::Waiting(ticket) = answer.map_err(|e| e.to_string())? else {
        return Err("one node has all slots already".into());
    };
    let (mut got, mut entries) = (None, 0);
    loop {
        let mut quiet = true;
        for at in 0..nodes.len() {
            let out = nodes[at].desk.take_out();
            let mine = out.answers.into_iter().find(|(of, _)| *of == ticket);
            got = got.or(mine.map(|(_, taken)| taken));
            for change in out.changes {
                quiet = false;
                entries += 1;
                nodes[at].sequence += 1;
                let origin = Some(Origin {
                    node: nodes[at].id,
                    start: Start(1),
                    sequence: nodes[at].sequence,
                });
                let stamp = Stamp {
                    origin,
                    ..Stamp::default()
                };
                for node in &mut *nodes {
                    let applied = node.replicated.apply(stamp, &change);
                    let applied = applied.map_err(|e| e.to_string())?;
                    node.desk.follow(0, true, &node.replicated, &applied);
                }
            }
        }
        if quiet {
            break;
        }
    }
    let taken = got.ok_or("the take of all slots was never served")?;
    let names: HashSet<&str> = taken.iter().map(|taken| &*taken.slot).collect();
    if names.len() != SLOTS as usize {
        return Err(format!("{} different slots of {SLOTS}", names.len()));
    }
    let names: Vec<&str> = names.into_iter().collect();
    let node = &mut nodes[at];
    let given = node.desk.give(0, &node.replicated, session, POOL, &names);
    given.map_err(|e| e.to_string())?;
    Ok(entries)
}
