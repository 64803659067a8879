//! The file of a flow: reading it, and saying what is wrong with it.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use testigo_flow::limits::TEXT_BYTES_MAX;
use testigo_flow::{Diagnostic, Reading, read, report};

use crate::exit::{Failure, NOT_GOOD};

/// A text and what it is called.
pub(crate) struct FlowFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl FlowFile {
    /// Reads a file, or standard input for `-`. More than a flow's text may have is not read.
    pub(crate) fn open(path: &Path) -> Result<FlowFile, Failure> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let most = TEXT_BYTES_MAX as u64 + 1;
        let outcome = match name.as_str() {
            "-" => std::io::stdin().take(most).read_to_end(&mut bytes),
            _ => File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
        };
        outcome.map_err(|error| format!("{name} cannot be read: {error}"))?;
        if bytes.len() > TEXT_BYTES_MAX {
            return Err(Failure::from(format!(
                "{name} has more than {TEXT_BYTES_MAX} bytes"
            )));
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| format!("{name} is no text: {}", error.utf8_error()))?;
        Ok(FlowFile { name, text })
    }

    pub(crate) fn read(&self) -> Reading {
        read(&self.text)
    }

    /// The findings as people read them, coloured where standard output is a terminal.
    pub(crate) fn report(&self, findings: &[Diagnostic]) -> String {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        report(findings, &self.text, &self.name, colour)
    }

    /// Says why the flow cannot be used: exit code 1.
    pub(crate) fn refuse(&self, findings: &[Diagnostic]) -> ExitCode {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let report = report(findings, &self.text, &self.name, colour);
        let _ = writeln!(std::io::stderr(), "{report}");
        ExitCode::from(NOT_GOOD)
    }
}

/// What a flow's file is called without its folder and ending.
pub(crate) fn stem(path: &Path) -> String {
    let stem = path.file_stem().filter(|stem| *stem != "-");
    stem.map_or("flow".into(), |stem| stem.to_string_lossy().into_owned())
}
