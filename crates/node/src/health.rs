//! Whether the node is ready: able to commit changes and to grant locks. Whatever prevents it is named.

use std::path::Path;

use serde::Serialize;
use testigo_engine::{DISK_RESERVE_BYTES, free_bytes};

use crate::house::{House, RETURNS};

/// What may keep the node from its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// Earlier sessions that have neither resumed nor expired: what they may hold is not granted until they have.
    pub(crate) awaited: usize,
    /// Whether they may hold anything, so that no gate grants.
    pub(crate) everything_waits: bool,
    /// Why nothing is written any more.
    pub(crate) failed: Option<String>,
    /// The free space on the disk, if the system says.
    pub(crate) free_bytes: Option<u64>,
    pub(crate) stopping: bool,
    /// There is no house yet.
    pub(crate) starting: bool,
    /// Why the node does not act in its cluster.
    pub(crate) absence: Option<Absence>,
}

/// Why a member of a cluster does not act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It was removed for good.
    Removed,
    /// This start has not been let in yet; what it waits for.
    Joining(String),
    /// It was in, and its lease is over; who led last.
    CutOff { last_leader: Option<u64> },
}

/// Something that keeps the node from its work: a word for programs, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reason {
    pub(crate) word: &'static str,
    pub(crate) sentence: String,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.word, self.sentence)
    }
}

impl Absence {
    /// Why a house does not act in its cluster; `None` if it does, or is alone.
    pub(crate) fn of(house: &House) -> Option<Absence> {
        let (member, estate) = (house.member()?, house.services.estate()?);
        if house.is_stopping() {
            return member.was_removed().then_some(Absence::Removed);
        }
        let own = estate.node();
        let standing = member.standing();
        let (votes, is_in) = (standing.members.voters.contains(&own.0), estate.is_in());
        if votes && is_in && house.acts() {
            return None;
        }
        if estate.lease_until() > 0 {
            let last_leader = standing.leader.or(member.last_leader());
            return Some(Absence::CutOff { last_leader });
        }
        Some(Absence::Joining(match standing.leader {
            _ if votes && is_in => "this node is in the view, and waits for its lease".into(),
            _ if standing.behind => "this directory is an older copy of this node's and has lost what the node acknowledged; \
                 remove the node, and let it join again with an empty directory"
                .into(),
            None => "nobody leads; a majority of the voters must be there".into(),
            Some(leader) if votes => {
                format!("node {leader} leads, and will let this start in; {RETURNS}")
            }
            Some(leader) if standing.members.learners.contains(&own.0) => {
                format!("node {leader} leads; this node learns before it votes")
            }
            Some(leader) => format!("node {leader} leads, and has not let this node in yet"),
        }))
    }

    /// What it waits for, if it waits to be in.
    pub(crate) fn waits_for(self) -> Option<String> {
        match self {
            Absence::Removed => None,
            Absence::Joining(what) => Some(what),
            Absence::CutOff { .. } => Some(self.reason().sentence),
        }
    }

    fn reason(&self) -> Reason {
        let (word, sentence) = match self {
            Absence::Removed => (
                "removed",
                "this node was removed from its cluster, and stops".to_owned(),
            ),
            Absence::Joining(waits_for) => ("joining", waits_for.clone()),
            Absence::CutOff { last_leader } => {
                let leader = match last_leader {
                    Some(leader) => format!("the last leader that it heard from is node {leader}"),
                    None => "it has heard from no leader".to_owned(),
                };
                let lost = "this node has heard from no majority of its cluster for a whole lease, and grants nothing";
                ("cut-off", format!("{lost}; {leader}"))
            }
        };
        Reason { word, sentence }
    }
}

impl Health {
    /// The present health; `free` is the free space as measured last.
    pub(crate) fn of(house: &House, free_bytes: Option<u64>) -> Health {
        Health {
            awaited: house.local().awaited(),
            everything_waits: house.local().recovering_everywhere(),
            failed: house.submissions.failed().map(str::to_owned),
            free_bytes,
            stopping: house.is_stopping(),
            starting: false,
            absence: Absence::of(house),
        }
    }

    /// The health of a node that listens and does not serve yet.
    pub(crate) fn starting() -> Health {
        Health {
            starting: true,
            ..Health::default()
        }
    }

    /// Measures the free space: the disk may have filled up, or become free again, without a change of ours.
    pub(crate) fn look_at(data: &Path) -> Option<u64> {
        free_bytes(data).ok()
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.awaited > 0
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.failed.is_some()
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        self.free_bytes
            .is_some_and(|free| free < DISK_RESERVE_BYTES)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.reasons().is_empty()
    }

    /// Why the node is not ready.
    pub(crate) fn reasons(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let mut add = |word, sentence| reasons.push(Reason { word, sentence });
        if self.starting {
            let waits = "the node opens its data directory, or asks a member to let it join; its log says what takes long";
            add("starting", waits.to_owned());
        }
        if self.stopping {
            add("stopping", "nothing new is accepted".to_owned());
        }
        if let Some(why) = &self.failed {
            add("read-only", format!("nothing is committed any more: {why}"));
        }
        if let Some(free) = self.free_bytes.filter(|_| self.is_disk_full()) {
            let committed = match free < DISK_RESERVE_BYTES / 2 {
                true => "nothing is committed",
                false => "only short changes are committed",
            };
            add(
                "disk-full",
                format!(
                    "{free} bytes are free, fewer than the {DISK_RESERVE_BYTES} kept in reserve; {committed} until there is room"
                ),
            );
        }
        if self.everything_waits {
            let awaited = self.awaited;
            add(
                "recovering",
                format!(
                    "no lock is granted until every earlier session ({awaited}) has reconnected or expired"
                ),
            );
        }
        reasons.extend(self.absence.iter().map(Absence::reason));
        reasons
    }

    /// What does not keep the node from its work, but should be known.
    pub(crate) fn notes(&self) -> Vec<Reason> {
        let awaited = self.awaited;
        let some_wait = self.is_recovering() && !self.everything_waits;
        let recovering = some_wait.then(|| Reason {
            word: "recovering",
            sentence: format!(
                "what earlier sessions ({awaited}) may hold is not granted until they have reconnected or expired"
            ),
        });
        recovering.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_says_whether_short_changes_are_still_committed() {
        let half = DISK_RESERVE_BYTES / 2;
        for (free, said) in [
            (0, "; nothing is committed"),
            (half - 1, "; nothing is committed"),
            (half, "; only short changes are committed"),
        ] {
            let health = Health {
                free_bytes: Some(free),
                ..Health::default()
            };
            let reasons = health.reasons();
            assert!(reasons[0].sentence.contains(said), "{reasons:?}");
        }
    }

    #[test]
    fn everything_that_keeps_a_node_from_its_work_is_named() {
        let well = Health {
            free_bytes: Some(DISK_RESERVE_BYTES),
            ..Health::default()
        };
        assert!(well.is_ready() && Health::default().is_ready());
        let absent = |absence| Health {
            absence: Some(absence),
            ..well.clone()
        };
        let ill = [
            (
                "recovering",
                Health {
                    awaited: 2,
                    everything_waits: true,
                    ..well.clone()
                },
            ),
            (
                "read-only",
                Health {
                    failed: Some("input/output error".into()),
                    ..well.clone()
                },
            ),
            (
                "disk-full",
                Health {
                    free_bytes: Some(DISK_RESERVE_BYTES - 1),
                    ..well.clone()
                },
            ),
            (
                "stopping",
                Health {
                    stopping: true,
                    ..well.clone()
                },
            ),
            ("starting", Health::starting()),
            ("removed", absent(Absence::Removed)),
            ("joining", absent(Absence::Joining("nobody leads".into()))),
            (
                "cut-off",
                absent(Absence::CutOff {
                    last_leader: Some(2),
                }),
            ),
        ];
        for (word, health) in ill {
            let reasons = health.reasons();
            assert!(!health.is_ready() && reasons.len() == 1, "{reasons:?}");
            assert_eq!(reasons[0].word, word);
            assert!(health.notes().is_empty());
        }
        let some_wait = Health { awaited: 1, ..well };
        assert!(some_wait.is_ready());
        assert_eq!(some_wait.notes()[0].word, "recovering");
    }
}
