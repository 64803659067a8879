//! `testigo flow graph`.

use std::path::PathBuf;

use clap::Args;
use testigo_flow::{draw, lay_out};

use super::file::{FlowFile, stem};
use crate::exit::{Outcome, good_if};
use crate::lab::options::{print_json, write};

/// Draw a flow as SVG
///
/// A process is round, a queue is a rectangle; a bar at the left of a process says that it creates
/// jobs, one at its right that it deletes them. Reject queues have a dashed border.
///
/// With --json, the layout as one object: width, height; nodes, a list of kind, name, x, y, width,
/// height, create, delete (where its bars are, or null); arrows, a list of from, to (places in
/// nodes), back (it closes a cycle), points.
///
/// Exit code 0: drawn; 1: the flow is invalid; 2: the file cannot be read or written, or the flow
/// is too large to be drawn.
///
/// Example: testigo flow graph orders.flow --svg orders.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Graph {
    /// The flow's file; - is standard input.
    file: PathBuf,
    /// Write the picture there; without it, and for -, to standard output.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// What stands above the picture; without it, the file's name.
    #[arg(long)]
    title: Option<String>,
    /// Print where everything stands instead of the picture.
    #[arg(long, conflicts_with = "svg")]
    json: bool,
}

impl Graph {
    pub(crate) fn run(self) -> Outcome {
        let file = FlowFile::open(&self.file)?;
        let reading = file.read();
        let Some(flow) = &reading.flow else {
            return Ok(file.refuse(&reading.findings));
        };
        if self.json {
            print_json(&lay_out(flow, reading.document.as_ref())?)?;
            return Ok(good_if(true));
        }
        let title = self.title.unwrap_or_else(|| stem(&self.file));
        let svg = draw(flow, reading.document.as_ref(), &title)?;
        match self.svg.as_ref().filter(|path| path.as_os_str() != "-") {
            Some(path) => write(path, &svg)?,
            None => print!("{svg}"),
        }
        Ok(good_if(true))
    }
}
