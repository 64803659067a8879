//! A million jobs that wait: how long a node takes to come back from `kill -9`, what memory it holds, and whether a take
//! takes longer than with a thousand.

use std::path::Path;
use std::time::Instant;

use crate::report::{Bar, Report, Unit, memory_of};
use crate::service::{Service, testigo};
use crate::tally::median;
use crate::wire::Client;
use crate::wire::resp::{command, unexpected};

const MANY: usize = 1_000_000;
const FEW: usize = 1_000;
const BODY_BYTES: usize = 100;
/// Clients that create jobs at once, so that their changes share flushes, and jobs that each asks for at once.
const BUILDERS: usize = 500;
const BATCH: usize = 50;
const RESTARTS: usize = 3;
/// Bursts of takes, and how many each is of.
const BURSTS: usize = 500;
const BURST: usize = 64;

const QUEUE: &str = "heap/jobs";

pub(crate) fn measure(binary: &Path, report: &mut Report) -> Result<(), String> {
    let few = testigo::start(binary)?;
    fill(&few, FEW)?;
    let mut many = testigo::start(binary)?;
    let empty = memory_of(many.process())?;
    let begin = Instant::now();
    fill(&many, MANY)?;
    let created = begin.elapsed().as_secs_f64();
    let mut memory = vec![memory_of(many.process())? as f64];
    let mut seconds = Vec::new();
    for _ in 0..RESTARTS {
        let data = many.kill()?;
        let begin = Instant::now();
        many = testigo::start_on(binary, data)?;
        seconds.push(begin.elapsed().as_secs_f64());
        memory.push(memory_of(many.process())? as f64);
        let found = waiting(&many)?;
        if found != MANY as u64 {
            return Err(format!("of {MANY} jobs {found} came back"));
        }
    }
    let slowest = seconds.iter().copied().fold(0.0, f64::max);
    report.row(
        "a million jobs: start after kill -9 until ready",
        Bar::AtMost(5.0, Unit::Seconds),
        median(seconds),
        &format!("all there {RESTARTS} times; slowest {slowest:.2} s; created in {created:.1} s, all durable"),
    );
    report.row(
        "a million jobs: resident memory",
        Bar::AtMost(1024.0 * 1_048_576.0, Unit::Bytes),
        memory.iter().copied().fold(0.0, f64::max),
        &format!(
            "the most of {} at first and after each start; {} when empty",
            Unit::Bytes.show(memory[0]),
            Unit::Bytes.show(empty as f64)
        ),
    );
    let mut takers = [Taker::connect(&few)?, Taker::connect(&many)?];
    for _ in 0..BURSTS {
        for taker in &mut takers {
            taker.take()?;
        }
    }
    let [few, many] = takers.map(|taker| median(taker.seconds));
    report.row(
        "a take: at a million waiting jobs to at a thousand",
        Bar::AtMost(2.0, Unit::Ratio),
        many / few,
        &format!(
            "{} and {}",
            Unit::Seconds.show(many),
            Unit::Seconds.show(few)
        ),
    );
    Ok(())
}

/// Creates jobs in a queue, all acknowledged when this returns.
fn fill(node: &Service, jobs: usize) -> Result<(), String> {
    let apply = ["FLOW", "APPLY", "heap", "make -> [jobs] -> work"];
    let mut client = Client::connect(node.address)?;
    client.say(&command(&apply))?;
    client.expect("+OK")?;
    let body = "b".repeat(BODY_BYTES);
    let create = command(&["JOB", "CREATE", QUEUE, "*", &body]);
    let builders = (jobs / BATCH).clamp(1, BUILDERS);
    let builders = (0..builders).map(|_| Client::connect(node.address));
    let mut builders = builders.collect::<Result<Vec<_>, _>>()?;
    let mut left = jobs;
    while left > 0 {
        let mut asked = Vec::new();
        for builder in &mut builders {
            let batch = BATCH.min(left);
            builder.say(&create.repeat(batch))?;
            asked.push(batch);
            left -= batch;
        }
        for (builder, batch) in builders.iter_mut().zip(asked) {
            for _ in 0..batch {
                builder.numbered()?;
            }
        }
    }
    match waiting(node)? {
        found if found == jobs as u64 => Ok(()),
        found => Err(format!("of {jobs} jobs {found} wait")),
    }
}

fn waiting(node: &Service) -> Result<u64, String> {
    Client::connect(node.address)?.number(&["JOB", "COUNT", QUEUE])
}

/// Takes jobs and gives them back.
struct Taker {
    client: Client,
    seconds: Vec<f64>,
}

impl Taker {
    fn connect(node: &Service) -> Result<Taker, String> {
        Ok(Taker {
            client: Client::connect(node.address)?,
            seconds: Vec::new(),
        })
    }

    /// A burst at once: the time of one alone is that of waking up whoever sleeps, on a machine where nothing else runs.
    fn take(&mut self) -> Result<(), String> {
        let take = command(&["JOB", "TAKE", QUEUE]).repeat(BURST);
        let begin = Instant::now();
        self.client.say(&take)?;
        let taken = (0..BURST).map(|_| self.client.list());
        let taken = taken.collect::<Result<Vec<_>, _>>()?;
        self.seconds
            .push(begin.elapsed().as_secs_f64() / BURST as f64);
        for job in &taken {
            let [id, _, _, attempt, body] = &job[..] else {
                return Err(format!("the node gave {job:?} for a job"));
            };
            if body.len() != BODY_BYTES {
                return Err(unexpected(body));
            }
            self.client.say(&command(&["JOB", "BACK", id, attempt]))?;
        }
        (0..BURST).try_for_each(|_| self.client.expect("+OK"))
    }
}
