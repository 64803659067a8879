//! The main menu, and writing the file.

use std::path::PathBuf;

use testigo_flow::limits::RETRIES_MAX;
use testigo_flow::{
    Document, Flow, Graph, Notation, Problem, Reading, Weight, check, plan, revise, revise_config,
};

use super::pages::Page;
use super::screen::{Gone, Screen};
use crate::flow::replace::replace;

/// What the lists of queues and processes ask.
pub(super) const MENU: &str = "(a)dd, (c)hange, (r)emove, (b)ack:";

/// More problems than this are counted, not shown.
const PROBLEMS_SHOWN: usize = 5;

pub(super) struct Editor {
    path: PathBuf,
    /// As it was read.
    text: String,
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
            text: text.to_owned(),
            notation: Notation::of(text),
            document: reading.document.unwrap_or_default(),
            before: reading.graph.clone(),
            graph: reading.graph,
        }
    }

    /// Runs until the user leaves; true when the file says what the user wants.
    pub(super) fn run(&mut self, screen: &mut Screen) -> Result<bool, Gone> {
        let mut at = 0;
        loop {
            let reject = self.graph.defaults.reject.as_ref();
            let reject = reject.map_or("none".into(), |name| format!("[{name}]"));
            let lines = vec![
                format!("1  Reject queue   {reject}"),
                format!("2  Queues         {}", self.graph.queues.len()),
                format!("3  Processes      {}", self.graph.processes.len()),
                "4  Exit".to_owned(),
            ];
            let page = self.page("", lines);
            match screen.choose(page, &mut at, "Choice (1 to 4):")?.as_str() {
                "1" => self.reject_queue(screen)?,
                "2" => self.queues(screen)?,
                "3" => self.processes(screen)?,
                "4" => match self.exit(screen)? {
                    Some(Left::Written | Left::Unchanged) => return Ok(true),
                    Some(Left::Unwritten) => return Ok(false),
                    None => {}
                },
                _ => {}
            }
        }
    }

    /// A page with the state of the flow below it.
    pub(super) fn page(&self, heading: &str, lines: Vec<String>) -> Page {
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
        Page {
            heading: format!("{}{changed}{place}", self.path.display()),
            lines,
            foot: self.state(),
            news: Vec::new(),
        }
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
    fn exit(&mut self, screen: &mut Screen) -> Result<Option<Left>, Gone> {
        if self.graph == self.before {
            return Ok(Some(Left::Unchanged));
        }
        let leave = "Leave, and lose all changes?";
        let Ok(flow) = Flow::new(self.graph.clone()) else {
            let leave = screen.confirm_page(|| self.page("exit", Vec::new()), leave)?;
            return Ok(leave.then_some(Left::Unwritten));
        };
        let changes = plan(&self.before, &flow, &std::collections::BTreeMap::new()).changes;
        let mut lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let Wording { text, unsaid } = self.wording(&flow);
        let mut so = "";
        if !unsaid.is_empty() {
            let notation = match self.notation {
                Notation::Config => "A configuration file",
                _ => "The classic notation",
            };
            lines.extend([String::new(), format!("{notation} cannot say:")]);
            lines.extend(unsaid);
            so = " in the language of flows instead";
        }
        let mut verb = "Write";
        loop {
            let page = || self.page("exit", lines.clone());
            let question = format!("{verb} {}{so}?", self.path.display());
            if !screen.confirm_page(page, &question)? {
                let leave = screen.confirm(leave)?;
                return Ok(leave.then_some(Left::Unwritten));
            }
            let Err(why) = replace(&self.path, &text) else {
                return Ok(Some(Left::Written));
            };
            screen.say(&why);
            match screen
                .ask("Another file (Enter: back to the menu):")?
                .as_str()
            {
                "" | "-" => {
                    screen.tell(why);
                    return Ok(None);
                }
                path => self.path = path.into(),
            }
            verb = if self.path.exists() {
                "Replace"
            } else {
                "Write"
            };
        }
    }

    /// The file's new text: in its notation, or where that cannot say it, in the language of flows.
    fn wording(&self, flow: &Flow) -> Wording {
        let revised = revise(&self.document, flow);
        let other = match self.notation {
            Notation::Flow => Ok((revised.to_string(), Vec::new())),
            Notation::Classic => revised
                .classic()
                .map(|classic| (classic.text, classic.unsaid))
                .map_err(|name| name.to_string()),
            Notation::Config => revise_config(&self.text, flow)
                .map(|config| (config.text, config.unsaid))
                .map_err(|name| name.to_string()),
        };
        let unsaid = match other {
            Ok((text, unsaid)) if unsaid.is_empty() => return Wording { text, unsaid },
            Ok((_, unsaid)) => unsaid,
            Err(name) => vec![name],
        };
        let text = revised.to_string();
        Wording { text, unsaid }
    }
}

/// A text to write, and what the file's notation could not have said of it.
struct Wording {
    text: String,
    unsaid: Vec<String>,
}
