//! What other nodes and strangers can make this node say about them, as often as they like. It goes to the log here and
//! nowhere else, at most [`BURST`] times a minute for each node and matter, with the number left out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use testigo_engine::NODES_MAX;

use crate::sparing::{Sparing, and_more};

/// How often in a minute: enough to tell how a node that was started again comes back.
const BURST: u32 = 8;

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// It was connected.
    Connected,
    /// It is not connected, and why.
    NotConnected,
    /// It has ended its connection.
    HungUp,
    /// It is not heard, or not any more.
    NotHeard,
    /// It is not let in.
    Refused,
    /// It takes this node for another one.
    Sought,
    /// Nobody can be let in.
    Door,
    /// Nobody lets this node join.
    Joining,
}

#[derive(Debug)]
pub(super) struct Warnings {
    began: Instant,
    said: Mutex<BTreeMap<(About, u64), Sparing>>,
}

impl Default for Warnings {
    fn default() -> Warnings {
        Warnings {
            began: Instant::now(),
            said: Mutex::default(),
        }
    }
}

impl Warnings {
    /// Says this about a node, unless the same was said lately. What is no number of a node counts as 0.
    pub(super) fn say(&self, about: About, node: u64, words: impl FnOnce() -> String) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Some(left_out) = self.now(about, node, now) else {
            return;
        };
        let (words, more) = (words(), and_more(left_out));
        match about {
            About::Connected | About::HungUp => log::info!("{words}{more}"),
            About::Sought => log::error!("{words}{more}"),
            _ => log::warn!("{words}{more}"),
        }
    }

    fn now(&self, about: About, node: u64, now: u64) -> Option<u64> {
        let node = match node <= NODES_MAX {
            true => node,
            false => 0,
        };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = said.entry((about, node)).or_default();
        said.at_most(BURST, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_knocks_ten_thousand_times_is_written_of_eight_times() {
        let warnings = Warnings::default();
        let said = |from: u64, until: u64, node: &dyn Fn(u64) -> u64| {
            let said = (from..until).filter_map(|at| warnings.now(About::Refused, node(at), at));
            said.collect::<Vec<_>>()
        };
        let burst = vec![0; BURST as usize];
        assert_eq!(said(0, 10_000, &|_| 2), burst);
        let others = 10_000 - u64::from(BURST);
        assert_eq!(said(60_000, 60_001, &|_| 2), [others]);
        assert_eq!(said(0, 10_000, &|_| 3), burst, "another node");
        let numbers = said(0, 10_000, &|at| NODES_MAX + 1 + at);
        assert_eq!(numbers, burst, "invented numbers are one");
    }
}
