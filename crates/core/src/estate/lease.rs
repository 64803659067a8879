//! The node lease: when a node must stop. It is the log's read index and nothing else. A leader with a majority told the node
//! how far the log had come; once the node has applied that much, it knows every view up to then. If it is still a member, no
//! view without it can be proposed until a whole lease after the leader's answer. So it may act for nine tenths of a lease,
//! counted from when it *sent* the ask.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ownership::{Index, NodeId, Start};

/// A node's own lease.
#[derive(Clone, Debug)]
pub struct Lease {
    lease_ms: u64,
    /// The last ask, and when it was sent.
    asked: (u64, u64),
    /// Unanswered asks, and when each was sent.
    unanswered: VecDeque<(u64, u64)>,
    /// Answers that wait until the log is applied as far as they say.
    answered: VecDeque<Answered>,
    /// Until when the node may act.
    until: u64,
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    index: Index,
    sent: u64,
}

impl Lease {
    /// How many times per lease it is asked for.
    const ASKS: u64 = 3;
    /// How many asks are remembered: all those whose answer can still be of use.
    const REMEMBERED: usize = 4;

    /// No lease yet.
    pub fn new(lease_ms: u64) -> Lease {
        Lease {
            lease_ms,
            asked: (0, 0),
            unanswered: VecDeque::new(),
            answered: VecDeque::new(),
            until: 0,
        }
    }

    /// Whether the node may act now. Call this before giving anything out.
    pub fn holds(&self, now: u64) -> bool {
        now < self.until
    }

    /// When the lease is over.
    pub fn until(&self) -> u64 {
        self.until
    }

    /// The number of an ask, if it is time for one: three per lease.
    pub fn due(&mut self, now: u64) -> Option<u64> {
        let (ask, sent) = self.asked;
        if ask > 0 && now < sent + self.lease_ms / Lease::ASKS {
            return None;
        }
        self.asked = (ask + 1, now);
        self.unanswered.push_back(self.asked);
        if self.unanswered.len() > Lease::REMEMBERED {
            self.unanswered.pop_front();
        }
        Some(ask + 1)
    }

    /// Makes the next ask due now, because it may be answered differently from the last.
    pub fn ask_now(&mut self) {
        self.asked.1 = 0;
    }

    /// When the next ask is due.
    pub fn next_due(&self) -> u64 {
        match self.asked {
            (0, _) => 0,
            (_, sent) => sent + self.lease_ms / Lease::ASKS,
        }
    }

    /// Records an answer and how far the log had come. The lease counts from when that very ask was sent.
    pub fn answer(&mut self, ask: u64, index: Index) {
        while let Some(&(asked, sent)) = self.unanswered.front()
            && asked <= ask
        {
            self.unanswered.pop_front();
            if asked == ask {
                self.answered.push_back(Answered { index, sent });
            }
        }
        if self.answered.len() > Lease::REMEMBERED {
            self.answered.pop_front();
        }
    }

    /// The log has been applied up to `index`; `member` says whether the node's present start is a member.
    pub fn applied(&mut self, index: Index, member: bool) {
        if !member {
            return self.end();
        }
        while let Some(answered) = self.answered.front()
            && answered.index <= index
        {
            self.until = self.until.max(answered.sent + self.lease_ms * 9 / 10);
            self.answered.pop_front();
        }
    }

    /// Ends the lease. Answers to earlier asks no longer count either.
    pub fn end(&mut self) {
        self.unanswered.clear();
        self.answered.clear();
        self.until = 0;
    }
}

/// The leader's side: whose lease is certainly over.
#[derive(Clone, Debug)]
pub struct Landlord {
    lease_ms: u64,
    /// When it was elected. Nobody believes its predecessor's answers for more than a lease from then.
    since: u64,
    answered: BTreeMap<(NodeId, Start), u64>,
    /// Starts that gave their lease back.
    given_back: BTreeSet<(NodeId, Start)>,
}

impl Landlord {
    /// A landlord elected now.
    pub fn new(lease_ms: u64, now: u64) -> Landlord {
        Landlord {
            lease_ms,
            since: now,
            answered: BTreeMap::new(),
            given_back: BTreeSet::new(),
        }
    }

    /// A start was answered, which renews its lease.
    pub fn answered(&mut self, now: u64, start: (NodeId, Start)) {
        self.answered.insert(start, now);
    }

    /// A start has stopped cleanly, and no longer relies on any answer.
    pub fn gave_back(&mut self, start: (NodeId, Start)) {
        self.given_back.insert(start);
    }

    /// Whether a start gave its lease back.
    pub fn has_back(&self, start: (NodeId, Start)) -> bool {
        self.given_back.contains(&start)
    }

    /// Whether a start's lease is certainly over.
    pub fn is_over(&self, now: u64, start: (NodeId, Start)) -> bool {
        let answered = self.answered.get(&start).copied();
        self.has_back(start) || now >= answered.unwrap_or(0).max(self.since) + self.lease_ms
    }

    /// Forgets all other starts.
    pub fn keep(&mut self, starts: impl Fn((NodeId, Start)) -> bool) {
        self.answered.retain(|start, _| starts(*start));
        self.given_back.retain(|start| starts(*start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: NodeId = NodeId(2);
    const S: Start = Start(1);

    #[test]
    fn a_lease_counts_from_the_ask_and_needs_the_log() {
        let mut lease = Lease::new(3_000);
        let ask = lease.due(1_000).unwrap();
        assert_eq!(lease.due(1_999), None);
        lease.answer(ask, Index(7));
        lease.applied(Index(6), true);
        assert!(!lease.holds(1_001), "the view may have changed in entry 7");
        lease.applied(Index(7), true);
        assert!(lease.holds(3_699) && !lease.holds(3_700));
        // A late answer to an earlier ask counts from when that ask was sent.
        let late = lease.due(2_000).unwrap();
        let next = lease.due(3_000).unwrap();
        lease.answer(late, Index(8));
        lease.applied(Index(8), true);
        assert_eq!(lease.until(), 4_700);
        lease.answer(late, Index(8));
        lease.applied(Index(8), true);
        assert_eq!(lease.until(), 4_700, "an answer counts once");
        lease.answer(next, Index(8));
        lease.applied(Index(8), false);
        assert!(!lease.holds(0));
        lease.answer(next, Index(8));
        lease.applied(Index(9), true);
        assert!(!lease.holds(0), "asked before it was left out");
    }

    #[test]
    fn a_lease_is_over_when_nobody_can_believe_in_it() {
        let mut landlord = Landlord::new(3_000, 10_000);
        assert!(
            !landlord.is_over(12_999, (N, S)),
            "the leader before may have answered"
        );
        assert!(landlord.is_over(13_000, (N, S)));
        landlord.answered(12_000, (N, S));
        assert!(!landlord.is_over(14_999, (N, S)) && landlord.is_over(15_000, (N, S)));
        landlord.answered(20_000, (N, S));
        landlord.gave_back((N, S));
        assert!(landlord.is_over(20_000, (N, S)));
        assert!(!landlord.is_over(12_000, (N, Start(2))), "another start");
    }
}
