//! The connections that have something to be served, in the order of their turns. One that has just become ready goes before
//! those that have used up their share, so a short command does not wait behind long pipelines.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::house::ClientId;

/// Who is to be served.
#[derive(Debug, Default)]
pub(super) struct Ready {
    fresh: VecDeque<(u64, ClientId)>,
    /// Those that have had a share and have more.
    older: VecDeque<(u64, ClientId)>,
    present: FxHashSet<ClientId>,
    /// How many have come so far.
    come: u64,
}

/// Where the next one comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// The fresh ones, and the others when there are none.
    All,
    /// Those that have had a share, and the fresh ones when there are none.
    Older,
}

impl Ready {
    /// A connection has something to be served.
    pub(super) fn come(&mut self, client: ClientId) {
        if self.present.insert(client) {
            self.come += 1;
            self.fresh.push_back((self.come, client));
        }
    }

    /// A connection has more than its share.
    pub(super) fn come_again(&mut self, client: ClientId) {
        if self.present.insert(client) {
            self.come += 1;
            self.older.push_back((self.come, client));
        }
    }

    pub(super) fn next(&mut self, among: Among) -> Option<ClientId> {
        let [first, second] = match among {
            Among::All => [&mut self.fresh, &mut self.older],
            Among::Older => [&mut self.older, &mut self.fresh],
        };
        let next = first.pop_front().or_else(|| second.pop_front());
        let (_, client) = next?;
        self.present.remove(&client);
        Some(client)
    }

    pub(super) fn has(&self, client: ClientId) -> bool {
        self.present.contains(&client)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// The number of the last one that has come.
    pub(super) fn last(&self) -> u64 {
        self.come
    }

    /// Whether all up to this number have been served since they came.
    pub(super) fn served_until(&self, last: u64) -> bool {
        let mut fronts = [&self.fresh, &self.older].into_iter();
        fronts.all(|line| line.front().is_none_or(|(number, _)| *number > last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_goes_before_who_has_had_a_share_and_nobody_starves() {
        let mut ready = Ready::default();
        let [long, longer, short] = [1, 2, 3].map(ClientId);
        ready.come_again(long);
        ready.come_again(longer);
        ready.come(short);
        ready.come(long);
        assert!(ready.has(long) && !ready.is_empty());
        assert_eq!(ready.next(Among::All), Some(short));
        ready.come(short);
        assert_eq!(ready.next(Among::Older), Some(long), "it is there once");
        assert_eq!(ready.next(Among::All), Some(short));
        assert_eq!(ready.next(Among::All), Some(longer));
        assert_eq!(ready.next(Among::All), None);
    }

    #[test]
    fn everybody_was_heard_when_all_who_had_come_were_served() {
        let mut ready = Ready::default();
        let [first, second, third] = [1, 2, 3].map(ClientId);
        ready.come(first);
        ready.come_again(second);
        let last = ready.last();
        ready.come(third);
        for _ in 0..2 {
            assert!(!ready.served_until(last));
            let served = ready.next(Among::Older).unwrap();
            // It has more; that has been sent since, for all that anybody knows.
            ready.come_again(served);
            if served == second {
                assert_eq!(ready.next(Among::All), Some(first));
                break;
            }
        }
        assert!(ready.served_until(last));
    }
}
