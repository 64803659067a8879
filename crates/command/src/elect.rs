//! `testigo elect`: runs a command while this process leads, and says who does.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use testigo_client::{Campaign, Client, Guard, Value};

use crate::exit::{NOT_GOOD, Outcome, WAIT_ENDED};
use crate::lock::held::{Held, close, not_run};
use crate::reach::{Ended, Reach};
use crate::show::{plain, print_fields, print_json, print_rows};
use crate::signals::{Signals, code_of};
use crate::span::Span;

/// Run a command while leading, or show who leads.
///
/// Campaigns in the election NAME until it leads, runs the command, and resigns. Of the
/// candidates the one with the highest rank is next; of equals the one that came first. A
/// leader is never deposed by a higher rank. The command finds its term in $TESTIGO_TERM and
/// $TESTIGO_FENCE: a number that rises with every leader, to be handed to whatever the leader
/// changes, for example with `testigo guard`. $TESTIGO_ELECTION is NAME.
///
/// When the leadership is about to be lost because the node is silent, or because this program
/// is stopped, the command is stopped before another leads, as by `testigo lock`.
///
/// Exit code: that of the command, 128+N if signal N ended it; 75 the wait ended; 69 no node
/// reachable; 2 bad input; 126 or 127 the command cannot run.
///
/// An election that is called as a command below needs an option before its name.
///
/// Examples:
///
///     testigo elect db --value 10.0.0.1:5432 -- ./primary.sh
///     testigo elect scheduler --rank "-$(cut -d. -f1 /proc/loadavg)" -- ./schedule.sh
///     testigo elect leader db
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Elect {
    #[command(subcommand)]
    action: Option<Action>,
    /// The election.
    #[arg(required = true)]
    name: Option<String>,
    /// What others are told of the leader, such as its address.
    #[arg(long, value_name = "TEXT", default_value = "")]
    value: String,
    /// The highest rank among the candidates is elected; it may be below 0.
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    rank: i64,
    /// How long to wait; 0 only tries. Without it, as long as the node allows.
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

#[derive(Subcommand)]
enum Action {
    Leader(Leader),
    Show(Show),
    List(List),
}

/// Print what the leader says of itself, or with --json all that is known of it.
///
/// Exit code: 0; 1 nobody leads; 69 no node reachable; 2 bad input.
///
/// Example: curl "http://$(testigo elect leader web)/"
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Leader {
    /// The election.
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Show an election: who leads, who would, and its last terms.
///
/// Example: testigo elect show db
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Show {
    /// The election.
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// List elections that have a leader or a candidate.
///
/// Example: testigo elect list 'db-*'
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

impl Elect {
    pub(crate) fn run(self) -> Outcome {
        match &self.action {
            Some(Action::Leader(leader)) => {
                leader.reach.talk(async |client| leader.talk(client).await)
            }
            Some(Action::Show(show)) => show.reach.talk(async |client| show.talk(client).await),
            Some(Action::List(list)) => list.reach.talk(async |client| list.talk(client).await),
            None => self.reach.end_with(async {
                let mut signals = Signals::new()?;
                self.work(&mut signals).await
            }),
        }
    }

    async fn work(&self, signals: &mut Signals) -> Result<ExitCode, Ended> {
        let name = self.name.as_deref().unwrap_or_default();
        let open = async { self.held.open(&self.reach.connect().await?).await };
        let session = tokio::select! {
            session = open => session?,
            signal = signals.next() => return Ok(ExitCode::from(code_of(signal))),
        };
        let mut campaign = Campaign::new(name).value(&self.value).rank(self.rank);
        if let Some(Span(wait)) = self.wait {
            campaign = campaign.wait(wait);
        }
        let leads = tokio::select! {
            leads = session.campaign(campaign) => leads.map_err(not_run),
            signal = signals.next() => {
                close(session).await;
                return Ok(ExitCode::from(code_of(signal)));
            }
        };
        let end = match leads {
            Ok(Some(guard)) => self.lead(guard, signals).await,
            Ok(None) => {
                let why = format!("somebody else leads {name}, and the wait ended");
                Err(Ended::new(WAIT_ENDED, why))
            }
            Err(end) => Err(end),
        };
        close(session).await;
        end
    }

    async fn lead(&self, guard: Guard, signals: &mut Signals) -> Result<ExitCode, Ended> {
        let term = Some(guard.fence().to_string());
        let environment = vec![
            ("TESTIGO_TERM", term.clone()),
            ("TESTIGO_FENCE", term),
            ("TESTIGO_ELECTION", Some(guard.gate().to_owned())),
            ("TESTIGO_RESP", Some(self.reach.resp.to_string())),
        ];
        let guards = [guard];
        let leads = ("the leadership of", &guards[..]);
        let ran = self.held.run(&self.command, environment, leads, signals);
        Ok(ran.await?.exit_code())
    }
}

impl Leader {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let election = client.show_election(&self.name).await?;
        match election.field("leader") {
            Some(leader) if *leader != Value::Null => {
                match self.json {
                    true => print_json(leader),
                    false => println!("{}", leader.field("value").map(plain).unwrap_or_default()),
                }
                Ok(ExitCode::SUCCESS)
            }
            _ => {
                if self.json {
                    print_json(&Value::Null);
                }
                let waiting = election.field("waiting").and_then(Value::number);
                let why = match waiting {
                    None | Some(0) => "nobody is a candidate",
                    Some(_) => "it is about to be decided who does",
                };
                let why = format!("nobody leads {}; {why}", self.name);
                Err(Ended::new(NOT_GOOD, why))
            }
        }
    }
}

impl Show {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let election = client.show_election(&self.name).await?;
        if self.json {
            print_json(&election);
            return Ok(ExitCode::SUCCESS);
        }
        match election.field("leader") {
            Some(leader) if *leader != Value::Null => print_fields(leader),
            _ => println!("nobody leads {}", self.name),
        }
        let candidates = ["session", "label", "rank", "value", "waited_ms"];
        let terms = [
            "term", "session", "rank", "value", "led_ms", "ended_ms", "why",
        ];
        for (name, columns) in [("candidates", &candidates[..]), ("terms", &terms)] {
            let rows = election.field(name).and_then(Value::list);
            let rows = rows.unwrap_or_default();
            println!("\n{name}: {}", rows.len());
            if !rows.is_empty() {
                print_rows(rows, columns);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What a row of `ELECT LIST` says, in order.
const COLUMNS: [&str; 5] = ["name", "term", "session", "value", "candidates"];

impl List {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let elections = client.list_elections(&self.pattern).await?;
        let row = |row: &Value| {
            let cells = row.list().unwrap_or_default().iter().cloned();
            let names = COLUMNS.iter().map(|name| Value::Text((*name).to_owned()));
            Value::Map(names.zip(cells).collect())
        };
        let rows: Vec<Value> = elections
            .list()
            .unwrap_or_default()
            .iter()
            .map(row)
            .collect();
        match self.json {
            true => print_json(&Value::List(rows)),
            false => print_rows(&rows, &COLUMNS),
        }
        Ok(ExitCode::SUCCESS)
    }
}
