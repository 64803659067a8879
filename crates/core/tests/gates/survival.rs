//! Random schedules with crashes and clean stops in between: survivors hold what they held, fences never fall, and a
//! clean stop is not noticed.

mod liars;
mod touched;

use super::door::Door;
use super::model::name;
use super::model::random::Random;
use testigo_core::monitor::{Monitors, nobody_waits_needlessly};
use testigo_core::*;

/// A node with opened sessions, its log and its monitors.
pub(super) struct Node {
    random: Random,
    pub(super) door: Door,
    replicated: Replicated,
    local: Local,
    monitors: Monitors,
    gates: Vec<Definition>,
    sessions: u64,
    now: u64,
    events: Vec<Event>,
    /// Whatever was granted lately.
    grants: Vec<Grant>,
    /// Whatever is held by a lie.
    lies: Vec<Grant>,
}

/// Gate, session, mode, fence.
type Grant = (Name, SessionId, Mode, Fence);

/// So many grants are remembered, for those who claim what they gave back long ago.
const REMEMBERED: usize = 60;

impl Node {
    pub(super) fn new(seed: u64, door: Door) -> Node {
        let mut random = Random::new(seed);
        let mut replicated = Replicated::new(Limits::default());
        let _ = replicated.apply(0, &next_start(&replicated)).unwrap();
        let mut monitors = Monitors::default();
        let gates: Vec<Definition> = (0..1 + random.below(4))
            .map(|_| random.definition())
            .collect();
        for (number, definition) in gates.iter().enumerate() {
            let (gate, definition) = (name(number), definition.clone());
            monitors.define(gate.clone(), definition.clone());
            let create = Change::CreateGate {
                number: replicated.gate_number(&gate),
                gate,
                definition,
            };
            let _ = replicated.apply(0, &create).unwrap();
        }
        let mut local = Local::start(0, Limits::default(), seed, &replicated, None);
        local.observe(true);
        let sessions = 2 + random.below(6);
        let mut node = Node {
            random,
            door,
            replicated,
            local,
            monitors,
            gates,
            sessions,
            now: 0,
            events: Vec::new(),
            grants: Vec::new(),
            lies: Vec::new(),
        };
        for session in 0..sessions {
            node.open(SessionId::opened(session));
        }
        node
    }

    fn open(&mut self, session: SessionId) {
        let ttl_ms = 60_000;
        self.log(&Change::OpenSession {
            session,
            ttl_ms,
            label: None,
            user: None,
        });
    }

    fn log(&mut self, change: &Change) {
        let applied = self.replicated.apply(self.now, change).unwrap();
        self.local
            .follow(self.now, &self.replicated, &applied, &mut self.events);
    }

    /// Some steps of life. Errors are of no interest here, only that monitors stay silent.
    pub(super) fn live(&mut self, steps: u64) {
        for _ in 0..steps {
            let session = SessionId::opened(self.random.below(self.sessions));
            let number = self.random.below(self.gates.len() as u64) as usize;
            // The last name has no definition: its gate is implicit.
            let gate = name(self.random.pick(&[number, number, self.gates.len()]));
            let room = Name::new(self.random.pick(&["red", "blue"])).unwrap();
            let ask = match self
                .gates
                .get(number)
                .filter(|_| gate == name(number))
                .map(|d| d.rule)
            {
                Some(Rule::Permits(k)) => Ask::Permits(1 + self.random.below(u64::from(k)) as u32),
                Some(Rule::Rooms) => Ask::Room(&room),
                Some(Rule::Mutex) => Ask::Plain,
                _ => self.random.pick(&[Ask::Plain, Ask::Shared]),
            };
            let id = self.random.pick(&["a", "b", "c", "d"]);
            let command = match self.random.below(8) {
                0..=3 => Command::Lock(Lock {
                    gate: &gate,
                    ask,
                    wait_ms: self.random.pick(&[None, Some(0), Some(30)]),
                    id: self.random.one_in(3).then_some(id),
                    asynchronous: self.random.one_in(2),
                    ..Lock::default()
                }),
                4 => Command::Downgrade { gate: &gate },
                5 => Command::Renew,
                _ => Command::Unlock {
                    gate: &gate,
                    fence: None,
                },
            };
            let _ = self.apply(session, &command);
            self.now += self.random.below(3);
            self.local.tick(self.now, &mut self.events);
            self.check();
        }
    }

    fn apply(&mut self, session: SessionId, command: &Command<'_>) -> Result<Answer, Refusal> {
        let halves = (&mut self.local, &self.replicated);
        let (now, events) = (self.now, &mut self.events);
        self.door.apply(halves, now, session, command, events)
    }

    fn resume(&mut self, session: SessionId, claims: &[Claim<'_>]) -> Resumed {
        let claims = claims.into();
        match self.apply(session, &Command::Resume { claims }) {
            Ok(Answer::Resumed(resumed)) => resumed,
            other => panic!("{other:?}"),
        }
    }

    fn check(&mut self) {
        if let Err(broken) = self.monitors.saw(&self.events) {
            panic!("{broken}\nin {:#?}", self.events);
        }
        for event in self.events.drain(..) {
            if let Event::Entered {
                session,
                gate,
                mode,
                fence,
                turn,
                ..
            } = event
                && !matches!(turn, Turn::Claimed { .. })
            {
                self.grants.push((gate, session, mode, fence));
            }
        }
        let forgotten = self.grants.len().saturating_sub(REMEMBERED);
        self.grants.drain(..forgotten);
        if !self.local.recovering() {
            nobody_waits_needlessly(&self.views(), self.now).unwrap();
        }
    }

    fn views(&self) -> Vec<GateView> {
        let names = self.local.list().into_iter();
        names
            .map(|gate| self.local.gate(&gate.name).unwrap())
            .collect()
    }

    /// Who is inside what.
    fn inside(&self) -> Vec<Grant> {
        let mut inside: Vec<_> = self
            .views()
            .into_iter()
            .flat_map(|view| {
                let name = view.name;
                let holders = view.holders.into_iter();
                holders.map(move |h| (name.clone(), h.session, h.mode, h.fence))
            })
            .collect();
        inside.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        inside
    }

    /// `kill -9`: gives the sessions that the log knows, in any order.
    fn kill(&mut self) -> Vec<SessionId> {
        let mut sessions: Vec<SessionId> = self.replicated.sessions().map(|(id, _)| id).collect();
        for at in (1..sessions.len()).rev() {
            sessions.swap(at, self.random.below(at as u64 + 1) as usize);
        }
        let view = next_start(&self.replicated);
        let _ = self.replicated.apply(self.now, &view).unwrap();
        self.now += 1_000;
        self.local = Local::start(self.now, Limits::default(), 0, &self.replicated, None);
        self.local.observe(true);
        self.monitors.restarted();
        assert!(self.local.recovering());
        sessions
    }

    /// `kill -9`, and the sessions come back in any order with what they held; some never do.
    pub(super) fn crash(&mut self) {
        let held = self.inside();
        let sessions = self.kill();
        let lost = self.random.pick(&[None, Some(sessions[0])]);
        // What is true needs no proof, as long as nobody lies.
        let proven = self.random.one_in(2);
        for session in sessions {
            if Some(session) == lost {
                let home = self.replicated.session(session).unwrap().home.index;
                self.log(&Change::CloseSession { session, home });
                self.check();
                continue;
            }
            let mine: Vec<_> = held
                .iter()
                .filter(|(_, holder, ..)| *holder == session)
                .collect();
            let claims: Vec<Claim<'_>> = mine
                .iter()
                .map(|(gate, _, mode, fence)| Claim {
                    gate,
                    fence: *fence,
                    ask: ask(mode),
                    proven,
                    ..Claim::default()
                })
                .collect();
            let resumed = self.resume(session, &claims);
            assert!(
                resumed.claims.iter().all(|end| *end == ClaimEnd::Held),
                "{resumed:?}"
            );
            self.check();
        }
        assert!(!self.local.recovering());
        let mut survived = held;
        survived.retain(|(_, holder, ..)| Some(*holder) != lost);
        assert_eq!(self.inside(), survived);
        if let Some(session) = lost {
            self.open(session);
        }
    }

    /// A clean stop, with the image through its codec, and a start with another clock.
    fn stop(&mut self) {
        let before = self.timeless();
        let image = self.local.image(self.now).unwrap();
        let bytes = postcard::to_allocvec(&image).unwrap();
        let image: Image = postcard::from_bytes(&bytes).unwrap();
        let view = next_start(&self.replicated);
        let _ = self.replicated.apply(self.now, &view).unwrap();
        self.now += 77_777;
        self.local = Local::start(
            self.now,
            Limits::default(),
            0,
            &self.replicated,
            Some(image),
        );
        self.local.observe(true);
        assert!(!self.local.recovering());
        assert_eq!(self.timeless(), before);
        for session in 0..self.sessions {
            let id = SessionId::opened(session);
            self.resume(id, &[]);
        }
    }

    /// All gates, with distances instead of times.
    fn timeless(&self) -> Vec<GateView> {
        let mut views = self.views();
        for view in &mut views {
            for holder in &mut view.holders {
                holder.since = self.now - holder.since;
                holder.until = holder.until.map(|until| until - self.now);
            }
            for waiter in &mut view.waiters {
                waiter.since = self.now - waiter.since;
                waiter.until -= self.now;
            }
        }
        views
    }
}

/// The view of the next start of node 1.
fn next_start(replicated: &Replicated) -> Change {
    let members = replicated.view().members.iter();
    let last = members.map(|member| member.start.0).max();
    replicated.view_alone(NodeId(1), Start(last.unwrap_or(0) + 1), 0)
}

fn ask(mode: &Mode) -> Ask<'_> {
    match mode {
        Mode::Exclusive => Ask::Plain,
        Mode::Shared => Ask::Shared,
        Mode::Permits(h) => Ask::Permits(*h),
        Mode::Room(room) => Ask::Room(room),
        Mode::Lead(_) => unreachable!("nobody campaigns here"),
    }
}

#[test]
fn survivors_of_a_crash_hold_what_they_held() {
    for seed in 0..1_500 {
        let mut node = Node::new(seed, Door::default());
        for _ in 0..3 {
            node.live(30);
            node.crash();
        }
        node.live(30);
    }
}

#[test]
fn a_clean_stop_is_not_noticed() {
    for seed in 0..1_500 {
        let mut node = Node::new(seed, Door::default());
        for _ in 0..3 {
            node.live(30);
            node.stop();
        }
        node.live(30);
    }
}
