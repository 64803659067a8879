//! `testigo lab list`.

use clap::Args;
use serde::Serialize;
use testigo_lab::KnownAlgorithm;

use super::options::print_json;
use super::table::Table;
use crate::exit::{Failure, Outcome, good_if};

/// Show the algorithms that there are.
///
/// Example: testigo lab list --problem mutex
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct List {
    /// Only the algorithms of this problem.
    #[arg(long, value_name = "P")]
    problem: Option<String>,
    /// Print a list of objects: name, problem, source, specimen.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    problem: &'static str,
    source: &'static str,
    specimen: bool,
}

impl List {
    pub(crate) fn run(self) -> Outcome {
        let mut algorithms = KnownAlgorithm::all();
        if let Some(problem) = &self.problem {
            let mut problems: Vec<&str> = algorithms.iter().map(KnownAlgorithm::problem).collect();
            problems.dedup();
            if !problems.contains(&problem.as_str()) {
                let known = problems.join(", ");
                return Err(Failure::from(format!(
                    "there is no problem `{problem}`: there is {known}"
                )));
            }
            algorithms.retain(|algorithm| algorithm.problem() == problem);
        }
        if self.json {
            let listed = algorithms.iter().map(|algorithm| Listed {
                name: algorithm.profile.name,
                problem: algorithm.problem(),
                source: algorithm.profile.source,
                specimen: algorithm.profile.specimen.is_some(),
            });
            print_json(&listed.collect::<Vec<_>>())?;
            return Ok(good_if(true));
        }
        let mut table = Table::new(&["NAME", "PROBLEM", "WHAT IT IS", "SOURCE"]);
        for algorithm in &algorithms {
            let kind = match algorithm.profile.specimen {
                Some(_) => format!("{} (specimen)", algorithm.profile.title),
                None => algorithm.profile.title.to_owned(),
            };
            let cells = [
                algorithm.profile.name,
                algorithm.problem(),
                &kind,
                algorithm.profile.source,
            ];
            table.row(cells.map(str::to_owned));
        }
        table.print();
        Ok(good_if(true))
    }
}
