//! `testigo lab draw`.

use std::path::PathBuf;

use clap::Args;
use testigo_lab::draw::{View, WIDTH_DEFAULT, WIDTH_MIN};

use super::options::write;
use super::replay::read;
use crate::exit::{Failure, Outcome, good_if};

/// Draw a trace as a space-time diagram.
///
/// A run that does not fit the width shows its beginning, its end, and what led to a violation or
/// surrounds a fault; marks say what is cut out. Of many nodes, those that show nothing of their own are folded.
///
/// Example: testigo lab draw maekawa-slides.counterexample.trace --svg picture.svg
/// Example: testigo lab draw long.trace --svg wall.svg --whole
/// Example: testigo lab draw site.trace --number 1 --svg before.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Draw {
    /// A trace, from `testigo lab run --trace`, `testigo lab check` or `testigo trace`.
    trace: PathBuf,
    /// Which trace of a file that has several, from 1; the last, if this is not said.
    #[arg(long, value_name = "N")]
    number: Option<usize>,
    /// Where the picture goes.
    #[arg(long, value_name = "FILE")]
    svg: PathBuf,
    #[command(flatten)]
    view: ViewOptions,
}

/// How much of a run a picture shows.
#[derive(Args)]
pub(crate) struct ViewOptions {
    /// The width of the picture, at most.
    #[arg(
        long,
        value_name = "PIXELS",
        default_value_t = WIDTH_DEFAULT,
        value_parser = clap::value_parser!(u32).range(i64::from(WIDTH_MIN)..=20_000),
        requires = "svg"
    )]
    width: u32,
    /// Draw every node and all of the time, however wide the picture becomes.
    #[arg(long, conflicts_with = "width", requires = "svg")]
    whole: bool,
}

impl ViewOptions {
    pub(crate) fn view(&self) -> View {
        View {
            width: self.width,
            whole: self.whole,
        }
    }
}

impl Draw {
    pub(crate) fn run(self) -> Outcome {
        let traces = read(&self.trace)?;
        let all = traces.len();
        let place = self.number.unwrap_or(all).checked_sub(1);
        let Some(trace) = place.and_then(|place| traces.get(place)) else {
            let what = format!("{} has {all} traces, from 1", self.trace.display());
            return Err(Failure::from(what));
        };
        write(&self.svg, &testigo_lab::picture(trace, self.view.view()))?;
        Ok(good_if(true))
    }
}
