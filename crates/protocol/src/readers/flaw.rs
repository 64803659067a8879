//! What is wrong with each specimen of the box office.

/// A defect, planted alone. The slides have those with a number, and somebody might write the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// W8: where the token is, any number of writers walk in.
    NoLocalExclusion,
    /// R1: query tokens are lent wherever the token is, beside a writer too.
    ReadersBesideWriters,
    /// R6: the first reader to leave returns the query token under which others still read.
    FirstReaderReturns,
    /// R8: after a query token, the real one is sent, which is not there.
    SecondToken,
    /// C2: a list of query tokens that holds one entry.
    ForgetfulList,
    /// C3: the return of a query token wakes nobody.
    DeafToReturns,
    /// W1: whoever is of a lesser class than the last asks the others, although the token is here.
    AsksOthers,
    /// W13: the next node is searched for from the holder on, in every class.
    RingFromHolder,
    /// The requests that are known do not travel with the token.
    ForgetfulToken,
    /// W14: nobody looks at the counter of overtakes.
    NoLimit,
    /// The counter of overtakes stays full after queries have had their turn.
    NeverReset,
    /// R5: whoever has a query token lets readers in although a writer has asked.
    IgnoresStop,
    /// C5: readers join a session while writers wait.
    GrowingSession,
    /// A query token stops for cancellations, and not for reservations.
    StopsForCancels,
}
