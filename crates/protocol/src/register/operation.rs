//! A load or a store under way.

use super::{Answer, Question, Stamp};
use crate::NodeId;

/// One operation of a node: it asks everybody the same [`question`](Operation::question), round by round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    me: NodeId,
    register: u32,
    /// What is stored; none for a load.
    stores: Option<u64>,
    majority: usize,
    round: Round,
    /// Who has answered in this round.
    answered: Vec<NodeId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Round {
    /// The newest that was heard of so far.
    Asking(Option<(Stamp, u64)>),
    Keeping(Stamp, u64),
}

/// What an answer led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// More answers are needed.
    Waits,
    /// The second round begins: ask everybody the next question.
    NextRound,
    /// It is done; what was loaded or stored.
    Done(u64),
}

impl Operation {
    /// A load of a register by a node, one of so many.
    pub fn load(me: NodeId, register: u32, nodes: usize) -> Operation {
        Operation {
            me,
            register,
            stores: None,
            majority: nodes / 2 + 1,
            round: Round::Asking(None),
            answered: Vec::new(),
        }
    }

    /// A store.
    pub fn store(me: NodeId, register: u32, value: u64, nodes: usize) -> Operation {
        Operation {
            stores: Some(value),
            ..Operation::load(me, register, nodes)
        }
    }

    /// What everybody is asked in this round, oneself too.
    pub fn question(&self) -> Question {
        let register = self.register;
        match self.round {
            Round::Asking(_) => Question::Newest { register },
            Round::Keeping(stamp, value) => Question::Keep {
                register,
                stamp,
                value,
            },
        }
    }

    /// A node has answered a question of this operation. Late answers of the first round, and repeated ones,
    /// change nothing.
    pub fn answered(&mut self, by: NodeId, answer: Answer) -> Outcome {
        if self.answered.contains(&by) {
            return Outcome::Waits;
        }
        match (&mut self.round, answer) {
            (Round::Asking(newest), Answer::Holds { stamp, value }) => {
                *newest = (*newest).max(Some((stamp, value)));
                self.answered.push(by);
                if self.answered.len() < self.majority {
                    return Outcome::Waits;
                }
                let (stamp, value) = newest.unwrap_or(((0, self.me), 0));
                self.answered.clear();
                self.round = match self.stores {
                    Some(stores) => Round::Keeping((stamp.0 + 1, self.me), stores),
                    None => Round::Keeping(stamp, value),
                };
                Outcome::NextRound
            }
            (Round::Keeping(_, value), Answer::Kept) => {
                let value = *value;
                self.answered.push(by);
                match self.answered.len() < self.majority {
                    true => Outcome::Waits,
                    false => Outcome::Done(value),
                }
            }
            _ => Outcome::Waits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Replica;
    use super::*;

    /// Runs an operation with these replicas answering, and no others.
    fn run(mut operation: Operation, replicas: &mut [Replica], alive: &[u32]) -> Option<u64> {
        loop {
            let question = operation.question();
            let mut next = false;
            for &node in alive {
                let answer = replicas[node as usize].answer(question);
                match operation.answered(NodeId(node), answer) {
                    Outcome::Waits => {}
                    Outcome::NextRound => {
                        next = true;
                        break;
                    }
                    Outcome::Done(value) => return Some(value),
                }
            }
            if !next {
                return None;
            }
        }
    }

    #[test]
    fn what_one_majority_stored_another_loads() {
        let mut replicas = vec![Replica::new(vec![7, 8]); 3];
        let load = |node| Operation::load(NodeId(node), 0, 3);
        assert_eq!(
            run(load(2), &mut replicas, &[1, 2]),
            Some(7),
            "the first value"
        );
        let store = Operation::store(NodeId(0), 0, 9, 3);
        assert_eq!(run(store, &mut replicas, &[0, 1]), Some(9));
        assert_eq!(run(load(2), &mut replicas, &[1, 2]), Some(9));
        // The load wrote it back: node 2 has it now.
        assert_eq!(run(load(2), &mut replicas, &[0, 2]), Some(9));
        let store = Operation::store(NodeId(2), 0, 5, 3);
        assert_eq!(run(store, &mut replicas, &[2, 1]), Some(5), "a newer stamp");
        assert_eq!(run(load(0), &mut replicas, &[0, 1]), Some(5));
        assert_eq!(
            run(load(0), &mut replicas, &[0]),
            None,
            "a minority is not enough"
        );
    }
}
