//! What must hold whatever happens. The monitor sees every node from outside, all at once, as nobody in the group can.

use std::collections::{BTreeMap, BTreeSet};

use testigo_engine::{Applied as Handed, Origin, Peer, Position, Received};

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
    /// By start: tags and data of what was submitted and not refused, in order.
    submitted: BTreeMap<Peer, Vec<(u64, Vec<u8>)>>,
    /// How many submissions were refused for lack of room.
    pub(crate) without_room: u64,
    /// Of these nobody hears more: by start and tag.
    stuck: BTreeSet<(Peer, u64)>,
    /// By node and start: the last sequence in the history.
    last: BTreeMap<(u64, u64), u64>,
    leaders: BTreeMap<u64, u64>,
    /// By start and tag: the index that was applied somewhere before the ask, and the refusal of this start that counted then.
    asks: BTreeMap<(Peer, u64), (u64, Option<Refusal>)>,
    /// Starts that a leader answers no more.
    refused: BTreeMap<Peer, Refusal>,
    /// The tag that a start was last to be refused with, if it was not allowed since.
    refusing: BTreeMap<Peer, u64>,
    tags: u64,
    pub(crate) refusals: u64,
    pub(crate) reads: u64,
    /// By sender and receiver: how much was said over the link, and how much was heard.
    said: BTreeMap<(Peer, Peer), u64>,
    heard: BTreeMap<(Peer, Peer), u64>,
}

/// A leader answers a start no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Refusal {
    term: u64,
    /// What it was told to refuse with. A start that is allowed meanwhile, and refused once more, has another refusal: what it
    /// asked during the first one may be answered in between.
    tag: u64,
}

impl Monitor {
    pub(crate) fn submitted(&mut self, own: Peer, tag: u64, data: &[u8]) {
        let submitted = self.submitted.entry(own).or_default();
        submitted.push((tag, data.to_vec()));
    }

    /// It has no number, and the next has the one that it would have had.
    pub(crate) fn not_taken(&mut self, own: Peer, refused: u64) {
        let submitted = self.submitted.entry(own).or_default();
        submitted.retain(|(tag, _)| *tag != refused);
    }

    /// Whoever submitted these was told that they wait for room.
    pub(crate) fn stuck(&mut self, own: Peer, tags: Vec<u64>) {
        self.stuck.extend(tags.into_iter().map(|tag| (own, tag)));
    }

    /// Start and tag of whatever was submitted, and not applied, refused, or said to wait.
    pub(crate) fn waiting(&self) -> BTreeSet<(Peer, u64)> {
        let all = self.submitted.iter().flat_map(|(own, submitted)| {
            let (_, applied) = self.progress(*own);
            let rest = submitted.iter().skip(applied as usize);
            rest.map(|(tag, _)| (*own, *tag))
        });
        all.filter(|waits| !self.stuck.contains(waits)).collect()
    }

    /// Of a start, how much was submitted, and how much of it is applied somewhere.
    pub(crate) fn progress(&self, own: Peer) -> (u64, u64) {
        let submitted = self.submitted.get(&own).map_or(0, Vec::len) as u64;
        let last = self.last.get(&(own.node, own.start)).copied();
        (submitted, last.unwrap_or_default())
    }

    /// How much there is to apply.
    pub(crate) fn len(&self) -> usize {
        self.history.len()
    }

    /// A node applies this after so many others.
    pub(crate) fn applied(
        &mut self,
        own: Peer,
        before: usize,
        handed: &Handed,
    ) -> Result<(), Violation> {
        let (entry, node) = (&handed.entry, own.node);
        let origin = entry.origin.ok_or("an entry has no origin")?;
        let peer = Peer {
            node: origin.node,
            start: origin.start,
        };
        let submitted = self.submitted.get(&peer).map_or(&[][..], Vec::as_slice);
        let nth = origin.sequence as usize - 1;
        let Some((tag, data)) = submitted.get(nth).filter(|(_, data)| data == &entry.data) else {
            return Err(format!("{origin} is not what was submitted"));
        };
        let hears = peer == own && !self.stuck.contains(&(own, *tag));
        if handed.tag != hears.then_some(*tag) {
            return Err(format!("{origin} comes with tag {:?}", handed.tag));
        }
        debug_assert_eq!(data, &entry.data);
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

    /// A leader answers this start no more.
    pub(crate) fn refused(&mut self, peer: Peer, tag: u64, term: u64) {
        if self.refusing.get(&peer) == Some(&tag) {
            self.refusals += 1;
            self.refused.insert(peer, Refusal { term, tag });
        }
    }

    /// Leaders are told to refuse a start, with this tag, or to allow it.
    pub(crate) fn refuses(&mut self, peer: Peer, refuse: bool) -> u64 {
        self.refused.remove(&peer);
        self.refusing.remove(&peer);
        self.tags += 1;
        if refuse {
            self.refusing.insert(peer, self.tags);
        }
        self.tags
    }

    pub(crate) fn asked(&mut self, own: Peer, tag: u64) {
        let known = self.history.last().map_or(0, |entry| entry.position.index);
        let refused = self.refused.get(&own).copied();
        self.asks.insert((own, tag), (known, refused));
    }

    pub(crate) fn answered(&mut self, own: Peer, tag: u64, index: u64) -> Result<(), Violation> {
        let answered = self.asks.range((own, 0)..=(own, tag));
        let answered: Vec<_> = answered.map(|(ask, _)| *ask).collect();
        let latest_term = self.leaders.last_key_value().map(|(term, _)| *term);
        for ask in answered {
            let (known, refused) = self.asks.remove(&ask).unwrap_or_default();
            self.reads += 1;
            if index < known {
                return Err(format!(
                    "{own:?} may read at {index}, and {known} was applied before it asked"
                ));
            }
            // Only that leader can have answered.
            let by_that_leader = refused.is_some_and(|refusal| Some(refusal.term) == latest_term);
            if by_that_leader && self.refused.get(&own) == refused.as_ref() {
                return Err(format!(
                    "{own:?} is answered by the leader that had refused it"
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
    pub(crate) fn unanswered(&self, own: Peer) -> usize {
        self.asks.range((own, 0)..=(own, u64::MAX)).count()
    }
}
