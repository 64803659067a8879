//! `testigo status`: whether a node is ready, and how it is.

use clap::Args;
use testigo_client::Value;

use crate::exit::{Outcome, good_if};
use crate::reach::Reach;
use crate::show::{plain, print_fields, print_json, with_truths};

/// Show whether a node is ready, and how it is.
///
/// A node that is cut off, joins, recovers, stops or cannot write answers, too, and says why it is
/// not ready.
///
/// Exit code: 0 it is ready; 1 it answers and is not; 69 no node reachable.
///
/// Example: testigo status --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Status {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Status {
    pub(crate) fn run(self) -> Outcome {
        self.reach.end_with(async {
            let mut node = self.reach.open_any().await?;
            let status = with_truths(&node.say(&["STATUS"]).await?);
            match self.json {
                true => print_json(&status),
                false => print(&status),
            }
            Ok(good_if(status.field("ready") != Some(&Value::Truth(false))))
        })
    }
}

/// For people.
fn print(status: &Value) {
    print_fields(status);
    let reasons = status.field("reasons").and_then(Value::list);
    for reason in reasons.unwrap_or_default() {
        println!("{:<18} {}", "not ready", plain(reason));
    }
}
