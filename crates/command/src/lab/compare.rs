//! `testigo lab compare`.

use std::path::PathBuf;

use clap::Args;
use testigo_lab::{Compared, KnownAlgorithm, Row, comparison_chart};
use testigo_protocol::Counted;

use super::options::{SetupOptions, WorldOptions, points, print_json, write};
use super::samples::{gather, print_csv, print_table};
use super::sweep::Sweep;
use super::table::{Table, number, published, yes};
use crate::exit::{Outcome, good_if};

/// Run several algorithms on the same arrivals.
///
/// With --seeds, every one is run with each seed, and the mean, its 95 % interval and percentiles are shown.
/// Numbers can be swept: 4,8 or 4..8 or 4..64x2 or 0.1..0.5+0.1.
///
/// Exit code 0: all safe and live; 1: one is not; 2: bad input.
///
/// Example: testigo lab compare central ricart-agrawala maekawa --nodes 4..64x2 --svg messages.svg
/// Example: testigo lab compare chang raymond --nodes 16 --seeds 1..20 --latency exponential:1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Compare {
    /// The algorithms' names; `testigo lab list` shows them.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The numbers of nodes to run with.
    #[arg(long, value_name = "N,N,…")]
    nodes: Sweep<usize>,
    #[command(flatten)]
    world: WorldOptions,
    #[command(flatten)]
    setup: SetupOptions,
    /// Draw messages per entry against the number of nodes, or another number that is swept, with the
    /// published bounds.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print a list of objects, one for each algorithm and number of nodes; with --seeds or another sweep, with
    /// the summary of every measure.
    #[arg(long)]
    json: bool,
    /// Print the summary of every measure as comma-separated values.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl Compare {
    pub(crate) fn run(self) -> Outcome {
        let algorithms = self
            .names
            .iter()
            .map(|name| KnownAlgorithm::find(name))
            .collect::<Result<Vec<_>, _>>()?;
        let threads = algorithms
            .iter()
            .filter(|one| !one.sends_messages())
            .count();
        if threads > 0 && threads < algorithms.len() {
            let why =
                "messages and accesses to memory cannot be compared: name algorithms of one kind";
            return Err(why.into());
        }
        let points = points(&self.nodes, &self.world, &self.setup)?;
        let samples = gather(&algorithms, &points, &self.world.seeds())?;
        let rows: Vec<Row> = samples.iter().map(|one| Row::from(&one.sample)).collect();
        if let Some(path) = &self.svg {
            let compared: Vec<Compared<'_>> = (samples.iter())
                .map(|one| Compared {
                    sample: &one.sample,
                    swept: &one.swept,
                })
                .collect();
            write(path, &comparison_chart(&compared))?;
        }
        let one_each = self.world.seeds.is_none() && points.iter().all(|one| one.swept.is_empty());
        if self.csv {
            print_csv(&samples);
        } else if self.json && one_each {
            print_json(&rows)?;
        } else if self.json {
            print_json(&samples)?;
        } else if !one_each {
            print_table(&samples);
        } else if threads > 0 {
            print_threads(&rows);
        } else {
            let counted = rows.first().map_or(Counted::ENTRIES, |row| row.counted);
            let per = match rows.iter().all(|row| row.counted == counted) {
                true => format!("MESSAGES/{}", counted.one.to_uppercase()),
                false => "MESSAGES/REQUEST".into(),
            };
            let heads = [
                "ALGORITHM",
                "NODES",
                "SAFE",
                "LIVE",
                &per,
                "PUBLISHED",
                "BYTES",
                "WAITING",
                "RESPONSE",
                "SYNC DELAY",
                "BYPASS",
            ];
            let mut table = Table::new(&heads);
            for row in &rows {
                table.row([
                    row.algorithm.to_owned(),
                    row.nodes.to_string(),
                    yes(row.safe),
                    yes(row.live),
                    number(row.messages_per_entry),
                    published(row.published_messages_per_entry, row.as_published),
                    number(row.message_bytes),
                    number(row.waiting_time),
                    number(row.response_time),
                    number(row.synchronisation_delay),
                    row.overtakes_max
                        .map_or("-".into(), |most| most.to_string()),
                ]);
            }
            table.print();
        }
        let good = |row: &Row| row.safe && row.live && row.bounded != Some(false);
        Ok(good_if(rows.iter().all(good)))
    }
}

fn print_threads(rows: &[Row]) {
    let mut table = Table::new(&[
        "ALGORITHM",
        "PROCESSES",
        "SAFE",
        "LIVE",
        "ACCESSES/ENTRY",
        "REMOTE",
        "WAITING",
        "RESPONSE",
        "SYNC DELAY",
        "BYPASS",
    ]);
    for row in rows {
        table.row([
            row.algorithm.to_owned(),
            row.nodes.to_string(),
            yes(row.safe),
            yes(row.live),
            number(row.accesses_per_entry),
            number(row.remote_accesses_per_entry),
            number(row.waiting_time),
            number(row.response_time),
            number(row.synchronisation_delay),
            row.overtakes_max
                .map_or("-".into(), |most| most.to_string()),
        ]);
    }
    table.print();
}
