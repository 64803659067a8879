//! What connections have sent and the node keeps: commands whose end has not arrived, and commands behind one that waits. All
//! of it together is bounded, so that many connections with a little each are as harmless as one with much.

use std::collections::BTreeSet;

/// Connections that keep no more than this are closed last.
const SMALL_BYTES: usize = 4 << 10;

/// The bytes kept for all connections together.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    bytes: usize,
    /// The connections that keep something, in the order in which they would be closed.
    order: BTreeSet<(Rank, usize)>,
    turns: u64,
}

/// Who is closed first: a connection that keeps much and whose command was begun long ago. A connection that waits for a gate
/// with a few commands behind has done nothing unusual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    spared: bool,
    since: u64,
}

/// What is kept for one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    bytes: usize,
    rank: Rank,
}

/// Why a connection's bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// A command before them was served, so another one begins.
    pub(crate) anew: bool,
    /// They wait behind a blocked command.
    pub(crate) behind: bool,
}

impl Unfinished {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes how many bytes are kept for a connection from now on.
    pub(crate) fn keep(&mut self, key: usize, kept: &mut Kept, bytes: usize, cause: Cause) {
        if kept.bytes == 0 && bytes == 0 {
            return;
        }
        self.order.remove(&(kept.rank, key));
        self.bytes = self.bytes - kept.bytes + bytes;
        if kept.bytes == 0 || cause.anew {
            self.turns += 1;
            kept.rank.since = self.turns;
        }
        kept.bytes = bytes;
        kept.rank.spared = cause.behind || bytes <= SMALL_BYTES;
        if bytes > 0 {
            self.order.insert((kept.rank, key));
        }
    }

    /// A connection is gone.
    pub(crate) fn forget(&mut self, key: usize, mut kept: Kept) {
        let cause = Cause {
            anew: false,
            behind: false,
        };
        self.keep(key, &mut kept, 0, cause);
    }

    /// The connection to be closed, if more than `most` bytes are kept.
    pub(crate) fn first_beyond(&self, most: usize) -> Option<usize> {
        let first = self.order.first().map(|(_, key)| *key);
        first.filter(|_| self.bytes > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Cause = Cause {
        anew: false,
        behind: false,
    };
    const ANEW: Cause = Cause { anew: true, ..HERE };
    const BEHIND: Cause = Cause {
        behind: true,
        ..HERE
    };

    #[test]
    fn the_oldest_unfinished_command_goes_first_and_who_waits_for_a_gate_last() {
        let mut all = Unfinished::default();
        let mut kept = [Kept::default(); 5];
        let big = 2 * SMALL_BYTES;
        for (key, bytes, cause) in [
            (0, 100, HERE),
            (1, big, BEHIND),
            (2, big, HERE),
            (3, big, HERE),
            (4, big, HERE),
            // It grows, and is as old as before.
            (2, 2 * big, HERE),
            // It has come to another command.
            (3, big, ANEW),
        ] {
            all.keep(key, &mut kept[key], bytes, cause);
        }
        assert_eq!(all.bytes(), 100 + 5 * big);
        assert_eq!(all.first_beyond(all.bytes()), None);
        let mut closed = Vec::new();
        while let Some(key) = all.first_beyond(0) {
            all.forget(key, kept[key]);
            closed.push(key);
        }
        assert_eq!(closed, [2, 4, 3, 0, 1]);
        assert_eq!(all.bytes(), 0);
    }
}
