//! Where one command ends and the next begins. A command is an array of bulk strings, in both versions of the protocol, or a
//! line of text. The codec used in tests to check replies could also read commands, but it allocates a list for each, follows
//! nested arrays to any depth and trusts every length. A front door for strangers measures first, and then nothing is left to
//! decode. The tests compare the results with the codec's.

use super::http;
use super::inline;
use super::limits::FrameLimits;
use super::words::RawCommand;

/// Finds commands in a stream of bytes. Its buffers are reused for every command.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    ranges: Vec<(u32, u32)>,
    unquoted: Vec<u8>,
}

/// How far a connection's unfinished command has been read. It is kept together with the bytes, so that a command that
/// arrives byte by byte is read once, not again from its start with every byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Where to go on: at an argument's header, or after the searched part of a line.
    at: usize,
    /// How many arguments are still to come, once the array's header was read.
    left: Option<u64>,
    /// With fewer bytes than this there is nothing new to read.
    needed: usize,
}

/// What the next bytes of a connection are.
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    /// A complete command, and how many bytes it took. One without words means nothing and gets no answer.
    Command(RawCommand<'a>, usize),
    /// The command's end has not arrived.
    Incomplete,
    /// No command can follow; the text says why.
    Violation(String),
    /// A line of HTTP: the sender may be a browser that a stranger's page controls.
    Http,
}

/// A header line (`*3`, `$5`) is never longer than this.
const HEADER_BYTES: usize = 24;
/// The first byte of a TLS record with a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

enum Step<T> {
    Done(T),
    Incomplete,
    Violation(String),
}

impl Framer {
    /// Reads the first command of `input`, which is not empty. `progress` says how much of it was read before.
    pub(crate) fn read<'a>(
        &'a mut self,
        input: &'a [u8],
        limits: &FrameLimits,
        progress: &mut Progress,
    ) -> Frame<'a> {
        if input.len() < progress.needed {
            return Frame::Incomplete;
        }
        self.ranges.clear();
        if input.first() != Some(&b'*') {
            return self.read_inline(input, limits, progress);
        }
        let ranges = &mut self.ranges;
        let in_pieces = *progress != Progress::default();
        let mut step = measure(input, limits, progress, |from, to| {
            if !in_pieces {
                ranges.push((from, to));
            }
        });
        if in_pieces && matches!(step, Step::Done(_)) {
            // Only now: the ranges of 65,536 arguments take more memory than their bytes, for as long as the rest takes to
            // arrive.
            *progress = Progress::default();
            step = measure(input, limits, progress, |from, to| ranges.push((from, to)));
        }
        match step {
            Step::Done(consumed) => {
                *progress = Progress::default();
                Frame::Command(RawCommand::new(input, &self.ranges), consumed)
            }
            Step::Incomplete if input.len() >= limits.frame_bytes.most => {
                Frame::Violation(format!("a command is longer than {}", limits.frame_bytes))
            }
            Step::Incomplete => Frame::Incomplete,
            Step::Violation(why) => Frame::Violation(why),
        }
    }

    fn read_inline<'a>(
        &'a mut self,
        input: &'a [u8],
        limits: &FrameLimits,
        progress: &mut Progress,
    ) -> Frame<'a> {
        // Browsers can be made to send strangers' bytes in binary protocols, too; none of those begins with a word.
        match input.first() {
            Some(&TLS_HANDSHAKE) => {
                return Frame::Violation("this is TLS, and here only plain RESP is spoken".into());
            }
            Some(first) if !first.is_ascii_graphic() && !first.is_ascii_whitespace() => {
                let first = first.escape_ascii();
                return Frame::Violation(format!("no command begins with '{first}'"));
            }
            _ => {}
        }
        let within = &input[..input.len().min(limits.inline_bytes.most)];
        let unsearched = &within[progress.at.min(within.len())..];
        let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') else {
            progress.at = within.len();
            progress.needed = input.len() + 1;
            return match input.len() >= limits.inline_bytes.most {
                true => Frame::Violation(format!("a line is longer than {}", limits.inline_bytes)),
                false => Frame::Incomplete,
            };
        };
        let end = within.len() - unsearched.len() + end;
        *progress = Progress::default();
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        if http::is_http(line) {
            return Frame::Http;
        }
        self.unquoted.clear();
        match inline::split(line, &mut self.unquoted, &mut self.ranges) {
            true => Frame::Command(RawCommand::new(&self.unquoted, &self.ranges), end + 1),
            false => Frame::Violation("unbalanced quotes in a line".into()),
        }
    }
}

/// Measures an array of bulk strings from where it was left, and reports where each further string is. Returns the length of
/// the whole.
fn measure(
    input: &[u8],
    limits: &FrameLimits,
    progress: &mut Progress,
    mut argument: impl FnMut(u32, u32),
) -> Step<usize> {
    progress.needed = input.len() + 1;
    let mut left = match progress.left {
        Some(left) => left,
        None => {
            let (count, at) = match header(input, 0, b'*') {
                Step::Done(found) => found,
                Step::Incomplete => return Step::Incomplete,
                Step::Violation(why) => return Step::Violation(why),
            };
            let Some(count) = count else {
                return Step::Done(at);
            };
            if count > limits.arguments.most as u64 {
                let most = limits.arguments;
                return Step::Violation(format!("{count} arguments are more than {most}"));
            }
            progress.at = at;
            count
        }
    };
    while left > 0 {
        progress.left = Some(left);
        let (len, from) = match header(input, progress.at, b'$') {
            Step::Done(found) => found,
            Step::Incomplete => return Step::Incomplete,
            Step::Violation(why) => return Step::Violation(why),
        };
        let Some(len) = len else {
            return Step::Violation("an argument is null".into());
        };
        if len > limits.argument_bytes.most as u64 {
            let most = limits.argument_bytes;
            return Step::Violation(format!("an argument of {len} bytes is longer than {most}"));
        }
        let to = from + len as usize;
        if to + 2 > limits.frame_bytes.most {
            let most = limits.frame_bytes;
            return Step::Violation(format!("a command is longer than {most}"));
        }
        match input.get(to..to + 2) {
            None => {
                progress.needed = to + 2;
                return Step::Incomplete;
            }
            Some(b"\r\n") => {}
            Some(_) => return Step::Violation("an argument does not end where it should".into()),
        }
        argument(from as u32, to as u32);
        progress.at = to + 2;
        left -= 1;
    }
    Step::Done(progress.at)
}

/// Reads `<mark><number>\r\n` at an offset: the number (`None` for -1) and where the next part begins.
fn header(input: &[u8], at: usize, mark: u8) -> Step<(Option<u64>, usize)> {
    let rest = &input[at.min(input.len())..];
    match rest.first() {
        None => return Step::Incomplete,
        Some(found) if *found != mark => {
            let (mark, found) = (char::from(mark), found.escape_ascii());
            return Step::Violation(format!("'{mark}' is expected where '{found}' stands"));
        }
        Some(_) => {}
    }
    let within = &rest[..rest.len().min(HEADER_BYTES)];
    let Some(end) = within.windows(2).position(|pair| pair == b"\r\n") else {
        return match rest.len() < HEADER_BYTES {
            true => Step::Incomplete,
            false => Step::Violation("a length has no end".into()),
        };
    };
    match number(&within[1..end]) {
        Some(number) => Step::Done((number, at + end + 2)),
        None => Step::Violation("a length is no number".into()),
    }
}

fn number(digits: &[u8]) -> Option<Option<u64>> {
    if digits == b"-1" {
        return Some(None);
    }
    if digits.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for digit in digits {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(Some(value))
}

#[cfg(test)]
mod tests;
