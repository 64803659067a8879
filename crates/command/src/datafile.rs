//! The names of data files that are written here: `NAME.ATTEMPT` by an attempt at the job NAME, `NAME.PID-NANOS` by
//! whoever created it. Only a file of such a name is ever removed without its job in hand.

use std::fmt;

/// Who has written a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The attempt.
    Attempt(u64),
    /// The creating process, and when it was, in nanoseconds since 1970.
    Creator { process: u32, at: u128 },
}

/// The digits of such a moment, from 2001 to 2286.
const MOMENT_DIGITS: usize = 19;

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Writer::Attempt(attempt) => write!(f, "{attempt}"),
            Writer::Creator { process, at } => write!(f, "{process}-{at}"),
        }
    }
}

/// The name of a job's data file.
pub(crate) fn name(job: &str, writer: Writer) -> String {
    format!("{job}.{writer}")
}

/// Its name for as long as it is being written.
pub(crate) fn part(name: &str) -> String {
    format!(".{name}.part")
}

/// Whose data file has this name, and who has written it.
pub(crate) fn read(name: &str) -> Option<(&str, Writer)> {
    let (job, writer) = name.rsplit_once('.')?;
    let writer = match writer.split_once('-') {
        None => Writer::Attempt(number(writer)?),
        Some((process, at)) if at.len() == MOMENT_DIGITS => Writer::Creator {
            process: number(process)?,
            at: number(at)?,
        },
        Some(_) => return None,
    };
    (!job.is_empty() && !job.starts_with('.')).then_some((job, writer))
}

fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let creator = Writer::Creator {
            process: 4711,
            at: 1_700_000_000_123_456_789,
        };
        for writer in [Writer::Attempt(4_294_967_297), creator] {
            assert_eq!(read(&name("a.b", writer)), Some(("a.b", writer)));
        }
    }

    #[test]
    fn no_other_name_is_read_as_one() {
        for name in [
            "a",
            "a.b",
            "a.-1",
            "a.+1",
            ".a.7",
            ".7",
            "a.7.part",
            "a.",
            "report.2024-12",
            "report.2024-1215",
            "a.-1700000000123456789",
            "a.1-170000000012345678+",
            "a.99999999999-1700000000123456789",
        ] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
