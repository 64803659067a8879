//! The body of a job, as it is given on a command line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use testigo::node::Limits;

use crate::reach::Ended;

/// A body: words of the command line, or a file.
#[derive(Args)]
pub(super) struct Body {
    /// The body, as text; - is standard input.
    #[arg(conflicts_with = "file")]
    body: Option<String>,
    /// The body is what stands in this file; - is standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Body {
    /// Every byte of it, nothing when none was given.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, Ended> {
        let file = match (&self.file, &self.body) {
            (Some(file), _) => file.as_path(),
            (None, Some(text)) if text == "-" => Path::new("-"),
            (None, text) => return Ok(text.as_ref().map(|text| text.clone().into_bytes())),
        };
        // One byte more than a body may have is enough to be refused.
        let most = Limits::BODY_BYTES as u64 + 1;
        let mut bytes = Vec::new();
        let read = match file.as_os_str() == "-" {
            true => std::io::stdin().take(most).read_to_end(&mut bytes),
            false => File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes)),
        };
        if bytes.len() > Limits::BODY_BYTES {
            return Err(Ended::bad_input(format!(
                "{} has more than the {} bytes that a body may have; keep the data in a file, and its name in the body",
                file.display(),
                Limits::BODY_BYTES
            )));
        }
        let unreadable = |error| {
            let file = file.display();
            Ended::bad_input(format!("{file} cannot be read: {error}"))
        };
        read.map(|_| Some(bytes)).map_err(unreadable)
    }
}
