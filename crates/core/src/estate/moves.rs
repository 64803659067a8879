//! Shards that change hands on purpose: because one other node's clients keep asking for them, because another member needs
//! them, or because this node stops. Nothing is handed over while there is an orphan or a member whose link is silent: the
//! shard would stay shut until that is over.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{Broken, Estate, Out, Peer};
use crate::ownership::{Number, Shard, Span};
use crate::replicated::{Change, Replicated};

/// After this many grants in a row to one other node, a shard is handed over to it.
const RUN: u8 = 16;
/// The shortest stay of a shard after it arrives, in milliseconds. It doubles each time that the shard comes back.
const STAY_MS: u64 = 1_000;
/// Cap on that stay. A shard that was away for longer is treated as if it came for the first time.
const STAY_MS_MAX: u64 = 60_000;
/// Cap on shards per second that follow use.
const MOVES_PER_SECOND: u32 = 100;
/// The shortest stay, in milliseconds, of a shard that another member needs.
const WANTED_STAY_MS: u64 = 100;
/// After this many milliseconds, a hand-over without an outcome may be proposed again.
const AGAIN_MS: u64 = 2_000;
/// Stays are swept when there are more than this, and more than twice as many as the last sweep left.
const STAYS_KEPT: usize = 4_096;

/// Who uses which shard, and what moves.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// The other node that got the last grants of a shard, and how many.
    runs: FxHashMap<Shard, (Peer, u8)>,
    /// The shards whose run is long enough.
    due: Vec<(Shard, Peer)>,
    stays: FxHashMap<Shard, Stay>,
    /// With more stays than this they are swept again.
    swept: usize,
    /// Proposed hand-overs: the number that each rests on, and when it was proposed.
    proposed: FxHashMap<Shard, (Number, u64)>,
    /// The present second, and the moves in it.
    second: (u64, u32),
    /// When everything was last handed over.
    left: Option<u64>,
    /// Members whose links are silent.
    silent: BTreeSet<Peer>,
}

#[derive(Clone, Copy, Debug)]
struct Stay {
    since: u64,
    stay_ms: u64,
    /// When it was handed on.
    lost: Option<u64>,
}

impl Moves {
    /// A shard has arrived.
    fn came(&mut self, shard: Shard, now: u64) {
        self.runs.remove(&shard);
        self.sweep(now);
        let before = self.stays.get(&shard);
        let back = before.filter(|stay| stay.lost.is_some_and(|lost| now < lost + STAY_MS_MAX));
        let stay_ms = back.map_or(STAY_MS, |stay| (stay.stay_ms * 2).min(STAY_MS_MAX));
        let stay = Stay {
            since: now,
            stay_ms,
            lost: None,
        };
        self.stays.insert(shard, stay);
    }

    /// A shard was handed on.
    fn went(&mut self, shard: Shard, now: u64) {
        self.runs.remove(&shard);
        self.sweep(now);
        let stay = self.stays.entry(shard).or_insert(Stay {
            since: 0,
            stay_ms: STAY_MS,
            lost: None,
        });
        stay.lost = Some(now);
    }

    fn sweep(&mut self, now: u64) {
        if self.stays.len() > self.swept.max(STAYS_KEPT) {
            let over = |stay: &Stay| stay.lost.unwrap_or(stay.since) + STAY_MS_MAX <= now;
            self.stays.retain(|_, stay| !over(stay));
            // A clean stop moves a third of all shards at once: sweeping all stays for each would take minutes.
            self.swept = self.stays.len() * 2;
        }
    }

    /// Whether a shard has stayed long enough to move on.
    fn has_stayed(&self, shard: Shard, now: u64, least_ms: Option<u64>) -> bool {
        let stay = self.stays.get(&shard);
        stay.is_none_or(|stay| now >= stay.since + least_ms.unwrap_or(stay.stay_ms))
    }

    fn is_proposed(&self, shard: Shard, number: Number, now: u64) -> bool {
        let proposed = self.proposed.get(&shard);
        proposed.is_some_and(|(rests, at)| *rests == number && now < at + AGAIN_MS)
    }

    fn propose(&mut self, shard: Shard, number: Number, now: u64) {
        self.proposed
            .retain(|_, (_, proposed)| now < *proposed + AGAIN_MS);
        self.proposed.insert(shard, (number, now));
    }

    /// Counts a move, unless this second has had enough.
    fn counts(&mut self, now: u64) -> bool {
        if self.second.0 != now / 1_000 {
            self.second = (now / 1_000, 0);
        }
        self.second.1 += 1;
        self.second.1 <= MOVES_PER_SECOND
    }
}

impl Estate {
    /// A member's link falls silent, or speaks again. No hand-over begins while one is silent.
    pub fn link_silent(&mut self, peer: Peer, silent: bool) {
        match silent {
            true => self.moves.silent.insert(peer),
            false => self.moves.silent.remove(&peer),
        };
    }

    /// Hands shards of this node to a member, if nothing prevents it.
    pub fn hand_over(
        &self,
        replicated: &Replicated,
        shards: &[Shard],
        taker: Peer,
    ) -> Option<Change> {
        let ready =
            |shard: &&Shard| self.owns(replicated, **shard) && self.openings.is_open(**shard);
        let shards: BTreeSet<Shard> = shards.iter().filter(ready).copied().collect();
        if shards.is_empty()
            || !self.may_hand_over(replicated)
            || !self.members.contains(&taker)
            || taker == self.own
        {
            return None;
        }
        let spans = shards.into_iter().map(|shard| {
            let number = replicated.ownership().number(shard);
            Span::of(shard, number)
        });
        Some(titles(spans, taker))
    }

    /// Whether this node has proposed to hand a shard over. If so, what the log is told about the shard from now on may be
    /// refused.
    pub fn is_moving(&self, replicated: &Replicated, shard: Shard) -> bool {
        let number = replicated.ownership().number(shard);
        let left = self.moves.left;
        self.moves.is_proposed(shard, number, self.now)
            || left.is_some_and(|left| self.now < left + AGAIN_MS)
    }

    /// Whether no shard would stay shut after a hand-over.
    fn may_hand_over(&self, replicated: &Replicated) -> bool {
        let mut sessions = replicated.sessions();
        let mut members = self.members.iter();
        self.acts(self.now)
            && !members.any(|peer| self.moves.silent.contains(peer))
            && !sessions.any(|(_, record)| replicated.is_orphan(record))
    }

    /// Another member needs these shards. If they cannot move now, nothing happens; it asks again.
    pub fn wanted_shards(
        &mut self,
        now: u64,
        replicated: &Replicated,
        from: Peer,
        shards: &[Shard],
    ) -> Option<Change> {
        self.now = self.now.max(now);
        let number = |shard: Shard| replicated.ownership().number(shard);
        let now = self.now;
        let may = |shard: &&Shard| {
            self.moves.has_stayed(**shard, now, Some(WANTED_STAY_MS))
                && !self.moves.is_proposed(**shard, number(**shard), now)
        };
        let shards: Vec<Shard> = shards.iter().filter(may).copied().collect();
        let change = self.hand_over(replicated, &shards, from)?;
        for shard in shards {
            self.moves.propose(shard, number(shard), now);
        }
        Some(change)
    }

    /// A clean stop: everything that this node owns goes to the others, evenly. Call it until [`Estate::owns_nothing`]: what
    /// cannot move now, or was refused, is proposed again.
    pub fn hand_over_all(&mut self, now: u64, replicated: &Replicated) -> Vec<Change> {
        self.now = self.now.max(now);
        let lately = self.moves.left.is_some_and(|left| now < left + AGAIN_MS);
        let mut takers: Vec<(usize, Peer)> = self.members.iter().map(|peer| (0, *peer)).collect();
        takers.retain(|(_, peer)| *peer != self.own);
        if lately || takers.is_empty() || !self.may_hand_over(replicated) {
            return Vec::new();
        }
        let mut own: Vec<Span> = Vec::new();
        for (shards, title) in replicated.ownership().runs() {
            let owner = (title.owner, title.start);
            if owner == self.own {
                let open = shards
                    .map(Shard)
                    .filter(|shard| self.openings.is_open(*shard));
                own.extend(merged(open.map(|shard| Span::of(shard, title.number))));
            } else if let Some((load, _)) = takers.iter_mut().find(|(_, peer)| *peer == owner) {
                *load += shards.len();
            }
        }
        // The least loaded first; each gets what it lacks of an even share.
        takers.sort_unstable();
        let share = Shard::COUNT.div_ceil(takers.len());
        let mut changes = Vec::new();
        let mut rest = own.into_iter().peekable();
        for (load, peer) in takers {
            let mut lacks = share.saturating_sub(load);
            let mut spans = Vec::new();
            while lacks > 0
                && let Some(span) = rest.peek_mut()
            {
                let length = usize::from(span.last.0 - span.first.0) + 1;
                if length <= lacks {
                    spans.extend(rest.next());
                    lacks -= length;
                    continue;
                }
                let last = Shard(span.first.0 + lacks as u16 - 1);
                spans.push(Span { last, ..*span });
                span.first = Shard(last.0 + 1);
                lacks = 0;
            }
            if !spans.is_empty() {
                changes.push(titles(spans.into_iter(), peer));
            }
        }
        if !changes.is_empty() {
            self.moves.left = Some(self.now);
        }
        changes
    }

    /// Whether this node owns no shard any more.
    pub fn owns_nothing(&self, replicated: &Replicated) -> bool {
        let mut runs = replicated.ownership().runs();
        !runs.any(|(_, title)| (title.owner, title.start) == self.own)
    }

    /// A session of that home was granted something in a shard of this node.
    pub(super) fn used(&mut self, shard: Shard, home: Peer) {
        let Moves { runs, due, .. } = &mut self.moves;
        if home == self.own {
            if !runs.is_empty() {
                runs.remove(&shard);
            }
            return;
        }
        let run = runs.entry(shard).or_insert((home, 0));
        match run.0 == home {
            true => run.1 += 1,
            false => *run = (home, 1),
        }
        if run.1 >= RUN {
            run.1 = 0;
            due.push((shard, home));
        }
    }

    /// Shards that one other node keeps asking for move there, unless others wait or the shard has just arrived.
    pub(super) fn follow_use(&mut self, replicated: &Replicated, out: &mut Out) {
        for (shard, to) in std::mem::take(&mut self.moves.due) {
            let number = replicated.ownership().number(shard);
            let least_ms = self.breaks(Broken::NoStay).then_some(0);
            let now = self.now;
            if !self.moves.has_stayed(shard, now, least_ms)
                || self.moves.is_proposed(shard, number, now)
                || self.others_wait(replicated, shard, to)
            {
                continue;
            }
            let Some(change) = self.hand_over(replicated, &[shard], to) else {
                continue;
            };
            if !self.moves.counts(now) {
                continue;
            }
            self.moves.propose(shard, number, now);
            out.changes.push(change);
        }
    }

    /// Whether somebody of another home waits in a shard.
    fn others_wait(&self, replicated: &Replicated, shard: Shard, home: Peer) -> bool {
        let mut guests = self.guests.values();
        let mut takers = self.takers.iter();
        let of_queue = |ticket| {
            let queues = self.local.take_queues(ticket).unwrap_or_default();
            let mut shards = queues.iter().filter_map(|queue| replicated.queue(*queue));
            shards.any(|queue| queue.shard() == shard)
        };
        guests.any(|guest| guest.home != home && Shard::of(&guest.gate) == shard)
            || !self.table.asks_in(|other| other == shard).is_empty()
            || takers.any(|(ticket, of)| *of != home && of_queue(*ticket))
    }

    /// Notes the shards that a title has moved.
    pub(super) fn note_moves(&mut self, gained: &BTreeSet<Shard>, lost: &BTreeSet<Shard>) {
        for shard in lost {
            self.moves.went(*shard, self.now);
        }
        for shard in gained {
            self.moves.came(*shard, self.now);
        }
    }

    /// Only members have links.
    pub(super) fn forget_links(&mut self) {
        let members = &self.members;
        self.moves.silent.retain(|peer| members.contains(peer));
    }
}

fn titles(spans: impl Iterator<Item = Span>, (taker, start): Peer) -> Change {
    Change::Titles {
        shards: merged(spans),
        taker,
        start,
    }
}

/// Merges adjacent spans with one number.
fn merged(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if last.number == span.number && last.last.0 + 1 == span.first.0 => {
                last.last = span.last;
            }
            _ => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One sweep per shard would look at two billion stays.
    #[test]
    fn stays_of_all_shards_are_looked_through_a_few_times_only() {
        let mut moves = Moves::default();
        let (mut sweeps, mut swept) = (0, 0);
        for shard in (0..=u16::MAX).map(Shard) {
            moves.went(shard, 1);
            if moves.swept != swept {
                swept = moves.swept;
                sweeps += 1;
            }
        }
        assert!((1..=5).contains(&sweeps), "{sweeps} sweeps");
        // All of them are over, which one more sweep notices.
        for shard in (0..=u16::MAX).map(Shard) {
            moves.went(shard, STAY_MS_MAX + 2);
        }
        assert!(moves.stays.len() <= Shard::COUNT);
    }
}
