//! Whether the node is able to commit changes and to grant locks. Whatever prevents it is named.

use std::path::Path;

use axum::http::StatusCode;
use axum::response::Response;
use testigo_engine::{DISK_RESERVE_BYTES, free_bytes};

use super::answer::text;
use crate::house::House;

/// What may keep the node from its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// Earlier sessions that have neither resumed nor expired: what they may hold is not granted until they have.
    pub(super) awaited: usize,
    /// Whether they may hold anything, so that no gate grants.
    pub(super) everything_waits: bool,
    /// Why nothing is written any more.
    pub(super) failed: Option<String>,
    /// The free space on the disk, if the system says.
    pub(super) free_bytes: Option<u64>,
    pub(super) stopping: bool,
}

impl Health {
    /// The present health; `free` is the free space measured just before.
    pub(super) fn of(house: &House, free_bytes: Option<u64>) -> Health {
        Health {
            awaited: house.local().awaited(),
            everything_waits: house.local().recovering_everywhere(),
            failed: house.submissions.failed().map(str::to_owned),
            free_bytes,
            stopping: house.is_stopping(),
        }
    }

    /// Measures the free space: the disk may have filled up, or become free again, without a change of ours.
    pub(super) fn look_at(data: &Path) -> Option<u64> {
        free_bytes(data).ok()
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.awaited > 0
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.failed.is_some()
    }

    pub(super) fn is_disk_full(&self) -> bool {
        self.free_bytes
            .is_some_and(|free| free < DISK_RESERVE_BYTES)
    }

    pub(super) fn is_able(&self) -> bool {
        self.troubles().is_empty()
    }

    /// What is wrong, one line each, starting with a word for programs.
    fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        if self.stopping {
            troubles.push("stopping: nothing new is accepted".to_owned());
        }
        if let Some(why) = &self.failed {
            troubles.push(format!("read-only: nothing is committed any more: {why}"));
        }
        if let Some(free) = self.free_bytes.filter(|_| self.is_disk_full()) {
            let committed = match free < DISK_RESERVE_BYTES / 2 {
                true => "nothing is committed",
                false => "only short changes are committed",
            };
            troubles.push(format!(
                "disk-full: {free} bytes are free, fewer than the {DISK_RESERVE_BYTES} kept in reserve; {committed} until there is room"
            ));
        }
        if self.everything_waits {
            let awaited = self.awaited;
            troubles.push(format!(
                "recovering: no lock is granted until every earlier session ({awaited}) has reconnected or expired"
            ));
        }
        troubles
    }

    pub(super) fn answer(&self) -> Response {
        let troubles = self.troubles();
        if !troubles.is_empty() {
            return text(StatusCode::SERVICE_UNAVAILABLE, troubles.join("\n"));
        }
        if !self.is_recovering() {
            return text(StatusCode::OK, "ok");
        }
        let awaited = self.awaited;
        text(
            StatusCode::OK,
            format!(
                "ok\nrecovering: what earlier sessions ({awaited}) may hold is not granted until they have reconnected or expired"
            ),
        )
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
            let troubles = health.troubles();
            assert!(troubles[0].contains(said), "{troubles:?}");
        }
    }

    #[test]
    fn everything_that_keeps_a_node_from_its_work_is_named() {
        let well = Health {
            free_bytes: Some(DISK_RESERVE_BYTES),
            ..Health::default()
        };
        assert!(well.is_able() && Health::default().is_able());
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
                    ..well
                },
            ),
        ];
        for (word, health) in ill {
            let troubles = health.troubles();
            assert!(!health.is_able() && troubles.len() == 1, "{troubles:?}");
            assert!(
                troubles[0].starts_with(&format!("{word}: ")),
                "{troubles:?}"
            );
            let status = health.answer().status();
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{word}");
        }
    }
}
