//! `testigo once`: the records behind `testigo lock --once` and `--every`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::exit::{Outcome, complain};
use crate::reach::Reach;
use crate::span::Span;

/// Look after the records of --once and --every.
///
/// Example: testigo once forget nightly@24h
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Once {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Forget a key, done or not: the next `testigo lock` with it runs its command again.
    ///
    /// The key of --every is the gates' names and the span, such as nightly@24h; nightly@1d names the same one.
    /// Exit code 0: it is forgotten, or there was none, which is said; 69: no node reachable; 76: unknown whether it was forgotten.
    ///
    /// Example: testigo once forget nightly@24h
    #[command(verbatim_doc_comment)]
    Forget {
        /// The key.
        key: String,
        #[command(flatten)]
        reach: Reach,
    },
}

impl Once {
    pub(crate) fn run(self) -> Outcome {
        let Action::Forget { key, reach } = self.action;
        reach.talk(async |client| {
            let key = as_recorded(&key);
            if !client.forget_once(&key).await? {
                complain!("testigo: there was no {key} on record");
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// The key as `testigo lock --every` records it: with its span in the largest unit that leaves no rest.
fn as_recorded(key: &str) -> String {
    let spanned = key.rsplit_once('@');
    let spanned = spanned.and_then(|(names, span)| Some((names, span.parse::<Span>().ok()?)));
    match spanned {
        Some((names, span)) => format!("{names}@{span}"),
        None => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_found_however_it_is_written() {
        assert_eq!(as_recorded("nightly@24h"), "nightly@1d");
        assert_eq!(as_recorded("nightly@1d"), "nightly@1d");
        assert_eq!(as_recorded("billing+stock@90m"), "billing+stock@90m");
        assert_eq!(as_recorded("release@v2"), "release@v2");
        assert_eq!(as_recorded("migrate"), "migrate");
    }
}
