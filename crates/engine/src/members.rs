//! Who is in the group: voters, a majority of which decides, and learners, which only listen until they know enough to vote.

use raft::eraftpb::{ConfChange, ConfChangeType, ConfState};

use crate::seal::Fields;

/// The highest node number, and so the maximum number of nodes.
pub const NODES_MAX: u64 = 255;

/// The members of a group, in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// The members that decide.
    pub voters: Vec<u64>,
    /// The members that only listen.
    pub learners: Vec<u64>,
    /// The members are these at least from this index of the log on. A newcomer gets a snapshot with later members, because
    /// it must be one of them.
    pub at: u64,
}

/// One step of a change of members. A newcomer is first a learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    /// A node that is not a member becomes a learner.
    AddLearner(u64),
    /// A learner becomes a voter.
    Promote(u64),
    /// A member is removed.
    Remove(u64),
}

/// Why the members were not changed. Nothing was proposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// Only the leader changes the members.
    #[error("this node does not lead")]
    NotLeading,
    /// Only one change of the members at a time.
    #[error("another change of the members is under way")]
    UnderWay,
    /// It is a member already.
    #[error("node {0} is a member already")]
    Member(u64),
    /// Only a learner can be promoted, and only a member removed.
    #[error("node {0} is no such member")]
    NoMember(u64),
    /// Node numbers are 1 to [`NODES_MAX`].
    #[error("{0} is no number of a node: those are 1 to {NODES_MAX}")]
    Number(u64),
    /// As a voter it would hold up everybody.
    #[error("node {0} has not caught up: it lacks {1} entries")]
    Behind(u64, u64),
    /// There must be a voter.
    #[error("node {0} is the only voter")]
    LastVoter(u64),
}

impl Members {
    /// A group of one.
    pub(crate) fn alone(node: u64) -> Self {
        Self {
            voters: vec![node],
            ..Self::default()
        }
    }

    /// Whether this node is the only member.
    pub(crate) fn is_alone(&self, node: u64) -> bool {
        self.voters == [node] && self.learners.is_empty()
    }

    /// Whether a node is a voter or a learner.
    pub fn contains(&self, node: u64) -> bool {
        self.voters.contains(&node) || self.learners.contains(&node)
    }

    /// All members, voters first.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.voters.iter().chain(&self.learners).copied()
    }

    /// The members after a change.
    pub(crate) fn after(&self, change: MemberChange) -> Result<Self, MemberError> {
        let mut members = self.clone();
        match change {
            MemberChange::AddLearner(node) if !(1..=NODES_MAX).contains(&node) => {
                return Err(MemberError::Number(node));
            }
            MemberChange::AddLearner(node) if self.contains(node) => {
                return Err(MemberError::Member(node));
            }
            MemberChange::AddLearner(node) => members.learners.push(node),
            MemberChange::Promote(node) if !self.learners.contains(&node) => {
                return Err(MemberError::NoMember(node));
            }
            MemberChange::Promote(node) => {
                members.learners.retain(|learner| *learner != node);
                members.voters.push(node);
            }
            MemberChange::Remove(node) if !self.contains(node) => {
                return Err(MemberError::NoMember(node));
            }
            MemberChange::Remove(node) if self.voters == [node] => {
                return Err(MemberError::LastVoter(node));
            }
            MemberChange::Remove(node) => {
                members.voters.retain(|voter| *voter != node);
                members.learners.retain(|learner| *learner != node);
            }
        }
        members.voters.sort_unstable();
        members.learners.sort_unstable();
        Ok(members)
    }

    /// How raft gets from these members to others, one change at a time. There is one step, except for a newcomer that knows
    /// no members yet.
    pub(crate) fn steps_to(&self, wanted: &Members) -> Vec<ConfChange> {
        let step = |kind, node: &u64| ConfChange {
            change_type: kind,
            node_id: *node,
            ..ConfChange::default()
        };
        let voters = wanted.voters.iter();
        let voters = voters.filter(|node| !self.voters.contains(node));
        let learners = wanted.learners.iter();
        let learners = learners.filter(|node| !self.learners.contains(node));
        let gone = self.voters.iter().chain(&self.learners);
        let gone = gone.filter(|node| !wanted.contains(**node));
        voters
            .map(|node| step(ConfChangeType::AddNode, node))
            .chain(learners.map(|node| step(ConfChangeType::AddLearnerNode, node)))
            .chain(gone.map(|node| step(ConfChangeType::RemoveNode, node)))
            .collect()
    }

    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.at.to_le_bytes());
        for nodes in [&self.voters, &self.learners] {
            // There are at most `NODES_MAX`, each with a number of one byte.
            into.push(nodes.len() as u8);
            into.extend(nodes.iter().map(|node| *node as u8));
        }
    }

    /// `None` for bytes that name a member twice, or name node 0.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let at = fields.u64()?;
        let mut nodes = || {
            let count = usize::from(fields.u8()?);
            let nodes: Vec<u64> = fields.bytes(count)?.iter().map(|n| (*n).into()).collect();
            let rise = nodes.windows(2).all(|pair| pair[0] < pair[1]);
            (rise && nodes.first() != Some(&0)).then_some(nodes)
        };
        let (voters, learners) = (nodes()?, nodes()?);
        let twice = voters.iter().any(|voter| learners.contains(voter));
        (!twice).then_some(Self {
            voters,
            learners,
            at,
        })
    }
}

impl From<&Members> for ConfState {
    fn from(members: &Members) -> Self {
        ConfState::from((members.voters.clone(), members.learners.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(voters: &[u64], learners: &[u64]) -> Members {
        Members {
            voters: voters.into(),
            learners: learners.into(),
            at: 0,
        }
    }

    #[test]
    fn a_newcomer_listens_before_it_votes() {
        let one = Members::alone(4);
        assert_eq!(
            one.after(MemberChange::Promote(2)),
            Err(MemberError::NoMember(2))
        );
        let two = one.after(MemberChange::AddLearner(2)).unwrap();
        assert_eq!(two, members(&[4], &[2]));
        assert_eq!(
            two.after(MemberChange::AddLearner(2)),
            Err(MemberError::Member(2))
        );
        let both = two.after(MemberChange::Promote(2)).unwrap();
        assert_eq!(both, members(&[2, 4], &[]));
        assert_eq!(
            both.after(MemberChange::Remove(4)).unwrap(),
            members(&[2], &[])
        );
        assert_eq!(
            one.after(MemberChange::Remove(4)),
            Err(MemberError::LastVoter(4))
        );
        for node in [0, 256] {
            assert_eq!(
                one.after(MemberChange::AddLearner(node)),
                Err(MemberError::Number(node))
            );
        }
    }

    #[test]
    fn one_change_is_one_step_and_who_knows_nobody_takes_several() {
        let before = members(&[1, 2], &[3]);
        for change in [
            MemberChange::AddLearner(9),
            MemberChange::Promote(3),
            MemberChange::Remove(1),
        ] {
            let after = before.after(change).unwrap();
            assert_eq!(before.steps_to(&after).len(), 1, "{change:?}");
        }
        let steps = Members::default().steps_to(&before);
        let kinds: Vec<_> = steps
            .iter()
            .map(|step| (step.change_type, step.node_id))
            .collect();
        let wanted = [
            (ConfChangeType::AddNode, 1),
            (ConfChangeType::AddNode, 2),
            (ConfChangeType::AddLearnerNode, 3),
        ];
        assert_eq!(kinds, wanted);
    }

    #[test]
    fn what_was_written_is_read_and_nonsense_is_not() {
        for good in [members(&[], &[]), members(&[1, 2, 255], &[7])] {
            let mut bytes = Vec::new();
            good.write(&mut bytes);
            assert_eq!(Members::read(&mut Fields(&bytes)), Some(good));
            bytes.pop();
            assert_eq!(Members::read(&mut Fields(&bytes)), None);
        }
        for bad in [
            &[1, 0, 0][..],
            &[2, 2, 1, 0],
            &[2, 1, 1, 0],
            &[1, 5, 1, 5],
            &[],
        ] {
            let bytes = [&[0; 8], bad].concat();
            assert_eq!(Members::read(&mut Fields(&bytes)), None, "{bad:?}");
        }
    }
}
