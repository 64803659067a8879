//! What this node has proposed and not yet seen applied. It is kept, numbered, and given to every new leader again, in order,
//! until it comes out of the log, so nobody has to guess whether it was lost. If it therefore comes twice, its number shows
//! that.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::bundle::Bundle;
use crate::origin::{Origin, Origins};

/// After this many ticks without anything applied, bundles are given to another node again: they may be lost.
const REPEAT_TICKS: u32 = 6;

/// How much may be on its way to another node, 4 MiB.
const UNDER_WAY_BYTES_MAX: usize = 4 << 20;

/// The submissions of one start.
#[derive(Debug)]
pub(crate) struct Submissions {
    /// The last number given out.
    last: Origin,
    /// Proposals gathered for the next entry.
    bundle: Bundle,
    gathered_bytes: usize,
    /// Entries not yet seen applied, in order.
    sealed: VecDeque<Sealed>,
    /// How many of them the present leader was given.
    given: usize,
    given_bytes: usize,
    sealed_bytes: usize,
    /// Ticks since something was first given, or applied.
    silent: u32,
    /// Ticks for which something has waited and nothing was applied.
    waited: u32,
}

#[derive(Debug)]
struct Sealed {
    first: u64,
    last: u64,
    bytes: Bytes,
    /// Whether some leader was given it, and may have logged it.
    tried: bool,
}

impl Submissions {
    pub(crate) fn new(node: u64, start: u64) -> Self {
        let sequence = 0;
        Self {
            last: Origin {
                node,
                start,
                sequence,
            },
            bundle: Bundle::default(),
            gathered_bytes: 0,
            sealed: VecDeque::new(),
            given: 0,
            given_bytes: 0,
            sealed_bytes: 0,
            silent: 0,
            waited: 0,
        }
    }

    /// The bytes of everything that is not applied yet.
    pub(crate) fn bytes(&self) -> usize {
        self.sealed_bytes + self.gathered_bytes
    }

    /// Numbers a proposal and keeps it.
    pub(crate) fn push(&mut self, data: &[u8]) -> Origin {
        if !self.bundle.has_room_for(data.len()) {
            self.seal();
        }
        self.last.sequence += 1;
        self.bundle.push(self.last, data);
        self.gathered_bytes += data.len();
        self.last
    }

    /// Makes what was gathered one entry.
    pub(crate) fn seal(&mut self) {
        if self.bundle.is_empty() {
            return;
        }
        let first = self.first_gathered();
        let bytes = Bytes::from(self.bundle.take());
        self.gathered_bytes = 0;
        self.sealed_bytes += bytes.len();
        self.sealed.push_back(Sealed {
            first,
            last: self.last.sequence,
            bytes,
            tried: false,
        });
    }

    fn first_gathered(&self) -> u64 {
        self.last.sequence + 1 - self.bundle.len()
    }

    /// Takes back what no leader was given, and says from which sequence on. Those sequences are used again. With `tried`,
    /// also what a leader may have logged: only a specimen does that.
    pub(crate) fn take_back(&mut self, tried: bool) -> Option<u64> {
        let mut first = match self.bundle.is_empty() {
            true => None,
            false => Some(self.first_gathered()),
        };
        self.bundle.take();
        self.gathered_bytes = 0;
        while self.sealed.back().is_some_and(|last| tried || !last.tried)
            && let Some(last) = self.sealed.pop_back()
        {
            self.sealed_bytes -= last.bytes.len();
            first = Some(last.first);
        }
        self.last.sequence = first.map_or(self.last.sequence, |first| first - 1);
        if tried {
            self.give_again();
        }
        first
    }

    /// For how many ticks something has waited, and nothing has come out of the log.
    pub(crate) fn waited(&self) -> u32 {
        self.waited
    }

    /// The leader's next entry; [`Submissions::gave`] says that it has it.
    pub(crate) fn next(&self) -> Option<&Bytes> {
        self.sealed.get(self.given).map(|sealed| &sealed.bytes)
    }

    /// Like [`Submissions::next`], unless enough is on its way.
    pub(crate) fn next_to_send(&self) -> Option<&Bytes> {
        self.next()
            .filter(|_| self.given_bytes < UNDER_WAY_BYTES_MAX)
    }

    pub(crate) fn gave(&mut self) {
        if self.given == 0 {
            self.silent = 0;
        }
        if let Some(sealed) = self.sealed.get_mut(self.given) {
            self.given_bytes += sealed.bytes.len();
            sealed.tried = true;
        }
        self.given += 1;
    }

    /// There is a new leader, which has been given nothing.
    pub(crate) fn give_again(&mut self) {
        (self.given, self.given_bytes, self.silent) = (0, 0, 0);
    }

    /// Advances time. Says whether something was given to another node long ago.
    pub(crate) fn tick(&mut self) -> bool {
        self.silent += 1;
        self.waited = match self.bytes() {
            0 => 0,
            _ => self.waited + 1,
        };
        self.given > 0 && self.silent >= REPEAT_TICKS
    }

    /// Everything up to this number has come out of the log.
    pub(crate) fn applied(&mut self, sequence: u64) {
        while self
            .sealed
            .front()
            .is_some_and(|sealed| sealed.last <= sequence)
        {
            let Some(sealed) = self.sealed.pop_front() else {
                return;
            };
            self.sealed_bytes -= sealed.bytes.len();
            if self.given > 0 {
                self.given -= 1;
                self.given_bytes -= sealed.bytes.len();
            }
            (self.silent, self.waited) = (0, 0);
        }
    }
}

/// What a leader has put into its log of others' submissions. It takes only the next, so that after a lost or late frame the
/// log does not fill up with entries that nobody will apply.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    /// By node, the start and the last sequence put into the log.
    taken: BTreeMap<u64, (u64, u64)>,
}

impl Intake {
    /// A new term begins, and what was put into the log may be gone.
    pub(crate) fn forget(&mut self) {
        self.taken.clear();
    }

    /// Whether this is next for its start, given what was applied.
    pub(crate) fn is_next(&self, first: Origin, applied: &Origins) -> bool {
        match self.taken.get(&first.node) {
            Some((start, last)) if *start == first.start => {
                let last = applied.of(first.node, first.start).max(*last);
                last.checked_add(1) == Some(first.sequence)
            }
            Some((start, _)) if *start > first.start => false,
            _ => applied.is_next(first),
        }
    }

    pub(crate) fn took(&mut self, first: Origin, count: u64) {
        let last = first.sequence + count.saturating_sub(1);
        self.taken.insert(first.node, (first.start, last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle;

    const FIRST: Origin = Origin {
        node: 2,
        start: 7,
        sequence: 1,
    };

    /// The first sequence of every bundle that the leader is given.
    fn given(submissions: &mut Submissions) -> Vec<u64> {
        let mut given = Vec::new();
        while let Some(bytes) = submissions.next() {
            given.extend(bundle::origin(bytes).map(|(first, _)| first.sequence));
            submissions.gave();
        }
        given
    }

    #[test]
    fn what_is_not_applied_is_given_to_every_leader_in_order() {
        let mut submissions = Submissions::new(2, 7);
        for data in [&b"one"[..], b"two", b"three"] {
            submissions.push(data);
            submissions.push(data);
            submissions.seal();
        }
        assert_eq!(given(&mut submissions), [1, 3, 5]);
        assert_eq!(given(&mut submissions), [0; 0], "it has everything");
        submissions.applied(1);
        submissions.give_again();
        assert_eq!(given(&mut submissions), [1, 3, 5], "half a bundle is none");
        submissions.applied(4);
        submissions.push(b"four");
        submissions.seal();
        assert_eq!(given(&mut submissions), [7], "only what is new");
        submissions.give_again();
        assert_eq!(given(&mut submissions), [5, 7]);
        submissions.applied(7);
        assert_eq!(submissions.bytes(), 0);
    }

    #[test]
    fn what_is_not_applied_for_long_is_given_again() {
        let mut submissions = Submissions::new(2, 7);
        assert!((0..100).all(|_| !submissions.tick()), "there is nothing");
        submissions.push(b"one");
        submissions.seal();
        submissions.gave();
        assert_eq!((1..).find(|_| submissions.tick()), Some(REPEAT_TICKS));
    }

    #[test]
    fn only_what_no_leader_was_given_is_taken_back() {
        let mut submissions = Submissions::new(2, 7);
        assert_eq!(submissions.take_back(false), None);
        for _ in 0..3 {
            submissions.push(b"one");
            submissions.push(b"two");
            submissions.seal();
        }
        submissions.gave();
        submissions.push(b"gathered");
        assert_eq!(submissions.take_back(false), Some(3));
        assert_eq!(submissions.push(b"next").sequence, 3);
        assert_eq!(submissions.take_back(false), Some(3));
        // Nobody knows whether the leader has logged it.
        submissions.give_again();
        assert_eq!(submissions.take_back(false), None);
        assert_eq!(given(&mut submissions), [1]);
        submissions.applied(2);
        assert_eq!(submissions.push(b"next").sequence, 3);
    }

    #[test]
    fn a_leader_takes_only_the_next() {
        let (mut intake, mut applied) = (Intake::default(), Origins::default());
        let next = |intake: &Intake, applied: &Origins| {
            let next = |sequence| intake.is_next(Origin { sequence, ..FIRST }, applied);
            (1..20)
                .filter(|sequence| next(*sequence))
                .collect::<Vec<_>>()
        };
        assert_eq!(next(&intake, &applied), [1]);
        intake.took(FIRST, 3);
        assert_eq!(next(&intake, &applied), [4]);
        // The log had more than this leader has put there.
        applied.take(FIRST, 9);
        assert_eq!(next(&intake, &applied), [10]);
        intake.took(Origin { start: 8, ..FIRST }, 1);
        assert_eq!(next(&intake, &applied), [0; 0], "its successor has begun");
        intake.forget();
        assert_eq!(next(&intake, &applied), [10]);
    }
}
