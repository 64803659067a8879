//! The main menu, and writing the file.

use std::path::PathBuf;

use testigo_flow::limits::RETRIES_MAX;
use testigo_flow::{
    Document, Flow, Graph, Notation, Problem, Reading, Weight, check, config, plan, revise,
};

use super::screen::{Gone, Screen};
use crate::exit::Failure;
use crate::flow::file::replace;

/// More problems than this are counted, not shown.
const PROBLEMS_SHOWN: usize = 5;

pub(super) struct Editor {
    path: PathBuf,
    notation: Notation,
    document: Document,
    before: Graph,
    pub(super) graph: Graph,
}

/// How a step ended the editor.
enum Left {
    Written,
    Unchanged,
    Unwritten,
}

impl Editor {
    pub(super) fn new(path: PathBuf, text: &str, reading: Reading) -> Editor {
        Editor {
            path,
            notation: Notation::of(text),
            document: reading.document.unwrap_or_default(),
            before: reading.graph.clone(),
            graph: reading.graph,
        }
    }

    /// Runs until the user leaves; true when the file says what the user wants.
    pub(super) fn run(&mut self, screen: &mut Screen) -> Result<bool, Failure> {
        loop {
            let reject = self.graph.defaults.reject.as_ref();
            let reject = reject.map_or("none".into(), |name| format!("[{name}]"));
            let lines = [
                format!("1  Reject queue   {reject}"),
                format!("2  Queues         {}", self.graph.queues.len()),
                format!("3  Processes      {}", self.graph.processes.len()),
                "4  Exit".to_owned(),
            ];
            self.page(screen, "", &lines);
            let step = match screen.ask("Choice (1 to 4):")?.as_str() {
                "1" => self.reject_queue(screen),
                "2" => self.queues(screen),
                "3" => self.processes(screen),
                "4" => match self.exit(screen)? {
                    Some(Left::Written | Left::Unchanged) => return Ok(true),
                    Some(Left::Unwritten) => return Ok(false),
                    None => Ok(()),
                },
                _ => Ok(()),
            };
            step?;
        }
    }

    /// A page with the state of the flow below it.
    pub(super) fn page(&self, screen: &mut Screen, heading: &str, lines: &[String]) {
        let changed = if self.graph == self.before {
            ""
        } else {
            ", changed"
        };
        let place = if heading.is_empty() {
            String::new()
        } else {
            format!(": {heading}")
        };
        let heading = format!("{}{changed}{place}", self.path.display());
        let mut lines = lines.to_vec();
        lines.push(String::new());
        lines.extend(self.state());
        screen.page(&heading, &lines);
    }

    /// What the flow still lacks.
    fn state(&self) -> Vec<String> {
        let problems: Vec<Problem> = check(&self.graph);
        let valid = problems
            .iter()
            .all(|problem| problem.weight == Weight::Warning);
        let mut lines = vec![match valid {
            true => "The flow is valid.".to_owned(),
            false => "The flow is not valid yet, and is not written so:".to_owned(),
        }];
        let shown = problems.iter().take(PROBLEMS_SHOWN);
        lines.extend(shown.map(|problem| format!("{problem}")));
        if problems.len() > PROBLEMS_SHOWN {
            lines.push(format!("and {} more", problems.len() - PROBLEMS_SHOWN));
        }
        lines
    }

    /// Carries out a change that the user confirms; what is refused changes nothing.
    pub(super) fn change(
        &mut self,
        screen: &mut Screen,
        question: &str,
        change: impl FnOnce(&mut Graph) -> Result<(), Problem>,
    ) -> Result<(), Gone> {
        let mut changed = self.graph.clone();
        match change(&mut changed) {
            Err(problem) => screen.tell(problem),
            Ok(()) if changed == self.graph => screen.tell("nothing changed"),
            Ok(()) => {
                if screen.confirm(question)? {
                    self.graph = changed;
                    screen.tell("done");
                } else {
                    screen.tell("left as it was");
                }
            }
        }
        Ok(())
    }

    fn reject_queue(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let old = self.graph.defaults.reject.clone();
        let read = |text: &str| testigo_flow::Name::new(text).map_err(|why| why.to_string());
        let new = screen.ask_value("Reject queue (- for none)", &old, ToString::to_string, read)?;
        let read = |text: &str| {
            let number = text.parse().ok().filter(|n| *n <= RETRIES_MAX);
            number.ok_or(format!("a number from 0 to {RETRIES_MAX} is wanted"))
        };
        let old = self.graph.defaults.retries;
        let retries = screen.ask_value(
            "Retries before a job goes there",
            &old,
            ToString::to_string,
            read,
        )?;
        let question = match &new {
            Some(name) => format!("Make {name} the reject queue?"),
            None => "Have no reject queue?".to_owned(),
        };
        self.change(screen, &question, |graph| {
            graph.defaults.retries = retries;
            graph.set_reject(new)
        })
    }

    /// `None`: the user stays.
    fn exit(&mut self, screen: &mut Screen) -> Result<Option<Left>, Failure> {
        if self.graph == self.before {
            return Ok(Some(Left::Unchanged));
        }
        let Ok(flow) = Flow::new(self.graph.clone()) else {
            self.page(screen, "exit", &[]);
            let leave = screen.confirm("Leave, and lose all changes?")?;
            return Ok(leave.then_some(Left::Unwritten));
        };
        let changes = plan(&self.before, &flow, &std::collections::BTreeMap::new()).changes;
        let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
        self.page(screen, "exit", &lines);
        if screen.confirm(&format!("Write {}?", self.path.display()))? {
            replace(&self.path, &self.text(&flow))?;
            return Ok(Some(Left::Written));
        }
        let leave = screen.confirm("Leave, and lose all changes?")?;
        Ok(leave.then_some(Left::Unwritten))
    }

    /// The file's new text, in its notation as long as that can say it.
    fn text(&self, flow: &Flow) -> String {
        let revised = revise(&self.document, flow);
        let other = match self.notation {
            Notation::Flow => None,
            Notation::Classic => {
                let classic = revised.classic().ok();
                classic
                    .filter(|classic| classic.unsaid.is_empty())
                    .map(|classic| classic.text)
            }
            Notation::Config => {
                let config = config(flow).ok();
                config
                    .filter(|config| config.unsaid.is_empty())
                    .map(|config| config.text)
            }
        };
        other.unwrap_or_else(|| revised.to_string())
    }
}
