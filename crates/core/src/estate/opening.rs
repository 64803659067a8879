//! Shards that this node has got and that are not open yet: it does not know of everybody inside. Nothing is granted there;
//! releases and claims are taken, and asks wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::elections::rank_of;
use super::resume::Owed;
use super::{Ask, Estate, Held, Out, Peer};
use crate::estate::Broken;
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
    /// The sessions that have left a home which has not reported yet, and what they claim. Their claims count if that home
    /// leaves before it reports.
    pub(super) moved: BTreeMap<SessionId, (Peer, Option<Vec<Held>>)>,
    /// What was asked for meanwhile, and since when.
    pub(super) asks: Vec<(u64, Peer, Ask)>,
}

impl Openings {
    pub(super) fn is_open(&self, shard: Shard) -> bool {
        !self
            .groups
            .iter()
            .any(|group| group.shards.contains(&shard))
    }

    /// Whether nobody is left who might report of a shard. Only orphans may still claim something there.
    pub(super) fn all_reported(&self, shard: Shard) -> bool {
        let mut groups = self.groups.iter();
        groups.all(|group| group.missing.is_empty() || !group.shards.contains(&shard))
    }

    /// Whether something that a session has may come out yet. Where only orphans are left who may claim, what it does not claim
    /// itself nobody else will tell of it: it need not wait for them.
    pub(super) fn hold_up(&self, owed: &Owed) -> bool {
        let mut shut = self
            .groups
            .iter()
            .filter(|group| owed.behind.contains(&group.entry));
        shut.any(|group| {
            !group.missing.is_empty()
                || group.moved.contains_key(&owed.session)
                || !group.shards.is_disjoint(&owed.claimed)
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

    /// Another node owns these shards now; whoever asked for something there asks there.
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

    /// A start is out: it will not report. What `sessions` of that home, and those that have left it since, hold in shards
    /// that it has not reported of, only they can say. Gives what they have said.
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
    /// Opens what everybody has reported to. Those who asked meanwhile line up by age; candidates first by rank.
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
            for (_, home, ask) in asks {
                self.carry_out(replicated, home, ask, out);
            }
        }
        any
    }
}
