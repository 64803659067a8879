//! What a program asks for: how to enter a gate, and how to create one. Each becomes a command line of the wire.

use std::time::Duration;

use crate::election::election_of;

/// How to be inside a gate.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{Definition, Lock, Mode, Rule};
///
/// testigo.create_gate("page", &Definition::new(Rule::Shared)).await?;
/// let one = testigo.lock(Lock::new("page").mode(Mode::Shared)).await?;
/// let other = testigo.lock(Lock::new("page").shared()).await?;
/// assert_eq!(one.fence(), other.fence(), "readers share a fence");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Alone; at a gate of permits, with one of them.
    #[default]
    Exclusive,
    /// With other readers.
    Shared,
    /// With this many permits at once.
    Permits(u32),
    /// With others of this room.
    Room(String),
}

impl Mode {
    pub(crate) fn append_to(&self, line: &mut Vec<String>) {
        match self {
            Mode::Exclusive => {}
            Mode::Shared => line.push("SHARED".into()),
            Mode::Permits(count) => line.extend(["PERMITS".into(), count.to_string()]),
            Mode::Room(room) => line.extend(["ROOM".into(), room.clone()]),
        }
    }
}

/// How a session is inside what a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// A gate.
    Gate(Mode),
    /// An election.
    Lead { rank: i64, value: String },
    /// A slot of a pool.
    Slot,
}

impl How {
    /// How a resuming session describes it.
    pub(crate) fn append_to(&self, line: &mut Vec<String>) {
        match self {
            How::Gate(mode) => mode.append_to(line),
            How::Lead { rank, value } => {
                line.extend(["LEADER".into(), rank.to_string(), value.clone()]);
            }
            How::Slot => {}
        }
    }
}

/// A request to enter one gate, or several at once, all or none.
///
/// ```
/// use std::time::Duration;
/// use testigo::Lock;
///
/// let deploy = Lock::new("deploy").wait(Duration::from_secs(30)).reason("release 7");
/// let pair = Lock::all(["accounts/1", "accounts/2"]);
/// # let _ = (deploy, pair);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub(crate) gates: Vec<(String, How)>,
    needs: Option<Duration>,
    class: Option<u32>,
    pub(crate) wait: Option<Duration>,
    pub(crate) reason: Option<String>,
}

impl Lock {
    /// Asks to be alone inside a gate.
    pub fn new(gate: impl Into<String>) -> Lock {
        Lock::set([(gate.into(), Mode::Exclusive)])
    }

    /// Asks to be alone inside several gates.
    pub fn all<G: Into<String>>(gates: impl IntoIterator<Item = G>) -> Lock {
        let gates = gates.into_iter();
        Lock::set(gates.map(|gate| (gate.into(), Mode::Exclusive)))
    }

    /// Asks for several gates, each in its own mode.
    pub fn set<G: Into<String>>(gates: impl IntoIterator<Item = (G, Mode)>) -> Lock {
        let gates = gates.into_iter();
        Lock {
            gates: gates
                .map(|(gate, mode)| (gate.into(), How::Gate(mode)))
                .collect(),
            needs: None,
            class: None,
            wait: None,
            reason: None,
        }
    }

    /// Asks to lead.
    pub(crate) fn campaign(election: String, how: How, wait: Option<Duration>) -> Lock {
        Lock {
            gates: vec![(election, how)],
            needs: None,
            class: None,
            wait,
            reason: None,
        }
    }

    /// Sets the same mode for every gate of the request.
    pub fn mode(mut self, mode: Mode) -> Lock {
        for (_, each) in &mut self.gates {
            *each = How::Gate(mode.clone());
        }
        self
    }

    /// As a reader.
    pub fn shared(self) -> Lock {
        self.mode(Mode::Shared)
    }

    /// With this many permits.
    pub fn permits(self, count: u32) -> Lock {
        self.mode(Mode::Permits(count))
    }

    /// In a room.
    pub fn room(self, room: impl Into<String>) -> Lock {
        self.mode(Mode::Room(room.into()))
    }

    /// Enters only a room that may stay for at least this long.
    pub fn needs(mut self, needs: Duration) -> Lock {
        self.needs = Some(needs);
        self
    }

    /// The priority class; 0 is most urgent.
    pub fn class(mut self, class: u32) -> Lock {
        self.class = Some(class);
        self
    }

    /// How long to wait; zero only tries. Without it the node's limit applies.
    pub fn wait(mut self, wait: Duration) -> Lock {
        self.wait = Some(wait);
        self
    }

    /// The reason, shown to others.
    pub fn reason(mut self, reason: impl Into<String>) -> Lock {
        self.reason = Some(reason.into());
        self
    }

    pub(crate) fn campaigns(&self) -> bool {
        matches!(&self.gates[..], [(_, How::Lead { .. })])
    }

    /// The command, `waited` after it was first sent.
    pub(crate) fn line(&self, id: &str, waited: Duration) -> Vec<String> {
        let mut line: Vec<String> = match &self.gates[..] {
            [(name, How::Lead { rank, value })] => {
                let election = election_of(name).unwrap_or(name);
                words([
                    "ELECT",
                    "CAMPAIGN",
                    election,
                    value,
                    "RANK",
                    &rank.to_string(),
                ])
            }
            [_] => vec!["LOCK".into()],
            several => vec!["LOCKALL".into(), several.len().to_string()],
        };
        for (gate, how) in &self.gates {
            if let How::Gate(mode) = how {
                line.push(gate.clone());
                mode.append_to(&mut line);
            }
        }
        let mut option = |word: &str, value: Option<String>| {
            if let Some(value) = value {
                line.extend([word.to_owned(), value]);
            }
        };
        option("NEEDS", self.needs.map(milliseconds));
        option("CLASS", self.class.map(|class| class.to_string()));
        // A wait that is over in the meantime is asked once more rather than turned into a try, because its answer may be
        // there.
        let left = |wait: Duration| match wait.is_zero() {
            true => wait,
            false => wait.saturating_sub(waited).max(Duration::from_millis(1)),
        };
        option("WAIT", self.wait.map(|wait| milliseconds(left(wait))));
        option("REASON", self.reason.clone());
        // Campaigning again gets the same answer without an ID.
        option("ID", (!self.campaigns()).then(|| id.to_owned()));
        line.extend(words(["ASYNC", "GRANT"]));
        line
    }
}

impl From<&str> for Lock {
    fn from(gate: &str) -> Lock {
        Lock::new(gate)
    }
}

impl From<String> for Lock {
    fn from(gate: String) -> Lock {
        Lock::new(gate)
    }
}

/// Who may be inside a gate together.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{Definition, Lock, Rule};
///
/// testigo.create_gate("hall", &Definition::new(Rule::Rooms)).await?;
/// let one = testigo.lock(Lock::new("hall").room("chess")).await?;
/// let other = testigo.lock(Lock::new("hall").room("chess")).await?;
/// assert!(testigo.try_lock(Lock::new("hall").room("go")).await?.is_none());
/// # drop((one, other));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One at a time.
    Mutex,
    /// Any number of readers, or one writer.
    Shared,
    /// This many units.
    Permits(u32),
    /// Any number of one room.
    Rooms,
}

/// Who comes first among the waiters.
///
/// ```
/// use testigo::{Definition, GateOrder, Rule};
///
/// let mut page = Definition::new(Rule::Shared);
/// page.order = Some(GateOrder::Writers);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOrder {
    /// First come, first served.
    Arrival,
    /// By class, then by arrival.
    Class,
    /// Readers before writers.
    Readers,
    /// Writers before readers.
    Writers,
}

/// A gate to create. What is not set is up to the node.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use std::time::Duration;
/// use testigo::{Definition, Rule};
///
/// let mut printers = Definition::new(Rule::Permits(3));
/// printers.lease = Some(Duration::from_secs(600)); // nobody prints for longer
/// testigo.create_gate("printers", &printers).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Who may be inside together.
    pub rule: Rule,
    /// Who comes first.
    pub order: Option<GateOrder>,
    /// The number of priority classes.
    pub classes: Option<u32>,
    /// How often a waiter may be overtaken.
    pub overtakes: Option<u32>,
    /// The hold limit.
    pub lease: Option<Duration>,
    /// Rooms: how many may be inside.
    pub capacity: Option<u32>,
    /// Rooms: how long a room may stay.
    pub stay: Option<Duration>,
    /// The algorithm by which its ownership travels between nodes, by name.
    pub using: Option<String>,
    /// How many grants a node makes before it hands on to another that waits.
    pub burst: Option<u32>,
}

impl Definition {
    /// A gate with this rule and the node's defaults.
    pub fn new(rule: Rule) -> Definition {
        Definition {
            rule,
            order: None,
            classes: None,
            overtakes: None,
            lease: None,
            capacity: None,
            stay: None,
            using: None,
            burst: None,
        }
    }

    pub(crate) fn line(&self, gate: &str) -> Vec<String> {
        let mut line: Vec<String> = words(["GATE", "CREATE", gate]);
        match self.rule {
            Rule::Mutex => line.push("MUTEX".into()),
            Rule::Shared => line.push("SHARED".into()),
            Rule::Permits(count) => line.extend(["PERMITS".into(), count.to_string()]),
            Rule::Rooms => line.push("ROOMS".into()),
        }
        let order = self.order.map(|order| match order {
            GateOrder::Arrival => "ARRIVAL",
            GateOrder::Class => "CLASS",
            GateOrder::Readers => "READERS",
            GateOrder::Writers => "WRITERS",
        });
        for (word, value) in [
            ("ORDER", order.map(str::to_owned)),
            ("CLASSES", self.classes.map(|classes| classes.to_string())),
            ("OVERTAKES", self.overtakes.map(|count| count.to_string())),
            ("LEASE", self.lease.map(milliseconds)),
            ("CAPACITY", self.capacity.map(|count| count.to_string())),
            ("STAY", self.stay.map(milliseconds)),
            ("USING", self.using.clone()),
            ("BURST", self.burst.map(|count| count.to_string())),
        ] {
            line.extend(value.into_iter().flat_map(|value| [word.to_owned(), value]));
        }
        line
    }
}

/// A command line of plain words.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// A time span in the format of the wire; a fraction of a millisecond counts as a whole one.
pub(crate) fn milliseconds(span: Duration) -> String {
    span.as_micros().div_ceil(1000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_says_all_that_it_was_told() {
        let lock = Lock::new("hall").room("blue").needs(Duration::from_secs(2));
        let lock = lock.class(0).wait(Duration::from_secs(30)).reason("talk");
        assert_eq!(
            lock.line("t1", Duration::ZERO).join(" "),
            "LOCK hall ROOM blue NEEDS 2000 CLASS 0 WAIT 30000 REASON talk ID t1 ASYNC GRANT"
        );
    }

    #[test]
    fn a_campaign_says_rank_and_value() {
        let how = How::Lead {
            rank: -3,
            value: "10.0.0.1 5432".into(),
        };
        let wait = Some(Duration::from_secs(2));
        let line =
            Lock::campaign("election db".into(), how.clone(), wait).line("t1", Duration::ZERO);
        assert_eq!(
            line[..6],
            ["ELECT", "CAMPAIGN", "db", "10.0.0.1 5432", "RANK", "-3"]
        );
        assert_eq!(line[6..], ["WAIT", "2000", "ASYNC", "GRANT"]);
        let mut claim = Vec::new();
        how.append_to(&mut claim);
        assert_eq!(claim, ["LEADER", "-3", "10.0.0.1 5432"]);
    }

    #[test]
    fn a_set_gives_each_gate_its_mode() {
        let set = Lock::set([
            ("a", Mode::Shared),
            ("b", Mode::Permits(2)),
            ("c", Mode::Exclusive),
        ]);
        assert_eq!(
            set.line("t1", Duration::ZERO).join(" "),
            "LOCKALL 3 a SHARED b PERMITS 2 c ID t1 ASYNC GRANT"
        );
    }

    #[test]
    fn a_repeated_request_waits_only_for_what_is_left() {
        let lock = Lock::new("a").wait(Duration::from_secs(3));
        let wait = |lock: &Lock, waited| lock.line("t", Duration::from_secs(waited))[3].clone();
        assert_eq!(wait(&lock, 1), "2000");
        assert_eq!(wait(&lock, 5), "1");
        assert_eq!(wait(&lock.wait(Duration::ZERO), 5), "0");
    }

    #[test]
    fn a_gate_says_all_that_it_should_be() {
        let mut hall = Definition::new(Rule::Rooms);
        hall.capacity = Some(5);
        hall.stay = Some(Duration::from_micros(1500));
        hall.order = Some(GateOrder::Arrival);
        assert_eq!(
            hall.line("hall").join(" "),
            "GATE CREATE hall ROOMS ORDER ARRIVAL CAPACITY 5 STAY 2"
        );
        let plain = Definition::new(Rule::Permits(3)).line("p").join(" ");
        assert_eq!(plain, "GATE CREATE p PERMITS 3");
    }
}
