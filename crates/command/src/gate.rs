//! `testigo gate`: makes, shows, lists and deletes gates.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use testigo::node::Using;
use testigo_client::{Client, Definition, GateOrder, Rule, Value};

use crate::exit::Outcome;
use crate::reach::{Ended, Reach, refused_for_good};
use crate::show::{plain, print_fields, print_json, print_rows, with_truths};
use crate::span::Span;

/// Make, show, list and delete gates.
///
/// A plain lock needs no gate to be made: its name is enough. Make one for permits, for rooms,
/// or to say who comes first and how long a hold may last.
///
/// Examples:
///
///     testigo gate create licences permits 5
///     testigo gate create hall rooms --stay 45m --capacity 200
///     testigo gate show deploy
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Gate {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Create(Create),
    Show(Show),
    List(List),
    Delete(Delete),
}

/// Make a gate; making the same once more changes nothing.
///
/// In a cluster, --using says how its ownership travels between the nodes: by the log (the default:
/// one node owns the gate and admits the clients of all), or by an algorithm of the laboratory, each
/// node admitting its own clients in its turn. With box-office, readers of several nodes are inside
/// together.
///
/// Exit code: 0 it is there; 1 it is there with another definition; 69 no node reachable; 75 it
/// is in use; 76 unknown whether it was created; 2 bad input.
///
/// Examples:
///
///     testigo gate create licences permits 5
///     testigo gate create catalogue shared --using box-office --burst 8
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Create {
    /// The gate's name.
    name: String,
    /// Who may be inside together.
    rule: RuleWord,
    /// The number of permits, for a gate of permits.
    #[arg(required_if_eq("rule", "permits"))]
    count: Option<u32>,
    /// Who comes first among those who wait.
    #[arg(long)]
    order: Option<OrderWord>,
    /// How many priority classes; 0 is most urgent.
    #[arg(long, value_name = "N")]
    classes: Option<u32>,
    /// How often a waiter may be passed by later, more urgent ones.
    #[arg(long, value_name = "N")]
    overtakes: Option<u32>,
    /// The hold limit: the longest single hold.
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    /// Rooms: how many may be inside at once.
    #[arg(long, value_name = "N")]
    capacity: Option<u32>,
    /// Rooms: how long a room may stay.
    #[arg(long, value_name = "SPAN")]
    stay: Option<Span>,
    /// The algorithm by which its ownership travels between nodes.
    #[arg(long, value_name = "ALGORITHM", value_parser = PossibleValuesParser::new(Using::ALL.map(Using::name)))]
    using: Option<String>,
    /// How many clients a node admits, once another node waits, before it hands on; 4 if not said.
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RuleWord {
    /// One at a time.
    Mutex,
    /// Any number of readers, or one writer.
    Shared,
    /// So many units.
    Permits,
    /// Any number of one room.
    Rooms,
}

#[derive(Clone, Copy, ValueEnum)]
enum OrderWord {
    /// First come, first served.
    Arrival,
    /// By class, then by arrival.
    Class,
    /// Readers before writers.
    Readers,
    /// Writers before readers.
    Writers,
}

/// Show a gate: what it is, who is inside, who waits.
///
/// Example: testigo gate show deploy
#[derive(Args)]
struct Show {
    /// The gate's name.
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// List gates.
///
/// Example: testigo gate list 'build-*'
#[derive(Args)]
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

/// Delete a gate that nobody uses.
///
/// Example: testigo gate delete licences
#[derive(Args)]
struct Delete {
    /// The gate's name.
    name: String,
    #[command(flatten)]
    reach: Reach,
}

impl Gate {
    pub(crate) fn run(self) -> Outcome {
        match &self.action {
            Action::Create(create) => create.reach.talk(async |client| create.talk(client).await),
            Action::Show(show) => show.reach.talk(async |client| show.talk(client).await),
            Action::List(list) => list.reach.talk(async |client| list.talk(client).await),
            Action::Delete(delete) => delete.reach.talk(async |client| {
                client.delete_gate(&delete.name).await?;
                Ok(ExitCode::SUCCESS)
            }),
        }
    }
}

impl Create {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let rule = match (self.rule, self.count) {
            (RuleWord::Permits, Some(count)) => Rule::Permits(count),
            (RuleWord::Permits, None) => return Err(Ended::bad_input("say how many permits")),
            (_, Some(_)) => return Err(Ended::bad_input("only a gate of permits takes a number")),
            (RuleWord::Mutex, None) => Rule::Mutex,
            (RuleWord::Shared, None) => Rule::Shared,
            (RuleWord::Rooms, None) => Rule::Rooms,
        };
        let mut definition = Definition::new(rule);
        definition.order = self.order.map(|order| match order {
            OrderWord::Arrival => GateOrder::Arrival,
            OrderWord::Class => GateOrder::Class,
            OrderWord::Readers => GateOrder::Readers,
            OrderWord::Writers => GateOrder::Writers,
        });
        definition.classes = self.classes;
        definition.overtakes = self.overtakes;
        definition.lease = self.lease.map(|Span(lease)| lease);
        definition.capacity = self.capacity;
        definition.stay = self.stay.map(|Span(stay)| stay);
        definition.using.clone_from(&self.using);
        definition.burst = self.burst;
        let created = client.create_gate(&self.name, &definition).await;
        created.map_err(refused_for_good)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let gate = with_truths(&client.show_gate(&self.name).await?);
        if self.json {
            print_json(&gate);
            return Ok(ExitCode::SUCCESS);
        }
        print_fields(&without_defaults(&gate));
        let rows = |name: &str| gate.field(name).and_then(Value::list).unwrap_or_default();
        let holders = [
            "session", "label", "mode", "fence", "held_ms", "left_ms", "reason",
        ];
        let waiters = [
            "session",
            "label",
            "mode",
            "class",
            "waited_ms",
            "overtaken",
            "reason",
        ];
        let nodes = rows("nodes");
        if !nodes.is_empty() {
            println!("\nnodes: {}", nodes.len());
            print_rows(nodes, &["node", "in", "asks", "messages", "hand_overs"]);
        }
        for (name, columns) in [("holders", holders), ("waiters", waiters)] {
            let rows = rows(name);
            println!("\n{}: {}", name, rows.len());
            if !rows.is_empty() {
                print_rows(rows, &columns);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// How ownership travels is shown where somebody has chosen it.
fn without_defaults(gate: &Value) -> Value {
    const TRAVELS: [&str; 6] = [
        "using",
        "burst",
        "travels",
        "owner",
        "published",
        "messages_per_hand_over",
    ];
    match gate {
        Value::Map(pairs) if gate.field("using").and_then(Value::text) == Some("log") => {
            let shown = |(name, _): &&(Value, Value)| {
                !name.text().is_some_and(|name| TRAVELS.contains(&name))
            };
            Value::Map(pairs.iter().filter(shown).cloned().collect())
        }
        gate => gate.clone(),
    }
}

impl List {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let gates = client.list_gates(&self.pattern).await?;
        if self.json {
            print_json(&named(&gates));
        } else {
            let rows = named(&gates);
            print_rows(rows.list().unwrap_or_default(), &COLUMNS);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What a row of `GATE LIST` says, in order.
const COLUMNS: [&str; 3] = ["name", "rule", "kind"];

/// The rows of `GATE LIST` with names.
fn named(gates: &Value) -> Value {
    let row = |row: &Value| {
        let cells = row.list().unwrap_or_default().iter();
        let names = COLUMNS.iter().map(|name| Value::Text((*name).to_owned()));
        let cells = cells.map(|cell| Value::Text(plain(cell)));
        Value::Map(names.zip(cells).collect())
    };
    Value::List(gates.list().unwrap_or_default().iter().map(row).collect())
}
