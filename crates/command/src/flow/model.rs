//! `testigo flow model`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use testigo_flow::{Flow, Forecast, Load, model};

use super::file::FlowFile;
use super::stats::measure;
use crate::exit::{Failure, Outcome, complain, good_if};
use crate::lab::options::print_json;
use crate::lab::table::Table;
use crate::reach::Reach;
use crate::span::Span;

/// What the model and the simulation share.
#[derive(Args)]
pub(crate) struct LoadOptions {
    /// The flow's file; - is standard input. With --running, a flow to try instead of the one that runs.
    #[arg(required_unless_present = "running")]
    file: Option<PathBuf>,
    /// The flow on the node whose measured rates and times are the load.
    #[arg(long, value_name = "NAME", conflicts_with = "load")]
    running: Option<String>,
    /// With --running: over how long, up to a day, the node's counts are taken.
    #[arg(
        long,
        value_name = "SPAN",
        default_value = "1h",
        requires = "running",
        conflicts_with = "load"
    )]
    since: Span,
    /// The utilisation that the needed workers are counted for.
    #[arg(long, value_name = "SHARE", default_value = "0.8", value_parser = share)]
    pub(crate) target: f64,
    #[command(flatten)]
    reach: Reach,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or("a number between 0 and 1 is wanted".into())
}

/// A flow under a load, or the exit code of a command that has said what is wrong.
pub(crate) type Loaded = Result<(Flow, Load), ExitCode>;

impl LoadOptions {
    fn print_template(&self) -> Outcome {
        if self.running.is_some() {
            return Ok(match self.measured()? {
                Ok((_, load)) => {
                    print!("{}", load.text());
                    good_if(true)
                }
                Err(code) => code,
            });
        }
        match self.flow()? {
            Ok(flow) => {
                print!("{}", Load::template(&flow));
                Ok(good_if(true))
            }
            Err(code) => Ok(code),
        }
    }

    fn flow(&self) -> Result<Result<Flow, ExitCode>, Failure> {
        let file = self.file.as_deref().unwrap_or(Path::new("-"));
        let file = FlowFile::open(file)?;
        let reading = file.read();
        let refuse = |findings: &[_]| file.refuse(findings);
        Ok(reading.flow.ok_or_else(|| refuse(&reading.findings)))
    }

    /// The flow and its load, from files or from a node.
    pub(crate) fn read(&self, load: Option<&Path>) -> Result<Loaded, Failure> {
        let Some(load) = load else {
            return self.measured();
        };
        let flow = match self.flow()? {
            Ok(flow) => flow,
            Err(code) => return Ok(Err(code)),
        };
        let file = FlowFile::open(load)?;
        match Load::parse(&file.text, &flow) {
            Ok(load) => Ok(Ok((flow, load))),
            Err(findings) => Ok(Err(file.refuse(&findings))),
        }
    }

    /// The load that a node has measured. What had to be guessed is said on standard error.
    fn measured(&self) -> Result<Loaded, Failure> {
        let running = self.running.as_deref().unwrap_or_default();
        let mut found = None;
        let code = self.reach.converse(async |mut node| {
            found = Some(measure(&mut node, running, self.since).await?);
            Ok(ExitCode::SUCCESS)
        })?;
        let Some((flow, measured)) = found else {
            return Ok(Err(code));
        };
        let flow = match self.file {
            None => flow,
            Some(_) => match self.flow()? {
                Ok(flow) => flow,
                Err(code) => return Ok(Err(code)),
            },
        };
        let (load, notes) = measured.load(&flow);
        complain!("measured over {:.0} s", measured.seconds);
        for note in notes {
            complain!("{note}");
        }
        Ok(Ok((flow, load)))
    }
}

/// Compute how a flow would do under a load: utilisation, waiting, the bottleneck, workers needed
///
/// The flow is taken as an open network of queues, exact for exponential times without deaths and an
/// approximation for others, and where unequal processes take from one queue, which is said; limits
/// of queues are not in it, and where one would matter that is said too. A line of a load is one of
///   create P -> [Q] 5/s
///   create P -> [Q] every fixed:0.2
///   work P exponential:0.5 workers 3 deaths 0.01 restart fixed:2
///   route P -> [Q] 0.9
///   route P delete 0.1
/// and times are fixed:S, uniform:A:B, exponential:MEAN, erlang:K:MEAN, mixed:P:MEAN:MEAN,
/// lognormal:MEAN:DEVIATION, pareto:SHAPE:MEAN or values:S,S,…. With
/// --running NAME the load is what a node has measured of a flow; --template prints it.
///
/// With --json, one object: processes, a list of name, workers, taken, utilisation, waiting,
/// workers_needed; queues, a list of name, arrivals, waiting, jobs, held, full, beyond_limit,
/// unequal_takers; created, time, bottleneck. Rates are a second, times in seconds, and null where a
/// queue grows for ever; time and bottleneck are null too where nothing is created.
///
/// Exit code 0: everything can be kept up with; 1: it cannot, because of a process, a limit or jobs
/// that go round for ever, or the flow or its load is invalid; 2: a file cannot be read, or there is no such flow; 69: no node reachable.
///
/// Example: testigo flow model orders.flow --load orders.load
/// Example: testigo flow model --running orders --since 15m
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Model {
    #[command(flatten)]
    options: LoadOptions,
    /// The file that says how often jobs are created, how long they take, and where they go.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["template", "running"])]
    load: Option<PathBuf>,
    /// Print a load for this flow, to be filled in, and nothing else; with --running, the measured one.
    #[arg(long, conflicts_with_all = ["load", "json"])]
    template: bool,
    /// Print one object.
    #[arg(long)]
    json: bool,
}

impl Model {
    pub(crate) fn run(self) -> Outcome {
        if self.template {
            return self.options.print_template();
        }
        let (flow, load) = match self.options.read(self.load.as_deref())? {
            Ok(read) => read,
            Err(code) => return Ok(code),
        };
        let forecast = match model(&flow, &load, self.options.target) {
            Ok(forecast) => forecast,
            Err(endless) => {
                complain!("testigo: {endless}");
                return Ok(good_if(false));
            }
        };
        if self.json {
            print_json(&forecast)?;
        } else {
            print(&forecast);
        }
        Ok(good_if(forecast.keeps_up()))
    }
}

/// The time in the flow; a flow without jobs has none.
pub(crate) fn lifetime(forecast: &Forecast) -> String {
    match forecast.created > 0.0 {
        true => seconds(forecast.time),
        false => "-".into(),
    }
}

/// A time, or that it has no end.
pub(crate) fn seconds(time: Option<f64>) -> String {
    time.map_or("grows".into(), |time| format!("{time:.3} s"))
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn print(forecast: &Forecast) {
    let mut table = Table::new(&[
        "PROCESS",
        "WORKERS",
        "NEEDED",
        "TAKEN",
        "USED",
        "WAITED FOR",
    ]);
    for process in &forecast.processes {
        table.row([
            process.name.to_string(),
            process.workers.to_string(),
            process.workers_needed.to_string(),
            format!("{:.3}/s", process.taken),
            percent(process.utilisation),
            seconds(process.waiting),
        ]);
    }
    table.print();
    println!();
    let mut table = Table::new(&["QUEUE", "ARRIVALS", "WAITING", "JOBS"]);
    for queue in &forecast.queues {
        table.row([
            queue.name.to_string(),
            format!("{:.3}/s", queue.arrivals),
            seconds(queue.waiting),
            queue
                .jobs
                .map_or("grows".into(), |jobs| format!("{jobs:.2}")),
        ]);
    }
    table.print();
    println!();
    println!("created            {:.3}/s", forecast.created);
    println!("time in the flow   {}", lifetime(forecast));
    if let Some(name) = &forecast.bottleneck {
        println!("bottleneck         {name}");
    }
    print_notes(forecast);
}

/// Where the model does not hold because it knows no limits, and where it is less sure than elsewhere.
pub(crate) fn print_notes(forecast: &Forecast) {
    for queue in &forecast.queues {
        let name = &queue.name;
        match (queue.beyond_limit, queue.full) {
            (Some(limit), _) if queue.is_choked() => println!(
                "BEYOND LIMIT       [{name}] has a limit of {limit}, and {:.2} jobs of it must be in hand: it cannot be kept up with",
                queue.held
            ),
            (Some(limit), Some(full)) => println!(
                "BEYOND LIMIT       [{name}] has a limit of {limit}, and would be full {} of the time: it would push back, which only the simulation shows",
                percent(full)
            ),
            _ => {}
        }
    }
    let unequal = forecast.queues.iter().filter(|queue| queue.unequal_takers);
    let unequal: Vec<String> = unequal.map(|queue| format!("[{}]", queue.name)).collect();
    if !unequal.is_empty() {
        println!(
            "APPROXIMATION      takers differ, so waiting and their shares are estimates: {}",
            unequal.join(" ")
        );
    }
}
