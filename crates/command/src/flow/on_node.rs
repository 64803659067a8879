//! `testigo flow apply|show|list|delete`: flows on a node.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use testigo::node::FlowMark;
use testigo_client::{Connection, NotDone, Value, Word};
use testigo_flow::{Change, Graph, plan, read};

use super::file::FlowFile;
use crate::confirm::confirm;
use crate::exit::{NOT_GOOD, Outcome, complain};
use crate::reach::{Ended, Reach};
use crate::show::{named, print_json, print_rows};

/// What is done with flows on a node.
#[derive(Subcommand)]
pub(crate) enum OnNode {
    Apply(Apply),
    Show(Show),
    List(List),
    Delete(Delete),
}

/// Put a flow on the node, or change it while it runs.
///
/// All or nothing: a flow that breaks a rule is refused with what flow check says of it, and so is a
/// change that would take a queue away while jobs are in it. Jobs, and who works on them, stay as
/// they are.
///
/// Without --over and --new, the flow on the node is replaced whatever it is. With --over, it is
/// replaced only if it is still the text that you started from; otherwise standard error says what
/// others have changed since, and what your file would change of that.
///
/// Exit code: 0 it is applied, and on disk; 1 the text is no flow, or others have changed the flow;
/// 75 jobs are in the way; 69 no node reachable; 76 unknown whether it was applied; 2 bad input.
///
/// Example: testigo flow apply orders orders.flow
/// Example: testigo flow show orders --text > seen.flow; cp seen.flow new.flow; $EDITOR new.flow
///          testigo flow apply orders new.flow --over seen.flow
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Apply {
    /// The flow's name.
    name: String,
    /// The file with its text; - is standard input.
    file: PathBuf,
    /// Only if the flow on the node is still the one in this file, as flow show --text printed it.
    #[arg(long, value_name = "FILE")]
    over: Option<PathBuf>,
    /// Only if there is no flow of that name yet.
    #[arg(long, conflicts_with = "over")]
    new: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Show a flow as it runs: its queues with their jobs, and what its processes may do.
///
/// Exit code: 0; 2 there is no such flow; 69 no node reachable.
///
/// Example: testigo flow show orders --text > orders.flow
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Show {
    /// The flow's name.
    name: String,
    /// Print its text, as it was applied.
    #[arg(long, conflicts_with = "json")]
    text: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// List the flows on the node.
///
/// Exit code: 0; 69 no node reachable.
///
/// Example: testigo flow list --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct List {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Delete a flow that has no jobs.
///
/// On a terminal it asks first.
///
/// Exit code: 0 it is gone; 75 there are jobs in it; 2 there is no such flow; 69 no node reachable;
/// 76 unknown whether it was deleted.
///
/// Example: testigo flow delete orders
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Delete {
    /// The flow's name.
    name: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    reach: Reach,
}

impl OnNode {
    pub(crate) fn run(self) -> Outcome {
        match &self {
            OnNode::Apply(apply) => {
                let file = FlowFile::open(&apply.file)?;
                let reading = file.read();
                if reading.flow.is_none() {
                    return Ok(file.refuse(&reading.findings));
                }
                let seen = apply.over.as_deref().map(FlowFile::open).transpose()?;
                let seen = seen.map(|seen| seen.text);
                let (text, graph) = (&file.text, &reading.graph);
                let words = async |node| apply.talk(node, text, graph, seen.as_deref()).await;
                apply.reach.converse(words)
            }
            OnNode::Show(show) => show.reach.converse(async |node| show.talk(node).await),
            OnNode::List(list) => list.reach.converse(async |mut node| {
                let flows = node.say(&["FLOW", "LIST"]).await?;
                let flows = named(&flows, &["name", "processes", "queues", "jobs"]);
                match list.json {
                    true => print_json(&Value::List(flows)),
                    false => print_rows(&flows, &["name", "processes", "queues", "jobs"]),
                }
                Ok(ExitCode::SUCCESS)
            }),
            OnNode::Delete(delete) => delete.reach.converse(async |mut node| {
                if !delete.yes {
                    confirm(&format!("delete flow {}", delete.name))?;
                }
                node.say(&["FLOW", "DELETE", &delete.name]).await?;
                Ok(ExitCode::SUCCESS)
            }),
        }
    }
}

impl Apply {
    async fn talk(
        &self,
        mut node: Connection,
        text: &str,
        graph: &Graph,
        seen: Option<&str>,
    ) -> Result<ExitCode, Ended> {
        let over = match seen {
            Some(seen) => Some(FlowMark::of(seen).to_string()),
            None => self.new.then(|| "NONE".to_owned()),
        };
        let before = node.say(&["FLOW", "SHOW", &self.name]).await;
        let mut words = vec!["FLOW", "APPLY", &self.name, text];
        words.extend(over.iter().flat_map(|over| ["OVER", over]));
        if let Err(not_done) = node.say(&words).await {
            return Err(match not_done.word() {
                Some(Word::BadFlow) => Ended::new(NOT_GOOD, sentence(not_done)),
                Some(Word::Stale) => {
                    let running = node.say(&["FLOW", "SHOW", &self.name]).await;
                    let running = running.as_ref().ok().and_then(|shown| shown.field("text"));
                    let running = running.and_then(Value::text).unwrap_or_default();
                    let mut why = match running {
                        "" => format!("there is no flow {} any more", self.name),
                        _ if seen.is_none() => format!("there is a flow {} already", self.name),
                        _ => format!("others have changed flow {}", self.name),
                    };
                    if let Some(seen) = seen {
                        why += &difference("what others have changed since", seen, running);
                    }
                    why += &difference("what your file would change of that", running, text);
                    Ended::new(NOT_GOOD, why)
                }
                _ => Ended::from(not_done),
            });
        }
        let before = before.ok();
        let before = before.as_ref().and_then(|flow| flow.field("text"));
        let how = match before.and_then(Value::text) {
            None => "applied",
            Some(before) if before == text => "applied as it was",
            Some(_) => "changed",
        };
        let (name, processes, queues) = (&self.name, graph.processes.len(), graph.queues.len());
        complain!("testigo: {name} is {how}: {processes} processes, {queues} queues");
        Ok(ExitCode::SUCCESS)
    }
}

fn sentence(not_done: NotDone) -> String {
    match not_done {
        NotDone::Refused(refusal) => refusal.sentence,
        other => other.to_string(),
    }
}

/// What one text would change of another, a line each, below a heading.
fn difference(heading: &str, old: &str, new: &str) -> String {
    let plan = plan(&read(old).graph, &read(new).graph, &BTreeMap::new());
    let mut lines: Vec<String> = plan.changes.iter().map(Change::to_string).collect();
    if lines.is_empty() {
        lines.push("nothing that matters to it".into());
    }
    format!("\n{heading}:\n  {}", lines.join("\n  "))
}

impl Show {
    async fn talk(&self, mut node: Connection) -> Result<ExitCode, Ended> {
        let flow = node.say(&["FLOW", "SHOW", &self.name]).await?;
        if self.json {
            print_json(&flow);
            return Ok(ExitCode::SUCCESS);
        }
        if self.text {
            let text = flow.field("text").and_then(Value::text);
            print!("{}", text.unwrap_or_default());
            return Ok(ExitCode::SUCCESS);
        }
        let rows = |name: &str| flow.field(name).and_then(Value::list).unwrap_or_default();
        let queues = [
            "name", "order", "limit", "retries", "reject", "data", "jobs", "waiting",
        ];
        let processes = ["name", "takes", "passes", "creates", "deletes", "limit"];
        println!("queues: {}", rows("queues").len());
        print_rows(rows("queues"), &queues);
        println!("\nprocesses: {}", rows("processes").len());
        print_rows(rows("processes"), &processes);
        Ok(ExitCode::SUCCESS)
    }
}
