//! `testigo lab draw`.

use std::path::PathBuf;

use clap::Args;

use super::options::write;
use super::replay::read;
use crate::exit::{Outcome, good_if};

/// Draw a trace as a space-time diagram.
///
/// Example: testigo lab draw maekawa-slides.counterexample.trace --svg picture.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Draw {
    /// A trace, from `testigo lab run --trace` or `testigo lab check`.
    trace: PathBuf,
    /// Where the picture goes.
    #[arg(long, value_name = "FILE")]
    svg: PathBuf,
}

impl Draw {
    pub(crate) fn run(self) -> Outcome {
        let trace = read(&self.trace)?;
        write(&self.svg, &testigo_lab::picture(&trace))?;
        Ok(good_if(true))
    }
}
