//! `testigo flow model`.

use std::path::{Path, PathBuf};

use clap::Args;
use testigo_flow::{Flow, Forecast, Load, model};

use super::file::FlowFile;
use crate::exit::{Failure, Outcome, good_if};
use crate::lab::options::print_json;
use crate::lab::table::Table;

/// What the model and the simulation share.
#[derive(Args)]
pub(crate) struct LoadOptions {
    /// The flow's file; - is standard input.
    file: PathBuf,
    /// The utilisation that the needed workers are counted for.
    #[arg(long, value_name = "SHARE", default_value = "0.8", value_parser = share)]
    pub(crate) target: f64,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or("a number between 0 and 1 is wanted".into())
}

impl LoadOptions {
    fn print_template(&self) -> Outcome {
        let file = FlowFile::open(&self.file)?;
        let reading = file.read();
        let Some(flow) = &reading.flow else {
            return Ok(file.refuse(&reading.findings));
        };
        print!("{}", Load::template(flow));
        Ok(good_if(true))
    }

    /// The flow and its load; on a bad one, the exit code of a command that has said why.
    pub(crate) fn read(
        &self,
        load: &Path,
    ) -> Result<Result<(Flow, Load), std::process::ExitCode>, Failure> {
        let file = FlowFile::open(&self.file)?;
        let reading = file.read();
        let Some(flow) = reading.flow else {
            return Ok(Err(file.refuse(&reading.findings)));
        };
        let file = FlowFile::open(load)?;
        match Load::parse(&file.text, &flow) {
            Ok(load) => Ok(Ok((flow, load))),
            Err(findings) => Ok(Err(file.refuse(&findings))),
        }
    }
}

/// Compute how a flow would do under a load: utilisation, waiting, the bottleneck, workers needed
///
/// The flow is taken as an open network of queues, exact for exponential times and an approximation
/// for others; limits of queues are not in it. A line of a load is one of
///   create P -> [Q] 5/s
///   work P exponential:0.5 workers 3 deaths 0.01 restart fixed:2
///   route P -> [Q] 0.9
///   route P delete 0.1
/// and times are fixed:S, uniform:A:B, exponential:MEAN, erlang:K:MEAN or mixed:P:MEAN:MEAN.
///
/// With --json, one object: processes, a list of name, workers, taken, utilisation, waiting,
/// workers_needed; queues, a list of name, arrivals, waiting, jobs; created, time, bottleneck. Rates
/// are a second, times in seconds, and null where a queue grows for ever.
///
/// Exit code 0: everything can be kept up with; 1: some process cannot, or the flow or its load is
/// invalid; 2: a file cannot be read.
///
/// Example: testigo flow model orders.flow --load orders.load
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Model {
    #[command(flatten)]
    options: LoadOptions,
    /// The file that says how often jobs are created, how long they take, and where they go.
    #[arg(long, value_name = "FILE", required_unless_present = "template")]
    load: Option<PathBuf>,
    /// Print a load for this flow, to be filled in, and nothing else.
    #[arg(long)]
    template: bool,
    /// Print one object.
    #[arg(long)]
    json: bool,
}

impl Model {
    pub(crate) fn run(self) -> Outcome {
        let Some(load) = self.load.filter(|_| !self.template) else {
            return self.options.print_template();
        };
        let (flow, load) = match self.options.read(&load)? {
            Ok(read) => read,
            Err(code) => return Ok(code),
        };
        let forecast = model(&flow, &load, self.options.target)?;
        if self.json {
            print_json(&forecast)?;
        } else {
            print(&forecast);
        }
        Ok(good_if(forecast.time.is_some()))
    }
}

/// A time, or that there is none.
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
    println!("time in the flow   {}", seconds(forecast.time));
    if let Some(name) = &forecast.bottleneck {
        println!("bottleneck         {name}");
    }
}
