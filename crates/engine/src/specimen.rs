//! Engines that are broken on purpose, by a switch, so that the simulator can prove that it would notice.

/// What is wrong with an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specimen {
    /// A follower acknowledges what is not on its disk yet.
    AcknowledgeBeforeFlush,
    /// A start does not know for whom the node has voted.
    ForgetVote,
    /// What one leader was given is not given to the next.
    ForgetToResubmit,
    /// What was submitted twice is applied twice.
    ApplyDuplicates,
    /// A leader answers reads without asking whether it still leads.
    ReadWithoutQuorum,
    /// A start accepts a change that is only half on the disk.
    TornWriteAccepted,
    /// A snapshot does not know which proposals have counted.
    ForgetOrigins,
    /// After another member's snapshot, the rest of the old log stays.
    KeepTheOldEnd,
    /// A link takes frames in any order.
    TakeEveryFrame,
    /// A leader answers a start that it was told not to answer any more.
    AnswerTheRefused,
    /// When no disk has room, what a leader was given is taken back, too.
    TakeBackTheGiven,
    /// A leader that is short of room goes on leading.
    LeadWithoutRoom,
}

impl Specimen {
    /// Those that random faults reveal soon. [`Specimen::KeepTheOldEnd`] and [`Specimen::LeadWithoutRoom`] have tests of their
    /// own.
    pub const REVEALED: [Specimen; 10] = [
        Specimen::AcknowledgeBeforeFlush,
        Specimen::ForgetVote,
        Specimen::ForgetToResubmit,
        Specimen::ApplyDuplicates,
        Specimen::ReadWithoutQuorum,
        Specimen::TornWriteAccepted,
        Specimen::ForgetOrigins,
        Specimen::TakeEveryFrame,
        Specimen::AnswerTheRefused,
        Specimen::TakeBackTheGiven,
    ];
}
