//! `testigo lab reproduce`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use testigo_lab::count::{CountExperiment, CountReproduction, MESSAGE_EXPERIMENTS};
use testigo_lab::slots::experiment::{
    EXPERIMENTS, Effort, Number, PublishedExperiment, Reproduction,
};
use testigo_lab::threads::ACCESS_EXPERIMENTS;

use super::options::{print_json, write};
use super::progress;
use super::table::{Table, bound, many};
use crate::exit::{Failure, Outcome, good_if};

/// Repeat a published experiment, with the published numbers beside what was found.
///
/// A number that is not reached is reported, and is no failure of this command.
/// Exit code 0: done; 1: Little's law does not hold in a run, or a count is not as published; 2: bad
/// input.
///
/// Example: testigo lab reproduce slots-table-1
/// Example: testigo lab reproduce slots-response --svg response.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Reproduce {
    /// The experiment's name; --list shows them.
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,
    /// Show the experiments that there are.
    #[arg(long, conflicts_with_all = ["name", "full", "seeds", "rounds", "svg"])]
    list: bool,
    /// 30 seeds, 50,000 rounds, and the sweeps of slots-table-1: this may take hours.
    #[arg(long)]
    full: bool,
    /// How many runs of each setting (5; 30 with --full).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: Option<u64>,
    /// How many rounds of each run are measured, after a warm-up (10,000; 50,000 with --full).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    rounds: Option<u64>,
    /// Draw what was found, beside what was published.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one object: cases, numbers with their verdicts, words, open questions.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: &'static str,
    source: &'static str,
}

impl Reproduce {
    pub(crate) fn run(self) -> Outcome {
        let Some(name) = &self.name else {
            return self.print_list();
        };
        if let Some(experiment) = counts().find(|one| one.name == name) {
            return self.run_counts(experiment);
        }
        let experiment = PublishedExperiment::find(name)?;
        let effort = match self.full {
            true => Effort::FULL,
            false => Effort::DEFAULT,
        };
        let effort = Effort {
            seeds: self.seeds.unwrap_or(effort.seeds),
            rounds: self.rounds.unwrap_or(effort.rounds),
            ..effort
        };
        // A whole setting takes minutes with --full: without a terminal each is a line.
        let each = effort.seeds as usize;
        let found = experiment.reproduce(effort, &|done, all| match self.full {
            true => progress::of_long_parts((done, all), "runs", each),
            false => progress::of_parts(done, all, "runs"),
        });
        progress::clear();
        // First what was found: that the picture cannot be written must not cost hours of it.
        match self.json {
            true => print_json(&found)?,
            false => print(&found),
        }
        if let Some(path) = &self.svg {
            write(path, &found.chart.to_svg())?;
        }
        Ok(good_if(found.little_holds))
    }

    fn run_counts(&self, experiment: &CountExperiment) -> Outcome {
        if self.full || self.seeds.is_some() || self.rounds.is_some() {
            let name = experiment.name;
            return Err(format!("{name} counts: it has no --full, --seeds or --rounds").into());
        }
        let found = experiment.reproduce()?;
        match self.json {
            true => print_json(&found)?,
            false => print_counts(&found),
        }
        if let Some(path) = &self.svg {
            write(path, &found.chart.to_svg())?;
        }
        Ok(good_if(found.is_reached()))
    }

    fn print_list(&self) -> Outcome {
        let slots = EXPERIMENTS.iter().map(|experiment| Listed {
            name: experiment.name,
            title: experiment.title,
            source: experiment.source,
        });
        let counts = counts().map(|experiment| Listed {
            name: experiment.name,
            title: experiment.title,
            source: experiment.source,
        });
        let listed = slots.chain(counts);
        if self.json {
            print_json(&listed.collect::<Vec<_>>())?;
            return Ok(good_if(true));
        }
        let mut table = Table::new(&["NAME", "WHAT IT IS", "SOURCE"]);
        for one in listed {
            table.row([one.name, one.title, one.source].map(str::to_owned));
        }
        table.print();
        Ok::<_, Failure>(good_if(true))
    }
}

/// Experiments that count, of threads and of messages.
fn counts() -> impl Iterator<Item = &'static CountExperiment> {
    ACCESS_EXPERIMENTS.iter().chain(MESSAGE_EXPERIMENTS)
}

fn print_counts(found: &CountReproduction) {
    println!("{}", found.title);
    println!("{}: {}", found.source, found.note);
    println!();
    let has_kinds = found.rows.iter().any(|row| !row.kinds.is_empty());
    let mut heads = vec!["WHAT", "SIZE", "FORMULA", "PUBLISHED", "COUNTED", "VERDICT"];
    heads.extend(has_kinds.then_some("KINDS"));
    let mut table = Table::new(&heads);
    for row in &found.rows {
        let verdict = match row.reached {
            Some(reached) => in_capitals(reached),
            None => "-",
        };
        let kinds = row
            .kinds
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"));
        let kinds: Vec<String> = kinds.collect();
        let mut cells = vec![
            row.what.clone(),
            row.size.to_string(),
            row.formula.unwrap_or("-").to_owned(),
            row.published.map_or("-".into(), bound),
            bound(row.counted),
            verdict.to_owned(),
        ];
        cells.extend(has_kinds.then(|| kinds.join(", ")));
        table.row(cells);
    }
    table.print();
    if found.properties.is_empty() {
        return;
    }
    println!();
    let mut table = Table::new(&["ALGORITHM", "PROPERTY", "PUBLISHED", "VERDICT", "FOUND"]);
    for row in &found.properties {
        table.row([
            row.algorithm.to_owned(),
            row.property.to_owned(),
            row.published.to_owned(),
            in_capitals(row.reached).to_owned(),
            row.found.clone(),
        ]);
    }
    table.print();
}

/// A count that differs must be seen: it is exit code 1.
fn in_capitals(reached: bool) -> &'static str {
    match reached {
        true => "reached",
        false => "NOT REACHED",
    }
}

fn print(found: &Reproduction) {
    println!("{}", found.title);
    println!(
        "{}: {} of {} rounds, after {} of warm-up",
        found.source,
        many(found.seeds, "seed", "seeds"),
        found.rounds,
        found.warm_up
    );
    println!();
    let heads: Vec<&str> = found.columns.iter().map(|column| column.head).collect();
    let mut table = Table::new(&heads);
    for row in &found.published {
        table.row(row.iter().map(|&cell| cell.to_owned()));
    }
    for case in &found.cases {
        table.row(found.columns.iter().map(|column| (column.cell)(case)));
    }
    table.print();
    println!();
    let mut table = Table::new(&["NUMBER", "EXPECTED", "FOUND", "WHERE", "VERDICT"]);
    for number in &found.numbers {
        let verdict = match number.reached {
            true => "reached",
            false => "not reached",
        };
        table.row([
            number.number.clone(),
            value(number, number.published),
            nearest(number),
            number.setting.clone(),
            verdict.to_owned(),
        ]);
    }
    table.print();
    println!();
    let missed = found.numbers.iter().filter(|number| !number.reached);
    for number in missed {
        paragraph(&format!("{}: {}", number.number, number.why));
    }
    for words in &found.words {
        paragraph(words);
    }
    println!("What the paper leaves open, and what was chosen here:");
    for open in &found.open {
        println!("  {}", open.question);
        println!("    {}", open.chosen);
    }
    println!();
    let worst = found.cases.iter().map(|case| case.little_max);
    let worst = 100.0 * worst.fold(0.0, f64::max);
    match found.little_holds {
        true => println!("Little's law holds in every run: at most {worst:.2} % off."),
        false => println!("LITTLE'S LAW DOES NOT HOLD: a run is {worst:.2} % off."),
    }
}

fn value(number: &Number, value: f64) -> String {
    let largest = number.published.abs().max(number.found.abs());
    match number.share {
        true => format!("{:.1} %", 100.0 * value),
        false if largest < 0.1 => format!("{value:.4}"),
        false => format!("{value:.2}"),
    }
}

fn nearest(number: &Number) -> String {
    let found = value(number, number.found);
    match (number.low, number.high) {
        (Some(low), Some(high)) => {
            let width = number.half_width();
            let width = width.map(|width| format!(", ±{:.0} %", 100.0 * width));
            format!(
                "{found} ({} to {}{})",
                value(number, low),
                value(number, high),
                width.unwrap_or_default()
            )
        }
        _ => found,
    }
}

/// Words in lines of a readable width, and an empty line.
fn paragraph(words: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() >= LINE {
            println!("{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    println!("{line}");
    println!();
}

const LINE: usize = 110;
