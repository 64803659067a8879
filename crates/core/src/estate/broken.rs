//! Rules that tests leave out on purpose.

use std::str::FromStr;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A rule of the estate that a test leaves out, to see that its absence is noticed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Broken {
            $($(#[$doc])* $name,)*
        }

        impl FromStr for Broken {
            type Err = String;

            /// By its name here.
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
    /// I: implicit sessions go on when the lease is over.
    CutOffHolder,
    /// N: a grant that nobody waits for is not given back.
    LateGrant,
    /// O: frames are taken whatever home they name.
    OldHome,
    /// O: what can be heard is heard before what was sent earlier and cannot.
    Overtaking,
    /// G: what is heard of a start before the view that lets it in is dropped.
    Stranger,
    /// O: the answer to an earlier question is taken for that to a later one.
    EarlierAnswer,
    /// P: what is reported of a session that has ended since is believed.
    ReportOfDead,
    /// S: a shard opens before everybody has reported.
    OpenAtOnce,
    /// S: a shard opens although an orphan may hold something there.
    OpenWithoutOrphans,
    /// A release that was not answered is reported like a hold.
    ReportReleased,
    /// M: a leader leaves a start out without having refused it first.
    RemovalOnItsWay,
    /// M: a new leader does not wait until answers of the one before are over.
    OldAnswer,
    /// M: a view counts in whichever term the log gets it.
    ViewInAnyTerm,
    /// X: a leader that was held up leaves out those whom it has not answered.
    LeavesOutWhoAsks,
    /// P: an orphan is judged although it has resumed.
    LateEnd,
    /// X: whoever crashes is let in again at once.
    CrashLoop,
    /// F: what is said about an instance does not bring the last fence.
    SilentRelease,
    /// U: an instance begins as if nobody were inside.
    EarlyGo,
    /// W: what is said about an instance that has not begun here is dropped.
    EarlyToken,
    /// A node that hears that another one waits begins to count its burst only then.
    FreshBurst,
    /// K: a gate is granted while its definition is on its way.
    DeleteInUse,
    /// X: a shard moves on as soon as it has come.
    NoStay,
    /// R: a job that is on its way through the log is freed with a view without its holder's home.
    FreedByView,
    /// Y: a walk goes round once only.
    OneRound,
    /// Y: a walk believes what the owners' books say of holders.
    OwnersBooks,
    /// Y: whoever finds a knot refuses one of its own sessions.
    EveryFinder,
    /// Z: what is reserved for a set is not reported to a new owner.
    ReservedUnreported,
    /// N: the term of a campaign that was called off is given back although the next campaign is on its way.
    TermReturned,
    /// A leader that has changed its value is reported with the one of before.
    OldValue,
    /// Z: what was reserved for a set is given back at `RESUME`, claimed or not.
    ReservedFreed,
    /// A proposal is answered before the log has decided.
    EarlyDecision,
    /// Some messages of a group are not told to those who listen.
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
