//! Which jobs a command means: ids, or a pattern, after a question to whoever might have meant less.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use testigo_client::{Connection, Value};

use super::look::find;
use crate::reach::Ended;

/// Jobs by id or by pattern.
#[derive(Args)]
pub(super) struct Chosen {
    /// The jobs' ids.
    #[arg(required_unless_present = "find", conflicts_with = "find")]
    pub(super) ids: Vec<u64>,
    /// All jobs whose names fit this; * is any text. Asks before it does it, unless --yes is said.
    #[arg(long, value_name = "PATTERN")]
    find: Option<String>,
    /// With --find: only those in this queue.
    #[arg(long = "in", value_name = "QUEUE", requires = "find")]
    queue: Option<String>,
    /// With --find: at most so many.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

impl Chosen {
    /// The ids. What was found by a pattern is asked about first.
    pub(super) async fn ids(&self, node: &mut Connection, verb: &str) -> Result<Vec<u64>, Ended> {
        let Some(pattern) = &self.find else {
            return Ok(self.ids.clone());
        };
        let found = find(node, pattern, self.queue.as_deref(), self.limit).await?;
        let ids = found.iter().filter_map(|row| row.field("id")?.number());
        let ids: Vec<u64> = ids.collect();
        if !self.yes && !ids.is_empty() {
            confirm(verb, &found)?;
        }
        Ok(ids)
    }
}

/// Names of jobs that a question shows.
const NAMES_SHOWN: usize = 5;

fn confirm(verb: &str, found: &[Value]) -> Result<(), Ended> {
    let names = found.iter().filter_map(|row| row.field("name")?.text());
    let names: Vec<&str> = names.take(NAMES_SHOWN).collect();
    let more = match found.len() > names.len() {
        true => ", …",
        false => "",
    };
    let question = format!("{verb} {} jobs ({}{more})", found.len(), names.join(", "));
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let why = format!("this would {question}; say --yes if that is meant");
        return Err(Ended::bad_input(why));
    }
    eprint!("{question}? [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stderr().flush();
    let read = stdin.lock().read_line(&mut answer);
    match read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => Err(Ended::bad_input("nothing was changed")),
    }
}
