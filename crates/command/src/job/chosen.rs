//! Which jobs a command means: ids, or a pattern, after a question to whoever might have meant less; and how it goes
//! through them.

use std::collections::HashSet;
use std::process::ExitCode;

use clap::Args;
use testigo_client::{Call, Connection, Word};

use super::look::{Found, find};
use crate::confirm::{can_ask, confirm};
use crate::exit::{NOT_GOOD, complain};
use crate::reach::Ended;

/// Jobs by id or by pattern.
#[derive(Args)]
pub(super) struct Chosen {
    /// The jobs' ids.
    #[arg(required_unless_present = "find", conflicts_with = "find")]
    pub(super) ids: Vec<u64>,
    /// All jobs whose names fit this; * is any text. Without a terminal to ask at it needs --yes.
    #[arg(long, value_name = "PATTERN")]
    find: Option<String>,
    /// With --find: only those in this queue.
    #[arg(long = "in", value_name = "QUEUE", requires = "find")]
    queue: Option<String>,
    /// With --find: at most so many, the oldest; else all.
    #[arg(long, value_name = "N", requires = "find")]
    limit: Option<u64>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Jobs that are asked for at once, if the node lists so many.
const ROUND_MAX: u64 = 100_000;
/// After so many jobs it is said how far it is.
const SAID_EVERY: u64 = 1_000;

impl Chosen {
    /// Does something with each of the jobs, after a question.
    pub(super) async fn each(
        &self,
        node: &mut Connection,
        verb: &str,
        done: &str,
        mut step: impl AsyncFnMut(&mut Connection, u64) -> Result<(), Ended>,
    ) -> Result<ExitCode, Ended> {
        let mut tally = Tally::default();
        let Some(pattern) = &self.find else {
            if !self.yes {
                let ids = self.ids.iter().map(u64::to_string);
                confirm(&question(verb, "", self.ids.len(), ids))?;
            }
            for &id in &self.ids {
                tally.note(id, step(node, id).await)?;
            }
            return Ok(tally.end(done));
        };
        let mut sure = self.yes;
        let mut seen = HashSet::new();
        loop {
            let found = self.round(node, pattern, seen.len() as u64).await?;
            let ids = found.rows.iter();
            let ids = ids.filter_map(|row| row.field("id")?.number());
            let ids: Vec<u64> = ids.filter(|id| !seen.contains(id)).collect();
            if !sure && !ids.is_empty() {
                confirm_found(verb, &found, self.limit)?;
            }
            sure = true;
            let most = tally.all() + ids.len() as u64;
            for &id in &ids {
                tally.note(id, step(node, id).await)?;
                if tally.all().is_multiple_of(SAID_EVERY) && tally.all() < most {
                    complain!("testigo: {} of {most} {done}", tally.done);
                }
            }
            let stuck = ids.is_empty();
            seen.extend(ids);
            match (found.more, self.limit) {
                (false, _) => {}
                (true, Some(limit)) if seen.len() as u64 >= limit => {
                    complain!("testigo: more fit than --limit {limit}");
                }
                (true, _) if stuck => {
                    complain!(
                        "testigo: more fit than the node lists at once; name their queue with --in"
                    );
                    tally.refused += 1;
                }
                (true, _) => continue,
            }
            return Ok(tally.end(done));
        }
    }

    /// The oldest jobs that fit, as many as are wanted and the node lists at once.
    async fn round(&self, node: &mut Connection, pattern: &str, seen: u64) -> Call<Found> {
        let left = self
            .limit
            .map_or(ROUND_MAX, |limit| limit - seen.min(limit));
        let mut most = left.min(ROUND_MAX);
        loop {
            match find(node, pattern, self.queue.as_deref(), most).await {
                Err(not_done) if not_done.word() == Some(&Word::Limit) && most > 1 => most /= 2,
                found => return found,
            }
        }
    }
}

/// Jobs that a question shows.
const SHOWN: usize = 5;

fn question(
    verb: &str,
    least: &str,
    count: usize,
    mut jobs: impl Iterator<Item = String>,
) -> String {
    let shown: Vec<String> = jobs.by_ref().take(SHOWN).collect();
    let more = match count > shown.len() {
        true => ", …",
        false => "",
    };
    let jobs = match count {
        1 => "job",
        _ => "jobs",
    };
    format!("{verb} {least}{count} {jobs} ({}{more})", shown.join(", "))
}

/// A pattern may fit more than was meant, so a script must say that it is sure.
fn confirm_found(verb: &str, found: &Found, limit: Option<u64>) -> Result<(), Ended> {
    let count = found.rows.len();
    let least = match found.more && limit.is_none_or(|limit| limit > count as u64) {
        true => "at least ",
        false => "",
    };
    let names = found.rows.iter();
    let names = names.filter_map(|row| Some(row.field("name")?.text()?.to_owned()));
    let question = question(verb, least, count, names);
    if !can_ask() {
        let why = format!("this would {question}; say --yes if that is meant");
        return Err(Ended::bad_input(why));
    }
    confirm(&question)
}

/// How many were done, and how many not.
#[derive(Default)]
struct Tally {
    done: u64,
    refused: u64,
}

impl Tally {
    /// A refusal is said and the rest goes on; when the node is lost, nothing does.
    fn note(&mut self, id: u64, done: Result<(), Ended>) -> Result<(), Ended> {
        match done {
            Ok(()) => self.done += 1,
            Err(ended) if ended.is_unknown() => return Err(ended),
            Err(ended) => {
                complain!("testigo: job {id}: {}", ended.why);
                self.refused += 1;
            }
        }
        Ok(())
    }

    fn all(&self) -> u64 {
        self.done + self.refused
    }

    fn end(self, what: &str) -> ExitCode {
        println!("{} {what}", self.done);
        match self.refused {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::from(NOT_GOOD),
        }
    }
}
