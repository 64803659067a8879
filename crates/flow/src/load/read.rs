//! Reading a load, line by line: `create P -> [Q] 5/s`, `create P -> [Q] every fixed:2`, `work P exponential:0.5 workers 3 deaths 0.01 restart fixed:2`,
//! `route P -> [Q] 0.9`, `route P delete 0.1`. `#` starts a comment.

use testigo_sim::ParseError;

use super::{Arrivals, Distribution, Load, WORKERS_MAX, Work};
use crate::limits::{DIAGNOSTICS_MAX, TEXT_BYTES_MAX};
use crate::{Diagnostic, Flow, Name, Rule, Weight};

/// The most jobs per second that a load may name.
const RATE_MAX: f64 = 1e9;
/// The largest weight of a route.
const WEIGHT_MAX: f64 = 1e9;

impl Load {
    /// Reads the load of a flow; everything that it names must be in the flow, and every process that takes must work.
    pub fn parse(text: &str, flow: &Flow) -> Result<Load, Vec<Diagnostic>> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(vec![crate::text::too_long(text)]);
        }
        let mut load = Load::default();
        let mut errors = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let content = line.split('#').next().unwrap_or_default();
            if let Err(wrong) = load.line(content.trim(), flow)
                && errors.len() < DIAGNOSTICS_MAX
            {
                let from = start + content.len() - content.trim_start().len();
                let span = from..from + content.trim().len();
                errors.push(Diagnostic::new(
                    text,
                    span,
                    Rule::Syntax,
                    Weight::Error,
                    wrong,
                    MEND,
                ));
            }
            start += line.len();
        }
        if errors.is_empty() {
            errors.extend(load.complete(flow).map(|(wrong, mend)| {
                let end = text.trim_end().len();
                Diagnostic::new(
                    text,
                    end..end,
                    Rule::UnknownName,
                    Weight::Error,
                    wrong,
                    mend,
                )
            }));
        }
        match errors.is_empty() {
            true => Ok(load),
            false => Err(errors),
        }
    }

    fn line(&mut self, line: &str, flow: &Flow) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => Ok(()),
            ["create", process, "->", queue, ref when @ ..] => {
                let process = self::process(flow, process)?;
                let queue = self::queue(queue)?;
                if !flow.processes[&process].creates.contains(&queue) {
                    return Err(format!("{process} does not create into [{queue}]"));
                }
                let old = self.creates.insert((process, queue), arrivals(when)?);
                once(old.is_none())
            }
            ["work", process, service, ref options @ ..] => {
                let process = self::process(flow, process)?;
                let work = work(service, options)?;
                if let Some(limit) = flow.processes[&process].limit
                    && work.workers > limit
                {
                    return Err(format!(
                        "{process} has {} workers here, and the flow allows it {limit}: process {process} {{ limit {limit} }}",
                        work.workers
                    ));
                }
                once(self.works.insert(process, work).is_none())
            }
            ["route", process, "->", queue, weight] => {
                let process = self::process(flow, process)?;
                let queue = self::queue(queue)?;
                if !flow.processes[&process].passes.contains(&queue) {
                    return Err(format!("{process} does not pass to [{queue}]"));
                }
                let weight = self::weight(weight)?;
                once(
                    self.routes
                        .entry(process)
                        .or_default()
                        .insert(queue, weight)
                        .is_none(),
                )
            }
            ["route", process, "delete", weight] => {
                let process = self::process(flow, process)?;
                if flow.processes[&process].deletes.is_empty() {
                    return Err(format!("{process} does not delete"));
                }
                let weight = self::weight(weight)?;
                once(self.deletes.insert(process, weight).is_none())
            }
            _ => Err(format!("`{line}` says nothing about a load")),
        }
    }

    /// What is missing, and how to mend it.
    fn complete(&self, flow: &Flow) -> Option<(String, &'static str)> {
        const ADD: &str = "add the line";
        let takes = flow
            .processes
            .iter()
            .filter(|(_, process)| !process.takes.is_empty());
        let idle = takes
            .map(|(name, _)| name)
            .find(|name| !self.works.contains_key(*name));
        match idle {
            Some(name) => Some((
                format!(
                    "the load does not say how {name} works: work {name} exponential:0.5 workers 1"
                ),
                ADD,
            )),
            None if self.creates.values().all(|created| created.rate() == 0.0) => {
                let wrong = "the load creates no jobs: create PROCESS -> [QUEUE] 1/s";
                Some((wrong.into(), ADD))
            }
            None => self
                .closed(flow)
                .map(|wrong| (wrong, "give one of these ways a weight above 0")),
        }
    }

    /// A process that was given ways out for the jobs of a queue, but none with a weight.
    fn closed(&self, flow: &Flow) -> Option<String> {
        for (name, process) in &flow.processes {
            let routes = self.routes.get(name);
            for queue in &process.takes {
                let passes = process.passes.iter();
                let passes = passes.filter_map(|next| routes?.get(next));
                let deletes = self.deletes.get(name);
                let deletes = deletes.filter(|_| process.deletes.contains(queue));
                let mut weights = passes.chain(deletes).peekable();
                if weights.peek().is_some() && weights.all(|weight| *weight == 0.0) {
                    return Some(format!(
                        "{name} has no way out for jobs from [{queue}]: all routes that are given have weight 0"
                    ));
                }
            }
        }
        None
    }
}

const MEND: &str = "a line is create P -> [Q] 5/s, create P -> [Q] every fixed:2, work P exponential:0.5 workers 2, route P -> [Q] 3 or route P delete 1";

fn once(new: bool) -> Result<(), String> {
    new.then_some(()).ok_or("this was said before".into())
}

fn work(service: &str, options: &[&str]) -> Result<Work, String> {
    let mut work = Work {
        service: time(service)?,
        workers: 1,
        deaths: 0.0,
        restart: Distribution::Fixed(0.0),
    };
    for (at, option) in options.chunks(2).enumerate() {
        if options.chunks(2).take(at).any(|one| one[0] == option[0]) {
            return Err(format!("`{}` is said twice", option[0]));
        }
        match option {
            ["workers", number] => {
                let number = number
                    .parse()
                    .ok()
                    .filter(|n| (1..=WORKERS_MAX).contains(n));
                work.workers = number.ok_or(format!("workers are from 1 to {WORKERS_MAX}"))?;
            }
            ["deaths", share] => {
                let share = share
                    .parse()
                    .ok()
                    .filter(|share| (0.0..1.0).contains(share));
                work.deaths = share.ok_or("deaths are a probability below 1")?;
            }
            ["restart", span] => work.restart = time(span)?,
            _ => return Err(format!("`{}` is no option of work", option.join(" "))),
        }
    }
    Ok(work)
}

fn process(flow: &Flow, word: &str) -> Result<Name, String> {
    let found = flow.processes.get_key_value(word);
    found
        .map(|(name, _)| name.clone())
        .ok_or(format!("there is no process {word}"))
}

fn queue(word: &str) -> Result<Name, String> {
    let inner = word
        .strip_prefix('[')
        .and_then(|word| word.strip_suffix(']'));
    let inner = inner.ok_or(format!("a queue is written [{word}]"))?;
    Name::new(inner).map_err(|why| why.to_string())
}

fn time(word: &str) -> Result<Distribution, String> {
    word.parse().map_err(|error: ParseError| error.to_string())
}

/// `5/s`, or `every fixed:0.2`.
fn arrivals(words: &[&str]) -> Result<Arrivals, String> {
    match words {
        [rate] => Ok(Arrivals::Rate(self::rate(rate)?)),
        ["every", between] => {
            let between = time(between)?;
            match between.mean() * RATE_MAX >= 1.0 {
                true => Ok(Arrivals::Every(between)),
                false => Err(format!("`{between}` is no time between two jobs: it is 0")),
            }
        }
        _ => Err(
            "jobs are created at a rate, such as 5/s, or every so often: every fixed:0.2".into(),
        ),
    }
}

/// `5/s`, `300/m`, `1000/h`, in jobs per second.
fn rate(word: &str) -> Result<f64, String> {
    let wrong = || format!("`{word}` is no rate, such as 5/s, 300/m or 1000/h");
    let (number, unit) = word.split_once('/').ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let rate = number.parse::<f64>().map_err(|_| wrong())? / seconds;
    (0.0..=RATE_MAX)
        .contains(&rate)
        .then_some(rate)
        .ok_or_else(wrong)
}

fn weight(word: &str) -> Result<f64, String> {
    let weight = word
        .parse::<f64>()
        .ok()
        .filter(|weight| (0.0..=WEIGHT_MAX).contains(weight));
    weight.ok_or(format!("`{word}` is no weight, a number from 0 on"))
}
