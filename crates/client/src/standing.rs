//! Whether a guard still guards. Two facts decide: the standing of its session and that of its own hold. Both have a deadline
//! on the client's clock, after which the guard is lost, whatever anybody says later.

use std::time::Instant;

/// How certain a guard is.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::State;
///
/// let held = testigo.lock("deploy").await?;
/// assert_eq!(held.state(), State::Held);
/// testigo.stop().await?;
/// assert_eq!(held.changed(State::Held).await, State::Suspect);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The node confirmed it, and no deadline has passed.
    Held,
    /// The node is silent. The guard still holds until its deadline, and may be confirmed again before.
    Suspect,
    /// It is over for good. What it protected may already be used by another.
    Lost,
}

/// Why a guard is lost.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{Lock, Loss, SessionOptions};
///
/// let session = testigo.session(SessionOptions::default()).await?;
/// let held = session.lock(Lock::new("deploy")).await?.ok_or("the wait ended")?;
/// session.close().await?;
/// assert_eq!(held.lost().await, Loss::SessionOver);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The node was silent for the whole TTL of the session.
    Silence,
    /// The hold limit of the gate, or the stay of the room, is over.
    Limit,
    /// The node says that the hold is over.
    Told,
    /// The session has ended: it was closed here, or ended at the node.
    SessionOver,
}

/// The standing of a session, as far as the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionStanding {
    pub(crate) connected: bool,
    /// When the node may have ended it.
    pub(crate) deadline: Instant,
    /// When the node may have given to others what it owns itself, for which it speaks even without a majority.
    pub(crate) here_deadline: Instant,
    pub(crate) here_connected: bool,
    /// How many times a connection has come up. What a node pushes ends with its connection.
    pub(crate) links: u64,
    pub(crate) over: Option<Loss>,
}

impl SessionStanding {
    /// Its standing as far as one of its holds is concerned.
    fn seen(self, hold: &HoldStanding) -> SessionStanding {
        match hold.here {
            true => SessionStanding {
                connected: self.here_connected,
                deadline: self.here_deadline,
                ..self
            },
            false => self,
        }
    }
}

/// The standing of one hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HoldStanding {
    pub(crate) fence: u64,
    /// When the gate's hold limit may have ended it.
    pub(crate) until: Option<Instant>,
    pub(crate) over: Option<Loss>,
    /// Whether others wait for it.
    pub(crate) wanted: bool,
    /// Whether it is a slot that the connected node owns, so that nobody else can give it away.
    pub(crate) here: bool,
}

/// When a guard is lost if nothing more is heard.
pub(crate) fn deadline(session: &SessionStanding, hold: &HoldStanding) -> Instant {
    let session = session.seen(hold);
    let until = hold.until.unwrap_or(session.deadline);
    until.min(session.deadline)
}

/// Why a guard is lost at `now`; `None` if it is not.
pub(crate) fn loss(now: Instant, session: &SessionStanding, hold: &HoldStanding) -> Option<Loss> {
    let session = session.seen(hold);
    let told = hold.over.or(session.over);
    let limit = hold.until.filter(|until| now >= *until);
    told.or(limit.map(|_| Loss::Limit))
        .or((now >= session.deadline).then_some(Loss::Silence))
}

/// The state of a guard at `now`.
pub(crate) fn state(now: Instant, session: &SessionStanding, hold: &HoldStanding) -> State {
    match loss(now, session, hold) {
        Some(_) => State::Lost,
        None if session.seen(hold).connected => State::Held,
        None => State::Suspect,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn session(now: Instant) -> SessionStanding {
        SessionStanding {
            connected: true,
            deadline: now + Duration::from_secs(9),
            here_deadline: now + Duration::from_secs(9),
            here_connected: true,
            links: 1,
            over: None,
        }
    }

    #[test]
    fn a_silent_node_makes_a_guard_suspect_and_then_lost() {
        let now = Instant::now();
        let mut session = session(now);
        let hold = HoldStanding::default();
        assert_eq!(state(now, &session, &hold), State::Held);
        session.connected = false;
        assert_eq!(state(now, &session, &hold), State::Suspect);
        let end = deadline(&session, &hold);
        assert_eq!(state(end, &session, &hold), State::Lost);
        assert_eq!(loss(end, &session, &hold), Some(Loss::Silence));
    }

    #[test]
    fn the_hold_limit_ends_a_guard_of_a_living_session() {
        let now = Instant::now();
        let hold = HoldStanding {
            until: Some(now + Duration::from_secs(2)),
            ..HoldStanding::default()
        };
        let end = deadline(&session(now), &hold);
        assert_eq!(end, now + Duration::from_secs(2));
        assert_eq!(loss(end, &session(now), &hold), Some(Loss::Limit));
    }

    #[test]
    fn what_the_node_said_counts_at_once() {
        let now = Instant::now();
        let told = HoldStanding {
            over: Some(Loss::Told),
            ..HoldStanding::default()
        };
        assert_eq!(loss(now, &session(now), &told), Some(Loss::Told));
        let mut over = session(now);
        over.over = Some(Loss::SessionOver);
        let hold = HoldStanding::default();
        assert_eq!(state(now, &over, &hold), State::Lost);
    }
}
