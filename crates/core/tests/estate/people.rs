//! What clients do and hear: they connect, ask, stay, give back, and take their sessions up again elsewhere.

use testigo_core::estate::{Out, Tell};
use testigo_core::{
    Answer, Ask, Change, Claim, ClaimEnd, Command, Grant, Lock, LockAll, Refusal, SessionId,
    Settled, Ticket,
};

use crate::clients::{Held, State};
use crate::world::{BURST, Event, FAULTS_MS, Node, TTL_MS, World};

impl World {
    /// Clients of a node notice that it is gone.
    pub(crate) fn connections_end(&mut self, at: usize) {
        for which in 0..self.clients.len() {
            if self.clients[which].node == at {
                self.lose_connection(which);
            }
        }
    }

    /// The node hears that a client has gone away as soon as it can.
    pub(crate) fn hang_up(&mut self, which: usize) {
        let session = self.clients[which].session.take();
        let at = self.clients[which].node;
        let implicit = session.filter(|session| session.is_implicit());
        self.nodes[at].hung_up.extend(implicit);
    }

    pub(crate) fn lose_connection(&mut self, which: usize) {
        let held = self.clients[which].holds().to_vec();
        let client = &mut self.clients[which];
        match client.opened && client.session.is_some() && client.state != State::Opening {
            true => client.state = State::Resuming { held, ticket: None },
            false => {
                for (gate, _) in held {
                    self.monitors.leaves(which, &gate);
                }
                client.state = State::Outside;
                self.hang_up(which);
            }
        }
        let wait = self.random.between(50, 1_500);
        self.clients[which].node = self.random.below(self.nodes.len() as u64) as usize;
        self.clients[which].due = self.now + wait;
    }

    /// A client is told something by the node that it is connected to.
    pub(crate) fn hear(&mut self, at: usize, tell: Tell) -> Result<(), String> {
        let of = match &tell {
            Tell::Answered { session, .. }
            | Tell::Wanted { session, .. }
            | Tell::Lost { session, .. }
            | Tell::Suspect { session }
            | Tell::Closed { session } => *session,
            Tell::Moved { .. } | Tell::Died { .. } => return Ok(()),
        };
        let mut clients = self.clients.iter();
        let which = clients.position(|client| client.session == Some(of) && client.node == at);
        let Some(which) = which else {
            return Ok(());
        };
        match tell {
            Tell::Answered { ticket, answer, .. } => self.answered(which, ticket, answer)?,
            Tell::Lost { gate, fence, .. } => {
                let lost = (gate.to_string(), fence);
                if self.clients[which].holds().contains(&lost) {
                    self.not_wronged(which, &gate)?;
                    self.monitors.leaves(which, &gate);
                    self.clients[which].lose(&gate);
                }
            }
            Tell::Closed { .. } => {
                self.leaves_all(which);
                self.clients[which].session = None;
                self.clients[which].state = State::Outside;
            }
            Tell::Suspect { .. } => self.lose_connection(which),
            Tell::Wanted { .. } | Tell::Moved { .. } | Tell::Died { .. } => {}
        }
        Ok(())
    }

    pub(crate) fn answered(
        &mut self,
        which: usize,
        ticket: Ticket,
        answer: Result<Answer, Refusal>,
    ) -> Result<(), String> {
        match self.clients[which].state.clone() {
            State::Waiting {
                gates,
                ticket: own,
                held,
            } if own == ticket => match answer {
                Ok(Answer::Settled(settled)) => self.settled(which, gates, held, settled)?,
                _ => self.clients[which].state = State::inside(held),
            },
            State::Leaving { ticket: own, held } if own == ticket => {
                self.confirmed(which, &held, &answer)?;
                self.clients[which].state = State::inside(held);
            }
            State::Resuming {
                held,
                ticket: Some(own),
            } if own == ticket => {
                self.tally.resumed += 1;
                let Ok(Answer::Resumed(resumed)) = answer else {
                    return Ok(());
                };
                let believes = self.clients[which].deadline > self.now;
                let mut kept = Vec::new();
                for ((gate, fence), end) in held.into_iter().zip(&resumed.claims) {
                    if *end != ClaimEnd::Held {
                        if believes {
                            self.not_wronged(which, &gate)?;
                        }
                        self.monitors.leaves(which, &gate);
                        continue;
                    }
                    if !believes {
                        self.lapse();
                        self.monitors.stays(self.now, which, &gate, fence)?;
                    }
                    kept.push((gate, fence));
                }
                // The node has heard of it then or later.
                self.clients[which].deadline = self.clients[which].resumed + TTL_MS;
                self.clients[which].state = State::inside(kept.clone());
                // What it did not know of it does not want.
                for (gate, _) in resumed.holds {
                    if !kept.iter().any(|(own, _)| **own == *gate) {
                        let gate: &str = &gate;
                        let command = Command::Unlock { gate, fence: None };
                        self.ask(which, &command)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What a client asked for ended; `held` it has beside that.
    pub(crate) fn settled(
        &mut self,
        which: usize,
        gates: Vec<String>,
        mut held: Held,
        settled: Settled,
    ) -> Result<(), String> {
        let grants: Vec<Grant> = match settled {
            Settled::Entered(grant) => vec![grant],
            Settled::EnteredAll(grants) => grants.into_vec(),
            _ => {
                self.clients[which].state = State::inside(held);
                return Ok(());
            }
        };
        let single = grants.len() == 1;
        self.tally.sets += u64::from(!single);
        self.clients[which].granted = self.now;
        self.lapse();
        for (gate, grant) in gates.into_iter().zip(grants) {
            self.tally.grants += 1;
            self.granted.insert(gate.clone(), self.now);
            self.monitors.enters(self.now, which, &gate, grant.fence)?;
            // What was reserved for a set was granted earlier.
            if single {
                let node = self.clients[which].node;
                self.monitors.granted(self.now, node, &gate, BURST)?;
            }
            held.push((gate, grant.fence));
        }
        self.clients[which].state = State::Inside { held };
        Ok(())
    }

    /// A client believes no more to be inside anything.
    pub(crate) fn leaves_all(&mut self, which: usize) {
        for (gate, _) in self.clients[which].holds().to_vec() {
            self.monitors.leaves(which, &gate);
        }
    }

    /// A client that keeps the rules, and whose session lives, loses nothing.
    fn not_wronged(&self, which: usize, gate: &str) -> Result<(), String> {
        let client = &self.clients[which];
        match client.opened && client.deadline > self.now {
            true => Err(format!("at {}: client {which} has lost {gate}", self.now)),
            false => Ok(()),
        }
    }

    /// Whoever knows that its session may be over believes nothing any more.
    pub(crate) fn lapse(&mut self) {
        for which in 0..self.clients.len() {
            let client = &self.clients[which];
            if client.opened && client.deadline <= self.now {
                self.leaves_all(which);
            }
        }
    }

    /// Asks the node that a client is connected to.
    pub(crate) fn ask(
        &mut self,
        which: usize,
        command: &Command<'_>,
    ) -> Result<Option<Result<Answer, Refusal>>, String> {
        let at = self.clients[which].node;
        let Some(session) = self.clients[which].session.filter(|_| self.works(at)) else {
            return Ok(None);
        };
        let mut out = Out::default();
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let answer = estate.ask(self.now, replicated, session, command, &mut out);
        if answer.is_ok() {
            self.clients[which].deadline = self.now + TTL_MS;
        }
        self.carry_out(at, out)?;
        Ok(Some(answer))
    }

    /// A client does what it wants next.
    pub(crate) fn act(&mut self, which: usize) -> Result<(), String> {
        let step = self.random.between(20, 400);
        self.after(step, Event::Client(which));
        let client = &self.clients[which];
        // Past its deadline it believes nothing any more.
        if client.opened
            && client.session.is_some()
            && client.deadline <= self.now
            && client.state != State::Opening
        {
            self.leaves_all(which);
            self.clients[which].session = None;
            self.clients[which].state = State::Outside;
        }
        if self.now < self.clients[which].due {
            return Ok(());
        }
        self.clients[which].due = self.now + self.random.between(50, 600);
        let at = self.clients[which].node;
        if !self.works(at) {
            // A paused node does not answer; whoever can goes elsewhere.
            if self.nodes[at].paused && self.clients[which].opened {
                self.lose_connection(which);
            } else if self.clients[which].holds().is_empty() {
                self.hang_up(which);
                self.clients[which].node = self.random.below(self.nodes.len() as u64) as usize;
                self.clients[which].session = None;
                self.clients[which].state = State::Outside;
            }
            return Ok(());
        }
        let inside = matches!(self.clients[which].state, State::Inside { .. });
        if inside && self.clients[which].opened && !self.calm && self.random.one_in(16) {
            // Its connection breaks, though the node goes on.
            self.lose_connection(which);
            return Ok(());
        }
        match self.clients[which].state.clone() {
            State::Outside if self.clients[which].session.is_none() => self.connect(which),
            State::Outside if self.clients[which].retired => {
                self.ask(which, &Command::Renew)?;
                Ok(())
            }
            State::Outside => self.want(which),
            State::Opening => {
                let session = self.clients[which].session.expect("it was drawn");
                if self.nodes[at].replicated.session(session).is_some() {
                    self.clients[which].state = State::Outside;
                    self.clients[which].deadline = self.now + TTL_MS;
                }
                Ok(())
            }
            State::Waiting { ticket, .. } => {
                // In the end whoever waits must be served, so nobody gives up.
                if self.plan.elections && self.random.one_in(3) {
                    self.campaign_again(which)?;
                } else if self.random.one_in(4) && !self.calm {
                    // One that leads without knowing it would keep everybody else waiting for ever.
                    let late = self.now > FAULTS_MS - 5_000 && which.is_multiple_of(2);
                    self.clients[which].retired = self.plan.elections && late;
                    self.ask(which, &Command::Cancel { ticket })?;
                } else {
                    self.ask(which, &Command::Renew)?;
                }
                Ok(())
            }
            State::Inside { .. } if self.plan.elections && self.random.one_in(3) => {
                self.campaign_again(which)
            }
            State::Inside { held } => self.stay_or_leave(which, held),
            State::Leaving { .. } => {
                self.ask(which, &Command::Renew)?;
                Ok(())
            }
            State::Resuming { held, .. } => self.resume(which, held),
        }
    }

    /// A client asks for a gate, or for several at once.
    fn want(&mut self, which: usize) -> Result<(), String> {
        let wait_ms = match self.random.below(4) {
            _ if self.calm => None,
            0 => Some(0),
            1 => None,
            _ => Some(self.random.between(200, 6_000)),
        };
        let first = match self.calm && self.random.one_in(2) {
            // What was not granted for longest, so that every gate is asked for again.
            true => (0..self.plan.gates)
                .min_by_key(|at| self.granted.get(&self.plan.name(*at)))
                .expect("there is a gate"),
            false => self.random.below(self.plan.gates as u64) as usize,
        };
        let most = self.plan.gates as u64;
        if self.plan.elections {
            return self.campaign(which, first, wait_ms);
        }
        let count = match self.random.one_in(2) {
            true => self.random.between(1, most) as usize,
            false => 1,
        };
        // In no particular order: only the home must enter them in that of their names.
        let gates = (first..first + count).map(|at| self.plan.name(at % self.plan.gates));
        let gates: Vec<String> = gates.collect();
        let mut asks: Vec<(&str, Ask<'_>)> = Vec::new();
        for gate in &gates {
            let reads = !self.plan.using.is_empty() && self.random.one_in(2);
            let reader = (which, gate.clone());
            match reads {
                true => self.monitors.readers.insert(reader),
                false => self.monitors.readers.remove(&reader),
            };
            asks.push((gate, if reads { Ask::Shared } else { Ask::Plain }));
        }
        let command = match asks[..] {
            [(gate, ask)] => Command::Lock(Lock {
                gate,
                ask,
                wait_ms,
                ..Lock::default()
            }),
            _ => Command::LockAll(LockAll {
                gates: asks.into(),
                wait_ms,
                ..LockAll::default()
            }),
        };
        match self.ask(which, &command)? {
            Some(Ok(Answer::Settled(settled))) => {
                self.settled(which, gates, Vec::new(), settled)?;
            }
            Some(Ok(Answer::Waiting(ticket))) => {
                let held = Vec::new();
                self.clients[which].state = State::Waiting {
                    gates,
                    ticket,
                    held,
                };
            }
            _ => {}
        }
        Ok(())
    }

    fn stay_or_leave(&mut self, which: usize, mut held: Held) -> Result<(), String> {
        // After the faults there must be time for everybody.
        if !self.random.one_in(3) && !self.calm {
            self.ask(which, &Command::Renew)?;
            return Ok(());
        }
        let (gate, _) = held.pop().expect("it is inside something");
        // From here on it does not rely on being inside.
        self.monitors.leaves(which, &gate);
        self.clients[which].state = State::inside(held.clone());
        let (gate, fence): (&str, _) = (&gate, None);
        let leave = match self.plan.elections {
            true => Command::Resign { election: gate },
            false => Command::Unlock { gate, fence },
        };
        if let Some(Ok(Answer::Waiting(ticket))) = self.ask(which, &leave)? {
            self.clients[which].state = State::Leaving { ticket, held };
        }
        Ok(())
    }

    pub(crate) fn connect(&mut self, which: usize) -> Result<(), String> {
        let at = self.clients[which].node;
        if !self.nodes[at].estate.acts(self.now) {
            self.clients[which].node = self.random.below(self.nodes.len() as u64) as usize;
            return Ok(());
        }
        self.next_session += 1;
        if self.clients[which].opened {
            let session = SessionId::opened(self.next_session);
            self.clients[which].session = Some(session);
            self.clients[which].state = State::Opening;
            let open = Change::OpenSession {
                session,
                ttl_ms: TTL_MS,
                label: None,
                user: None,
            };
            self.submit(at, open);
            return Ok(());
        }
        self.nodes[at].connections += 1;
        let node = &self.nodes[at];
        let session = SessionId::of_connection(node.id, node.start, node.connections);
        self.clients[which].session = Some(session);
        if !matches!(self.ask(which, &Command::Connect)?, Some(Ok(_))) {
            self.clients[which].session = None;
        }
        Ok(())
    }

    pub(crate) fn resume(&mut self, which: usize, held: Held) -> Result<(), String> {
        let at = self.clients[which].node;
        let session = self.clients[which].session.expect("an opened one");
        self.clients[which].resumed = self.now;
        let claims: Vec<Claim<'_>> = held
            .iter()
            .map(|(gate, fence)| Claim {
                gate,
                fence: *fence,
                ask: match self.monitors.readers.contains(&(which, gate.clone())) {
                    true => Ask::Shared,
                    false => self.clients[which].claims(self.plan.elections),
                },
                proven: true,
                ..Claim::default()
            })
            .collect();
        let mut out = Out::default();
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let ticket = estate.resume(self.now, replicated, session, &claims, None, &mut out);
        self.carry_out(at, out)?;
        self.clients[which].state = State::Resuming { held, ticket };
        match ticket {
            Some(_) => self.clients[which].due = self.now + 3_000,
            None => self.clients[which].node = self.random.below(self.nodes.len() as u64) as usize,
        }
        Ok(())
    }
}
