//! The menu of processes.

use std::collections::BTreeSet;

use testigo_flow::limits::LIMIT_MAX;
use testigo_flow::{Name, Process};

use super::editor::{Editor, MENU};
use super::screen::{Gone, Screen};

impl Editor {
    pub(super) fn processes(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let mut at = 0;
        loop {
            let processes = self.graph.processes.iter();
            let lines: Vec<String> = processes
                .map(|(name, process)| line(name, process))
                .collect();
            let page = self.page("processes", lines);
            match screen.choose(page, &mut at, MENU)?.as_str() {
                "a" => self.add_process(screen)?,
                "c" => self.change_process(screen)?,
                "r" => self.remove_process(screen)?,
                "b" => return Ok(()),
                _ => {}
            }
        }
    }

    fn add_process(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let Some(name) = screen.ask_name("Name of the new process:")? else {
            return Ok(());
        };
        if self.graph.processes.contains_key(&name) {
            screen.tell(format!("there is a process {name} already"));
            return Ok(());
        }
        let process = self.ask(screen, &Process::default())?;
        let question = format!("Add the process {name}?");
        self.change(screen, &question, |graph| graph.add_process(name, process))
    }

    fn change_process(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let Some(name) = screen.ask_name("Process to change:")? else {
            return Ok(());
        };
        let Some(old) = self.graph.processes.get(&name).cloned() else {
            screen.tell(format!("there is no process {name}"));
            return Ok(());
        };
        let process = self.ask(screen, &old)?;
        let question = format!("Change the process {name}?");
        self.change(screen, &question, |graph| {
            graph.change_process(&name, process)
        })
    }

    fn remove_process(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let Some(name) = screen.ask_name("Process to remove:")? else {
            return Ok(());
        };
        let question = format!("Remove the process {name}?");
        self.change(screen, &question, |graph| graph.remove_process(&name))
    }

    /// Lists of queues, separated by spaces; Enter keeps one, - empties it.
    fn ask(&self, screen: &mut Screen, old: &Process) -> Result<Process, Gone> {
        let queues: Vec<&str> = self.graph.queues.keys().map(Name::as_str).collect();
        screen.above_values(
            "Queues, separated by spaces; Enter keeps, - empties",
            &queues,
        );
        let mut list = |what: &str, old: &BTreeSet<Name>| -> Result<BTreeSet<Name>, Gone> {
            let known = &self.graph.queues;
            let read = |text: &str| -> Result<BTreeSet<Name>, String> {
                let words = text.split([' ', ',']).filter(|word| !word.is_empty());
                let name = |word: &str| match known.get_key_value(word) {
                    Some((name, _)) => Ok(name.clone()),
                    None => Err(format!("there is no queue {word}")),
                };
                words.map(name).collect()
            };
            let old = Some(old.clone()).filter(|old| !old.is_empty());
            Ok(screen
                .ask_value(what, &old, joined, read)?
                .unwrap_or_default())
        };
        let takes = list("Takes from", &old.takes)?;
        let passes = list("Passes to", &old.passes)?;
        let creates = list("Creates into", &old.creates)?;
        let deletes = list("Deletes from", &old.deletes)?;
        let limit = screen.ask_value("Limit of clients", &old.limit, ToString::to_string, limit)?;
        let rights = screen.ask_users("Users that may be this process", &old.rights)?;
        Ok(Process {
            takes,
            passes,
            creates,
            deletes,
            limit,
            rights,
        })
    }
}

fn limit(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| (1..=LIMIT_MAX).contains(n));
    number.ok_or(format!("a number from 1 to {LIMIT_MAX} is wanted"))
}

fn joined(names: &BTreeSet<Name>) -> String {
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    names.join(" ")
}

fn line(name: &Name, process: &Process) -> String {
    let parts = [
        ("takes from", &process.takes),
        ("passes to", &process.passes),
        ("creates into", &process.creates),
        ("deletes from", &process.deletes),
    ];
    let parts = parts.iter().filter(|(_, queues)| !queues.is_empty());
    let parts: Vec<String> = parts
        .map(|(word, queues)| format!("{word} {}", joined(queues)))
        .collect();
    format!("{name}  {}", parts.join(", "))
}
