//! The stage for the machine's tests: a node that says what the test wants, and a clock that the test moves.

use super::super::*;
use crate::refusal::Refusal;
use crate::standing::{self, State};
use crate::value::Received;

pub(super) const TTL: Duration = Duration::from_secs(10);

/// A machine, the bytes that it sends, and a clock.
pub(super) struct Stage {
    pub(super) machine: Machine,
    pub(super) start: Instant,
    pub(super) now: Instant,
    next_call: CallId,
    pub(super) session: Option<SessionStanding>,
}

pub(super) fn number(number: i64) -> Value {
    Value::Number(number)
}

pub(super) fn text(text: &str) -> Value {
    Value::Text(text.into())
}

pub(super) fn ok() -> Value {
    text("OK")
}

impl Stage {
    pub(super) fn new() -> Stage {
        Stage::among(1)
    }

    /// A machine with this many nodes to connect to.
    pub(super) fn among(nodes: usize) -> Stage {
        let start = Instant::now();
        Stage {
            machine: Machine::new(None, 1, nodes),
            start,
            now: start,
            next_call: 0,
            session: None,
        }
    }

    /// A machine with an open session 77.
    pub(super) fn opened() -> Stage {
        Stage::opened_among(1)
    }

    pub(super) fn opened_among(nodes: usize) -> Stage {
        let mut stage = Stage::among(nodes);
        let call = stage.call();
        stage.machine.open(stage.now, call, TTL, None);
        assert_eq!(stage.effects(), [Effect::Connect]);
        stage.machine.connected(stage.now);
        assert_eq!(stage.sent(), ["HELLO 3"]);
        stage.answer(Value::Null);
        assert_eq!(stage.sent(), ["SESSION OPEN TTL 10000"]);
        stage.answer(number(77));
        let effects = stage.effects();
        assert!(
            matches!(effects[..], [Effect::Opened(_, 77, _)]),
            "{effects:?}"
        );
        stage
    }

    /// An opened session that is inside a gate without hold limit.
    pub(super) fn inside(gate: &str, fence: i64) -> (Stage, HoldId) {
        Stage::inside_among(1, gate, fence)
    }

    pub(super) fn inside_among(nodes: usize, gate: &str, fence: i64) -> (Stage, HoldId) {
        let mut stage = Stage::opened_among(nodes);
        let call = stage.lock(Lock::new(gate));
        stage.sent();
        stage.answer(number(1));
        stage.push(grant(1, fence, None));
        let hold = match &stage.effects()[..] {
            [Effect::Entered(of, entered)] if *of == call => entered[0].hold,
            other => panic!("entered, not {other:?}"),
        };
        (stage, hold)
    }

    pub(super) fn call(&mut self) -> CallId {
        self.next_call += 1;
        self.next_call
    }

    pub(super) fn lock(&mut self, lock: Lock) -> CallId {
        let call = self.call();
        self.machine.lock(self.now, call, lock);
        call
    }

    pub(super) fn release(&mut self, hold: HoldId) -> CallId {
        let call = self.call();
        self.machine.release(self.now, call, hold);
        call
    }

    pub(super) fn answer(&mut self, value: Value) {
        self.machine.received(self.now, Received::Answer(value));
    }

    pub(super) fn refuse(&mut self, line: &str) {
        self.answer(Value::Error(Refusal::parse(line)));
    }

    pub(super) fn push(&mut self, values: Vec<Value>) {
        self.machine.received(self.now, Received::Push(values));
    }

    /// The commands that were sent since the last look.
    pub(super) fn sent(&mut self) -> Vec<String> {
        let bytes = self.machine.transmit().split();
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let mut lines: Vec<Vec<String>> = Vec::new();
        for part in text.split("\r\n").filter(|part| !part.starts_with('$')) {
            match part.strip_prefix('*') {
                Some(_) => lines.push(Vec::new()),
                None if part.is_empty() => {}
                None => lines.last_mut().expect("a command").push(part.into()),
            }
        }
        lines.iter().map(|line| line.join(" ")).collect()
    }

    /// The effects, with the session's standing kept apart.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(effect) = self.machine.effect() {
            match effect {
                Effect::Session(standing) => self.session = Some(standing),
                Effect::Opened(_, _, standing) => {
                    self.session = Some(standing);
                    effects.push(effect);
                }
                effect => effects.push(effect),
            }
        }
        effects
    }

    pub(super) fn state(&mut self) -> State {
        let session = self.session.expect("a session");
        standing::state(self.now, &session, &HoldStanding::default())
    }

    pub(super) fn pass(&mut self, span: Duration) {
        self.now += span;
        self.machine.tick(self.now);
    }

    /// Advances time to each of the machine's deadlines until `end`, with nobody answering.
    pub(super) fn pass_in_silence(&mut self, end: Instant) {
        while let Some(due) = self.machine.timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.machine.tick(self.now);
            for effect in self.effects() {
                if effect == Effect::Connect {
                    self.machine.unreachable(self.now, "refused");
                }
            }
        }
        self.now = end;
    }

    pub(super) fn break_and_reconnect(&mut self) {
        self.machine.broken(self.now, "reset");
        assert!(self.effects().contains(&Effect::Connect));
        self.machine.connected(self.now);
    }
}

/// The push of a grant: `r` and its fence are its receipt.
pub(super) fn grant(ticket: i64, fence: i64, ends_ms: Option<i64>) -> Vec<Value> {
    let ends = ends_ms.map_or(Value::Null, number);
    let grant = vec![number(fence), text(&format!("r{fence}")), ends];
    vec![text("grant"), number(ticket), Value::List(grant)]
}

pub(super) fn resumed(claims: &[&str], holds: &[(&str, i64)]) -> Value {
    let claims = claims.iter().map(|claim| text(claim)).collect();
    let hold = |(gate, fence): &(&str, i64)| Value::List(vec![text(gate), number(*fence)]);
    Value::Map(vec![
        (text("claims"), Value::List(claims)),
        (text("holds"), Value::List(holds.iter().map(hold).collect())),
    ])
}
