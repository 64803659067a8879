//! Clients that campaign: with a rank and a value, which they change as candidates and as leaders. Whoever looks at the owner
//! sees what the leader has said last, or is just saying.

use testigo_core::estate::Tell;
use testigo_core::{Answer, Command, Limits, Lock, Name, Refusal, Settled, Word};

use crate::clients::{Client, Held, State};
use crate::trio::{Trio, client};
use crate::world::{Node, World};

impl World {
    /// A client campaigns.
    pub(crate) fn campaign(
        &mut self,
        which: usize,
        election: usize,
        wait_ms: Option<u64>,
    ) -> Result<(), String> {
        let gate = self.plan.name(election);
        self.clients[which].values.clear();
        self.say_something(which);
        match self.ask_to_lead(which, &gate, wait_ms)? {
            Some(answer) => self.began(which, gate, answer),
            None => Ok(()),
        }
    }

    fn began(
        &mut self,
        which: usize,
        gate: String,
        answer: Result<Answer, Refusal>,
    ) -> Result<(), String> {
        match answer {
            Ok(Answer::Settled(settled)) => self.settled(which, vec![gate], Vec::new(), settled),
            Ok(Answer::Waiting(ticket)) => {
                let (gates, held) = (vec![gate], Vec::new());
                self.clients[which].state = State::Waiting {
                    gates,
                    ticket,
                    held,
                };
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A leader or a candidate says something else of itself.
    pub(crate) fn campaign_again(&mut self, which: usize) -> Result<(), String> {
        let gate = match &self.clients[which].state {
            State::Inside { held } => held[0].0.clone(),
            State::Waiting { gates, .. } => gates[0].clone(),
            _ => return Ok(()),
        };
        self.say_something(which);
        self.tally.changed += 1;
        let answer = self.ask_to_lead(which, &gate, None)?;
        // It may have heard meanwhile how its campaign has ended.
        let state = self.clients[which].state.clone();
        match (state, answer) {
            (State::Inside { held }, Some(Ok(Answer::Waiting(ticket)))) => {
                self.clients[which].state = State::Leaving { ticket, held };
                Ok(())
            }
            (State::Inside { held }, Some(answer)) => self.confirmed(which, &held, &answer),
            (State::Waiting { ticket: own, .. }, Some(Ok(Answer::Waiting(ticket)))) => {
                match own == ticket {
                    true => Ok(()),
                    false => Err(format!("client {which} waits twice in {gate}")),
                }
            }
            (State::Outside, Some(answer)) => self.began(which, gate, answer),
            _ => Ok(()),
        }
    }

    /// A leader hears that its new value is known: those of before are not seen any more.
    pub(crate) fn confirmed(
        &mut self,
        which: usize,
        held: &Held,
        answer: &Result<Answer, Refusal>,
    ) -> Result<(), String> {
        if let Ok(Answer::Settled(Settled::Entered(grant))) = answer {
            let term = held.last().map(|(_, term)| *term);
            if term != Some(grant.fence) {
                return Err(format!("client {which} changed its value, and its term"));
            }
            let client = &mut self.clients[which];
            client.values.drain(..client.values.len() - 1);
        }
        Ok(())
    }

    fn say_something(&mut self, which: usize) {
        let value = format!("client {which} at {}", self.now);
        let rank = self.random.below(3) as i64;
        let client = &mut self.clients[which];
        client.values.push(value.into());
        client.rank = rank;
    }

    fn ask_to_lead(
        &mut self,
        which: usize,
        gate: &str,
        wait_ms: Option<u64>,
    ) -> Result<Option<Result<Answer, Refusal>>, String> {
        let value = self.clients[which].values.last().cloned();
        let lock = Lock {
            gate,
            ask: testigo_core::Ask::Lead {
                rank: self.clients[which].rank,
                value: &value.expect("it has said one"),
            },
            wait_ms,
            ..Lock::default()
        };
        self.ask(which, &Command::Lock(lock))
    }
}

/// What an owner shows of the leader is what the leader has said, if it believes to lead in that term.
pub(crate) fn see_leader(node: &Node, clients: &[Client], election: &str) -> Result<(), String> {
    let Ok(view) = node.estate.local().gate(election) else {
        return Ok(());
    };
    for holder in &view.holders {
        let Some(shown) = holder.mode.candidacy() else {
            continue;
        };
        let believes = |client: &&Client| {
            client.session == Some(holder.session)
                && client.holds().contains(&(election.into(), holder.fence))
        };
        let Some(leader) = clients.iter().find(believes) else {
            continue;
        };
        if !leader.values.iter().any(|value| **value == *shown.value) {
            return Err(format!(
                "node {} shows {:?} of the leader of {election}, which said {:?}",
                node.id,
                String::from_utf8_lossy(&shown.value),
                leader.values
            ));
        }
    }
    Ok(())
}

/// A new owner hears of a leader and of candidates with all that they say of themselves, and elects by rank, whoever's ask
/// comes first.
#[test]
fn value_and_rank_survive_the_owner() {
    let election = Name::election("db").unwrap();
    let mut trio = Trio::new(None);
    trio.give(&election, 0);
    trio.deliver_all();
    let campaign = |trio: &mut Trio, at: usize, rank: i64, value: &[u8]| {
        let session = client(at, 1);
        // It is connected from the first time on.
        let _ = trio.ask(at, session, &Command::Connect);
        let lock = Lock {
            gate: &election,
            ask: testigo_core::Ask::Lead { rank, value },
            asynchronous: true,
            ..Lock::default()
        };
        trio.ask(at, session, &Command::Lock(lock)).unwrap();
        trio.deliver_all();
    };
    campaign(&mut trio, 1, 1, b"one");
    campaign(&mut trio, 2, 5, b"two");
    campaign(&mut trio, 0, 9, b"zero");
    campaign(&mut trio, 1, 2, b"one, again");
    trio.give(&election, 2);
    trio.deliver_all();
    let view = trio.estates[2].local().gate(&election).unwrap();
    let shown = |mode: &testigo_core::Mode| {
        let candidacy = mode.candidacy().unwrap();
        (candidacy.rank, candidacy.value.to_vec())
    };
    let leader = &view.holders[0];
    assert_eq!(leader.session, client(1, 1));
    assert_eq!(shown(&leader.mode), (2, b"one, again".to_vec()));
    let candidates: Vec<_> = view.waiters.iter().map(|w| shown(&w.mode)).collect();
    assert_eq!(candidates, [(9, b"zero".to_vec()), (5, b"two".to_vec())]);
    // While the next owner does not know yet that nobody leads, candidates come, the least first.
    let resign = Command::Resign {
        election: &election,
    };
    trio.ask(1, client(1, 1), &resign).unwrap();
    trio.deliver_all();
    let view = trio.estates[2].local().gate(&election).unwrap();
    assert_eq!(view.holders[0].session, client(0, 1));
    trio.ask(0, client(0, 1), &resign).unwrap();
    trio.ask(2, client(2, 1), &resign).unwrap();
    trio.deliver_all();
    trio.give(&election, 0);
    for (at, rank) in [(0, 3), (1, 4), (2, 4)] {
        let lock = Lock {
            gate: &election,
            ask: testigo_core::Ask::Lead { rank, value: b"" },
            asynchronous: true,
            ..Lock::default()
        };
        trio.ask(at, client(at, 1), &Command::Lock(lock)).unwrap();
    }
    // What a node says to another arrives before the last report opens the election.
    while trio.busy_links().contains(&(1, 0)) {
        trio.deliver((1, 0));
    }
    trio.deliver_all();
    let view = trio.estates[0].local().gate(&election).unwrap();
    assert_eq!(view.holders[0].session, client(1, 1));
}

/// What a candidate says of itself is bounded where it campaigns, wherever the election is owned.
#[test]
fn a_value_that_is_too_long_is_refused() {
    let election = Name::election("db").unwrap();
    let value = vec![b'x'; Limits::VALUE_BYTES + 1];
    for owner in 0..2 {
        let mut trio = Trio::new(None);
        trio.give(&election, owner);
        trio.deliver_all();
        trio.ask(0, client(0, 1), &Command::Connect).unwrap();
        let lock = Lock {
            gate: &election,
            ask: testigo_core::Ask::Lead {
                rank: 0,
                value: &value,
            },
            ..Lock::default()
        };
        let refused = trio.ask(0, client(0, 1), &Command::Lock(lock));
        assert_eq!(refused, Err(Word::BadArg));
    }
}

/// A leader whose new value the owner may have heard of is not told that nothing has changed.
#[test]
fn a_change_that_is_not_answered_is_unknown() {
    let election = Name::election("db").unwrap();
    let mut trio = Trio::new(None);
    trio.give(&election, 1);
    trio.deliver_all();
    let leader = client(0, 1);
    trio.ask(0, leader, &Command::Connect).unwrap();
    let campaign = |value, wait_ms| {
        Command::Lock(Lock {
            gate: &election,
            ask: testigo_core::Ask::Lead { rank: 0, value },
            wait_ms,
            ..Lock::default()
        })
    };
    trio.ask(0, leader, &campaign(b"old", None)).unwrap();
    trio.deliver_all();
    trio.tells.clear();
    let Ok(Answer::Waiting(own)) = trio.ask(0, leader, &campaign(b"new", Some(0))) else {
        panic!("the owner is another one");
    };
    trio.deliver((0, 1));
    trio.pass(1_100);
    let told = trio.tells.iter().find_map(|(_, tell)| match tell {
        Tell::Answered { ticket, answer, .. } if *ticket == own => Some(answer.clone()),
        _ => None,
    });
    let refusal = told.expect("it is answered").unwrap_err();
    assert_eq!(refusal.word, Word::Unknown);
    // What is answered too late takes nothing away.
    trio.deliver_all();
    let view = trio.estates[1].local().gate(&election).unwrap();
    assert_eq!(view.holders[0].session, leader);
    assert!(trio.estates[0].hold_of(leader, &election).is_some());
}
