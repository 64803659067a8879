//! What still waits after a node was lost: shards that their new owner has not opened yet, whom it waits for, and for how long.

use std::collections::BTreeMap;

use testigo_core::estate::{Estate, Peer, Shut};
use testigo_core::{Index, Replicated, SessionId, SessionRecord};

use crate::wire::Reply;

/// How many waits a node shows, how many sessions of each, and among how many it chooses them.
const WAITS_SHOWN: usize = 100;
const SESSIONS_SHOWN: usize = 100;
const SESSIONS_SEEN: usize = 1_000;

/// When things happened that others wait for, on the house's clock. The log has no times.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// When this start began: it saw nothing that was before.
    began: u64,
    /// Since when the present leader has been known: it counts the silence of orphans from there.
    led: Option<u64>,
    /// The entries that gave shards which are shut, and when they were applied.
    shut: BTreeMap<Index, u64>,
    /// The members of the last view, and when starts left that sessions without a home lived at.
    members: Vec<Peer>,
    left: BTreeMap<Peer, u64>,
}

/// Shards that are shut.
#[derive(Debug)]
pub(crate) struct Wait {
    /// Their owner.
    node: u64,
    /// The change that made it their owner.
    change: u64,
    pub(crate) shards: usize,
    /// For how long they have been shut.
    pub(crate) waits_ms: u64,
    /// The members that have not reported what their sessions hold there.
    pub(crate) members: Vec<u64>,
    /// How many sessions without a home may hold something there, and those that may be awaited longest.
    pub(crate) orphans: usize,
    sessions: Vec<Orphan>,
    /// When the last of the sessions ends, if nothing is heard of it.
    pub(crate) left_ms: Option<u64>,
}

/// A session whose home is lost.
#[derive(Debug)]
struct Orphan {
    session: u64,
    label: Option<String>,
    user: Option<String>,
    /// Its former home.
    home: u64,
    ttl_ms: u64,
    left_ms: u64,
}

impl Times {
    pub(crate) fn from(began: u64) -> Times {
        Times {
            began,
            ..Times::default()
        }
    }

    /// Another node leads, or nobody does.
    pub(crate) fn led(&mut self, now: u64, leader: Option<u64>) {
        self.led = leader.map(|_| now);
    }

    /// The log has been applied further: other members are in, or other shards are shut.
    pub(crate) fn follow(&mut self, now: u64, replicated: &Replicated, estate: &Estate) {
        let shut: BTreeMap<Index, u64> = estate
            .waits()
            .map(|shut| {
                let since = self.shut.get(&shut.entry);
                (shut.entry, since.copied().unwrap_or(now))
            })
            .collect();
        self.shut = shut;
        let view = replicated.view().members.iter();
        let members: Vec<Peer> = view.map(|member| (member.node, member.start)).collect();
        if members == self.members {
            return;
        }
        let before = std::mem::replace(&mut self.members, members);
        let gone = before.iter().filter(|peer| !self.members.contains(peer));
        self.left.extend(gone.map(|peer| (*peer, now)));
        let orphans = replicated.sessions();
        let orphans = orphans.filter(|(_, record)| replicated.is_orphan(record));
        let mut homes: Vec<Peer> = orphans
            .map(|(_, record)| (record.home.node, record.home.start))
            .collect();
        homes.sort_unstable();
        homes.dedup();
        self.left
            .retain(|peer, _| homes.binary_search(peer).is_ok());
    }

    /// What waits at this node, the longest first.
    pub(crate) fn waits(&self, now: u64, replicated: &Replicated, estate: &Estate) -> Vec<Wait> {
        let waits = estate.waits().take(WAITS_SHOWN);
        let mut waits: Vec<Wait> = waits
            .map(|shut| self.wait(now, replicated, estate, shut))
            .collect();
        waits.sort_by_key(|wait| wait.change);
        waits
    }

    fn wait(&self, now: u64, replicated: &Replicated, estate: &Estate, shut: Shut<'_>) -> Wait {
        let since = self.shut.get(&shut.entry).copied().unwrap_or(now);
        let records = shut.orphans.iter().take(SESSIONS_SEEN);
        let records = records.filter_map(|session| Some((*session, replicated.session(*session)?)));
        let orphan = |(session, record): (SessionId, &SessionRecord)| {
            let home = (record.home.node, record.home.start);
            let left = self.left.get(&home).copied().unwrap_or(self.began);
            // Without a leader nobody counts, and the next one begins anew.
            let silent = self.led.map_or(0, |led| now.saturating_sub(left.max(led)));
            Orphan {
                session: session.number(),
                label: record.label.clone(),
                user: record.user.clone(),
                home: home.0.0,
                ttl_ms: record.ttl_ms,
                left_ms: record.ttl_ms.saturating_sub(silent),
            }
        };
        let mut sessions: Vec<Orphan> = records.map(orphan).collect();
        sessions.sort_by_key(|orphan| std::cmp::Reverse(orphan.left_ms));
        let left_ms = sessions.first().map(|orphan| orphan.left_ms);
        sessions.truncate(SESSIONS_SHOWN);
        Wait {
            node: estate.node().0,
            change: shut.entry.0,
            shards: shut.shards,
            waits_ms: now.saturating_sub(since),
            members: shut.missing.iter().map(|(node, _)| node.0).collect(),
            orphans: shut.orphans.len(),
            sessions,
            left_ms,
        }
    }
}

impl Wait {
    pub(crate) fn reply(&self) -> Reply {
        let members = self.members.iter().map(|node| Reply::number(*node));
        let sessions = self.sessions.iter().map(Orphan::reply);
        Reply::Map(vec![
            ("node", Reply::number(self.node)),
            ("change", Reply::number(self.change)),
            ("shards", Reply::number(self.shards as u64)),
            ("waits_ms", Reply::number(self.waits_ms)),
            ("members", Reply::Array(members.collect())),
            ("orphans", Reply::number(self.orphans as u64)),
            ("left_ms", Reply::optional(self.left_ms, Reply::number)),
            ("sessions", Reply::Array(sessions.collect())),
        ])
    }
}

impl Orphan {
    fn reply(&self) -> Reply {
        let text = |value: &Option<String>| Reply::optional(value.clone(), Reply::text);
        Reply::Map(vec![
            ("session", Reply::number(self.session)),
            ("label", text(&self.label)),
            ("user", text(&self.user)),
            ("home", Reply::number(self.home)),
            ("ttl_ms", Reply::number(self.ttl_ms)),
            ("left_ms", Reply::number(self.left_ms)),
        ])
    }
}
