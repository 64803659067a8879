//! `testigo flow fmt`.

use std::path::PathBuf;

use clap::Args;
use testigo_flow::{Document, Flow, Notation, config, revise_config};

use super::file::FlowFile;
use super::replace::replace;
use crate::exit::{Failure, Outcome, complain, good_if};

/// Lay a flow's text out, or convert it between its notations
///
/// Comments and the order of the statements stay; only a configuration file gets no comments but
/// its own. What the other notations cannot say is told on standard error; the classic one keeps it
/// in comments.
///
/// Exit code 0: done; 1: the flow is invalid, or with --check, not laid out; 2: the file cannot
/// be read or written.
///
/// Example: testigo flow fmt orders.flow --classic
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Fmt {
    /// The flow's file, in any notation; - is standard input.
    file: PathBuf,
    /// Write the thesis' notation: PROCa COLAb PROCc.
    #[arg(long, conflicts_with = "config")]
    classic: bool,
    /// Write the thesis' configuration file, config.server.
    #[arg(long)]
    config: bool,
    /// Write into the file instead of standard output.
    #[arg(long)]
    write: bool,
    /// Write nothing; only say whether the file is laid out so.
    #[arg(long, conflicts_with = "write")]
    check: bool,
}

impl Fmt {
    pub(crate) fn run(self) -> Outcome {
        let file = FlowFile::open(&self.file)?;
        let reading = file.read();
        let (Some(flow), Some(document)) = (&reading.flow, &reading.document) else {
            return Ok(file.refuse(&reading.findings));
        };
        let text = self.formatted(&file.text, flow, document)?;
        if self.check {
            let same = text == file.text;
            let how = if same { "laid out" } else { "not laid out" };
            println!("{}: {how}", file.name);
            return Ok(good_if(same));
        }
        match self.write {
            true if file.name == "-" => {
                return Err(Failure::from("standard input cannot be written into"));
            }
            true if text == file.text => {}
            true => replace(&self.file, &text)?,
            false => print!("{text}"),
        }
        Ok(good_if(true))
    }

    /// The text in the wanted notation.
    fn formatted(&self, text: &str, flow: &Flow, document: &Document) -> Result<String, Failure> {
        if self.config {
            let file = match Notation::of(text) {
                Notation::Config => revise_config(text, flow)?,
                _ => config(flow)?,
            };
            unsaid("a configuration file", &file.unsaid);
            return Ok(file.text);
        }
        if self.classic {
            let classic = document.classic()?;
            unsaid("the classic notation", &classic.unsaid);
            return Ok(classic.text);
        }
        Ok(document.to_string())
    }
}

fn unsaid(notation: &str, statements: &[String]) {
    for statement in statements {
        complain!("testigo: {notation} cannot say: {statement}");
    }
}
