//! `testigo lab compare`.

use std::path::PathBuf;

use clap::Args;
use testigo_lab::{Entry, compare, comparison_chart};

use super::options::{SetupOptions, WorldOptions, print_json, write};
use super::table::{Table, bound, number, yes};
use crate::exit::{Outcome, good_if};

/// Run several algorithms on the same arrivals.
///
/// Exit code 0: all safe and live; 1: one is not; 2: bad input.
///
/// Example: testigo lab compare central ricart-agrawala maekawa --nodes 4,8,16 --svg messages.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Compare {
    /// The algorithms' names; `testigo lab list` shows them.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The numbers of nodes to run with.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', required = true)]
    nodes: Vec<usize>,
    #[command(flatten)]
    world: WorldOptions,
    #[command(flatten)]
    setup: SetupOptions,
    /// Draw messages an entry against the number of nodes, with the published bounds.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print a list of objects, one for each algorithm and number of nodes.
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(crate) fn run(self) -> Outcome {
        let entries = self
            .names
            .iter()
            .map(|name| Entry::find(name))
            .collect::<Result<Vec<_>, _>>()?;
        let world = self.world.world();
        let setup = self.setup.setup(0, world.delay_bound());
        let rows = compare(&entries, &self.nodes, &setup, &world)?;
        if let Some(path) = &self.svg {
            write(path, &comparison_chart(&rows))?;
        }
        if self.json {
            print_json(&rows)?;
        } else {
            let heads = [
                "ALGORITHM",
                "NODES",
                "SAFE",
                "LIVE",
                "MESSAGES/ENTRY",
                "PUBLISHED",
                "BYTES",
                "WAITING",
                "RESPONSE",
                "SYNC DELAY",
                "BYPASS",
            ];
            let mut table = Table::new(&heads);
            for row in &rows {
                let published = match row.published_messages_per_entry {
                    Some(range) if range.min == range.max => bound(range.min),
                    Some(range) => format!("{} to {}", bound(range.min), bound(range.max)),
                    None => "-".into(),
                };
                table.row([
                    row.algorithm.to_owned(),
                    row.nodes.to_string(),
                    yes(row.safe),
                    yes(row.live),
                    number(row.messages_per_entry),
                    published,
                    number(row.message_bytes),
                    number(row.waiting_time),
                    number(row.response_time),
                    number(row.synchronisation_delay),
                    row.overtakes_max.to_string(),
                ]);
            }
            table.print();
        }
        Ok(good_if(rows.iter().all(|row| row.safe && row.live)))
    }
}
