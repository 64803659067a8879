//! Shards that this node has got but not opened yet, because it does not know everybody inside. It grants nothing there; it
//! accepts releases and claims, and asks wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::elections::rank_of;
use super::resume::{Doubt, Owed};
use super::{Ask, Estate, Held, Out, Peer};
use crate::estate::Broken;
use crate::name::Name;
use crate::ownership::{Index, Shard};
use crate::replicated::Replicated;
use crate::session::SessionId;

/// All shards that are not open.
#[derive(Debug, Default)]
pub(super) struct Openings {
    groups: Vec<Opening>,
}

/// The shards that one entry of the log gave to this node.
#[derive(Debug)]
pub(super) struct Opening {
    /// The entry.
    pub(super) entry: Index,
    pub(super) shards: BTreeSet<Shard>,
    /// The starts that have not reported.
    pub(super) missing: BTreeSet<Peer>,
    /// The sessions without a home that may hold something.
    pub(super) orphans: BTreeSet<SessionId>,
    /// The sessions that have left a home that has not reported yet, and what they claim. Their claims count if that home
    /// leaves before it reports.
    pub(super) moved: BTreeMap<SessionId, (Peer, Option<Vec<Held>>)>,
    /// Gates at which more is claimed and reported than permits or a capacity allow.
    pub(super) undecided: BTreeSet<Name>,
    /// Asks that came meanwhile, and when.
    pub(super) asks: Vec<(u64, Peer, Ask)>,
}

impl Openings {
    pub(super) fn is_open(&self, shard: Shard) -> bool {
        !self
            .groups
            .iter()
            .any(|group| group.shards.contains(&shard))
    }

    /// Whether everybody who could report on a shard has done so. Only orphans may still claim something there.
    pub(super) fn all_reported(&self, shard: Shard) -> bool {
        let mut groups = self.groups.iter();
        groups.all(|group| group.missing.is_empty() || !group.shards.contains(&shard))
    }

    /// Whether a new home must wait for its answer. Something that the session has may come to light until all members have
    /// reported. After that only orphans may claim something. They take nothing from a proven claim, because whoever was granted
    /// later than an honest holder did not conflict with it; but they may show that a claim without proof is wrong, and where
    /// there are permits or a capacity, a claim too many does not show which one is.
    pub(super) fn hold_up(&self, owed: &Owed, early: bool) -> bool {
        let mut shut = self
            .groups
            .iter()
            .filter(|group| owed.behind.contains(&group.entry));
        shut.any(|group| {
            let open_to_doubt = |claim: &Doubt| {
                group.shards.contains(&Shard::of(&claim.gate))
                    && (!claim.proven || group.undecided.contains(&claim.gate))
            };
            let unreported = !group.missing.is_empty() || group.moved.contains_key(&owed.session);
            (unreported && !early) || owed.claims.iter().any(open_to_doubt)
        })
    }

    pub(super) fn add(&mut self, opening: Opening) {
        self.groups.push(opening);
    }

    pub(super) fn of_shard(&mut self, shard: Shard) -> Option<&mut Opening> {
        let mut groups = self.groups.iter_mut();
        groups.find(|group| group.shards.contains(&shard))
    }

    pub(super) fn of_entry(&mut self, entry: Index) -> Option<&mut Opening> {
        self.groups.iter_mut().find(|group| group.entry == entry)
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Opening> {
        self.groups.iter_mut()
    }

    /// The asks that wait for a gate's shard to open, and since when; and the orphans for whom it waits.
    pub(super) fn parked(&self, gate: &str) -> (Vec<(u64, &Ask)>, Option<&BTreeSet<SessionId>>) {
        let shard = Shard::of(gate);
        let mut groups = self.groups.iter();
        let Some(group) = groups.find(|group| group.shards.contains(&shard)) else {
            return (Vec::new(), None);
        };
        let asks = group.asks.iter().filter(|(_, _, ask)| *ask.gate == *gate);
        let mut asks: Vec<(u64, &Ask)> = asks.map(|(since, _, ask)| (*since, ask)).collect();
        asks.sort_by_key(|(since, ask)| (Reverse(rank_of(ask)), *since));
        (asks, Some(&group.orphans))
    }

    /// Who has not reported, by entry, and the orphans.
    pub(super) fn waits(&self) -> Vec<(Index, usize, &BTreeSet<Peer>, &BTreeSet<SessionId>)> {
        let groups = self.groups.iter();
        groups
            .map(|group| {
                (
                    group.entry,
                    group.shards.len(),
                    &group.missing,
                    &group.orphans,
                )
            })
            .collect()
    }

    pub(super) fn entries(&self) -> BTreeSet<Index> {
        self.groups.iter().map(|group| group.entry).collect()
    }

    /// Another node owns these shards now; those who asked here ask there.
    pub(super) fn give_away(&mut self, gone: impl Fn(Shard) -> bool) {
        for group in &mut self.groups {
            group.shards.retain(|shard| !gone(*shard));
            group.asks.retain(|(_, _, ask)| !gone(Shard::of(&ask.gate)));
        }
        self.groups.retain(|group| !group.shards.is_empty());
    }

    /// A session has left a home.
    pub(super) fn moved(&mut self, session: SessionId, from: Peer) {
        for group in &mut self.groups {
            if group.missing.contains(&from) && !group.orphans.contains(&session) {
                group.moved.entry(session).or_insert((from, None));
            }
        }
    }

    /// A start has left and will not report. Only the sessions of that home, and those that have left it since, can say what
    /// they hold in shards on which it has not reported. Returns what they have said.
    pub(super) fn left(&mut self, peer: Peer, sessions: &[SessionId]) -> Vec<Held> {
        let mut claims = Vec::new();
        for group in &mut self.groups {
            group.asks.retain(|(_, home, _)| *home != peer);
            if !group.missing.remove(&peer) {
                continue;
            }
            group.orphans.extend(sessions);
            let moved = std::mem::take(&mut group.moved).into_iter();
            let (unreported, moved) = moved.partition(|(_, (from, _))| *from == peer);
            group.moved = moved;
            let unreported: BTreeMap<SessionId, (Peer, Option<Vec<Held>>)> = unreported;
            for (session, (_, claimed)) in unreported {
                match claimed {
                    Some(claimed) => claims.extend(claimed),
                    None => {
                        group.orphans.insert(session);
                    }
                }
            }
        }
        claims
    }

    /// A session is over.
    pub(super) fn ended(&mut self, session: SessionId) {
        for group in &mut self.groups {
            group.orphans.remove(&session);
            group.moved.remove(&session);
            group.asks.retain(|(_, _, ask)| ask.session != session);
        }
    }

    fn take_ready(&mut self, ready: impl Fn(&Opening) -> bool) -> Vec<Opening> {
        let (open, shut) = std::mem::take(&mut self.groups)
            .into_iter()
            .partition(ready);
        self.groups = shut;
        open
    }
}

impl Estate {
    /// Opens the shards on which everybody has reported. Asks that came meanwhile line up by age, candidates first by rank.
    pub(super) fn open_ready(&mut self, replicated: &Replicated, out: &mut Out) -> bool {
        let (at_once, childless) = (
            self.breaks(Broken::OpenAtOnce),
            self.breaks(Broken::OpenWithoutOrphans),
        );
        let opened = self.openings.take_ready(|group| {
            (group.missing.is_empty() || at_once) && (group.orphans.is_empty() || childless)
        });
        let any = !opened.is_empty();
        for group in opened {
            let shards = group.shards;
            self.begin_instances(replicated, |shard| shards.contains(&shard), out);
            let mut asks = group.asks;
            asks.sort_by_cached_key(|(since, home, ask)| {
                (Reverse(rank_of(ask)), *since, *home, ask.ask)
            });
            for (since, home, ask) in asks {
                self.carry_out(replicated, since, home, ask, out);
            }
        }
        any
    }
}
