//! Where one command ends and the next begins. A command is an array of bulk strings, in both versions of the protocol,
//! or a line of text. The codec that writes the replies would also read commands, but it allocates a list for each,
//! follows nested arrays as deep as they go and believes every length; a door to strangers measures first, and after
//! measuring nothing is left to decode. The tests hold what is read here against the codec.

use super::inline;
use super::limits::WireLimits;
use super::words::Line;

/// Finds commands in a stream of bytes. Its buffers are used again for every command.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    ranges: Vec<(u32, u32)>,
    unquoted: Vec<u8>,
}

/// What the next bytes of a connection are.
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    /// A whole command, and how many bytes it took. One without words means nothing and gets no answer.
    Command(Line<'a>, usize),
    /// The command's end has not arrived.
    Incomplete,
    /// No command can follow; the sentence says why.
    Violation(String),
}

/// A header line (`*3`, `$5`) is never longer than this.
const HEADER_BYTES: usize = 24;

enum Step<T> {
    Done(T),
    Incomplete,
    Violation(String),
}

impl Framer {
    /// Reads the first command of `input`, which is not empty.
    pub(crate) fn read<'a>(&'a mut self, input: &'a [u8], limits: &WireLimits) -> Frame<'a> {
        self.ranges.clear();
        if input.first() != Some(&b'*') {
            return self.read_inline(input, limits);
        }
        match measure(input, limits, &mut self.ranges) {
            Step::Done(consumed) => Frame::Command(Line::new(input, &self.ranges), consumed),
            Step::Incomplete if input.len() >= limits.frame_bytes => {
                let most = limits.frame_bytes;
                Frame::Violation(format!("a command is longer than frame_bytes, {most}"))
            }
            Step::Incomplete => Frame::Incomplete,
            Step::Violation(why) => Frame::Violation(why),
        }
    }

    fn read_inline<'a>(&'a mut self, input: &'a [u8], limits: &WireLimits) -> Frame<'a> {
        let most = limits.inline_bytes;
        let within = &input[..input.len().min(most)];
        let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
            return match input.len() >= most {
                true => Frame::Violation(format!("a line is longer than inline_bytes, {most}")),
                false => Frame::Incomplete,
            };
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        self.unquoted.clear();
        match inline::split(line, &mut self.unquoted, &mut self.ranges) {
            true => Frame::Command(Line::new(&self.unquoted, &self.ranges), end + 1),
            false => Frame::Violation("unbalanced quotes in a line".into()),
        }
    }
}

/// Measures an array of bulk strings and notes where each string is. Gives the length of the whole.
fn measure(input: &[u8], limits: &WireLimits, ranges: &mut Vec<(u32, u32)>) -> Step<usize> {
    let (count, mut at) = match header(input, 0, b'*') {
        Step::Done(found) => found,
        Step::Incomplete => return Step::Incomplete,
        Step::Violation(why) => return Step::Violation(why),
    };
    let Some(count) = count else {
        return Step::Done(at);
    };
    if count > limits.arguments as u64 {
        let most = limits.arguments;
        return Step::Violation(format!("{count} arguments are more than arguments, {most}"));
    }
    for _ in 0..count {
        let (len, from) = match header(input, at, b'$') {
            Step::Done(found) => found,
            Step::Incomplete => return Step::Incomplete,
            Step::Violation(why) => return Step::Violation(why),
        };
        let Some(len) = len else {
            return Step::Violation("an argument is null".into());
        };
        if len > limits.argument_bytes as u64 {
            let most = limits.argument_bytes;
            return Step::Violation(format!(
                "an argument of {len} bytes is longer than argument_bytes, {most}"
            ));
        }
        let to = from + len as usize;
        if to + 2 > limits.frame_bytes {
            let most = limits.frame_bytes;
            return Step::Violation(format!("a command is longer than frame_bytes, {most}"));
        }
        match input.get(to..to + 2) {
            None => return Step::Incomplete,
            Some(b"\r\n") => {}
            Some(_) => return Step::Violation("an argument does not end where it should".into()),
        }
        ranges.push((from as u32, to as u32));
        at = to + 2;
    }
    Step::Done(at)
}

/// Reads `<mark><number>\r\n` at an offset: the number (none for -1) and where the next thing begins.
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
