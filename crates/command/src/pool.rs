//! `testigo pool`: creates pools of slots, shows them, and runs a command with a slot of its own.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use testigo_client::{Connection, Guard, NotDone, Slot, Take as Request, Value, Word};
use testigo_core::Name;
use testigo_protocol::slots::SLOTS_MAX;

use crate::exit::{Outcome, WAIT_ENDED};
use crate::lock::held::{Held, close, not_run};
use crate::reach::{Ended, Reach};
use crate::show::{plain, print_json, print_rows};
use crate::signals::{Signals, code_of};
use crate::span::Span;

/// Share identical things among the nodes: addresses, ports, licences, seats.
///
/// A pool has slots. Each node owns a share of them and gives them out by itself; when it is cut
/// off from the others, it goes on, for clients that are connected already. A node that needs more
/// is given what others can spare.
///
/// Example: testigo pool create ports --slots 100
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Pool {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Create(Create),
    Take(Box<Take>),
    Show(Show),
    List(List),
    Delete(Delete),
}

/// Create a pool, of numbered slots or of slots with names.
///
/// Creating the same pool again changes nothing.
///
/// Exit code: 0; 2 bad input; 75 there is another pool of that name; 69 no node reachable;
/// 76 unknown whether it was created.
///
/// Examples:
///
///     testigo pool create ports --slots 100 --free-low 4
///     testigo pool create addresses --names 10.0.0.7,10.0.0.8,10.0.0.9
///     testigo pool create farm --slot gpu1:big,cuda --slot gpu2:cuda --slot plain
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["slots", "names", "slot"]))]
struct Create {
    /// The pool.
    #[arg(value_parser = pool_name)]
    name: String,
    /// How many slots; they are called 0, 1, 2 and so on.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    slots: Option<u32>,
    /// What the slots are called. For slots with labels, see --slot.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = plain_name)]
    names: Vec<String>,
    /// A slot with its name and labels; once for each slot.
    #[arg(long, value_name = "NAME[:LABEL,…]")]
    slot: Vec<String>,
    /// A node with fewer free slots than this asks the others for more, so that it rarely has to wait.
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        value_parser = whole,
        allow_negative_numbers = true
    )]
    free_low: u32,
    #[command(flatten)]
    reach: Reach,
}

/// Run a command with slots of a pool, and give them back when it ends.
///
/// The command finds its slot in $TESTIGO_SLOT, several of them with spaces between; their
/// fences, numbers that rise with every take of a slot, in $TESTIGO_FENCE; the pool in
/// $TESTIGO_POOL; and --resp in $TESTIGO_RESP. The slots outlive a lost connection and a restart
/// of the node for as long as --ttl says. When they are about to be lost, the command is stopped
/// before another has them.
///
/// At a node that is cut off, a new `testigo pool take` is refused (69); those that run keep their
/// slots for as long as the node answers. A connection without an opened session can still
/// `POOL TAKE` there. If the cluster has ended the session meanwhile, the command is stopped when
/// the node comes back, which gives the slots to others only --ttl later.
///
/// Exit code: that of the command, 128+N if signal N ended it; 75 there was no slot, or the wait
/// ended; 69 no node reachable; 2 bad input; 126 or 127 the command cannot run.
///
/// Examples:
///
///     testigo pool take ports -- sh -c 'echo port $TESTIGO_SLOT'
///     testigo pool take gpus --count 2 --wait 1h -- ./train.sh
///     testigo pool take farm --where big --wait 1h -- ./train.sh
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Take {
    /// The pool.
    #[arg(value_parser = pool_name)]
    name: String,
    /// Exactly this many slots, or none.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "upto",
        value_parser = whole,
        allow_negative_numbers = true
    )]
    count: Option<u32>,
    /// As many as are free, from one up to this many.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    upto: Option<u32>,
    /// Only slots with this label.
    #[arg(long = "where", value_name = "LABEL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    label: Option<String>,
    /// How long to wait, at most 1h. Without it, only slots that this node owns now are taken, and if there are too
    /// few, the node asks the others, for the next take.
    #[arg(long, value_name = "SPAN")]
    wait: Option<Span>,
    #[command(flatten)]
    held: Held,
    #[command(flatten)]
    reach: Reach,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Show a pool: who owns, uses and waits for how many of its slots, and which are out of reach.
///
/// For each node: the slots that it owns; how many of them are free and used; how many of the used
/// ones are withheld, because a session that the node has not heard of since it was started again
/// or cut off may still have them; how many takes wait there; and how many slots it has received
/// from other nodes and given to them. For each label: how many slots have it, and how many with
/// it nodes have asked the others for and not been given yet (wished).
///
/// Exit code: 0; 2 there is no such pool; 69 no node reachable.
///
/// Example: testigo pool show ports
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Show {
    /// The pool.
    #[arg(value_parser = pool_name)]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// List pools.
///
/// Exit code: 0; 69 no node reachable.
///
/// Example: testigo pool list 'port*'
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct List {
    /// Only names that fit; * is any text.
    #[arg(default_value = "*")]
    pattern: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Delete a pool of which nothing is in use at any node.
///
/// Slots of a node that is out of reach count as used until it has been removed for good.
///
/// Exit code: 0; 2 there is no such pool; 75 it is in use, and the answer says where; 69 no node
/// reachable; 76 unknown whether it was deleted.
///
/// Example: testigo pool delete ports
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Delete {
    /// The pool.
    #[arg(value_parser = pool_name)]
    name: String,
    #[command(flatten)]
    reach: Reach,
}

impl Pool {
    pub(crate) fn run(self) -> Outcome {
        match &self.action {
            Action::Create(create) => create
                .reach
                .converse(async |mut node| create.talk(&mut node).await),
            Action::Take(take) => take.reach.end_with(async {
                let mut signals = Signals::new()?;
                take.work(&mut signals).await
            }),
            Action::Show(show) => show
                .reach
                .converse(async |mut node| show.talk(&mut node).await),
            Action::List(list) => list
                .reach
                .converse(async |mut node| list.talk(&mut node).await),
            Action::Delete(delete) => delete
                .reach
                .converse(async |mut node| delete.talk(&mut node).await),
        }
    }
}

/// A whole number of slots.
fn whole(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!("write a whole number such as 8; a pool has at most {SLOTS_MAX} slots")
    })
}

/// The name of a pool, which a variable that is not set would leave empty.
fn pool_name(text: &str) -> Result<String, String> {
    let name = Name::new(text).map_err(|refusal| refusal.sentence)?;
    Ok(name.as_str().to_owned())
}

/// A slot's name, without labels: their commas would divide the list of names.
fn plain_name(text: &str) -> Result<String, String> {
    match text.contains(':') {
        true => Err(format!(
            "--names takes no labels; write each slot by itself, as in --slot {text}"
        )),
        false => Ok(text.to_owned()),
    }
}

impl Create {
    async fn talk(&self, node: &mut Connection) -> Result<ExitCode, Ended> {
        let free_low = self.free_low.to_string();
        let count = match self.slots {
            Some(slots) => slots.to_string(),
            None => (self.names.len() + self.slot.len()).to_string(),
        };
        let kind = if self.slots.is_some() {
            "SLOTS"
        } else {
            "NAMES"
        };
        let mut words = vec!["POOL", "CREATE", &self.name, kind, &count];
        words.extend(self.names.iter().chain(&self.slot).map(String::as_str));
        words.extend(["FREELOW", &free_low]);
        node.say(&words).await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Take {
    async fn work(&self, signals: &mut Signals) -> Result<ExitCode, Ended> {
        let open = async { self.held.open(&self.reach.connect().await?).await };
        let session = tokio::select! {
            session = open => session?,
            signal = signals.next() => return Ok(ExitCode::from(code_of(signal))),
        };
        let slots = tokio::select! {
            slots = session.take_slots(self.request()) => slots.map_err(not_run),
            signal = signals.next() => {
                close(session).await;
                return Ok(ExitCode::from(code_of(signal)));
            }
        };
        let end = match slots {
            Ok(slots) if slots.is_empty() => Err(Ended::new(WAIT_ENDED, self.too_few())),
            Ok(slots) => self.run(slots, signals).await,
            Err(end) => Err(end),
        };
        close(session).await;
        end
    }

    /// Why nothing was taken.
    fn too_few(&self) -> String {
        let name = &self.name;
        let label = self.label.as_ref();
        let label = label.map_or_else(String::new, |label| format!(" with the label {label}"));
        let (some, too_few) = match self.count {
            Some(count) if count > 1 => (
                format!("{count} free slots{label}"),
                format!("fewer than {count} free slots{label}"),
            ),
            _ => (
                format!("a free slot{label}"),
                format!("no free slot{label}"),
            ),
        };
        match self.wait {
            Some(wait) => format!("the wait of {wait} for {some} of pool {name} ended"),
            None => format!(
                "pool {name} has {too_few} at this node; `testigo pool show {name}` says who has its slots. \
                 Say --wait 5s to wait for what users give back and other nodes donate"
            ),
        }
    }

    async fn run(&self, slots: Vec<Slot>, signals: &mut Signals) -> Result<ExitCode, Ended> {
        let joined = |each: &dyn Fn(&Slot) -> String| {
            let all: Vec<String> = slots.iter().map(each).collect();
            Some(all.join(" "))
        };
        let environment = vec![
            ("TESTIGO_SLOT", joined(&|slot| slot.name().to_owned())),
            ("TESTIGO_FENCE", joined(&|slot| slot.fence().to_string())),
            ("TESTIGO_POOL", Some(self.name.clone())),
            ("TESTIGO_RESP", Some(self.reach.resp.to_string())),
        ];
        let guards: Vec<Guard> = slots.into_iter().map(Slot::into_guard).collect();
        let holds = ("slot", &guards[..]);
        let ran = self.held.run(&self.command, environment, holds, signals);
        ran.await.map(|ran| ran.exit_code())
    }

    fn request(&self) -> Request {
        let mut request = Request::new(&self.name);
        if let Some(count) = self.count {
            request = request.count(count);
        }
        if let Some(upto) = self.upto {
            request = request.up_to(upto);
        }
        if let Some(label) = &self.label {
            request = request.label(label);
        }
        match self.wait {
            Some(Span(wait)) => request.wait(wait),
            None => request,
        }
    }
}

impl Delete {
    async fn talk(&self, node: &mut Connection) -> Result<ExitCode, Ended> {
        let Err(refused) = node.say(&["POOL", "DELETE", &self.name]).await else {
            return Ok(ExitCode::SUCCESS);
        };
        let why = self.why_not(node, &refused).await;
        let mut ended = Ended::from(refused);
        ended.why = why.unwrap_or(ended.why);
        Err(ended)
    }

    /// Where slots may be in use out of reach, `POOL SHOW` says what can be done about that.
    async fn why_not(&self, node: &mut Connection, refused: &NotDone) -> Option<String> {
        if refused.word() != Some(&Word::Busy) {
            return None;
        }
        let pool = node.say(&["POOL", "SHOW", &self.name]).await.ok()?;
        why_not_deleted(&self.name, &pool)
    }
}

/// Why a pool of which slots are out of reach is not deleted.
fn why_not_deleted(name: &str, pool: &Value) -> Option<String> {
    let rows = |name: &str| pool.field(name).and_then(Value::list).unwrap_or_default();
    let out_of_reach = rows("out_of_reach").iter().filter_map(|row| {
        let [_, slots, words, ..] = row.list()? else {
            return None;
        };
        (slots.number()? > 0).then(|| plain(words))
    });
    let out_of_reach: Vec<String> = out_of_reach.collect();
    if out_of_reach.is_empty() {
        return None;
    }
    let used = rows("nodes").iter().filter_map(|row| {
        let used = row.field("used")?.number().filter(|used| *used > 0)?;
        let node = plain(row.field("node")?);
        Some(format!("node {node} has {used} of its slots in use"))
    });
    let all: Vec<String> = used.chain(out_of_reach).collect();
    Some(format!("pool {name} cannot be deleted: {}", all.join("; ")))
}

/// Rows of each kind that people are shown; programs read the rest with --json.
const SHOWN: usize = 20;

impl Show {
    async fn talk(&self, node: &mut Connection) -> Result<ExitCode, Ended> {
        let pool = node.say(&["POOL", "SHOW", &self.name]).await?;
        if self.json {
            print_json(&with_names(&pool));
            return Ok(ExitCode::SUCCESS);
        }
        let text = |name: &str| pool.field(name).map(plain).unwrap_or_default();
        println!(
            "{}: {} slots, {} free, {} used, {} waiting{}",
            self.name,
            text("slots"),
            text("free"),
            text("used"),
            text("waiting"),
            match pool.field("free_low").and_then(Value::number) {
                None | Some(0) => String::new(),
                Some(1) => "; a node with none free asks the others".into(),
                Some(low) => format!("; a node with fewer than {low} free asks the others"),
            }
        );
        let rows = |name: &str| {
            let rows = pool.field(name).and_then(Value::list);
            rows.unwrap_or_default().to_vec()
        };
        println!();
        print_rows(&rows("nodes"), &NODES);
        for row in rows("out_of_reach") {
            let words = row.list().and_then(|row| row.get(2)).map(plain);
            println!("{}", words.unwrap_or_default());
        }
        for node in rows("missing") {
            println!(
                "node {} does not answer; what it has is not counted",
                plain(&node)
            );
        }
        let labels = rows("labels");
        print_some("labels", &labels, &["label", "slots", "wished"], None);
        let owners = named(&rows("owners"), &OWNERS);
        let runs = pool.field("runs").and_then(Value::number);
        print_some("slots and their owners", &owners, &OWNERS, runs);
        let (used, waiting) = (pool.field("used"), pool.field("waiting"));
        let taken = rows("taken");
        let (runs, left) = (in_runs(&taken), used.and_then(Value::number));
        let left = left.unwrap_or(0).saturating_sub(taken.len() as u64);
        let all = runs.len() as u64 + left;
        print_some("in use", &runs, &TAKEN, Some(all));
        let waits = [
            "node", "session", "label", "least", "most", "waits_ms", "where",
        ];
        print_some(
            "waiting",
            &rows("waits"),
            &waits,
            waiting.and_then(Value::number),
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// What is said of slots in use.
const TAKEN: [&str; 7] = [
    "first", "last", "slots", "node", "session", "label", "held_ms",
];

/// Slots in use that one session has from one node, those with successive numbers in one row.
fn in_runs(taken: &[Value]) -> Vec<Value> {
    let number = |row: &Value| -> Option<u64> { row.field("slot")?.text()?.parse().ok() };
    let same = |one: &Value, other: &Value| {
        let mut fields = ["node", "session"].iter();
        let next = number(one).map(|number| number + 1);
        next.is_some()
            && next == number(other)
            && fields.all(|name| one.field(name) == other.field(name))
    };
    let runs = taken.chunk_by(same).filter_map(|run| {
        let (first, last) = (run.first()?, run.last()?);
        let count = Value::Number(run.len() as i64);
        let values = TAKEN.map(|name| {
            let value = match name {
                "first" => first.field("slot").cloned(),
                "last" => last.field("slot").cloned(),
                "slots" => Some(count.clone()),
                name => first.field(name).cloned(),
            };
            (Value::Text(name.to_owned()), value.unwrap_or(Value::Null))
        });
        Some(Value::Map(values.to_vec()))
    });
    runs.collect()
}

/// Prints the first rows under a heading, and how many there are; nothing where there are none.
fn print_some(heading: &str, rows: &[Value], columns: &[&str], all: Option<u64>) {
    if rows.is_empty() {
        return;
    }
    println!("\n{heading}");
    print_rows(&rows[..rows.len().min(SHOWN)], columns);
    let left = all.unwrap_or(0).saturating_sub(SHOWN as u64);
    if left > 0 {
        println!("and {left} more; see --json");
    }
}

/// A pool whose rows have names instead of places.
fn with_names(pool: &Value) -> Value {
    let Value::Map(fields) = pool else {
        return pool.clone();
    };
    let field = |(name, value): &(Value, Value)| {
        let rows = value.list().unwrap_or_default();
        let value = match name.text() {
            Some("owners") => Value::List(named(rows, &OWNERS)),
            Some("out_of_reach") => Value::List(named(rows, &["node", "slots", "words"])),
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    Value::Map(fields.iter().map(field).collect())
}

/// What is said of each node.
const NODES: [&str; 8] = [
    "node", "owned", "free", "used", "withheld", "waiting", "received", "given",
];
/// What a row of owners says, in order.
const OWNERS: [&str; 3] = ["first", "last", "node"];
/// What a row of `POOL LIST` says, in order.
const COLUMNS: [&str; 3] = ["name", "slots", "free_low"];

/// Rows whose cells have these names.
fn named(rows: &[Value], names: &[&str]) -> Vec<Value> {
    let row = |row: &Value| {
        let cells = row.list().unwrap_or_default().iter().cloned();
        let names = names.iter().map(|name| Value::Text((*name).to_owned()));
        Value::Map(names.zip(cells).collect())
    };
    rows.iter().map(row).collect()
}

impl List {
    async fn talk(&self, node: &mut Connection) -> Result<ExitCode, Ended> {
        let pools = node.say(&["POOL", "LIST", &self.pattern]).await?;
        let rows = named(pools.list().unwrap_or_default(), &COLUMNS);
        match self.json {
            true => print_json(&Value::List(rows)),
            false => print_rows(&rows, &COLUMNS),
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(slot: &str, session: i64) -> Value {
        let text = |text: &str| Value::Text(text.to_owned());
        let fields = [
            ("slot", text(slot)),
            ("node", Value::Number(1)),
            ("session", Value::Number(session)),
        ];
        Value::Map(fields.map(|(name, value)| (text(name), value)).to_vec())
    }

    #[test]
    fn a_pool_with_slots_out_of_reach_says_what_to_do() {
        let text = |text: &str| Value::Text(text.to_owned());
        let map = |fields: &[(&str, Value)]| {
            let fields = fields
                .iter()
                .map(|(name, value)| (text(name), value.clone()));
            Value::Map(fields.collect())
        };
        let here = map(&[("node", Value::Number(1)), ("used", Value::Number(2))]);
        let away = |node, slots, words| {
            Value::List(vec![Value::Number(node), Value::Number(slots), text(words)])
        };
        let rows = vec![away(3, 4, "node 3 is out of reach"), away(4, 0, "no slot")];
        let nodes = ("nodes", Value::List(vec![here]));
        let pool = map(&[nodes.clone(), ("out_of_reach", Value::List(rows))]);
        let why =
            "pool q cannot be deleted: node 1 has 2 of its slots in use; node 3 is out of reach";
        assert_eq!(why_not_deleted("q", &pool).as_deref(), Some(why));
        assert_eq!(why_not_deleted("q", &map(&[nodes])), None);
    }

    #[test]
    fn successive_slots_of_one_session_are_one_row() {
        let taken = [("3", 7), ("4", 7), ("6", 7), ("7", 8), ("a", 8), ("b", 8)];
        let taken = taken.map(|(slot, session)| row(slot, session));
        let shown = |run: &Value| {
            let field = |name: &str| run.field(name).map(plain).unwrap_or_default();
            format!("{} {} {}", field("first"), field("last"), field("slots"))
        };
        let runs: Vec<String> = in_runs(&taken).iter().map(shown).collect();
        assert_eq!(runs, ["3 4 2", "6 6 1", "7 7 1", "a a 1", "b b 1"]);
    }
}
