//! Engines that are broken on purpose, by a switch, so that the simulator can prove that it would notice.

/// What is wrong with an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specimen {
    /// A follower says that it has what its disk has not.
    AcknowledgeBeforeFlush,
    /// A start does not know whom the node has voted for.
    ForgetVote,
    /// What one leader was given is not given to the next.
    ForgetToResubmit,
    /// What was submitted twice is applied twice.
    ApplyDuplicates,
    /// A leader answers reads without asking whether it still leads.
    ReadWithoutQuorum,
    /// A start takes a change that is only half on the disk.
    TornWriteAccepted,
    /// A snapshot does not know what has counted.
    ForgetOrigins,
    /// A snapshot of another member leaves behind it what the log had.
    KeepTheOldEnd,
    /// A link takes whatever comes, in whatever order.
    TakeEveryFrame,
    /// A leader answers a start that it was told to answer no more.
    AnswerTheRefused,
}

impl Specimen {
    /// Those that random faults reveal soon. [`Specimen::KeepTheOldEnd`] has a test of its own.
    pub const REVEALED: [Specimen; 9] = [
        Specimen::AcknowledgeBeforeFlush,
        Specimen::ForgetVote,
        Specimen::ForgetToResubmit,
        Specimen::ApplyDuplicates,
        Specimen::ReadWithoutQuorum,
        Specimen::TornWriteAccepted,
        Specimen::ForgetOrigins,
        Specimen::TakeEveryFrame,
        Specimen::AnswerTheRefused,
    ];
}
