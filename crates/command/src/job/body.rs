//! The body of a job, as it is given on a command line.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;

use crate::reach::Ended;

/// A body: words of the command line, or a file.
#[derive(Args)]
pub(super) struct Body {
    /// The body, as text.
    #[arg(conflicts_with = "file")]
    body: Option<String>,
    /// The body is what stands in this file; - is standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Body {
    /// Every byte of it, nothing when none was given.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, Ended> {
        let Some(file) = &self.file else {
            return Ok(self.body.as_ref().map(|text| text.clone().into_bytes()));
        };
        let bytes = match file.as_os_str() == "-" {
            true => {
                let mut bytes = Vec::new();
                std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
            }
            false => std::fs::read(file),
        };
        let unreadable = |error| {
            let file = file.display();
            Ended::bad_input(format!("{file} cannot be read: {error}"))
        };
        bytes.map(Some).map_err(unreadable)
    }
}
