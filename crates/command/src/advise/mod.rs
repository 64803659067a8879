//! `testigo advise`: what a gate would have cost by each algorithm that its ownership could travel by.

mod drawn;
mod links;
mod measured;
mod predicted;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;
use testigo_client::{Client, Value};
use testigo_core::{Plan, Travels, Using};

use crate::exit::{NOT_GOOD, Outcome, complain};
use crate::lab::table::Table;
use crate::reach::{Ended, Reach};
use crate::span::Span;
use links::Links;
use measured::Measured;
use predicted::Predicted;

/// Say what a gate of a cluster would have cost by each algorithm that its ownership could travel by.
///
/// The clients that came to the gate are simulated to come again, with the times between nodes
/// that are measured now: the code of each algorithm runs, in virtual time, 20 times. Each run draws
/// parts of the record with repetition, and ± is where 95 % of the runs lie. Clients stay as long as
/// they stayed, and come when as many have left their node as had left when they came: one that
/// waits longer comes back later. By the log, the gate is assumed to stay with its busiest node.
///
/// The algorithm in use is marked with *, and below it stands what was measured: after a change,
/// ask again and compare. What came before the change is forgotten.
///
/// Exit code: 0; 1 nobody came, or the gate is none that could travel otherwise; 69 no node reachable.
///
/// Example: testigo advise site
/// Example: testigo advise site --since 10m --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Advise {
    /// The gate.
    gate: String,
    /// How far back arrivals count. Nodes remember 4,096 of them per gate.
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    since: Span,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// How the gate is now.
struct Gate {
    using: Using,
    burst: u32,
    overtakes: u32,
}

/// Who came.
struct Arrivals {
    rows: Vec<Arrival>,
    forgotten: u64,
    /// What the nodes have counted meanwhile.
    messages: u64,
    hand_overs: u64,
}

impl Arrivals {
    fn messages_per_hand_over(&self) -> Option<f64> {
        (self.hand_overs > 0).then(|| self.messages as f64 / self.hand_overs as f64)
    }
}

#[derive(Clone, Copy)]
struct Arrival {
    at: u64,
    node: usize,
    kind: u8,
    waited_ms: u64,
    held_ms: u64,
}

impl Advise {
    pub(crate) fn run(self) -> Outcome {
        let reach = self.reach.clone();
        reach.talk(async move |client| self.advise(client).await)
    }

    async fn advise(self, client: Client) -> Result<ExitCode, Ended> {
        let gate = self.gate_now(&client).await?;
        let members = links::members(&client.cluster_status().await?);
        if members.len() < 2 {
            let why = "there is one node: ownership travels only in a cluster";
            return Err(Ended::new(NOT_GOOD, why));
        }
        let arrivals = self.arrivals(&client, &members).await?;
        let links = Links::measure(&self.reach, &self.gate, &members).await?;
        let rows = &arrivals.rows;
        let mut all = Vec::new();
        for using in Using::ALL {
            let plan = Plan {
                travels: Travels {
                    using,
                    burst: gate.burst,
                },
                overtakes: gate.overtakes,
                nodes: members.len(),
            };
            all.extend(Predicted::of(&plan, rows, &links));
        }
        let measured = Measured::of(rows, arrivals.messages_per_hand_over());
        match self.json {
            true => self.print_json(&gate, &arrivals, &links, &all, &measured),
            false => self.print(&gate, &arrivals, &links, &all, &measured),
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn gate_now(&self, client: &Client) -> Result<Gate, Ended> {
        let shown = client.show_gate(&self.gate).await?;
        let text = |name| shown.field(name).and_then(Value::text).unwrap_or_default();
        let number = |name| shown.field(name).and_then(Value::number).unwrap_or(0);
        let rule = text("rule");
        if !["MUTEX", "SHARED"].contains(&rule) {
            let why = format!(
                "gate {} is {rule}: only mutexes, and readers and writers, are forecast",
                self.gate
            );
            return Err(Ended::new(NOT_GOOD, why));
        }
        Ok(Gate {
            using: Using::named(text("using")).unwrap_or(Using::Log),
            burst: u32::try_from(number("burst")).unwrap_or(1).max(1),
            overtakes: u32::try_from(number("overtakes")).unwrap_or(1).max(1),
        })
    }

    async fn arrivals(
        &self,
        client: &Client,
        members: &[links::Member],
    ) -> Result<Arrivals, Ended> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_millis() as u64);
        let since = now.saturating_sub(self.since.0.as_millis() as u64);
        let answer = client.arrivals(&self.gate, since).await?;
        let mut arrivals = Arrivals {
            rows: Vec::new(),
            forgotten: 0,
            messages: 0,
            hand_overs: 0,
        };
        for row in answer.list().unwrap_or_default() {
            let numbers: Vec<u64> = row
                .list()
                .unwrap_or_default()
                .iter()
                .filter_map(Value::number)
                .collect();
            match numbers[..] {
                [forgotten, messages, hand_overs] => {
                    arrivals.forgotten += forgotten;
                    arrivals.messages += messages;
                    arrivals.hand_overs += hand_overs;
                }
                [at, node, kind, waited_ms, held_ms] => {
                    // Whoever came to a node that is no member any more cannot come there again.
                    if let Some(node) = members.iter().position(|member| member.id == node) {
                        arrivals.rows.push(Arrival {
                            at,
                            node,
                            kind: kind.min(2) as u8,
                            waited_ms,
                            held_ms,
                        });
                    }
                }
                _ => {}
            }
        }
        arrivals.rows.sort_by_key(|arrival| arrival.at);
        match arrivals.rows.is_empty() {
            false => Ok(arrivals),
            true => Err(Ended::new(
                NOT_GOOD,
                format!(
                    "nobody came to gate {} and left it in the last {}: there is nothing to forecast from",
                    self.gate, self.since
                ),
            )),
        }
    }

    fn print(
        &self,
        gate: &Gate,
        arrivals: &Arrivals,
        links: &Links,
        all: &[Predicted],
        measured: &Measured,
    ) {
        let (low, high) = links.range_ms();
        println!(
            "gate {}: {} arrivals in {}, at {} nodes; a message takes {low:.3} to {high:.3} ms (medians of the links)",
            self.gate,
            arrivals.rows.len(),
            covered(&arrivals.rows),
            links.nodes(),
        );
        if arrivals.forgotten > 0 {
            println!("{} earlier arrivals are forgotten", arrivals.forgotten);
        }
        println!();
        let heads = [
            "ALGORITHM",
            "MESSAGES/HAND-OVER",
            "MESSAGES/ENTRY",
            "WAITING MS",
            "P95 MS",
            "OVERTAKEN AT MOST",
        ];
        let mut table = Table::new(&heads);
        for row in all {
            let mark = if row.using == gate.using { " *" } else { "" };
            let cells = row.columns().map(predicted::interval);
            table.row(std::iter::once(format!("{}{mark}", row.using.name())).chain(cells));
            if row.using == gate.using {
                let cells = measured.columns().map(measured::number);
                table.row(std::iter::once("  measured".to_owned()).chain(cells));
            }
        }
        table.print();
        println!();
        println!(
            "least waiting: {}",
            predicted::least(all, Predicted::waiting_ms)
        );
        println!(
            "fewest messages per entry: {}",
            predicted::least(all, Predicted::messages_per_entry)
        );
        if gate.using != Using::Log && arrivals.messages_per_hand_over().is_none() {
            complain!("testigo: no hand-over was counted in this time");
        }
    }

    fn print_json(
        &self,
        gate: &Gate,
        arrivals: &Arrivals,
        links: &Links,
        all: &[Predicted],
        measured: &Measured,
    ) {
        let (low, high) = links.range_ms();
        let rows: Vec<_> = all.iter().map(Predicted::json).collect();
        println!(
            "{}",
            json!({
                "gate": self.gate,
                "using": gate.using.name(),
                "burst": gate.burst,
                "nodes": links.nodes(),
                "arrivals": arrivals.rows.len(),
                "forgotten": arrivals.forgotten,
                "link_ms": [low, high],
                "measured": measured.json(),
                "predicted": rows,
            })
        );
    }
}

/// The time between the first arrival and the last.
fn covered(rows: &[Arrival]) -> String {
    let first = rows.first().map_or(0, |arrival| arrival.at);
    let ms = rows.last().map_or(0, |arrival| arrival.at) - first;
    match ms {
        0..10_000 => format!("{ms} ms"),
        10_000..600_000 => format!("{} s", ms / 1_000),
        _ => format!("{} min", ms / 60_000),
    }
}
