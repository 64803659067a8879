//! What a configuration file says besides its flow: comments, empty lines, the order of its rows, and the numbers of its
//! queues. They stay when the file is written again.

use std::collections::HashMap;

use super::LAST_ROW;
use crate::text::Trivia;

/// A row, by what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowKey {
    Counts,
    Reject,
    BeginQueues,
    Queue(String),
    EndQueues,
    BeginProcesses,
    Process(String),
    Lists(String),
    EndProcess(String),
    EndProcesses,
}

/// What a file says besides its flow.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// What stands above a row.
    lead: HashMap<RowKey, Vec<Trivia>>,
    /// What stands behind it on its line.
    trailing: HashMap<RowKey, String>,
    /// The first mention of a name has the lowest number.
    places: HashMap<RowKey, usize>,
    numbers: HashMap<String, (u64, u64)>,
    /// What stands below the last row.
    tail: Vec<Trivia>,
}

impl Kept {
    /// Of a file that can be read.
    pub(super) fn of(text: &str) -> Kept {
        let mut kept = Kept::default();
        let mut before = None;
        let mut lead = Vec::new();
        for line in text.lines() {
            let (row, comment) = parted(line);
            if row.is_empty() {
                let line = comment.map_or(Trivia::Blank, |comment| Trivia::Comment(comment.into()));
                let top = before.is_none() && lead.is_empty();
                if line != Trivia::Blank || !(top || lead.last() == Some(&Trivia::Blank)) {
                    lead.push(line);
                }
                continue;
            }
            let key = follows(before.as_ref(), row);
            let above = kept.lead.entry(key.clone()).or_default();
            above.append(&mut lead);
            // The lists of a process become one row.
            if let Some(comment) = comment
                && let Some(other) = kept.trailing.insert(key.clone(), comment.into())
            {
                above.push(Trivia::Comment(other));
            }
            if let RowKey::Queue(name) = &key {
                let mut fields = row.split(',').skip(2).map(|field| field.trim().parse());
                if let (Some(Ok(put)), Some(Ok(take))) = (fields.next(), fields.next()) {
                    kept.numbers.insert(name.clone(), (put, take));
                }
            }
            let place = kept.places.len();
            kept.places.entry(key.clone()).or_insert(place);
            before = Some(key);
        }
        kept.tail = lead;
        kept
    }

    /// Puts a row in its surroundings.
    pub(super) fn write(&self, text: &mut String, key: &RowKey, row: &str) {
        lines(text, self.lead.get(key).map_or(&[], Vec::as_slice));
        text.push_str(row);
        if let Some(comment) = self.trailing.get(key) {
            text.push_str("  ");
            text.push_str(comment);
        }
        text.push('\n');
    }

    pub(super) fn write_tail(&self, text: &mut String) {
        let end = self.tail.iter().rposition(|line| *line != Trivia::Blank);
        lines(text, &self.tail[..end.map_or(0, |end| end + 1)]);
    }

    /// Where a row stood; new ones come behind all others.
    pub(super) fn place(&self, key: &RowKey) -> usize {
        self.places.get(key).copied().unwrap_or(usize::MAX)
    }

    /// The numbers of a queue's servers: those it has, else the next ones.
    pub(super) fn numbers(&mut self, name: &str, first: u64) -> (u64, u64) {
        if let Some(numbers) = self.numbers.get(name) {
            return *numbers;
        }
        let highest = self.numbers.values().map(|(put, take)| (*put).max(*take));
        let next = highest
            .max()
            .map_or(first, |highest| highest.saturating_add(1));
        let numbers = (next, next.saturating_add(1));
        self.numbers.insert(name.to_owned(), numbers);
        numbers
    }
}

/// All comments of a file, in its order.
pub(super) fn comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| parted(line).1)
}

/// A line's row and comment.
fn parted(line: &str) -> (&str, Option<&str>) {
    let at = line.find('#').unwrap_or(line.len());
    let row = line[..at].trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    (
        row,
        Some(line[at..].trim_end()).filter(|comment| !comment.is_empty()),
    )
}

/// What a row is about, by the one before it.
fn follows(before: Option<&RowKey>, row: &str) -> RowKey {
    let process = || match row {
        LAST_ROW => RowKey::EndProcesses,
        name => RowKey::Process(name.into()),
    };
    match before {
        None => RowKey::Counts,
        Some(RowKey::Counts) => RowKey::Reject,
        Some(RowKey::Reject) => RowKey::BeginQueues,
        Some(RowKey::BeginQueues | RowKey::Queue(_)) => match row {
            "EndCola" => RowKey::EndQueues,
            row => RowKey::Queue(row.split(',').next().unwrap_or_default().trim().into()),
        },
        Some(RowKey::EndQueues) => RowKey::BeginProcesses,
        Some(RowKey::Process(name) | RowKey::Lists(name)) => match row {
            "fin" => RowKey::EndProcess(name.clone()),
            _ => RowKey::Lists(name.clone()),
        },
        Some(RowKey::BeginProcesses | RowKey::EndProcess(_) | RowKey::EndProcesses) => process(),
    }
}

fn lines(text: &mut String, lines: &[Trivia]) {
    for line in lines {
        if let Trivia::Comment(comment) = line {
            text.push_str(comment);
        }
        text.push('\n');
    }
}
