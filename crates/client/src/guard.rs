//! A guard: the right to be inside a gate, as long as it lasts. It knows, on the client's own clock, when it may have been
//! lost, whether or not the node can still say so.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::sleep_until;

use crate::client::Client;
use crate::driver::{Errand, Inside, now};
use crate::election::election_of;
use crate::machine::HoldId;
use crate::pool::slot_of;
use crate::refusal::Call;
use crate::standing::{HoldStanding, Loss, SessionStanding, State, deadline, loss, state};

/// Being inside a gate, or leading an election: then its fence is the term, and giving it back resigns. [`Guard::release`]
/// gives the gate back and waits until the node says so.
///
/// Dropping it gives the gate back too, but a drop cannot wait. It hands the release to the client's task and returns, so
/// the next holder may come a moment later. The release is sent for as long as the tokio runtime runs. A program whose
/// runtime ends right after the drop, that is killed, or that has no connection then, leaves the gate held until the
/// session's time to live is over: 10 seconds, unless [`SessionOptions`](crate::SessionOptions) say otherwise. So release
/// the last guard of a program, and drop the others.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// let held = testigo.lock("deploy").await?;
/// tokio::select! {
///     () = copy_files(held.fence()) => held.release().await?,
///     loss = held.lost() => println!("stopped half-way: {loss:?}"),
/// }
/// # Ok(())
/// # }
/// # async fn copy_files(_fence: u64) {}
/// ```
#[derive(Debug)]
pub struct Guard {
    pub(crate) client: Client,
    session: watch::Receiver<SessionStanding>,
    hold: watch::Receiver<HoldStanding>,
    pub(crate) id: HoldId,
    gate: String,
    /// A lost guard stays lost: a late confirmation does not bring it back.
    lost: AtomicBool,
    released: bool,
}

impl Guard {
    pub(crate) fn new(
        client: Client,
        session: watch::Receiver<SessionStanding>,
        inside: Inside,
    ) -> Guard {
        Guard {
            client,
            session,
            hold: inside.standing,
            id: inside.hold,
            gate: match (election_of(&inside.gate), slot_of(&inside.gate)) {
                (Some(election), _) => election.to_owned(),
                (_, Some((pool, slot))) => format!("{pool}/{slot}"),
                (None, None) => inside.gate.clone(),
            },
            lost: AtomicBool::new(false),
            released: false,
        }
    }

    /// The name of the gate, or of the election.
    pub fn gate(&self) -> &str {
        &self.gate
    }

    /// The fence: it exceeds that of every earlier holder that could not be inside at the same time. Pass it to the protected
    /// side, which refuses a fence lower than one it has seen.
    pub fn fence(&self) -> u64 {
        self.hold.borrow().fence
    }

    /// How sure it is now.
    pub fn state(&self) -> State {
        if self.lost.load(Ordering::Relaxed) {
            return State::Lost;
        }
        let state = state(now(), &self.session.borrow(), &self.hold.borrow());
        if state == State::Lost {
            self.lost.store(true, Ordering::Relaxed);
        }
        state
    }

    /// When it is lost if the node stays silent from now on. Every sign of life moves it on.
    pub fn deadline(&self) -> Instant {
        deadline(&self.session.borrow(), &self.hold.borrow())
    }

    /// Waits until the deadline differs from `seen`, and returns the new one.
    pub async fn renewed(&self, seen: Instant) -> Instant {
        let (mut session, mut hold) = (self.session.clone(), self.hold.clone());
        loop {
            session.mark_unchanged();
            hold.mark_unchanged();
            let deadline = self.deadline();
            if deadline != seen {
                return deadline;
            }
            tokio::select! {
                () = changed(&mut session) => {}
                () = changed(&mut hold) => {}
            }
        }
    }

    /// Waits until the guard is lost, and says why: the signal to stop whatever it protects.
    pub async fn lost(&self) -> Loss {
        loop {
            if let Some(loss) = self.endangered(Duration::ZERO).await {
                return loss;
            }
        }
    }

    /// Waits until the guard is lost, and says why, or until only `margin` remains before its deadline: the time that it
    /// takes to stop what it protects.
    pub async fn endangered(&self, margin: Duration) -> Option<Loss> {
        let (mut session, mut hold) = (self.session.clone(), self.hold.clone());
        loop {
            let due = {
                let (session, hold) = (session.borrow_and_update(), hold.borrow_and_update());
                let now = now();
                if let Some(loss) = loss(now, &session, &hold) {
                    self.lost.store(true, Ordering::Relaxed);
                    return Some(loss);
                }
                let deadline = deadline(&session, &hold);
                if now + margin >= deadline {
                    return None;
                }
                deadline - margin
            };
            tokio::select! {
                () = sleep_until(due.into()) => {}
                () = changed(&mut session) => {}
                () = changed(&mut hold) => {}
            }
        }
    }

    /// Waits until the state differs from `seen`, and returns the new one.
    pub async fn changed(&self, seen: State) -> State {
        let (mut session, mut hold) = (self.session.clone(), self.hold.clone());
        loop {
            session.mark_unchanged();
            hold.mark_unchanged();
            let state = self.state();
            if state != seen {
                return state;
            }
            tokio::select! {
                () = sleep_until(self.deadline().into()) => {}
                () = changed(&mut session) => {}
                () = changed(&mut hold) => {}
            }
        }
    }

    /// Waits until others wait for the gate: a holder that can do so should give it back soon.
    pub async fn wanted(&self) {
        let mut hold = self.hold.clone();
        if hold.wait_for(|hold| hold.wanted).await.is_err() {
            pending::<()>().await;
        }
    }

    /// From writer to reader, without leaving; returns the new fence, which readers that join share. `NOTHELD` if it was lost
    /// before. If the outcome is unknown, the guard tells: it is lost if the downgrade was done.
    pub async fn downgrade(&self) -> Call<u64> {
        let hold = self.id;
        let downgraded = self.client.errand(|end| Errand::Downgrade { hold, end });
        downgraded.await?;
        Ok(self.fence())
    }

    /// Gives the gate back; returns once the node confirms it. `NOTHELD` if it was lost before.
    pub async fn release(mut self) -> Call<()> {
        self.released = true;
        let hold = self.id;
        let end = |end| Errand::Release {
            hold,
            end: Some(end),
        };
        self.client.errand(end).await.map(drop)
    }
}

/// Waits for a change; for ever if nobody is left to make one, because a deadline then decides.
async fn changed<T>(watched: &mut watch::Receiver<T>) {
    if watched.changed().await.is_err() {
        pending::<()>().await;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.released {
            let (hold, end) = (self.id, None);
            // Without its task the connection is closed, and the node will do the rest.
            let _ = self.client.errands.send(Errand::Release { hold, end });
        }
    }
}
