//! Random elections beside a model that says what an election is in a few lines: the highest rank wins, of equals the one
//! that came first, and nobody deposes a leader. A wrong model must disagree.

use super::model::random::Random;
use testigo_core::monitor::Monitors;
use testigo_core::*;

const SESSIONS: u64 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    FirstCome,
    Deposes,
    NewPlace,
}

/// One election as a sentence says it.
struct Model {
    flaw: Flaw,
    leader: Option<(u64, i64)>,
    /// In order of arrival.
    candidates: Vec<(u64, i64)>,
}

impl Model {
    fn campaign(&mut self, session: u64, rank: i64) {
        if let Some((leader, its)) = &mut self.leader
            && *leader == session
        {
            *its = rank;
            return;
        }
        let place = self.candidates.iter().position(|(who, _)| *who == session);
        match place {
            Some(at) if self.flaw != Flaw::NewPlace => self.candidates[at].1 = rank,
            _ => {
                self.candidates.retain(|(who, _)| *who != session);
                self.candidates.push((session, rank));
            }
        }
        let deposed = self.leader.is_some_and(|(_, its)| its < rank);
        if self.flaw == Flaw::Deposes && deposed {
            self.leader = None;
        }
        self.elect();
    }

    fn resign(&mut self, session: u64) -> bool {
        let leads = self.leader.is_some_and(|(leader, _)| leader == session);
        let before = self.candidates.len();
        self.candidates.retain(|(who, _)| *who != session);
        if leads {
            self.leader = None;
            self.elect();
        }
        leads || self.candidates.len() < before
    }

    fn elect(&mut self) {
        if self.leader.is_some() {
            return;
        }
        let mut best = 0;
        for (at, (_, rank)) in self.candidates.iter().enumerate() {
            if *rank > self.candidates[best].1 && self.flaw != Flaw::FirstCome {
                best = at;
            }
        }
        if !self.candidates.is_empty() {
            self.leader = Some(self.candidates.remove(best));
        }
    }
}

/// Plays one schedule in both; what they disagree about, if they do.
fn run(seed: u64, flaw: Flaw) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let mut replicated = Replicated::new(Limits::default());
    let view = replicated.view_alone(NodeId(1), Start(1), 0);
    let _applied = replicated.apply(0, &view).unwrap();
    let mut local = Local::start(0, Limits::default(), seed, &replicated, None);
    local.observe(true);
    let election = Name::election("db").unwrap();
    let mut monitors = Monitors::default();
    let mut model = Model {
        flaw,
        leader: None,
        candidates: Vec::new(),
    };
    let mut last_term = Fence(0);
    for now in 0..200 {
        let session = random.below(SESSIONS);
        let id = SessionId::implicit(session);
        let mut events = Vec::new();
        let mut ask =
            |command: &Command<'_>| local.apply(now, &replicated, id, command, &mut events);
        // It is connected already, or is from now on.
        let _ = ask(&Command::Connect);
        match random.below(4) {
            0 => {
                let election = &*election;
                let resigned = ask(&Command::Resign { election }).is_ok();
                if resigned != model.resign(session) {
                    return Err(format!("at {now}: {session} resigned: {resigned}"));
                }
            }
            1 if random.one_in(3) => {
                ask(&Command::Disconnect).unwrap();
                model.resign(session);
            }
            _ => {
                let rank = random.below(4) as i64 - 1;
                let value = &[session as u8];
                let lock = Lock {
                    gate: &election,
                    ask: Ask::Lead { rank, value },
                    asynchronous: true,
                    ..Lock::default()
                };
                ask(&Command::Lock(lock)).unwrap();
                model.campaign(session, rank);
            }
        }
        for event in &events {
            if let Event::Elected { term, again, .. } = event {
                if *again != (*term == last_term) || *term < last_term {
                    return Err(format!("at {now}: term {term} after {last_term}"));
                }
                last_term = *term;
            }
        }
        // A candidate that changes its rank is no newcomer, which that monitor takes it for.
        if flaw == Flaw::None {
            monitors.saw(&events_without_changes(&events))?;
        }
        let view = local.gate(&election).ok();
        let leader = view.iter().flat_map(|view| &view.holders);
        let leader: Vec<(u64, i64)> = leader
            .map(|holder| (who(holder.session), rank_of(&holder.mode)))
            .collect();
        if leader != Vec::from_iter(model.leader) {
            return Err(format!(
                "at {now}: {leader:?} leads, not {:?}",
                model.leader
            ));
        }
        let waiters = view.iter().flat_map(|view| &view.waiters);
        let mut candidates: Vec<(u64, i64)> = waiters
            .map(|waiter| (who(waiter.session), rank_of(&waiter.mode)))
            .collect();
        let ranked = candidates.is_sorted_by_key(|(_, rank)| -rank);
        candidates.sort_unstable();
        let mut expected = model.candidates.clone();
        expected.sort_unstable();
        if candidates != expected || !ranked {
            return Err(format!("at {now}: {candidates:?} are candidates"));
        }
    }
    Ok(local.counters().terms)
}

/// What the monitors of gates judge: all but who waits in which order, which candidates may change.
fn events_without_changes(events: &[Event]) -> Vec<Event> {
    let events = events.iter();
    let judged = events.filter(|event| !matches!(event, Event::Waits { .. }));
    judged.cloned().collect()
}

fn who(session: SessionId) -> u64 {
    session.number() & 0xff
}

fn rank_of(mode: &Mode) -> i64 {
    mode.candidacy().expect("it campaigns").rank
}

#[test]
fn the_highest_rank_is_elected_and_nobody_is_deposed() {
    let terms: u64 = (0..300).map(|seed| run(seed, Flaw::None).unwrap()).sum();
    assert!(terms > 2_000, "{terms} terms");
}

#[test]
fn a_wrong_idea_of_an_election_is_noticed() {
    for flaw in [Flaw::FirstCome, Flaw::Deposes, Flaw::NewPlace] {
        assert!((0..300).any(|seed| run(seed, flaw).is_err()));
    }
}
