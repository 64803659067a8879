//! `testigo lab claims`.

use clap::Args;
use testigo_lab::{Entry, claims};

use super::options::print_json;
use super::table::{Table, yes};
use crate::exit::{Outcome, good_if};

/// Hold what is published against what is measured, for all algorithms or for some.
///
/// A claim that does not hold is reported, and is no failure of this command.
/// Exit code 0: done; 2: bad input.
///
/// Example: testigo lab claims sanders
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Claims {
    /// The algorithms' names; without any, all of them.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print a list of objects: algorithm, claim, published, measured, nodes, holds.
    #[arg(long)]
    json: bool,
}

impl Claims {
    pub(crate) fn run(self) -> Outcome {
        let entries = match self.names.is_empty() {
            true => Entry::all(),
            false => self
                .names
                .iter()
                .map(|name| Entry::find(name))
                .collect::<Result<_, _>>()?,
        };
        let mut findings = Vec::new();
        for entry in &entries {
            findings.extend(claims(entry)?);
        }
        if self.json {
            print_json(&findings)?;
            return Ok(good_if(true));
        }
        let mut table = Table::new(&[
            "ALGORITHM",
            "CLAIM",
            "NODES",
            "PUBLISHED",
            "MEASURED",
            "HOLDS",
        ]);
        for finding in &findings {
            table.row([
                finding.algorithm.to_owned(),
                finding.claim.clone(),
                finding.nodes.to_string(),
                finding.published.clone(),
                finding.measured.clone(),
                yes(finding.holds),
            ]);
        }
        table.print();
        Ok(good_if(true))
    }
}
