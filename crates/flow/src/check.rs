//! The rules, checked on a graph wherever it comes from: a text, a configuration file, an editor.

use crate::advice::Advice;
use crate::limits::{ARROWS_MAX, LIMIT_MAX, PROCESSES_MAX, QUEUES_MAX, RETRIES_MAX, RIGHTS_MAX};
use crate::text::check_path;
use crate::ways::Ways;
use crate::{About, Graph, Name, Problem, Process, Queue, Rule, Weight};

/// All that is wrong with a graph, and what is only doubtful. Empty: it may run.
pub fn check(graph: &Graph) -> Vec<Problem> {
    check_as(graph, Advice(None))
}

/// The same, with advice for those who wrote it.
pub(crate) fn check_as(graph: &Graph, advice: Advice) -> Vec<Problem> {
    let mut found = Findings {
        problems: Vec::new(),
        advice,
    };
    found.limits(graph);
    if !found.problems.is_empty() {
        return found.problems;
    }
    for (name, process) in &graph.processes {
        found.names(graph, name, process);
        found.process(name, process);
    }
    let rejects = graph.reject_queues();
    for (name, queue) in &graph.queues {
        found.declared(name, queue);
        found.queue(graph, name, rejects.contains(name));
    }
    found.rejects(graph);
    found.whole(graph);
    // An arrow that breaks another rule lies on no way either; once is enough.
    let mut problems = found.problems.iter();
    if problems.all(|problem| problem.weight == Weight::Warning) {
        found.ways(graph);
    }
    found.problems
}

struct Findings {
    problems: Vec<Problem>,
    advice: Advice,
}

impl Findings {
    fn error(&mut self, rule: Rule, about: About, message: String, mend: impl Into<String>) {
        self.problems.push(Problem {
            rule,
            weight: Weight::Error,
            about,
            message,
            mend: mend.into(),
        });
    }

    fn limits(&mut self, graph: &Graph) {
        for (what, number, max) in [
            ("queues", graph.queues.len(), QUEUES_MAX),
            ("processes", graph.processes.len(), PROCESSES_MAX),
            ("arrows", graph.arrows(), ARROWS_MAX),
        ] {
            if number > max {
                let message = format!("the flow has {number} {what}; at most {max} are allowed");
                self.error(Rule::Limit, About::Flow, message, "make two flows of it");
            }
        }
        if graph.defaults.retries.is_some_and(|n| n > RETRIES_MAX) {
            let message = format!("the flow's retries are above {RETRIES_MAX}");
            self.error(Rule::Limit, About::Flow, message, "lower them");
        }
    }

    /// Every queue that a process names exists; what it creates and deletes goes along its arrows.
    fn names(&mut self, graph: &Graph, name: &Name, process: &Process) {
        let about = |queue: &Name| About::Arrow(name.clone(), queue.clone());
        for queue in process.takes.union(&process.passes) {
            if !graph.queues.contains_key(queue) {
                let message = format!("{name} uses [{queue}], which does not exist");
                let mend = self.advice.no_queue(queue);
                self.error(Rule::UnknownName, about(queue), message, mend);
            }
        }
        for queue in process.creates.difference(&process.passes) {
            let message = format!("{name} creates into [{queue}] but does not put into it");
            let mend = self.advice.no_pass(name, queue);
            self.error(Rule::UnknownName, about(queue), message, mend);
        }
        for queue in process.deletes.difference(&process.takes) {
            let message = format!("{name} deletes from [{queue}] but does not take from it");
            let mend = self.advice.no_take(name, queue);
            self.error(Rule::UnknownName, about(queue), message, mend);
        }
    }

    /// Rules 2 and 3.
    fn process(&mut self, name: &Name, process: &Process) {
        let about = || About::Process(name.clone());
        if process.takes.is_empty() && process.passes.is_empty() {
            let message = format!("the process {name} uses no queue");
            let mend = self.advice.unused_process(name);
            self.error(Rule::UnknownName, about(), message, mend);
        }
        let from_nowhere = process.passes.difference(&process.creates).next();
        if let (Some(queue), true) = (from_nowhere, process.takes.is_empty()) {
            let message = format!("{name} puts into [{queue}] but neither takes nor creates there");
            let mend = self.advice.no_source(name, queue);
            self.error(Rule::R2, about(), message, mend);
        }
        let kept = process.takes.difference(&process.deletes).next();
        if let (Some(queue), true) = (kept, process.passes.is_empty()) {
            let message = format!("{name} takes from [{queue}] but neither puts on nor deletes");
            let mend = self.advice.no_end(name, queue);
            self.error(Rule::R3, about(), message, mend);
        }
        self.clients(name, process);
    }

    fn clients(&mut self, name: &Name, process: &Process) {
        let about = About::Process(name.clone());
        if process.limit.is_some_and(|n| n == 0 || n > LIMIT_MAX) {
            let message = format!("the limit of {name} is not from 1 to {LIMIT_MAX}");
            self.error(Rule::Limit, about, message, "choose one that is");
        } else if process.rights.len() > RIGHTS_MAX {
            let message = format!("{name} names more than {RIGHTS_MAX} users");
            self.error(Rule::Limit, about, message, "name fewer");
        }
    }

    fn declared(&mut self, name: &Name, queue: &Queue) {
        let about = || About::Queue(name.clone());
        let numbers = [
            ("limit", queue.limit, 1, LIMIT_MAX),
            ("retries", queue.retries, 0, RETRIES_MAX),
        ];
        for (what, number, low, high) in numbers {
            if number.is_some_and(|n| !(low..=high).contains(&n)) {
                let message = format!("{what} of [{name}] is not from {low} to {high}");
                self.error(Rule::Limit, about(), message, "choose one that is");
            }
        }
        if queue.rights.len() > RIGHTS_MAX {
            let message = format!("[{name}] names more than {RIGHTS_MAX} users");
            self.error(Rule::Limit, about(), message, "name fewer");
        }
        if let Some(Err(wrong)) = queue.data.as_deref().map(check_path) {
            let message = format!("the data directory of [{name}]: {wrong}");
            self.error(Rule::Limit, about(), message, "name a directory");
        }
    }

    /// Rule 1. Into a reject queue the node puts; out of it an administrator may take.
    fn queue(&mut self, graph: &Graph, name: &Name, is_reject: bool) {
        let about = About::Queue(name.clone());
        if graph.putters(name).next().is_none() && !is_reject {
            let message = format!("nothing puts into [{name}]");
            let mend = self.advice.nothing_puts(name);
            self.error(Rule::R1, about.clone(), message, mend);
        }
        if graph.takers(name).next().is_some() {
            return;
        }
        let mend = self.advice.nothing_takes(name);
        if !is_reject {
            let message = format!("nothing takes from [{name}]");
            self.error(Rule::R1, about, message, mend);
            return;
        }
        self.problems.push(Problem {
            rule: Rule::R1,
            weight: Weight::Warning,
            about,
            message: format!(
                "nothing takes from the reject queue [{name}]: jobs stay there until somebody moves them"
            ),
            mend,
        });
    }

    fn rejects(&mut self, graph: &Graph) {
        for name in graph.reject_queues() {
            if !graph.queues.contains_key(name) {
                let message = format!("the reject queue [{name}] does not exist");
                let mend = self.advice.no_reject_queue(name);
                self.error(
                    Rule::RejectQueue,
                    About::Reject(name.clone()),
                    message,
                    mend,
                );
            }
        }
        let to_itself = |name: &&Name| graph.reject(name) == Some(name);
        for name in graph.queues.keys().filter(to_itself) {
            let message = format!("[{name}] is its own reject queue");
            let (about, mend) = (
                About::RejectOf(name.clone()),
                self.advice.own_reject_queue(),
            );
            self.error(Rule::RejectQueue, about, message, mend);
        }
    }

    /// Rules 4 and 5.
    fn whole(&mut self, graph: &Graph) {
        let some = |which: fn(&Process) -> bool| graph.processes.values().any(which);
        if !some(|process| !process.creates.is_empty()) {
            let mend = self.advice.no_creator();
            self.error(
                Rule::R4,
                About::Flow,
                "no process creates jobs".into(),
                mend,
            );
        }
        if !some(|process| !process.deletes.is_empty()) {
            let mend = self.advice.no_deleter();
            self.error(
                Rule::R5,
                About::Flow,
                "no process deletes jobs".into(),
                mend,
            );
        }
    }

    fn ways(&mut self, graph: &Graph) {
        let ways = Ways::of(graph);
        for (number, (name, _)) in ways.index.processes.iter().enumerate() {
            let about =
                |queue: usize| About::Arrow((*name).clone(), ways.index.queues[queue].clone());
            for queue in &ways.index.takes[number] {
                if !ways.take_is_on_a_way(number, *queue) {
                    let message = off(
                        &ways,
                        *queue,
                        format!("[{}] -> {name}", ways.index.queues[*queue]),
                    );
                    self.error(Rule::Way, about(*queue), message, MEND_WAY);
                }
            }
            for queue in &ways.index.passes[number] {
                if !ways.pass_is_on_a_way(number, *queue) {
                    let message = off(
                        &ways,
                        *queue,
                        format!("{name} -> [{}]", ways.index.queues[*queue]),
                    );
                    self.error(Rule::Way, about(*queue), message, MEND_WAY);
                }
            }
        }
    }
}

const MEND_WAY: &str = "let a process on the way create or delete, or join it to the rest";

fn off(ways: &Ways<'_>, queue: usize, arrow: String) -> String {
    match ways.is_reached(queue) {
        true => format!("no job that goes along {arrow} is ever deleted"),
        false => format!("no job ever comes to {arrow}"),
    }
}
