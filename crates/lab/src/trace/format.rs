//! The text of a trace: a header of `word value` lines, an empty line, then one event a line, its
//! time first. `docs/lab.md` describes it for people.

use std::fmt;

use testigo_protocol::{NodeId, Setup, UserId};
use testigo_sim::{Memory, Time};

use super::{Event, Header, Trace};

const FIRST_LINE: &str = "testigo trace 1";

/// A trace that cannot be read: the line, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    pub line: usize,
    pub what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for TraceError {}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        writeln!(f, "{FIRST_LINE}")?;
        writeln!(f, "algorithm {}", header.algorithm)?;
        writeln!(f, "users {}", header.users)?;
        writeln!(f, "names {}", header.names.join(" "))?;
        if !header.seats.is_empty() {
            let seats: Vec<String> = header.seats.iter().map(usize::to_string).collect();
            writeln!(f, "seats {}", seats.join(" "))?;
        }
        for (word, value) in &header.chosen {
            writeln!(f, "{word} {value}")?;
        }
        match (&header.network, header.delay_bound) {
            (Some(network), Time::ZERO) if network.delay_bound() > Time::ZERO => {
                writeln!(f, "delay-bound none")?;
            }
            (_, bound) => writeln!(f, "delay-bound {bound}")?,
        }
        if let Some(network) = &header.network {
            write!(f, "{network}")?;
        }
        writeln!(f, "time {}", if header.steps { "steps" } else { "units" })?;
        writeln!(f, "made-by {}", header.made_by)?;
        writeln!(f)?;
        for (at, event) in &self.events {
            writeln!(f, "{at} {event}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Start(node) => write!(f, "start {node}"),
            Event::Ask(user, what) => write!(f, "ask {user} {what}"),
            Event::Deliver(number) => write!(f, "deliver #{number}"),
            Event::Fire(node, timer) => write!(f, "fire {node} {timer}"),
            Event::Crash(node, memory) => write!(f, "crash {node} {}", memory_word(*memory)),
            Event::Restart(node) => write!(f, "restart {node}"),
            Event::Lose(number, why) => write!(f, "lose #{number} {why}"),
            Event::Copy(of, number) => write!(f, "copy #{of} #{number}"),
            Event::Lie(number, label) => write!(f, "lie #{number} {label}"),
            Event::Cut(sides) => write!(f, "cut {sides}"),
            Event::Heal(sides) => write!(f, "heal {sides}"),
            Event::Cycle => write!(f, "cycle"),
            Event::Repeat(user) => write!(f, "repeat {user}"),
            Event::End(why) if why.is_empty() => write!(f, "end"),
            Event::End(why) => write!(f, "end {why}"),
            Event::Send {
                number,
                from,
                to,
                label,
            } => write!(f, "send #{number} {from}>{to} {label}"),
            Event::Tell(user, what) => write!(f, "tell {user} {what}"),
            Event::Timer(node, timer) => write!(f, "timer {node} {timer}"),
            Event::Violation(kind, what) => write!(f, "violation {kind}: {what}"),
        }
    }
}

fn memory_word(memory: Memory) -> &'static str {
    match memory {
        Memory::Whole => "pause",
        Memory::Stable => "partial-amnesia",
        Memory::Nothing => "amnesia",
    }
}

impl Trace {
    /// The longest trace that is read or kept.
    pub const EVENTS_MAX: usize = 5_000_000;
    /// The most nodes that a header may name.
    const NAMES_MAX: usize = 200_000;

    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line));
        let error = |line, what: String| TraceError { line, what };
        if lines.next().map(|(_, line)| line) != Some(FIRST_LINE) {
            return Err(error(
                1,
                format!("not a trace: it does not start with `{FIRST_LINE}`"),
            ));
        }
        let mut header = Header::default();
        let (mut words, mut told_nothing) = (Vec::new(), false);
        for (number, line) in lines.by_ref().take_while(|(_, line)| !line.is_empty()) {
            let word = line.split(' ').next().unwrap_or(line);
            if words.contains(&word) && !REPEATED.contains(&word) {
                return Err(error(number, format!("`{word}` stands there twice")));
            }
            words.push(word);
            told_nothing |= line == "delay-bound none";
            read_header_line(&mut header, line).map_err(|what| error(number, what))?;
        }
        judge_network(&header, &words, told_nothing).map_err(|what| error(1, what))?;
        let seated = match header.seats.len() {
            0 => header.names.len() >= header.users,
            nodes => {
                nodes <= header.names.len() && header.seats.iter().sum::<usize>() == header.users
            }
        };
        if header.algorithm.is_empty() || header.users == 0 || !seated {
            let what = "the header must give the algorithm, the users and a name for every node";
            return Err(error(1, what.into()));
        }
        let nodes = header.names.len();
        let mut events = Vec::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            if events.len() == Self::EVENTS_MAX {
                return Err(error(
                    number,
                    format!("more than {} events", Self::EVENTS_MAX),
                ));
            }
            events.push(read_event(line, nodes, header.users).map_err(|what| error(number, what))?);
        }
        Ok(Trace { header, events })
    }
}

/// The words of a header that may stand there several times.
const REPEATED: [&str; 3] = ["link", "fault", "partition"];

/// The links of a run and its delay bound belong together.
fn judge_network(header: &Header, words: &[&str], told_nothing: bool) -> Result<(), String> {
    let Some(network) = &header.network else {
        return Ok(());
    };
    if header.steps || !words.contains(&"links") || !words.contains(&"latency") {
        return Err(
            "`links` and `latency` stand together, in a trace whose time is in units".into(),
        );
    }
    let (bound, longest) = (header.delay_bound, network.delay_bound());
    if bound != longest && !told_nothing {
        return Err(format!(
            "the delay bound is {bound}, and the longest that a message may take is {longest}"
        ));
    }
    Ok(())
}

fn read_header_line(header: &mut Header, line: &str) -> Result<(), String> {
    let (word, value) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "algorithm" => header.algorithm = value.into(),
        "users" => {
            header.users = value
                .parse()
                .map_err(|_| format!("`{value}` is not a number of users"))?;
        }
        "names" => {
            header.names = value
                .split(' ')
                .take(Trace::NAMES_MAX + 1)
                .map(String::from)
                .collect();
            if header.names.len() > Trace::NAMES_MAX {
                return Err(format!("more than {} nodes", Trace::NAMES_MAX));
            }
        }
        "seats" => {
            let seats = value.split(' ').map(str::parse);
            let seats: Result<Vec<usize>, _> = seats.take(Trace::NAMES_MAX).collect();
            header.seats =
                seats.map_err(|_| format!("`{value}` are not numbers of users, one a node"))?;
            if header.seats.iter().any(|&seats| seats > Trace::NAMES_MAX) {
                return Err(format!("more than {} users", Trace::NAMES_MAX));
            }
        }
        "delay-bound" if value == "none" => header.delay_bound = Time::ZERO,
        "delay-bound" => header.delay_bound = value.parse().map_err(|e| format!("{e}"))?,
        "time" => {
            header.steps = match value {
                "steps" => true,
                "units" => false,
                _ => return Err(format!("`{value}` is not a kind of time: steps or units")),
            };
        }
        "made-by" => header.made_by = value.into(),
        "links" | "latency" | "link" | "loss" | "fault" | "partition" => {
            let network = header.network.get_or_insert_default();
            return network.read(word, value);
        }
        _ => match Setup::new(1).choose(word, value) {
            Ok(()) => header.chosen.push((word.into(), value.into())),
            Err(why) => return Err(format!("`{word}` cannot stand in a trace's header: {why}")),
        },
    }
    Ok(())
}

fn read_event(line: &str, nodes: usize, users: usize) -> Result<(Time, Event), String> {
    let mut parts = line.splitn(3, ' ');
    let at: Time = parts
        .next()
        .unwrap_or("")
        .parse()
        .map_err(|e| format!("{e}"))?;
    let word = parts
        .next()
        .ok_or("an event is a time, a word and what it is about")?;
    let rest = parts.next().unwrap_or("");
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    let node = |text: &str| match text.parse::<u32>() {
        Ok(n) if (n as usize) < nodes => Ok(NodeId(n)),
        _ => Err(format!("`{text}` is not one of the {nodes} nodes")),
    };
    let user = |text: &str| match text.parse::<u32>() {
        Ok(n) if (n as usize) < users => Ok(UserId(n)),
        _ => Err(format!("`{text}` is not one of the {users} users")),
    };
    let message = |text: &str| match text.strip_prefix('#').map(str::parse::<u64>) {
        Some(Ok(number)) => Ok(number),
        _ => Err(format!("`{text}` is not a message number such as #7")),
    };
    let timer = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("`{text}` is not a timer's number"))
    };
    let event = match word {
        "start" => Event::Start(node(first)?),
        "ask" => Event::Ask(user(first)?, second.into()),
        "deliver" => Event::Deliver(message(first)?),
        "fire" => Event::Fire(node(first)?, timer(second)?),
        "crash" => {
            let kinds = [Memory::Whole, Memory::Stable, Memory::Nothing];
            let memory = kinds
                .into_iter()
                .find(|memory| memory_word(*memory) == second);
            Event::Crash(
                node(first)?,
                memory.ok_or(format!("`{second}` is not a kind of crash"))?,
            )
        }
        "restart" => Event::Restart(node(first)?),
        "lose" => Event::Lose(message(first)?, second.into()),
        "copy" => Event::Copy(message(first)?, message(second)?),
        "lie" => Event::Lie(message(first)?, second.into()),
        "cut" => Event::Cut(rest.into()),
        "heal" => Event::Heal(rest.into()),
        "cycle" => Event::Cycle,
        "repeat" => Event::Repeat(user(first)?),
        "end" => Event::End(rest.into()),
        "send" => {
            let (link, label) = second.split_once(' ').unwrap_or((second, ""));
            let (from, to) = link
                .split_once('>')
                .ok_or(format!("`{link}` is not a link such as 0>1"))?;
            Event::Send {
                number: message(first)?,
                from: node(from)?,
                to: node(to)?,
                label: label.into(),
            }
        }
        "tell" => Event::Tell(user(first)?, second.into()),
        "timer" => Event::Timer(node(first)?, timer(second)?),
        "violation" => {
            let (kind, what) = rest.split_once(": ").ok_or("a violation is `kind: what`")?;
            Event::Violation(kind.into(), what.into())
        }
        _ => return Err(format!("`{word}` is not a word of a trace")),
    };
    Ok((at, event))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "testigo trace 1
algorithm central
users 2
names p0 p1 server
delay-bound 1
time units
made-by hand

0 start 0
0 ask 0 Enter
0 send #1 0>2 Request
0.5 cut 0|1,2@0.5..2
1 lose #1 partition
2 heal 0|1,2@0.5..2
3 crash 1 partial-amnesia
4 restart 1
5 end
5 violation liveness: p0 waits for ever
";

    #[test]
    fn a_trace_prints_as_it_was_read() {
        let trace = Trace::parse(SAMPLE).expect("valid");
        assert_eq!(trace.to_string(), SAMPLE);
        assert_eq!(trace.events.len(), 10);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (bad, word) in [
            ("0 dance 1", "`dance`"),
            ("x ask 0 Enter", "`x`"),
            ("0 ask 9 Enter", "`9`"),
            ("0 deliver 1", "`1`"),
            ("0 send #1 0-2 Request", "0-2"),
            ("0", "time"),
        ] {
            let error = Trace::parse(&format!("{SAMPLE}{bad}\n")).expect_err(bad);
            assert_eq!(error.line, 19, "{bad}");
            assert!(error.what.contains(word), "{error}");
        }
        assert!(Trace::parse("hello").is_err());
        assert!(Trace::parse("testigo trace 1\n\n").is_err());
    }
}
