//! What must hold whatever happens. The monitor sees every node from outside, all at once, as nobody in the group can.

use std::collections::BTreeMap;

use testigo_engine::{Committed, Origin, Peer, Position, ReadIndex, Received};

/// What went wrong, in words.
pub(crate) type Violation = String;

/// What came out of the log first, wherever that was.
#[derive(Debug)]
struct Applied {
    position: Position,
    origin: Option<Origin>,
    data: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Monitor {
    /// Everything that anybody has applied, in order.
    history: Vec<Applied>,
    submitted: BTreeMap<Origin, Vec<u8>>,
    /// By node and start: the last sequence in the history.
    last: BTreeMap<(u64, u64), u64>,
    leaders: BTreeMap<u64, u64>,
    /// By node, start and ask: the index that was applied somewhere before the ask.
    asks: BTreeMap<(u64, u64, u64), u64>,
    pub(crate) reads: u64,
    /// By sender and receiver: how much was said over the link, and how much was heard.
    said: BTreeMap<(Peer, Peer), u64>,
    heard: BTreeMap<(Peer, Peer), u64>,
}

impl Monitor {
    pub(crate) fn submitted(&mut self, origin: Origin, data: &[u8]) {
        self.submitted.insert(origin, data.to_vec());
    }

    /// How much there is to apply.
    pub(crate) fn len(&self) -> usize {
        self.history.len()
    }

    /// A node applies this after so many others.
    pub(crate) fn applied(
        &mut self,
        node: u64,
        before: usize,
        entry: &Committed,
    ) -> Result<(), Violation> {
        if let Some(known) = self.history.get(before) {
            let same = known.position == entry.position
                && known.origin == entry.origin
                && known.data == entry.data;
            return match same {
                true => Ok(()),
                false => Err(format!(
                    "node {node} applies {:?} of {:?} where {:?} of {:?} was applied: prefixes differ",
                    entry.position, entry.origin, known.position, known.origin
                )),
            };
        }
        let origin = entry.origin.ok_or("an entry has no origin")?;
        if self.submitted.get(&origin).map(Vec::as_slice) != Some(&entry.data[..]) {
            return Err(format!("{origin} is not what was submitted"));
        }
        let last = self.last.entry((origin.node, origin.start)).or_default();
        if origin.sequence != *last + 1 {
            return Err(format!(
                "{origin} is applied after {last}: not once and in order"
            ));
        }
        *last = origin.sequence;
        if self
            .history
            .last()
            .is_some_and(|last| last.position >= entry.position)
        {
            return Err(format!("{:?} comes too late", entry.position));
        }
        self.history.push(Applied {
            position: entry.position,
            origin: entry.origin,
            data: entry.data.to_vec(),
        });
        Ok(())
    }

    /// A node has loaded the state after so many entries, up to and with this index.
    pub(crate) fn restored(&self, node: u64, count: usize, index: u64) -> Result<(), Violation> {
        let at = |nth: usize| self.history.get(nth).map(|entry| entry.position.index);
        let whole = count <= self.history.len()
            && at(count).is_none_or(|next| next > index)
            && (count == 0 || at(count - 1).is_some_and(|last| last <= index));
        match whole {
            true => Ok(()),
            false => Err(format!(
                "node {node} restored {count} entries for index {index}"
            )),
        }
    }

    pub(crate) fn leads(&mut self, node: u64, term: u64) -> Result<(), Violation> {
        let leader = *self.leaders.entry(term).or_insert(node);
        match leader == node {
            true => Ok(()),
            false => Err(format!(
                "nodes {leader} and {node} both lead in term {term}"
            )),
        }
    }

    pub(crate) fn asked(&mut self, node: u64, start: u64, ask: u64) {
        let known = self.history.last().map_or(0, |entry| entry.position.index);
        self.asks.insert((node, start, ask), known);
    }

    pub(crate) fn answered(
        &mut self,
        node: u64,
        start: u64,
        read: ReadIndex,
    ) -> Result<(), Violation> {
        let answered = (node, start, 0)..=(node, start, read.ask);
        let answered: Vec<_> = self.asks.range(answered).map(|(ask, _)| *ask).collect();
        for ask in answered {
            let known = self.asks.remove(&ask).unwrap_or_default();
            self.reads += 1;
            if read.index < known {
                return Err(format!(
                    "node {node} may read at {}, and {known} was applied before it asked",
                    read.index
                ));
            }
        }
        Ok(())
    }

    /// The payload that one start sends to another next.
    pub(crate) fn says(&self, from: Peer, to: Peer) -> [u8; 8] {
        let said = self.said.get(&(from, to)).copied().unwrap_or_default();
        (said + 1).to_le_bytes()
    }

    pub(crate) fn said(&mut self, from: Peer, to: Peer) {
        *self.said.entry((from, to)).or_default() += 1;
    }

    pub(crate) fn heard(&mut self, to: Peer, received: &Received) -> Result<(), Violation> {
        let heard = self.heard.entry((received.from, to)).or_default();
        *heard += 1;
        match received.payload[..] == heard.to_le_bytes() {
            true => Ok(()),
            false => Err(format!(
                "{to:?} hears {:?} of {:?} as number {heard}",
                received.payload, received.from
            )),
        }
    }

    /// Whether everything that was said over a link was heard.
    pub(crate) fn all_heard(&self, from: Peer, to: Peer) -> bool {
        self.said.get(&(from, to)) == self.heard.get(&(from, to))
    }

    /// Asks that nobody has answered, of starts that still run.
    pub(crate) fn unanswered(&self, node: u64, start: u64) -> usize {
        self.asks
            .range((node, start, 0)..=(node, start, u64::MAX))
            .count()
    }
}
