//! The records of a gate's instances, gathered from all nodes, again and again while they grow.

use std::collections::BTreeMap;

use testigo_client::{Client, NotDone, Value, Word};
use testigo_protocol::Record;

/// What is known and not written yet.
#[derive(Default)]
pub(super) struct Gathered {
    instances: BTreeMap<Instance, BTreeMap<u64, Known>>,
    /// The last instance that was written; earlier ones are of the past.
    written: Option<Instance>,
}

type Instance = (u64, u64);

struct Known {
    record: Record,
    /// Whether its node has spoken of it when it was last asked.
    listed: bool,
}

/// A row of the answer.
struct Listed {
    node: u64,
    instance: String,
    length: usize,
    outline: Record,
}

impl Gathered {
    /// Asks all nodes what is on record, and fetches what is new.
    pub(super) async fn look(&mut self, client: &Client, gate: &str) -> Result<(), NotDone> {
        let answer = client.records(gate).await?;
        let rows: Vec<Listed> = answer
            .list()
            .unwrap_or_default()
            .iter()
            .filter_map(listed)
            .collect();
        let all = self.instances.values_mut().flat_map(BTreeMap::values_mut);
        all.for_each(|known| known.listed = false);
        for row in rows {
            let instance = row.outline.head.instance;
            if self.written.is_some_and(|written| instance <= written) {
                continue;
            }
            self.fetch(client, gate, row).await?;
        }
        Ok(())
    }

    async fn fetch(&mut self, client: &Client, gate: &str, row: Listed) -> Result<(), NotDone> {
        let nodes = self.instances.entry(row.outline.head.instance).or_default();
        let before = nodes
            .get(&row.node)
            .map_or(0, |known| known.record.length());
        let mut steps = Vec::new();
        while before + steps.len() < row.length {
            let from = before + steps.len();
            let piece = client.record_piece(gate, row.node, &row.instance, from);
            let piece = match piece.await {
                Ok(piece) => bytes(&piece).unwrap_or_default().to_vec(),
                // It was forgotten meanwhile: what is known already stays.
                Err(NotDone::Refused(refusal)) if refusal.word == Word::NoGate => return Ok(()),
                Err(not_done) => return Err(not_done),
            };
            if piece.is_empty() {
                return Ok(());
            }
            let missing = row.length - from;
            steps.extend_from_slice(&piece[..piece.len().min(missing)]);
        }
        let before = nodes.remove(&row.node).map(|known| known.record);
        let record = row.outline.with_steps(before, &steps);
        let known = Known {
            record,
            listed: true,
        };
        nodes.insert(row.node, known);
        Ok(())
    }

    /// The instances that are over: a later one has begun, and every node that speaks of it says so. They are forgotten here.
    pub(super) fn take_over(&mut self) -> Vec<Vec<Record>> {
        let mut over = Vec::new();
        while self.instances.len() > 1
            && let Some(first) = self.instances.first_entry()
            && first
                .get()
                .values()
                .all(|known| !known.listed || known.record.over)
        {
            let (instance, nodes) = first.remove_entry();
            self.written = Some(instance);
            over.push(finished(nodes));
        }
        over
    }

    /// All instances, the last as it stands.
    pub(super) fn take_all(&mut self) -> Vec<Vec<Record>> {
        let all = std::mem::take(&mut self.instances);
        let all = all.into_values().filter(|nodes| !nodes.is_empty());
        all.map(finished).collect()
    }
}

/// The records of an instance. Of one whose node does not speak of it any more, the end is missing.
fn finished(nodes: BTreeMap<u64, Known>) -> Vec<Record> {
    let nodes = nodes.into_values().map(|known| {
        let mut record = known.record;
        if !known.listed && !record.over {
            record.cut = record.cut.max(1);
        }
        record
    });
    nodes.collect()
}

fn listed(row: &Value) -> Option<Listed> {
    let [node, instance, length, outline] = row.list()? else {
        return None;
    };
    Some(Listed {
        node: node.number()?,
        instance: instance.text()?.to_owned(),
        length: usize::try_from(length.number()?).ok()?,
        outline: Record::from_bytes(bytes(outline)?).ok()?,
    })
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
