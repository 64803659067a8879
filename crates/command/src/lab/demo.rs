//! `testigo lab demo`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use testigo_lab::demo::{Demo as Demonstration, Shown};

use super::draw::ViewOptions;
use super::options::{print_json, write};
use super::progress;
use super::table::Table;
use crate::exit::{Failure, Outcome, good_if};

/// Show one thing about an algorithm, and say what to look at, step by step.
///
/// Schedules come from the checker or from a simulation, while you wait: nothing is canned.
/// Exit code 0: it came out as the source says; 1: it did not; 2: bad input.
///
/// Example: testigo lab demo maekawa-two-inside
/// Example: testigo lab demo maekawa-two-inside --svg two-inside.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Demo {
    /// The demonstration's name; --list shows them.
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,
    /// Show the demonstrations that there are.
    #[arg(long, conflicts_with_all = ["name", "svg"])]
    list: bool,
    /// Draw it.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    view: ViewOptions,
    /// Print one object: question, steps with their remarks, what was found, answer.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: &'static str,
    source: &'static str,
}

impl Demo {
    pub(crate) fn run(self) -> Outcome {
        let Some(name) = &self.name else {
            return self.print_list();
        };
        let shown = Demonstration::find(name)?.show(progress::of_check())?;
        progress::clear();
        match (&self.svg, &shown.trace) {
            (Some(path), Some(trace)) => {
                write(path, &testigo_lab::picture(trace, self.view.view()))?;
            }
            (Some(_), None) => {
                let what = format!("{name} has no run that could be drawn");
                return Err(Failure::from(what));
            }
            (None, _) => {}
        }
        match self.json {
            true => print_json(&shown)?,
            false => print(&shown),
        }
        Ok(good_if(shown.as_expected))
    }

    fn print_list(&self) -> Outcome {
        let listed = Demonstration::all().map(|demo| Listed {
            name: demo.name,
            title: demo.title,
            source: demo.source,
        });
        if self.json {
            print_json(&listed.collect::<Vec<_>>())?;
            return Ok(good_if(true));
        }
        let mut table = Table::new(&["NAME", "WHAT IT SHOWS", "SOURCE"]);
        for one in listed {
            table.row([one.name, one.title, one.source].map(str::to_owned));
        }
        table.print();
        Ok::<_, Failure>(good_if(true))
    }
}

fn print(shown: &Shown) {
    println!("{}", shown.title);
    println!("{}; {}", shown.source, shown.setup);
    println!("\n{}", shown.question);
    if !shown.steps.is_empty() {
        println!();
    }
    for step in &shown.steps {
        println!("{}", step.step);
        if let Some(remark) = step.remark {
            println!("      Look: {remark}.");
        }
    }
    if let Some(found) = &shown.found {
        println!("\nFound: {found}.");
    }
    println!("\n{}", shown.answer);
    if !shown.as_expected {
        println!("\nThis is NOT what the source says.");
    }
}
