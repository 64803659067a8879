//! The front door for the program that embeds the node: the same semantics without a socket. A session here is implicit and
//! ends when it is dropped, or it is opened and logged.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use testigo_core::pool::Said;
use testigo_core::{
    Answer, Ask, Change, Command, Definition, Fence, GateSummary, GateView, Grant, Lock, LockAll,
    Name, Outcome, Pattern, Refusal, Resumed, SessionId, SessionView, Settled, Ticket, WaitEnd,
    Word,
};

use crate::completion::Completion;
use crate::house::{Answers, Holding, House, Leader, Resuming, Seat, with_misfits};
use crate::mailbox::{Mailbox, SessionEvent};
use crate::node::Node;
use crate::shared::Shared;
use crate::wire::refuse;

/// A session of a caller in this process.
#[derive(Debug)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    id: SessionId,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Node {
    /// A new implicit session: it gives everything back when it is dropped.
    pub fn session(&self) -> Result<Session, Refusal> {
        let mailbox = Arc::new(Mailbox::default());
        let id = self.shared.enter(|house| {
            open_to_callers(house)?;
            let client = house.next_client();
            let id = house.implicit_of(client);
            house.ask(id, &Command::Connect)?;
            house.sit_down(id, Seat::Embedded(Arc::clone(&mailbox)));
            Ok(id)
        })?;
        Ok(self.at(id, mailbox))
    }

    /// Opens a logged session. Blocks until the log has it.
    pub fn open_session(
        &self,
        ttl_ms: Option<u64>,
        label: Option<&str>,
    ) -> Result<Session, Refusal> {
        let mailbox = Arc::new(Mailbox::default());
        let label = label.map(str::to_owned);
        let submitted = self.shared.enter(|house| {
            let session = house.draw_session()?;
            let ttl_ms = ttl_ms.unwrap_or(house.services.limits().ttl_ms_default);
            let change = Change::OpenSession {
                session,
                ttl_ms,
                label,
                user: None,
            };
            submit(house, change, Some(Arc::clone(&mailbox)))
        })?;
        match submitted.wait()? {
            Outcome::SessionOpened { session, .. } => Ok(self.at(session, mailbox)),
            other => unreachable!("opening a session gave {other:?}"),
        }
    }

    /// Resumes a logged session, with what the caller believes to hold.
    pub fn resume_session(
        &self,
        id: SessionId,
        holdings: &[Holding<'_>],
    ) -> Result<(Session, Resumed), Refusal> {
        let mailbox = Arc::new(Mailbox::default());
        let seat = || Seat::Embedded(Arc::clone(&mailbox));
        let (answer, fits) = self.shared.enter(|house| {
            open_to_callers(house)?;
            match house.resume(id, holdings, Said::default())? {
                Resuming::Done(resumed) => {
                    house.take_over(id, seat());
                    let (answer, fits) = (Completion::new(), vec![true; resumed.claims.len()]);
                    answer.give(Ok(Answer::Resumed(resumed)));
                    Ok((answer, fits))
                }
                Resuming::Asked { ticket, fits } => Ok((house.answer_embedded(ticket), fits)),
            }
        })?;
        let Answer::Resumed(resumed) = answer.wait()? else {
            unreachable!("a resume was answered otherwise");
        };
        self.shared.enter(|house| house.take_over(id, seat()));
        Ok((self.at(id, mailbox), with_misfits(resumed, fits)))
    }

    fn at(&self, id: SessionId, mailbox: Arc<Mailbox>) -> Session {
        Session {
            shared: Arc::clone(&self.shared),
            id,
            mailbox,
        }
    }

    /// Creates a gate. The answer comes when the log has it.
    pub fn create_gate(&self, gate: &str, definition: Definition) -> Result<Submitted, Refusal> {
        let gate = Name::new(gate)?;
        self.shared.enter(|house| {
            let number = house.replicated().gate_number(&gate);
            let change = Change::CreateGate {
                gate,
                definition,
                number,
            };
            submit(house, change, None)
        })
    }

    /// Deletes a gate. The answer comes when the log has it.
    pub fn delete_gate(&self, gate: &str) -> Result<Submitted, Refusal> {
        let gate = Name::new(gate)?;
        self.shared.enter(|house| {
            let number = house.replicated().gate_number(&gate);
            submit(house, Change::DeleteGate { gate, number }, None)
        })
    }

    /// Submits any change to the log.
    pub fn submit(&self, change: Change) -> Result<Submitted, Refusal> {
        self.shared.enter(|house| submit(house, change, None))
    }

    /// A gate with its holders and waiters, at one moment. If there are very many, other callers wait meanwhile.
    pub fn gate(&self, gate: &str) -> Result<GateView, Refusal> {
        self.shared.enter(|house| house.local().gate(gate))
    }

    /// All gates whose names match a pattern, by name, gathered in slices as for `GATE LIST`. Empty if the node has stopped.
    /// Refused with `BADARG` if the pattern exceeds [`Limits::PATTERN_BYTES`](testigo_core::Limits::PATTERN_BYTES) or
    /// [`Limits::PATTERN_STARS`](testigo_core::Limits::PATTERN_STARS).
    pub fn gates(&self, pattern: &str) -> Result<Vec<GateSummary>, Refusal> {
        let pattern = Pattern::new(pattern)?.matcher();
        let (mut at, mut found) = (0, BTreeMap::new());
        let found = self.shared.in_slices(move |house, slice| {
            let end = house.local().gate_places();
            let places = slice.places_of(&mut at, end, pattern.weight());
            let wanted = |name: &Name| name.as_election().is_none() && pattern.fits(name);
            for gate in house.local().gates_in(places, wanted) {
                found.insert(gate.name.clone(), gate);
            }
            (at >= end).then(|| std::mem::take(&mut found))
        });
        Ok(found.unwrap_or_default().into_values().collect())
    }

    /// All sessions, by ID, gathered in slices. Empty if the node has stopped.
    pub fn sessions(&self) -> Vec<SessionView> {
        let (mut at, mut found) = (0, BTreeMap::new());
        let found = self.shared.in_slices(move |house, slice| {
            let end = house.local().session_places();
            while at < end && slice.has_room() {
                for session in house.local().sessions_in(at..at + 1) {
                    slice.spend(house.local().session_weight(session));
                    found.extend(
                        house
                            .local()
                            .session_view(session)
                            .map(|view| (session, view)),
                    );
                }
                slice.spend(1);
                at += 1;
            }
            (at >= end).then(|| std::mem::take(&mut found))
        });
        found.unwrap_or_default().into_values().collect()
    }

    /// The leader of an election, if there is one.
    pub fn leader(&self, election: &str) -> Result<Option<Leader>, Refusal> {
        let election = Name::election(election)?;
        let view = self.shared.enter(|house| house.election(&election, 0))?;
        Ok(view.as_ref().and_then(Leader::of))
    }

    /// Whether a fence still names a holder of the gate.
    pub fn fence_check(&self, gate: &str, fence: Fence) -> bool {
        self.shared
            .enter(|house| house.local().fence_check(gate, fence))
    }
}

fn open_to_callers(house: &House) -> Result<(), Refusal> {
    match house.is_stopping() {
        true => Err(refuse(Word::Unavailable, "the node is stopping")),
        false => Ok(()),
    }
}

pub(crate) fn submit(
    house: &mut House,
    change: Change,
    mailbox: Option<Arc<Mailbox>>,
) -> Result<Submitted, Refusal> {
    let completion = Completion::new();
    house.submit(change, Answers::Embedded(Arc::clone(&completion), mailbox))?;
    Ok(Submitted(completion))
}

/// A change on its way through the log. Dropping this does not undo the change.
#[derive(Debug)]
#[must_use = "the change is durable only when this is answered"]
pub struct Submitted(Arc<Completion<Result<Outcome, Refusal>>>);

impl Submitted {
    /// Blocks until the change is durable and done, or refused.
    pub fn wait(self) -> Result<Outcome, Refusal> {
        self.0.wait()
    }
}

impl Future for Submitted {
    type Output = Result<Outcome, Refusal>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

/// A candidacy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Campaign<'a> {
    /// The election's name.
    pub election: &'a str,
    /// What is told of the leader.
    pub value: &'a [u8],
    /// The highest rank among the candidates is elected; of equal ones, the first to campaign.
    pub rank: i64,
    /// How long to wait: 0 to try once, `None` for as long as the limit allows.
    pub wait_ms: Option<u64>,
}

/// A request to enter, settled or waiting.
#[derive(Debug)]
pub enum Entering {
    /// It is settled.
    Settled(Settled),
    /// It waits.
    Waiting(Wait),
}

impl Session {
    /// Its identity.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Enters a gate, blocking the thread while it waits. `None` if the wait ended without entering.
    pub fn lock(&self, lock: &Lock<'_>) -> Result<Option<Grant>, Refusal> {
        let settled = match self.enter(lock)? {
            Entering::Settled(settled) => settled,
            Entering::Waiting(wait) => wait.wait(),
        };
        match settled {
            Settled::Entered(grant) => Ok(Some(grant)),
            Settled::EnteredAll(grants) => Ok(grants.first().copied()),
            Settled::Ended(end) => ended(end).map(|()| None),
            Settled::Taken(taken) => unreachable!("a request to enter gave {taken:?}"),
        }
    }

    /// Enters several gates, all or none, blocking the thread while it waits.
    pub fn lock_all(&self, set: &LockAll<'_>) -> Result<Option<Box<[Grant]>>, Refusal> {
        let settled = match self.enter_all(set)? {
            Entering::Settled(settled) => settled,
            Entering::Waiting(wait) => wait.wait(),
        };
        match settled {
            Settled::Entered(grant) => Ok(Some([grant].into())),
            Settled::EnteredAll(grants) => Ok(Some(grants)),
            Settled::Ended(end) => ended(end).map(|()| None),
            Settled::Taken(taken) => unreachable!("a request to enter gave {taken:?}"),
        }
    }

    /// Asks to enter a gate and goes on. Set `asynchronous` if the program does other things while it waits.
    pub fn enter(&self, lock: &Lock<'_>) -> Result<Entering, Refusal> {
        self.ask_to_enter(&Command::Lock(lock.clone()), || [lock.gate.into()].into())
    }

    /// Asks to enter several gates, all or none, and goes on.
    pub fn enter_all(&self, set: &LockAll<'_>) -> Result<Entering, Refusal> {
        let gates = set.gates.iter().map(|(gate, _)| Box::from(*gate));
        self.ask_to_enter(&Command::LockAll(set.clone()), || gates.collect())
    }

    fn ask_to_enter(
        &self,
        command: &Command<'_>,
        gates: impl FnOnce() -> Box<[Box<str>]>,
    ) -> Result<Entering, Refusal> {
        self.shared.enter(|house| {
            open_to_callers(house)?;
            match house.ask(self.id, command)? {
                Answer::Settled(settled) => Ok(Entering::Settled(settled)),
                Answer::Waiting(ticket) => Ok(Entering::Waiting(Wait {
                    shared: Arc::clone(&self.shared),
                    session: self.id,
                    ticket,
                    completion: house.complete_later(ticket),
                    gates: gates(),
                    taken: false,
                })),
                other => unreachable!("a request to enter was answered {other:?}"),
            }
        })
    }

    /// Campaigns, blocking the thread until the session leads; returns its term. `None` if the wait ended before. A session
    /// that already leads or campaigns changes what it says of itself.
    pub fn campaign(&self, campaign: &Campaign<'_>) -> Result<Option<Fence>, Refusal> {
        let election = Name::election(campaign.election)?;
        let lock = Lock {
            gate: &election,
            ask: Ask::Lead {
                rank: campaign.rank,
                value: campaign.value,
            },
            wait_ms: campaign.wait_ms,
            ..Lock::default()
        };
        Ok(self.lock(&lock)?.map(|grant| grant.fence))
    }

    /// Gives up a leadership or a candidacy.
    pub fn resign(&self, election: &str) -> Result<(), Refusal> {
        let election = Name::election(election)?;
        let election = &*election;
        self.ask(&Command::Resign { election }).map(drop)
    }

    /// Gives a gate back.
    pub fn unlock(&self, gate: &str, fence: Option<Fence>) -> Result<(), Refusal> {
        self.ask(&Command::Unlock { gate, fence }).map(drop)
    }

    /// From writer to reader, without leaving; returns the new fence.
    pub fn downgrade(&self, gate: &str) -> Result<Fence, Refusal> {
        match self.ask(&Command::Downgrade { gate })? {
            Answer::Downgraded(fence) => Ok(fence),
            other => unreachable!("a downgrade was answered {other:?}"),
        }
    }

    /// Proof, after a crash, that the session was granted this. `None` if it does not hold the gate with this fence.
    pub fn receipt(&self, gate: &str, fence: Fence) -> Option<String> {
        self.shared
            .enter(|house| house.receipt(self.id, gate, fence))
    }

    /// A sign of life, without which an opened session runs out.
    pub fn renew(&self) -> Result<(), Refusal> {
        self.ask(&Command::Renew).map(drop)
    }

    fn ask(&self, command: &Command<'_>) -> Result<Answer, Refusal> {
        let (answer, later) = self.shared.enter(|house| {
            let answer = house.ask(self.id, command)?;
            let later = match answer {
                Answer::Waiting(ticket) => Some(house.answer_embedded(ticket)),
                _ => None,
            };
            Ok((answer, later))
        })?;
        later.map_or(Ok(answer), |later| later.wait())
    }

    /// The oldest event that the session has not read yet.
    pub fn next_event(&self) -> Option<SessionEvent> {
        self.mailbox.take()
    }

    /// Blocks until there is an event for the session.
    pub fn wait_for_event(&self) -> SessionEvent {
        self.mailbox.wait()
    }

    /// Ends the session and gives everything back; for an opened session, returns when the log has it.
    pub fn close(self) -> Result<(), Refusal> {
        if self.id.is_implicit() {
            return Ok(());
        }
        let session = self.id;
        self.shared.enter(|house| house.give_back_all(session));
        let submitted = self
            .shared
            .enter(|house| submit(house, house.end_change(session, true), None))?;
        submitted.wait().map(drop)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared
            .enter(|house| house.stand_up_from(self.id, &self.mailbox));
    }
}

/// A request that waits, to be awaited or blocked on. If it is dropped before it is settled, it is cancelled, and what was
/// granted meanwhile is given back.
#[derive(Debug)]
pub struct Wait {
    shared: Arc<Shared>,
    session: SessionId,
    ticket: Ticket,
    completion: Arc<Completion<Settled>>,
    gates: Box<[Box<str>]>,
    taken: bool,
}

impl Wait {
    /// Identifies the wait, as in `GATE SHOW`.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Blocks the thread until the request is settled.
    pub fn wait(mut self) -> Settled {
        self.taken = true;
        self.completion.wait()
    }
}

impl Future for Wait {
    type Output = Settled;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Settled> {
        let polled = self.completion.poll(context);
        self.taken |= polled.is_ready();
        polled
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let (session, ticket) = (self.session, self.ticket);
        self.shared
            .enter(|house| house.ask(session, &Command::Cancel { ticket }).map(drop))
            .unwrap_or_default();
        let grants: &[Grant] = match &self.completion.take() {
            Some(Settled::Entered(grant)) => &[*grant],
            Some(Settled::EnteredAll(grants)) => &grants.clone(),
            _ => return,
        };
        for (gate, grant) in self.gates.iter().zip(grants) {
            let command = Command::Unlock {
                gate,
                fence: Some(grant.fence),
            };
            let given_back = self.shared.enter(|house| house.ask(session, &command));
            // It may be lost by now; then there is nothing to give back.
            drop(given_back);
        }
    }
}

fn ended(end: WaitEnd) -> Result<(), Refusal> {
    match end {
        WaitEnd::TimedOut | WaitEnd::Cancelled => Ok(()),
        WaitEnd::SessionEnded => Err(refuse(Word::Stale, "the session ended while it waited")),
    }
}
