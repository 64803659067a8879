//! Read indexes: asks how far the log had come at least, so that a node that has applied it that far reads nothing old. Raft
//! answers with an index after a majority has confirmed that its leader still leads.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::links::Peer;
use crate::seal::Fields;

/// After this many ticks without an answer raft is asked again: a question may be lost.
const REPEAT_TICKS: u32 = 3;

/// An answer: every ask up to this one may read once this index is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadIndex {
    /// The latest ask that it is for; see [`Engine::ask_read`](crate::Engine::ask_read).
    pub ask: u64,
    /// The index that must be applied first.
    pub index: u64,
}

/// Asks are numbered. One question serves all asks made before it was sent.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    asked: u64,
    sent: u64,
    answered: u64,
    silent: u32,
}

impl Reads {
    pub(crate) fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// The question to send now, if any.
    pub(crate) fn question(&mut self, node: u64, start: u64) -> Option<Vec<u8>> {
        if self.sent == self.asked {
            return None;
        }
        (self.sent, self.silent) = (self.asked, 0);
        Some([node, start, self.asked].map(u64::to_le_bytes).concat())
    }

    pub(crate) fn tick(&mut self) {
        self.silent += 1;
        if self.silent >= REPEAT_TICKS {
            self.sent = self.answered;
        }
    }

    /// There is a new leader: whatever was sent may be lost.
    pub(crate) fn send_again(&mut self) {
        self.sent = self.answered;
    }

    /// The meaning of raft's answer to a question, if the question is this start's and the answer is new.
    pub(crate) fn answer(
        &mut self,
        context: &Bytes,
        (node, start): (u64, u64),
        index: u64,
    ) -> Option<ReadIndex> {
        let mut fields = Fields(context);
        let own = fields.u64()? == node && fields.u64()? == start;
        let ask = fields.u64()?;
        if !own || ask <= self.answered || ask > self.asked {
            return None;
        }
        self.answered = ask;
        self.sent = self.sent.max(ask);
        Some(ReadIndex { ask, index })
    }
}

/// The start that asks with this question.
pub(crate) fn asker(question: &[u8]) -> Option<Peer> {
    let mut fields = Fields(question);
    Some(Peer {
        node: fields.u64()?,
        start: fields.u64()?,
    })
}

/// What a leader does with the asks of all starts, its own included.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Starts that get no answer as long as this node leads.
    refused: BTreeSet<Peer>,
    asked: BTreeSet<Peer>,
    answered: BTreeSet<Peer>,
}

impl Desk {
    /// A leader was asked.
    pub(crate) fn asked(&mut self, question: &[u8]) {
        self.asked.extend(asker(question));
    }

    /// Whether a leader may give this answer. If so, it counts as given.
    pub(crate) fn may_answer(&mut self, question: &[u8]) -> bool {
        let Some(peer) = asker(question).filter(|peer| !self.refused.contains(peer)) else {
            return false;
        };
        self.answered.insert(peer);
        true
    }

    pub(crate) fn refuse(&mut self, peer: Peer) {
        self.refused.insert(peer);
    }

    pub(crate) fn allow(&mut self, peer: Peer) {
        self.refused.remove(&peer);
    }

    /// This node no longer leads, or leads anew: whatever it was told before is void.
    pub(crate) fn forget(&mut self) {
        self.refused.clear();
    }

    pub(crate) fn take_asked(&mut self) -> Vec<Peer> {
        std::mem::take(&mut self.asked).into_iter().collect()
    }

    pub(crate) fn take_answered(&mut self) -> Vec<Peer> {
        std::mem::take(&mut self.answered).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_refused_gets_no_answer_until_it_is_allowed_or_somebody_leads_anew() {
        let mut desk = Desk::default();
        let mut reads = Reads::default();
        reads.ask();
        let question = reads.question(2, 7).unwrap();
        let peer = Peer { node: 2, start: 7 };
        desk.asked(&question);
        assert_eq!((desk.take_asked(), desk.take_asked()), (vec![peer], vec![]));
        desk.refuse(peer);
        assert!(!desk.may_answer(&question));
        assert_eq!(desk.take_answered(), []);
        desk.allow(peer);
        assert!(desk.may_answer(&question));
        assert_eq!(desk.take_answered(), [peer]);
        desk.refuse(peer);
        desk.refuse(Peer { start: 8, ..peer });
        desk.forget();
        assert!(desk.may_answer(&question));
        assert!(!desk.may_answer(b"short"));
    }

    #[test]
    fn one_question_serves_all_that_were_asked_before_it() {
        let mut reads = Reads::default();
        assert_eq!(reads.question(2, 7), None);
        assert_eq!([reads.ask(), reads.ask()], [1, 2]);
        let question = Bytes::from(reads.question(2, 7).unwrap());
        assert_eq!(reads.question(2, 7), None, "it is on its way");
        assert_eq!(reads.ask(), 3);
        let other = reads.answer(&question, (2, 8), 50);
        assert_eq!(other, None, "an earlier start's");
        let answer = reads.answer(&question, (2, 7), 50).unwrap();
        assert_eq!((answer.ask, answer.index), (2, 50));
        assert_eq!(reads.answer(&question, (2, 7), 60), None, "again");
        assert!(reads.question(2, 7).is_some(), "the third is still open");
        assert_eq!(reads.answer(&Bytes::from_static(b"short"), (2, 7), 1), None);
    }

    #[test]
    fn a_question_without_an_answer_is_sent_again() {
        let mut reads = Reads::default();
        reads.ask();
        let first = reads.question(2, 7);
        (1..REPEAT_TICKS).for_each(|_| reads.tick());
        assert_eq!(reads.question(2, 7), None);
        reads.tick();
        assert_eq!(reads.question(2, 7), first);
        reads.send_again();
        assert_eq!(reads.question(2, 7), first);
    }
}
