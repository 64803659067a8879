//! `testigo decide`: of all values that are proposed, everybody gets the first.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::exit::{Outcome, complain};
use crate::reach::{Ended, Reach};
use crate::visible::Output;

/// Agree on a value: of all that are proposed under a name, the first is decided, for everybody.
///
/// Prints the decided value, whoever proposed it, once it is on the disks of a majority. Asking
/// again gives the same value, at every node and after every crash, until somebody forgets it.
///
/// Exit code 0: the decided value was printed; with --forget, it is forgotten, or there was none,
/// which is said; 2: bad input; 69: no node reachable; 76: with --forget, unknown whether it was
/// forgotten.
///
/// Examples:
///
///     testigo decide release 7.1
///     first=$(testigo decide primary "$(hostname)"); test "$first" = "$(hostname)" && ./lead.sh
///     testigo decide --forget release
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Decide {
    /// What is decided.
    name: String,
    /// The value to propose: any text, at most 4,096 bytes.
    #[arg(required_unless_present = "forget", conflicts_with = "forget")]
    value: Option<String>,
    /// Forget the decision: the next proposal decides anew.
    #[arg(long)]
    forget: bool,
    /// Print JSON: name, value, and whether it is the proposed one; with --forget, name and whether it was there.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Decide {
    pub(crate) fn run(self) -> Outcome {
        let Decide {
            name, value, json, ..
        } = &self;
        self.reach.talk(async |client| {
            let Some(value) = value else {
                let was = client.forget_decision(name).await?;
                if *json {
                    println!("{}", json!({ "name": name, "forgotten": was }));
                } else if !was {
                    complain!("testigo: there was no decision {name}");
                }
                return Ok(ExitCode::SUCCESS);
            };
            let decided = client.decide(name, value).await?;
            if *json {
                let (own, text) = (
                    decided == value.as_bytes(),
                    String::from_utf8_lossy(&decided),
                );
                println!("{}", json!({ "name": name, "value": text, "own": own }));
            } else {
                let written = Output.write_all(&[&decided[..], b"\n"].concat());
                written.map_err(|error| Ended::bad_input(error.to_string()))?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
