//! A node without sockets, log or clock, spoken to in lines: the vocabulary of the scenarios.

use testigo_core::*;

/// Both halves and a clock that only moves when told.
pub(crate) struct House {
    now: u64,
    replicated: Replicated,
    local: Local,
    events: Vec<Event>,
    limits: Limits,
    touches: Touches,
}

impl House {
    pub(crate) fn new(limits: Limits) -> House {
        let mut replicated = Replicated::new(limits.clone());
        let local = begin(&mut replicated, 0, &limits, (None, None));
        House {
            now: 0,
            replicated,
            local,
            events: Vec::new(),
            limits,
            touches: Touches::default(),
        }
    }

    /// Carries out one line and gives back what was answered and what else happened.
    pub(crate) fn say(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["gate", name, ref rest @ ..] => self.create(name, rest),
            ["delete", name] => self.log(Change::DeleteGate {
                gate: name_of(name),
                number: self.replicated.gate_number(name),
            }),
            ["after", ms] => self.after(number(ms)),
            // The machine crashes, and nothing is known but the log; or only the node does.
            ["crash"] => self.restart((None, None)),
            ["kill"] => self.restart((None, Some(self.touches.clone()))),
            ["stop"] => {
                let image = self.local.image(self.now);
                self.restart((image, None))
            }
            ["show", name] => return self.show(name),
            ["leader", name] => return self.show(&election_of(name)),
            ["graph"] => return self.graph(),
            ["sessions"] => return self.sessions(),
            ["check", name, fence] => match self.local.fence_check(name, fence_of(fence)) {
                true => "1".into(),
                false => "0".into(),
            },
            ["session", who, "TTL", ms] => self.open(who, number(ms)),
            [who, ref rest @ ..] => self.session_says(who, rest),
            [] => String::new(),
        };
        let mut said = vec![answer];
        for event in self.events.drain(..) {
            match event {
                Event::Touched(touch) => self.touches.note(touch),
                event => said.push(tell(&event)),
            }
        }
        said.retain(|line| !line.is_empty());
        said
    }

    fn session_says(&mut self, who: &str, words: &[&str]) -> String {
        let id = session_of(who);
        let known = self.local.sessions().iter().any(|view| view.session == id);
        if !known && !matches!(words, ["RESUME", ..]) {
            match id.is_implicit() {
                true => drop(self.ask(id, &Command::Connect).unwrap()),
                false => {
                    self.open(who, 10_000);
                }
            }
        }
        let command = match words {
            ["gone"] => {
                self.ask(id, &Command::Disconnect).unwrap();
                return String::new();
            }
            ["CLOSE"] => return self.close(id),
            ["RESUME", claims @ ..] => return self.resume(id, claims),
            ["CANCEL"] => Command::Cancel {
                ticket: self.ticket(id),
            },
            ["RESIGN", name] => {
                let election = &*election_of(name);
                return self.apply(id, &Command::Resign { election });
            }
            ["CAMPAIGN", name, value, rest @ ..] => {
                let (rank, rest) = match rest {
                    ["RANK", rank, rest @ ..] => (rank.parse().unwrap(), rest),
                    rest => (0, rest),
                };
                let election = election_of(name);
                let value = value.as_bytes();
                let mut lock = lock(&election, rest);
                lock.ask = Ask::Lead { rank, value };
                return self.apply(id, &Command::Lock(lock));
            }
            ["UNLOCK", gate] => Command::Unlock { gate, fence: None },
            ["UNLOCK", gate, fence] => Command::Unlock {
                gate,
                fence: Some(fence_of(fence)),
            },
            ["DOWNGRADE", gate] => Command::Downgrade { gate },
            ["PING"] => Command::Renew,
            ["LOCK", gate, rest @ ..] => Command::Lock(lock(gate, rest)),
            ["LOCKALL", rest @ ..] => {
                let (gates, wait_ms) = set(rest);
                let set = LockAll {
                    gates: gates.into(),
                    wait_ms,
                    ..LockAll::default()
                };
                return self.apply(id, &Command::LockAll(set));
            }
            _ => panic!("a scenario says {words:?}"),
        };
        self.apply(id, &command)
    }

    fn apply(&mut self, id: SessionId, command: &Command<'_>) -> String {
        match self.ask(id, command) {
            Ok(Answer::Settled(settled)) => tell_settled(&settled),
            Ok(Answer::Waiting(_)) => "waits".into(),
            Ok(Answer::Downgraded(fence)) => format!("reads {}", tell_fence(fence)),
            Ok(Answer::Resumed(resumed)) => tell_resumed(&resumed),
            Ok(Answer::Done) if matches!(command, Command::Resign { .. }) => "resigned".into(),
            Ok(Answer::Done) if matches!(command, Command::Unlock { .. }) => "released".into(),
            Ok(Answer::Done) => "ok".into(),
            Ok(other) => panic!("a gate answered {other:?}"),
            Err(refusal) => refusal.to_string(),
        }
    }

    fn ask(&mut self, id: SessionId, command: &Command<'_>) -> Result<Answer, Refusal> {
        let (now, events) = (self.now, &mut self.events);
        self.local.apply(now, &self.replicated, id, command, events)
    }

    fn create(&mut self, name: &str, words: &[&str]) -> String {
        let (rule, mut rest) = match words {
            ["MUTEX", rest @ ..] => (Rule::Mutex, rest),
            ["SHARED", rest @ ..] => (Rule::Shared, rest),
            ["PERMITS", k, rest @ ..] => (Rule::Permits(number(k) as u32), rest),
            ["ROOMS", rest @ ..] => (Rule::Rooms, rest),
            _ => panic!("no rule in {words:?}"),
        };
        let mut definition = Definition::new(rule);
        while let [word, value, more @ ..] = rest {
            match *word {
                "ORDER" => {
                    definition.order = match *value {
                        "ARRIVAL" => GateOrder::Arrival,
                        "CLASS" => GateOrder::Class,
                        "READERS" => GateOrder::Readers,
                        _ => GateOrder::Writers,
                    }
                }
                "CLASSES" => definition.classes = number(value) as u32,
                "OVERTAKES" => definition.overtakes = number(value) as u32,
                "LEASE" => definition.lease_ms = Some(number(value)),
                "CAPACITY" => definition.capacity = Some(number(value) as u32),
                "STAY" => definition.stay_ms = Some(number(value)),
                _ => panic!("a gate has no {word}"),
            }
            rest = more;
        }
        self.log(Change::CreateGate {
            gate: name_of(name),
            definition,
            number: self.replicated.gate_number(name),
        })
    }

    fn close(&mut self, session: SessionId) -> String {
        let record = self.replicated.session(session);
        let home = record.map(|record| record.home.index).unwrap_or_default();
        self.log(Change::CloseSession { session, home })
    }

    fn open(&mut self, who: &str, ttl_ms: u64) -> String {
        let session = session_of(who);
        self.log(Change::OpenSession {
            session,
            ttl_ms,
            label: None,
            user: None,
        })
    }

    /// Logs a change, as the node does: ask the local half, write, apply, follow.
    fn log(&mut self, change: Change) -> String {
        if let Err(refusal) = self.local.check(&change) {
            return refusal.to_string();
        }
        match self.replicated.apply(self.now, &change) {
            Ok(applied) => {
                self.local
                    .follow(self.now, &self.replicated, &applied, &mut self.events);
                String::new()
            }
            Err(refusal) => refusal.to_string(),
        }
    }

    /// Time passes. Sessions that run out are closed through the log, as the node does it.
    fn after(&mut self, ms: u64) -> String {
        let until = self.now + ms;
        while let Some(at) = self.local.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            let from = self.events.len();
            self.local.tick(self.now, &mut self.events);
            let ended: Vec<SessionId> = self.events[from..]
                .iter()
                .filter_map(|event| match event {
                    Event::RunOut { session } => Some(*session),
                    _ => None,
                })
                .collect();
            for session in ended {
                self.close(session);
            }
        }
        self.now = until;
        String::new()
    }

    fn restart(&mut self, left: (Option<Image>, Option<Touches>)) -> String {
        // The next process has another clock.
        self.now = 1_000_000;
        self.local = begin(&mut self.replicated, self.now, &self.limits, left);
        self.touches = self.local.touches().collect();
        match self.local.recovering() {
            true => "recovers".into(),
            false => "ready".into(),
        }
    }

    fn resume(&mut self, id: SessionId, words: &[&str]) -> String {
        let mut claims = Vec::new();
        let mut rest = words;
        let elections: Vec<_> = words.iter().map(|word| election_of(word)).collect();
        while let [gate, fence, more @ ..] = rest {
            let (gate, ask, more) = match more {
                ["LEADER", value, more @ ..] => {
                    let at = words.len() - rest.len();
                    let value = value.as_bytes();
                    (&*elections[at], Ask::Lead { rank: 0, value }, more)
                }
                more => {
                    let (ask, more) = mode(more);
                    (*gate, ask, more)
                }
            };
            let (proven, more) = match more {
                ["PROVEN", more @ ..] => (true, more),
                more => (false, more),
            };
            claims.push(Claim {
                gate,
                fence: fence_of(fence),
                ask,
                proven,
                ..Claim::default()
            });
            rest = more;
        }
        let claims = claims.into();
        self.apply(id, &Command::Resume { claims })
    }

    fn ticket(&self, id: SessionId) -> Ticket {
        let gates = self.local.list();
        let views = gates
            .iter()
            .map(|gate| self.local.gate(&gate.name).unwrap());
        let mut waiters = views.flat_map(|view| view.waiters);
        waiters
            .find(|waiter| waiter.session == id)
            .map_or(Ticket(0), |waiter| waiter.ticket)
    }

    fn show(&self, name: &str) -> Vec<String> {
        let view = match self.local.gate(name) {
            Ok(view) => view,
            Err(refusal) => return vec![refusal.to_string()],
        };
        let kind = if view.implicit { " implicit" } else { "" };
        let mut lines = vec![format!("{}{kind}", view.definition.rule.word())];
        if !view.awaits.is_empty() {
            let awaits: Vec<String> = view.awaits.iter().map(|s| tell_session(*s)).collect();
            lines.push(format!("awaits: {}", awaits.join(", ")));
        }
        for holder in view.holders {
            let mut line = format!(
                "inside: {} {} {}",
                tell_session(holder.session),
                tell_mode(&holder.mode),
                tell_fence(holder.fence)
            );
            if let Some(until) = holder.until {
                line += &format!(" for {} ms", until - self.now);
            }
            if let Some(reason) = holder.reason {
                line += &format!(" ({reason})");
            }
            if !holder.proven {
                line += " unproven";
            }
            lines.push(line);
        }
        for waiter in view.waiters {
            let mut line = format!(
                "waits: {} {} class {} overtaken {}",
                tell_session(waiter.session),
                tell_mode(&waiter.mode),
                waiter.class,
                waiter.overtaken
            );
            if waiter.kept {
                line += ", its place is kept";
            }
            if let Some(reason) = waiter.reason {
                line += &format!(" ({reason})");
            }
            lines.push(line);
        }
        lines
    }

    fn graph(&self) -> Vec<String> {
        let gates = self.local.list().into_iter();
        let edges = gates.flat_map(|gate| self.local.edges_at(&gate.name, 1000));
        edges
            .map(|edge| {
                let how = match edge.by {
                    BlockedBy::Holder => "inside",
                    BlockedBy::Waiter => "ahead at",
                };
                let (waiter, blocker) = (tell_session(edge.waiter), tell_session(edge.blocker));
                format!("{waiter} waits for {blocker}, {how} {}", edge.gate)
            })
            .collect()
    }

    fn sessions(&self) -> Vec<String> {
        let views = self.local.sessions().into_iter();
        views
            .map(|view| {
                format!(
                    "{} {} holds {:?} waits {:?}",
                    tell_session(view.session),
                    if view.connected {
                        "connected"
                    } else {
                        "disconnected"
                    },
                    view.holds,
                    view.waits
                )
            })
            .collect()
    }
}

/// The next start.
fn begin(
    replicated: &mut Replicated,
    now: u64,
    limits: &Limits,
    left: (Option<Image>, Option<Touches>),
) -> Local {
    let members = replicated.view().members.iter();
    let last = members.map(|member| member.start.0).max();
    let view = replicated.view_alone(NodeId(1), Start(last.unwrap_or(0) + 1), 0);
    let _applied = replicated.apply(now, &view).unwrap();
    Local::start_after(now, limits.clone(), 0, replicated, left)
}

fn lock<'a>(gate: &'a str, words: &[&'a str]) -> Lock<'a> {
    let (ask, mut rest) = mode(words);
    let mut lock = Lock {
        gate,
        ask,
        ..Lock::default()
    };
    loop {
        rest = match rest {
            ["NEEDS", ms, more @ ..] => {
                lock.needs_ms = Some(number(ms));
                more
            }
            ["CLASS", class, more @ ..] => {
                lock.class = Some(number(class) as u32);
                more
            }
            ["WAIT", ms, more @ ..] => {
                lock.wait_ms = Some(number(ms));
                more
            }
            ["REASON", text, more @ ..] => {
                lock.reason = Some(text);
                more
            }
            ["ID", id, more @ ..] => {
                lock.id = Some(id);
                more
            }
            ["ASYNC", more @ ..] => {
                lock.asynchronous = true;
                more
            }
            [] => return lock,
            _ => panic!("a lock has no {rest:?}"),
        };
    }
}

type Gates<'a> = Vec<(&'a str, Ask<'a>)>;

fn set<'a>(words: &[&'a str]) -> (Gates<'a>, Option<u64>) {
    let (mut gates, mut rest) = (Vec::new(), words);
    loop {
        rest = match rest {
            ["WAIT", ms] => return (gates, Some(number(ms))),
            [gate, more @ ..] => {
                let (ask, more) = mode(more);
                gates.push((*gate, ask));
                more
            }
            [] => return (gates, None),
        };
    }
}

fn mode<'a, 'w>(words: &'w [&'a str]) -> (Ask<'a>, &'w [&'a str]) {
    match words {
        ["SHARED", rest @ ..] => (Ask::Shared, rest),
        ["PERMITS", h, rest @ ..] => (Ask::Permits(number(h) as u32), rest),
        ["ROOM", r, rest @ ..] => (Ask::Room(r), rest),
        rest => (Ask::Plain, rest),
    }
}

/// `a` is an opened session, `~a` the implicit one of a connection.
fn session_of(word: &str) -> SessionId {
    match word.strip_prefix('~') {
        Some(name) => SessionId::implicit(u64::from(name.as_bytes()[0])),
        None => SessionId::opened(u64::from(word.as_bytes()[0])),
    }
}

fn tell_session(id: SessionId) -> String {
    let letter = char::from(id.number() as u8);
    match id.is_implicit() {
        true => format!("~{letter}"),
        false => letter.to_string(),
    }
}

/// Fences are written as title.count, the first title of a gate's shard being 1.
fn fence_of(word: &str) -> Fence {
    let (title, count) = word.split_once('.').unwrap();
    let number = Number(Number::FIRST.0 - 1 + number(title) as u32);
    Fence(number.floor().0 + self::number(count))
}

fn tell_fence(fence: Fence) -> String {
    let number = fence.number();
    let count = fence.0 - number.floor().0;
    format!("{}.{count}", number.0 + 1 - Number::FIRST.0)
}

fn tell_mode(mode: &Mode) -> String {
    match mode {
        Mode::Exclusive => "exclusive".into(),
        Mode::Shared => "shared".into(),
        Mode::Permits(h) => format!("permits {h}"),
        Mode::Room(room) => format!("room {room}"),
        Mode::Lead(of) => {
            let value = String::from_utf8_lossy(&of.value);
            format!("lead rank {} value {value}", of.rank)
        }
    }
}

fn tell_resumed(resumed: &Resumed) -> String {
    let ends = resumed.claims.iter().map(|end| match end {
        ClaimEnd::Held => "held ".to_owned(),
        ClaimEnd::Lost => "lost ".to_owned(),
        ClaimEnd::Refused(why) => format!("refused ({why}) "),
    });
    let holds = resumed.holds.iter();
    let holds = holds.map(|(gate, fence)| format!(" {gate} {}", tell_fence(*fence)));
    format!(
        "{}holds{}",
        ends.collect::<String>(),
        holds.collect::<String>()
    )
}

fn tell_settled(settled: &Settled) -> String {
    let grants = match settled {
        Settled::Entered(grant) => std::slice::from_ref(grant),
        Settled::EnteredAll(grants) => grants,
        Settled::Taken(taken) => {
            return format!("took {} as {}", taken.job, tell_fence(taken.attempt));
        }
        Settled::Ended(end) => return format!("ended {end:?}"),
    };
    let fences: Vec<String> = grants.iter().map(|grant| tell_fence(grant.fence)).collect();
    format!("entered {}", fences.join(" "))
}

fn tell(event: &Event) -> String {
    match event {
        Event::Settled {
            session, settled, ..
        } => {
            format!("{} {}", tell_session(*session), tell_settled(settled))
        }
        Event::Wanted { session, gate, .. } => format!("{} wanted {gate}", tell_session(*session)),
        Event::Lost {
            session,
            gate,
            fence,
            loss,
        } => {
            format!(
                "{} lost {gate} {} {loss:?}",
                tell_session(*session),
                tell_fence(*fence)
            )
        }
        Event::Elected {
            session,
            election,
            term,
            candidacy,
            again,
        } => format!(
            "{} {} {election} {} rank {} value {}",
            tell_session(*session),
            if *again { "changed in" } else { "leads" },
            tell_fence(*term),
            candidacy.rank,
            String::from_utf8_lossy(&candidacy.value)
        ),
        Event::Vacant {
            session,
            election,
            term,
            why,
            ..
        } => format!(
            "{election} vacant after {} {} {why:?}",
            tell_session(*session),
            tell_fence(*term)
        ),
        Event::RunOut { session } => format!("{} ran out", tell_session(*session)),
        Event::SessionEnded { session } => format!("{} is gone", tell_session(*session)),
        Event::Recovered => "recovered".into(),
        Event::FencesLow { shard } => format!("fences of shard {shard} low"),
        other => format!("{other:?}"),
    }
}

fn election_of(text: &str) -> Name {
    Name::election(text).unwrap()
}

fn name_of(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn number(word: &str) -> u64 {
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is no number"))
}
