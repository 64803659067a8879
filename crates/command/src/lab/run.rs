//! `testigo lab run`.

use std::path::PathBuf;

use clap::Args;
use testigo_lab::threads::{AccessReport, run_replicated};
use testigo_lab::{KnownAlgorithm, Report, Trace};

use super::draw::ViewOptions;
use super::options::{Point, SetupOptions, WorldOptions, points, print_json, write};
use super::progress;
use super::samples::{gather, print_csv, print_table};
use super::sweep::Sweep;
use super::table::{many, members, number, published};
use crate::exit::{Failure, Outcome, complain, good_if};

/// Simulate one algorithm, count its messages and watch its promises.
///
/// With --seeds, it is run with each seed, and the mean, its 95 % interval and percentiles are shown.
/// Numbers can be swept: 4,8 or 4..8 or 4..64x2 or 0.1..0.5+0.1.
///
/// Exit code 0: every promise kept; 1: not, or no progress; 2: bad input.
///
/// Example: testigo lab run ricart-agrawala --nodes 5 --entries 20 --svg run.svg
/// Example: testigo lab run maekawa --nodes 4..64x2 --seeds 1..20 --latency exponential:1 --csv
/// Example: testigo lab run peterson-n --nodes 3 --replicated --fault halt:2@0
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Run {
    /// The algorithm's name; `testigo lab list` shows them.
    name: String,
    /// How many nodes have a user. An algorithm may add nodes of its own, such as a server.
    #[arg(long, value_name = "N", default_value = "3")]
    nodes: Sweep<usize>,
    #[command(flatten)]
    world: WorldOptions,
    #[command(flatten)]
    setup: SetupOptions,
    /// Run an algorithm of threads across nodes: every register is replicated on a majority, and an access is two
    /// rounds of messages, which are counted. A node may halt, and nothing else. Takes one run, without a picture.
    #[arg(long, conflicts_with_all = ["svg", "trace", "seeds", "csv"])]
    replicated: bool,
    /// Draw the run as a space-time diagram.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    view: ViewOptions,
    /// Save the run, for `testigo lab replay` and `testigo lab draw`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one object with all that was measured; with --seeds or a sweep, a list of them with the summary of
    /// every measure.
    #[arg(long)]
    json: bool,
    /// Print the summary of every measure as comma-separated values.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl Run {
    pub(crate) fn run(self) -> Outcome {
        let algorithm = KnownAlgorithm::find(&self.name)?;
        let points = points(&self.nodes, &self.world, &self.setup)?;
        let keep_trace = self.trace.is_some() || self.svg.is_some();
        let ([point], None, false) = (&points[..], &self.world.seeds, self.csv) else {
            if keep_trace || self.replicated {
                let why = "--trace, --svg and --replicated show one run: leave out --seeds, --csv and sweeps";
                return Err(Failure::from(why));
            }
            return self.run_many(&algorithm, &points);
        };
        let (setup, world) = (&point.setup, &point.world);
        if self.replicated {
            let report = run_replicated(algorithm.profile.name, setup, world)?;
            return self.show(&algorithm, &report);
        }
        let run = algorithm.run_showing(setup, world, keep_trace, progress::of_run())?;
        progress::clear();
        if let Some(trace) = &run.trace {
            if let Some(path) = &self.trace {
                write(path, &trace.to_string())?;
            }
            if let Some(path) = &self.svg {
                write(path, &testigo_lab::picture(trace, self.view.view()))?;
            }
        }
        let outcome = self.show(&algorithm, &run.report)?;
        if keep_trace && run.trace.is_none() {
            let most = Trace::EVENTS_MAX;
            let why = format!(
                "the run has more than the {most} events that a trace holds, and none was kept: ask for \
                 fewer --entries"
            );
            if run.report.is_good() {
                return Err(Failure::from(why));
            }
            complain!("testigo: {why}");
        }
        Ok(outcome)
    }

    fn show(&self, algorithm: &KnownAlgorithm, report: &Report) -> Outcome {
        match self.json {
            true => print_json(report)?,
            false => print(algorithm, report),
        }
        Ok(good_if(report.is_good()))
    }

    fn run_many(&self, algorithm: &KnownAlgorithm, points: &[Point]) -> Outcome {
        let samples = gather(&[*algorithm], points, &self.world.seeds())?;
        match (self.csv, self.json) {
            (true, _) => print_csv(&samples),
            (false, true) => print_json(&samples)?,
            (false, false) => print_table(&samples),
        }
        Ok(good_if(samples.iter().all(|one| one.sample.is_good())))
    }
}

fn print(algorithm: &KnownAlgorithm, report: &Report) {
    let Report {
        nodes,
        seed,
        entries,
        ..
    } = report;
    let replicated = report.messages > 0;
    println!(
        "{}: {}, {}, seed {seed}",
        algorithm.profile.title,
        members(*nodes, report.accesses.is_some() && !replicated),
        report.counted.of(*entries),
    );
    let promise = |name: &str, kept: bool| format!("{name} {}", if kept { "yes" } else { "NO" });
    let mut promises = vec![promise("safe", report.safe), promise("live", report.live)];
    promises.extend(report.ordered.map(|ordered| promise("ordered", ordered)));
    promises.extend(report.bounded.map(|bounded| promise("bounded", bounded)));
    promises.push(promise("well-formed", report.well_formed));
    println!("  promises           {}", promises.join(", "));
    if let Some(accesses) = &report.accesses {
        print_accesses(accesses, replicated);
    }
    if report.accesses.is_none() || replicated {
        print_messages(report);
    }
    let unit = match report.accesses {
        Some(_) if !replicated => "in access times ",
        _ => "in message times",
    };
    let (waiting, alone) = (number(report.waiting_time), number(report.entry_delay));
    if report.counted.has_inside() {
        println!(
            "  {unit}   entry delay {alone}, waiting {waiting}, response {}, synchronisation delay {}",
            number(report.response_time),
            number(report.synchronisation_delay)
        );
    } else {
        println!("  {unit}   waiting {waiting}, and {alone} where nobody else waited");
    }
    if let Some(most) = report.overtakes_max {
        let passed = many(most, "later request", "later requests");
        println!("  longest bypass     {passed}");
    }
    if let (Some(inside), Some(rounds), Some(switches)) =
        (report.inside_max, report.rounds, report.switches)
        && (inside > 1 || switches > 0)
    {
        println!(
            "  together           at most {inside} inside, {rounds} rounds, {switches} of them for another kind than before",
        );
    }
    for kind in &report.kinds {
        println!(
            "  {:<17}  {}, waiting {}",
            kind.kind,
            report.counted.of(kind.entries),
            number(kind.waiting_time)
        );
    }
    for violation in &report.violations {
        println!("  VIOLATION          {violation}");
    }
}

fn print_messages(report: &Report) {
    let published = match report.published_messages_per_entry {
        Some(range) => format!(
            "   published {}",
            published(Some(range), report.as_published)
        ),
        None => String::new(),
    };
    println!(
        "  {:<18} {}{published}",
        format!("messages per {}", report.counted.one),
        number(report.messages_per_entry)
    );
    let kinds = report
        .messages_by_kind
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"));
    let kinds: Vec<String> = kinds.collect();
    let bytes = match report.accesses {
        None => format!(" of {} bytes", number(report.message_bytes)),
        Some(_) => String::new(),
    };
    println!(
        "  messages           {}{bytes}: {}",
        report.messages,
        kinds.join(", ")
    );
}

fn print_accesses(accesses: &AccessReport, replicated: bool) {
    let behind = match accesses.behind_per_entry {
        Some(_) => format!(", behind {}", number(accesses.behind_per_entry)),
        None => String::new(),
    };
    match replicated {
        true => println!("  accesses per entry {}", number(accesses.per_entry)),
        false => println!(
            "  accesses per entry {}, remote {}, each wait once {}{behind}",
            number(accesses.per_entry),
            number(accesses.remote_per_entry),
            number(accesses.once_per_entry)
        ),
    }
    println!(
        "  accesses           {} and {} of {}",
        many(accesses.reads, "read", "reads"),
        many(accesses.writes, "write", "writes"),
        many(accesses.registers as u64, "register", "registers")
    );
    if let (Some(least), Some(most)) = (accesses.lone_min, accesses.lone_max) {
        let lone = match least == most {
            true => least.to_string(),
            false => format!("{least} to {most}"),
        };
        println!("  alone              {lone} accesses of an entry that met nobody");
    }
}
