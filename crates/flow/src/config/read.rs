//! Reading a configuration file, line by line; white space is free.

use std::ops::Range;

use super::keep::comments;
use super::{LAST_ROW, NO_DIRECTORY, infer};
use crate::limits::{DIAGNOSTICS_MAX, TEXT_BYTES_MAX};
use crate::parse::finish;
use crate::text::{Built, check_path, too_long};
use crate::{About, Diagnostic, Name, Process, Queue, Reading, Rule, Weight};

/// Reads a configuration file and checks the graph that it describes.
pub(crate) fn read_config(text: &str) -> Reading {
    if text.len() > TEXT_BYTES_MAX {
        return Reading::unreadable(vec![too_long(text)]);
    }
    let mut reader = Reader::of(text);
    let complete = reader.file().is_some();
    if !complete || !reader.built.errors.is_empty() {
        return Reading::unreadable(reader.built.errors);
    }
    if !reader.marked {
        infer(&mut reader.built.graph);
    }
    let mut document = crate::canonical::document(&reader.built.graph);
    document.put_above(comments(text));
    finish(text, Some(document), reader.built)
}

/// A line without its comment and outer white space, with its place.
#[derive(Clone)]
struct Row<'a> {
    text: &'a str,
    start: usize,
}

struct Reader<'a> {
    text: &'a str,
    rows: std::vec::IntoIter<Row<'a>>,
    /// The file says with `i:` or `f:` who creates or deletes.
    marked: bool,
    built: Built,
}

/// `None` below: the file cannot be read on; the reason is on record.
impl<'a> Reader<'a> {
    fn of(text: &'a str) -> Reader<'a> {
        let mut rows = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let content = line.split('#').next().unwrap_or_default();
            let trimmed =
                content.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            let offset = content.len() - trimmed.len();
            if !trimmed.trim_end().is_empty() {
                rows.push(Row {
                    text: trimmed.trim_end(),
                    start: start + offset,
                });
            }
            start += line.len();
        }
        Reader {
            text,
            rows: rows.into_iter(),
            marked: false,
            built: Built::default(),
        }
    }

    fn file(&mut self) -> Option<()> {
        let counts = self.row("cantcolas= N, cantproctype= N")?;
        let (queues, processes) = self.counts(&counts)?;
        let reject = self.row("colarechazo=")?;
        self.reject(&reject)?;
        self.keyword("BeginCola")?;
        loop {
            let row = self.row("a queue, or EndCola")?;
            if row.text == "EndCola" {
                break;
            }
            self.queue(&row)?;
        }
        self.keyword("BeginProceso")?;
        loop {
            let row = self.row("a process, or EndProceso")?;
            if row.text == LAST_ROW {
                break;
            }
            self.process(&row)?;
        }
        if let Some(row) = self.rows.next() {
            self.syntax(&row, "the file goes on behind EndProceso", "end it there");
            return None;
        }
        let found = &self.built.graph;
        let found = [
            (queues, found.queues.len(), "queues"),
            (processes, found.processes.len(), "processes"),
        ];
        for (counted, listed, what) in found {
            if counted != listed {
                let wrong = format!("the file counts {counted} {what} and lists {listed}");
                self.error(
                    &counts,
                    Rule::Count,
                    wrong,
                    "correct the count, or the list",
                );
            }
        }
        Some(())
    }

    fn counts(&mut self, row: &Row<'a>) -> Option<(usize, usize)> {
        let number = |field: &str, key: &str| -> Option<usize> {
            let (name, value) = field.split_once('=')?;
            (name.trim() == key).then(|| value.trim().parse().ok())?
        };
        let counts = row.text.split_once(',').and_then(|(queues, processes)| {
            Some((
                number(queues, "cantcolas")?,
                number(processes, "cantproctype")?,
            ))
        });
        if counts.is_none() {
            let wrong = "the first line does not count queues and processes";
            self.syntax(row, wrong, "write cantcolas= N, cantproctype= N");
        }
        counts
    }

    fn reject(&mut self, row: &Row<'a>) -> Option<()> {
        let value = row
            .text
            .split_once('=')
            .filter(|(key, _)| key.trim() == "colarechazo");
        let Some((_, value)) = value else {
            let wrong = "the second line does not name the reject queue";
            self.syntax(
                row,
                wrong,
                "write colarechazo= and its name, or nothing behind it",
            );
            return None;
        };
        if !value.trim().is_empty() {
            let name = self.name(row, value.trim())?;
            let about = About::Reject(name.clone());
            self.built.places.note(about, &span(row, value.trim()));
            self.built.graph.defaults.reject = Some(name);
        }
        Some(())
    }

    /// `NAME, DIR, NUM, NUM`
    fn queue(&mut self, row: &Row<'a>) -> Option<()> {
        let fields: Vec<&str> = row.text.split(',').map(str::trim).collect();
        let number = |text: &str| text.parse::<u64>().is_ok();
        let [name, path, put, get] = fields[..] else {
            self.syntax(
                row,
                "a queue has four fields",
                "write name, directory, number, number",
            );
            return None;
        };
        if !number(put) || !number(get) {
            self.syntax(
                row,
                "the last two fields of a queue are numbers",
                "write name, directory, number, number",
            );
            return None;
        }
        let place = span(row, name);
        let name = self.name(row, name)?;
        let mut queue = Queue::default();
        if path != NO_DIRECTORY {
            if let Err(wrong) = check_path(path) {
                self.error(
                    row,
                    Rule::Limit,
                    wrong,
                    "name a directory, or write Harcodeado for none",
                );
                return None;
            }
            queue.data = Some(path.to_owned());
        }
        self.built.places.note(About::Queue(name.clone()), &place);
        let graph = &mut self.built.graph;
        if graph.queues.insert(name.clone(), queue).is_some() {
            let wrong = format!("the queue {name} is listed twice");
            self.error(row, Rule::Duplicate, wrong, "keep one of the rows");
        }
        Some(())
    }

    /// A name, its lists, and `fin`.
    fn process(&mut self, row: &Row<'a>) -> Option<()> {
        let name = self.name(row, row.text)?;
        let about = About::Process(name.clone());
        self.built.places.note(about, &span(row, row.text));
        let mut process = Process::default();
        let mut mark = None;
        loop {
            let list = self.row("the queues of a process, or fin")?;
            if list.text == "fin" {
                break;
            }
            let mut end = list.start;
            for word in list.text.split([',', ' ', '\t']) {
                end += word.len();
                let (new_mark, queue) = marked(word);
                let place = end - queue.len()..end;
                end += 1;
                mark = new_mark.or(mark);
                if queue.is_empty() {
                    continue;
                }
                let queue = self.name(&list, queue)?;
                let about = About::Arrow(name.clone(), queue.clone());
                self.built.places.note(about, &place);
                self.list(&list, &mut process, mark, queue)?;
            }
        }
        let graph = &mut self.built.graph;
        if graph.processes.insert(name.clone(), process).is_some() {
            let wrong = format!("the process {name} is listed twice");
            self.error(row, Rule::Duplicate, wrong, "keep one of the two");
        }
        Some(())
    }

    fn list(
        &mut self,
        row: &Row<'a>,
        process: &mut Process,
        mark: Option<char>,
        queue: Name,
    ) -> Option<()> {
        self.marked |= matches!(mark, Some('i' | 'f'));
        match mark {
            Some('e') => process.takes.insert(queue),
            Some('s') => process.passes.insert(queue),
            Some('i') => process.creates.insert(queue),
            Some(_) => process.deletes.insert(queue),
            None => {
                let wrong = format!("{queue} is neither input nor output");
                self.syntax(row, &wrong, "write e: before inputs and s: before outputs");
                return None;
            }
        };
        Some(())
    }

    fn name(&mut self, row: &Row<'a>, text: &str) -> Option<Name> {
        match Name::new(text) {
            Ok(name) => Some(name),
            Err(why) => {
                self.syntax(row, &why.to_string(), "write a name there");
                None
            }
        }
    }

    fn keyword(&mut self, word: &str) -> Option<()> {
        let row = self.row(word)?;
        if row.text != word {
            let wrong = format!("{} stands where {word} is wanted", row.text);
            self.syntax(&row, &wrong, &format!("write {word} on a line of its own"));
            return None;
        }
        Some(())
    }

    fn row(&mut self, wanted: &str) -> Option<Row<'a>> {
        let row = self.rows.next();
        if row.is_none() {
            let end = Row {
                text: "",
                start: self.text.trim_end().len(),
            };
            let wrong = format!("the file ends where {wanted} is wanted");
            self.syntax(&end, &wrong, "complete it");
        }
        row
    }

    fn syntax(&mut self, row: &Row<'a>, wrong: &str, mend: &str) {
        self.error(row, Rule::Syntax, wrong.to_owned(), mend);
    }

    fn error(&mut self, row: &Row<'a>, rule: Rule, wrong: String, mend: &str) {
        if self.built.errors.len() == DIAGNOSTICS_MAX {
            return;
        }
        let place = span(row, row.text);
        let error = Diagnostic::new(self.text, place, rule, Weight::Error, wrong, mend);
        self.built.errors.push(error);
    }
}

/// `e:C1` is a mark and a queue, `e:` a mark alone, `C1` a queue alone.
fn marked(word: &str) -> (Option<char>, &str) {
    for mark in ['e', 's', 'i', 'f'] {
        let behind = word
            .strip_prefix(mark)
            .and_then(|rest| rest.strip_prefix(':'));
        if let Some(queue) = behind {
            return (Some(mark), queue);
        }
    }
    (None, word)
}

/// Where a part of a row stands.
fn span(row: &Row<'_>, part: &str) -> Range<usize> {
    let at = row.start + row.text.find(part).unwrap_or(0);
    at..at + part.len()
}
