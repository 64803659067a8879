//! Jobs whose data are files: each queue has a directory, and a job's body is the path of its file there. The order of
//! steps is what loses nothing: the output is written and on disk, then the job is passed on, then the input is removed.
//!
//! Source: the queue architecture's rules for data files. Repaired here: an output is written under a name of its own
//! attempt and put in place at once, so that a worker which was given up cannot write into its successor's file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use testigo_client::Job;

use super::duty::Duty;
use crate::datafile::{self, Writer};
use crate::filesroot::FilesRoot;
use crate::reach::Ended;

/// The files of one attempt at a job.
#[derive(Debug)]
pub(super) struct Paths {
    pub(super) input: PathBuf,
    /// Where the program writes, if the process passes anything on.
    pub(super) output: Option<PathBuf>,
    /// The output's name in its place.
    name: String,
}

/// Every queue that the process uses must have a directory; one that is not there is made.
pub(super) fn prepare(duty: &Duty, root: &FilesRoot) -> Result<(), Ended> {
    let used = duty.inputs.iter().map(String::as_str);
    for queue in used.chain(duty.destinations()) {
        let Some(directory) = duty.directories.get(queue) else {
            return Err(Ended::bad_input(format!(
                "--files needs a data directory for queue {queue}; say in the flow: queue {queue} {{ data \"a/directory\" }}"
            )));
        };
        let made = root.directory(Path::new(directory), true);
        made.map_err(|error| {
            let why = format!("the data directory {directory} of queue {queue}: {error}");
            Ended::bad_input(why)
        })?;
    }
    Ok(())
}

/// Whether a job with an empty body has its file in the directory of a queue.
pub(super) fn lies_in(queue: &str, name: &str, duty: &Duty, root: &FilesRoot) -> bool {
    let directory = duty.directories.get(queue);
    directory.is_some_and(|directory| root.age(&Path::new(directory).join(name)).is_some())
}

impl Paths {
    /// Where the data of a job are, or why they cannot be. A job with an empty body has its file in the directory of `queue`.
    pub(super) fn of(job: &Job, queue: &str, duty: &Duty) -> Result<Paths, String> {
        let Job { name, attempt, .. } = job;
        if name.contains('/') || name.starts_with('.') {
            return Err(format!("its name {name} is no name of a file"));
        }
        let directory = duty.directories.get(queue);
        let directory = directory.ok_or_else(|| format!("queue {queue} has no data directory"))?;
        let input = match job.body.is_empty() {
            true => Path::new(directory).join(name),
            false => referenced(&job.body, duty)?,
        };
        let name = datafile::name(name, Writer::Attempt(*attempt));
        let first = duty.destinations().into_iter().next();
        let output = first.and_then(|queue| duty.directories.get(queue));
        let output = output.map(|there| Path::new(there).join(datafile::part(&name)));
        Ok(Paths {
            input,
            output,
            name,
        })
    }

    /// Whether a program may be given these paths: they lead to a file, and to where nothing is yet. A file that is not
    /// there is the program's affair.
    pub(super) fn check(&self, root: &FilesRoot) -> Result<(), String> {
        match root.file(&self.input) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(format!("its file {}: {error}", self.input.display()));
            }
            _ => {}
        }
        let Some(output) = &self.output else {
            return Ok(());
        };
        match root.remove(output) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("its output {}: {error}", output.display()))
            }
            _ => Ok(()),
        }
    }

    /// Puts the output in its place in a queue's directory, on disk, and gives its path.
    pub(super) fn publish(
        &self,
        queue: &str,
        duty: &Duty,
        root: &FilesRoot,
        keep: bool,
    ) -> io::Result<PathBuf> {
        let missing = || io::Error::other(format!("queue {queue} has no data directory"));
        let directory = Path::new(duty.directories.get(queue).ok_or_else(missing)?);
        let part = directory.join(datafile::part(&self.name));
        let written = self.output.as_ref().filter(|_| !keep);
        match written {
            Some(output) if *output == part => {}
            // It chose another queue than the first, which may be on another disk.
            Some(output) => {
                io::copy(&mut root.file(output)?, &mut root.create(&part)?)?;
                root.remove(output)?;
            }
            None => {
                io::copy(&mut root.file(&self.input)?, &mut root.create(&part)?)?;
            }
        }
        root.rename(&part, OsStr::new(&self.name))?;
        Ok(directory.join(&self.name))
    }

    /// Nothing came of this attempt: what it has written is of no use.
    pub(super) fn discard(&self, root: &FilesRoot) {
        if let Some(output) = &self.output {
            // It may have written nothing.
            let _ = root.remove(output);
        }
    }

    /// The words of a command, with the paths in place of `{in}` and `{out}`.
    pub(super) fn fill(&self, command: &[OsString], root: &FilesRoot) -> Vec<OsString> {
        let fill = |word: &OsString| {
            let (before, place) = word.to_str().and_then(parted)?;
            let path = match place {
                INPUT => &self.input,
                _ => self.output.as_ref()?,
            };
            let mut filled = OsString::from(before);
            filled.push(root.told(path));
            Some(filled)
        };
        let filled = |word| fill(word).unwrap_or_else(|| word.clone());
        command.iter().map(filled).collect()
    }
}

const INPUT: &str = "{in}";
const OUTPUT: &str = "{out}";

/// A word that ends with a place for a path: alone, or behind a plain `NAME=`.
fn parted(word: &str) -> Option<(&str, &str)> {
    let place = [INPUT, OUTPUT].into_iter().find(|p| word.ends_with(p))?;
    let (before, place) = word.split_at(word.len() - place.len());
    let name = before.strip_suffix('=').unwrap_or(before);
    let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let fits = before.is_empty() || (name.len() < before.len() && name.chars().all(plain));
    fits.then_some((before, place))
}

/// Refuses a path within a text, which may be read by a shell: then whoever names a job could have anything run.
pub(super) fn check(command: &[OsString]) -> Result<(), Ended> {
    for word in command.iter().filter_map(|word| word.to_str()) {
        let places = [(INPUT, "TESTIGO_IN"), (OUTPUT, "TESTIGO_OUT")];
        let mut places = places.iter().filter(|(place, _)| word.contains(place));
        if let Some((place, variable)) = places.next()
            && parted(word).is_none()
        {
            return Err(Ended::bad_input(format!(
                "{place} stands within {word:?}, where a file's name could be taken for more than a name; let it be a \
                 word of its own or the end of one as in --file={place}, and in the text of a shell write \"${variable}\""
            )));
        }
    }
    Ok(())
}

/// The file that a body names. It must lie in a directory of the flow: what it names is read, and removed in the end.
fn referenced(body: &[u8], duty: &Duty) -> Result<PathBuf, String> {
    let text = std::str::from_utf8(body);
    let path = text.map_err(|_| "its body is no path of a file".to_owned())?;
    let path = Path::new(path.trim_end());
    let mut directories = duty.directories.values();
    let inside = directories.any(|directory| path.parent() == Some(Path::new(directory)));
    match inside && path.file_name().is_some() {
        true => Ok(path.to_owned()),
        false => Err(format!(
            "its body names {}, which lies in no data directory of flow {}",
            path.display(),
            duty.flow
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stands_for_a_word_or_the_value_of_an_option() {
        let paths = Paths {
            input: "d/$(x).7".into(),
            output: Some("e/.$(x).8.part".into()),
            name: "$(x).8".into(),
        };
        let command = ["dd", "if={in}", "{out}", "--to={out}", "{}", "in"].map(OsString::from);
        check(&command).expect("plain");
        let root = FilesRoot::open(None).expect("a folder");
        let filled = paths.fill(&command, &root);
        let (input, output) = ("if=d/$(x).7", "e/.$(x).8.part");
        let to = format!("--to={output}");
        assert_eq!(filled, ["dd", input, output, to.as_str(), "{}", "in"]);
    }

    #[test]
    fn a_path_within_a_text_is_refused() {
        for word in [
            "cat {in}",
            "<{in}",
            "{in}x",
            "cat {in} > {out}",
            "a;b={in}",
            "{out}={in}",
            "x{in}",
        ] {
            let refused = check(&[word.into()]).expect_err(word);
            assert!(refused.why.contains("write \"$TESTIGO_"), "{}", refused.why);
        }
    }
}
