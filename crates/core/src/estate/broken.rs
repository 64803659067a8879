//! Rules that tests break on purpose.

use std::str::FromStr;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A rule of the estate that a test breaks to see that a monitor notices.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Broken {
            $($(#[$doc])* $name,)*
        }

        impl FromStr for Broken {
            type Err = String;

            /// Parses the name of a variant.
            fn from_str(name: &str) -> Result<Broken, String> {
                match name {
                    $(stringify!($name) => Ok(Broken::$name),)*
                    _ => {
                        let names = [$(stringify!($name)),*].join(", ");
                        Err(format!("no rule is called `{name}`; there are {names}"))
                    }
                }
            }
        }
    };
}

rules! {
    /// G: an answer is taken whatever number it names.
    GrantOnItsWay,
    /// I: implicit sessions go on after the lease is over.
    CutOffHolder,
    /// N: a grant that nobody waits for is not given back.
    LateGrant,
    /// O: frames are taken whatever home they name.
    OldHome,
    /// O: a frame that can be taken overtakes earlier ones that must wait.
    Overtaking,
    /// G: frames of a start are dropped if they arrive before the view that lets it in.
    Stranger,
    /// O: the answer to an earlier question counts for a later one.
    EarlierAnswer,
    /// P: a report about a session that has ended since is believed.
    ReportOfDead,
    /// S: a shard opens before everybody has reported.
    OpenAtOnce,
    /// O: a new home is answered before all members have reported what the session has.
    AnswerBeforeReports,
    /// S: a shard opens although an orphan may hold something there.
    OpenWithoutOrphans,
    /// A release that was not answered is reported like a hold.
    ReportReleased,
    /// M: a leader leaves a start out without first refusing it a lease.
    RemovalOnItsWay,
    /// M: a new leader does not wait until the lease answers of its predecessor have run out.
    OldAnswer,
    /// M: a view counts in whichever term it is logged.
    ViewInAnyTerm,
    /// X: a leader that was held up leaves out members that it has not answered.
    LeavesOutWhoAsks,
    /// P: an orphan is judged although it has resumed.
    LateEnd,
    /// X: a node that crashes is let in again at once.
    CrashLoop,
    /// F: messages of an instance do not carry the last fence.
    SilentRelease,
    /// U: an instance begins as if nobody were inside.
    EarlyGo,
    /// W: a message of an instance that has not begun here is dropped.
    EarlyToken,
    /// A node that hears that another one waits starts counting its burst only then.
    FreshBurst,
    /// K: a gate is granted while its definition is on its way.
    DeleteInUse,
    /// X: a shard moves on as soon as it has arrived.
    NoStay,
    /// R: a view without the holder's home frees a job that is on its way through the log.
    FreedByView,
    /// Y: a walk goes round only once.
    OneRound,
    /// Y: a walk believes what the owners' books say about holders.
    OwnersBooks,
    /// Y: every node that finds a knot refuses one of its own sessions.
    EveryFinder,
    /// Z: what is reserved for a set is not reported to a new owner.
    ReservedUnreported,
    /// N: the term of a cancelled campaign is given back although the next campaign is on its way.
    TermReturned,
    /// A leader that has changed its value is reported with the old one.
    OldValue,
    /// Z: `RESUME` gives back what was reserved for a set even if it was claimed.
    ReservedFreed,
    /// A proposal is answered before the log has decided.
    EarlyDecision,
    /// Some messages of a group are not delivered to listeners.
    SkippedDelivery,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_their_names() {
        assert_eq!("OldHome".parse(), Ok(Broken::OldHome));
        let unknown = "oldhome".parse::<Broken>().unwrap_err();
        assert!(unknown.contains("`oldhome`") && unknown.contains("OldHome, "));
    }
}
