//! The text of a trace: a header of `word value` lines, an empty line, then one event a line, its
//! time first. `docs/lab.md` describes it for people.

use std::fmt;

use testigo_protocol::{NodeId, PACKET_BYTES_MAX, Setup, UserId};
use testigo_sim::{Memory, Time};

use super::{AskKind, Clock, Event, Header, TellKind, Trace};

const FIRST_LINE: &str = "testigo trace 2";
/// Here every ask was `ask` and every tell was `tell`; the text said which.
const FIRST_LINE_OLD: &str = "testigo trace 1";

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
        writeln!(f, "time {}", header.clock.word())?;
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
            Event::Ask(user, kind, what) => write!(f, "{} {user} {what}", kind.word()),
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
            Event::Heard {
                number,
                from,
                to,
                message,
                label,
            } => {
                write!(f, "heard #{number} {from}>{to} ")?;
                write_bytes(f, message)?;
                f.write_str(label)
            }
            Event::Stop(why) => write!(f, "stop {why}"),
            Event::Set(register, value) => write!(f, "set {register} {value}"),
            Event::Access(actor, label) => write!(f, "access {actor} {label}"),
            Event::Send {
                number,
                from,
                to,
                message,
                label,
            } => {
                write!(f, "send #{number} {from}>{to} ")?;
                if let Some(message) = message {
                    write_bytes(f, message)?;
                }
                f.write_str(label)
            }
            Event::Tell(user, kind, what) => write!(f, "{} {user} {what}", kind.word()),
            Event::Timer(node, timer) => write!(f, "timer {node} {timer}"),
            Event::Violation(kind, what) => write!(f, "violation {kind}: {what}"),
        }
    }
}

fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("x")?;
    for byte in bytes {
        write!(f, "{byte:02x}")?;
    }
    f.write_str(" ")
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

    /// Reads a text of one trace or of several, one behind the other.
    pub fn parse_all(text: &str) -> Result<Vec<Trace>, TraceError> {
        let lines: Vec<&str> = text.lines().collect();
        let is_first = |at: &usize| *at == 0 || [FIRST_LINE, FIRST_LINE_OLD].contains(&lines[*at]);
        let firsts: Vec<usize> = (0..lines.len().max(1)).filter(is_first).collect();
        let parts = firsts.iter().enumerate().map(|(index, &first)| {
            let end = firsts.get(index + 1).copied().unwrap_or(lines.len());
            let trace = Trace::parse(&lines[first..end].join("\n"));
            trace.map_err(|error| TraceError {
                line: first + error.line,
                ..error
            })
        });
        parts.collect()
    }

    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line));
        let error = |line, what: String| TraceError { line, what };
        let first = lines.next().map(|(_, line)| line);
        if ![Some(FIRST_LINE), Some(FIRST_LINE_OLD)].contains(&first) {
            return Err(error(
                1,
                format!("not a trace: it does not start with `{FIRST_LINE}`"),
            ));
        }
        let mut header = Header {
            is_old: first == Some(FIRST_LINE_OLD),
            ..Header::default()
        };
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
        let mut events = Vec::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            if events.len() == Self::EVENTS_MAX {
                return Err(error(
                    number,
                    format!("more than {} events", Self::EVENTS_MAX),
                ));
            }
            events.push(read_event(line, &header).map_err(|what| error(number, what))?);
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
    if header.clock != Clock::Units || !words.contains(&"links") || !words.contains(&"latency") {
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
            let known = Clock::ALL.into_iter().find(|clock| clock.word() == value);
            header.clock = known.ok_or_else(|| {
                let words = Clock::ALL.map(Clock::word).join(", ");
                format!("`{value}` is not a kind of time: {words}")
            })?;
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

/// The kind of an ask or of a tell with this word.
fn kinds(word: &str, text: &str, is_old: bool) -> (Option<AskKind>, Option<TellKind>) {
    if is_old {
        let ask = (word == "ask").then(|| AskKind::read(text));
        return (ask, (word == "tell").then(|| TellKind::read(text)));
    }
    let ask = AskKind::ALL.into_iter().find(|kind| kind.word() == word);
    let tell = TellKind::ALL.into_iter().find(|kind| kind.word() == word);
    (ask, tell)
}

fn read_event(line: &str, header: &Header) -> Result<(Time, Event), String> {
    let (nodes, users) = (header.names.len(), header.users);
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
    let (ask, tell) = kinds(word, second, header.is_old);
    if let Some(kind) = ask {
        return Ok((at, Event::Ask(user(first)?, kind, second.into())));
    }
    if let Some(kind) = tell {
        return Ok((at, Event::Tell(user(first)?, kind, second.into())));
    }
    let event = match word {
        "start" => Event::Start(node(first)?),
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
        "stop" => Event::Stop(rest.into()),
        "set" => {
            let value = second.parse();
            let value =
                value.map_err(|_| format!("`{second}` is nothing that a register holds"))?;
            Event::Set(first.into(), value)
        }
        "access" => Event::Access(node(first)?, second.into()),
        "send" | "heard" => {
            let (link, label) = second.split_once(' ').unwrap_or((second, ""));
            let (from, to) = link
                .split_once('>')
                .ok_or(format!("`{link}` is not a link such as 0>1"))?;
            let (number, from, to) = (message(first)?, node(from)?, node(to)?);
            let (bytes, rest) = label.split_once(' ').unwrap_or((label, ""));
            match (word, header.clock) {
                ("heard", _) => Event::Heard {
                    number,
                    from,
                    to,
                    message: read_bytes(bytes)?,
                    label: rest.into(),
                },
                (_, Clock::Milliseconds) => Event::Send {
                    number,
                    from,
                    to,
                    message: Some(read_bytes(bytes)?),
                    label: rest.into(),
                },
                (_, Clock::Units | Clock::Steps) => Event::Send {
                    number,
                    from,
                    to,
                    message: None,
                    label: label.into(),
                },
            }
        }
        "timer" => Event::Timer(node(first)?, timer(second)?),
        "violation" => {
            let (kind, what) = rest.split_once(": ").ok_or("a violation is `kind: what`")?;
            Event::Violation(kind.into(), what.into())
        }
        _ => return Err(format!("`{word}` is not a word of a trace")),
    };
    Ok((at, event))
}

/// The bytes of a message, such as x0a03.
fn read_bytes(text: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("`{text}` are not the bytes of a message, such as x0a03");
    let digits = text.strip_prefix('x').ok_or_else(bad)?.as_bytes();
    if digits.len() > 2 * PACKET_BYTES_MAX || digits.len() % 2 != 0 {
        return Err(bad());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(bad);
    let byte = |pair: &[u8]| Ok((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "testigo trace 2
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
    fn the_first_format_is_still_read() {
        let text = |first, leave, enter| {
            let head = "algorithm central\nusers 1\nnames p0 server\ndelay-bound 0\ntime steps\nmade-by hand\n";
            format!(
                "{first}\n{head}\n1 ask 0 Enter\n2 {enter} 0 Entered\n2 tell 0 Wanted\n3 {leave} 0 Leave\n"
            )
        };
        let old = Trace::parse(&text(FIRST_LINE_OLD, "ask", "tell")).expect("valid");
        let new = Trace::parse(&text(FIRST_LINE, "leave", "enter")).expect("valid");
        assert_eq!(old.events, new.events);
        assert_eq!(old.to_string(), new.to_string());
        let mixed = text(FIRST_LINE_OLD, "leave", "tell");
        assert_eq!(Trace::parse(&mixed).expect_err("no word of then").line, 12);
    }

    #[test]
    fn a_live_trace_prints_as_it_was_read() {
        let live = "testigo trace 2
algorithm central
users 2
names a b server
delay-bound 0
time milliseconds
made-by live site

0 start 1
4 heard #1 2>1 x0a03 Grant
5 deliver #1
5 heard #2 2>1 x Grant
5 send #3 1>0 x00 Release
6 stop the record ends here
";
        assert_eq!(Trace::parse(live).expect("valid").to_string(), live);
        for bad in ["x0", "0a", "xzz", "x0g"] {
            let other = live.replace("x0a03", bad);
            let error = Trace::parse(&other).expect_err(bad);
            assert_eq!(error.line, 10, "{error}");
        }
        assert!(Trace::parse(&live.replace("milliseconds", "hours")).is_err());
    }

    #[test]
    fn several_traces_are_read_from_one_text() {
        let one = Trace::parse(SAMPLE).expect("valid");
        let all = Trace::parse_all(&format!("{SAMPLE}{SAMPLE}")).expect("valid");
        assert_eq!(all, [one.clone(), one]);
        let error = Trace::parse_all(&format!("{SAMPLE}{SAMPLE}0 dance 1\n"));
        assert_eq!(error.expect_err("bad").line, 37);
        assert!(Trace::parse_all("").is_err());
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
        assert!(Trace::parse("testigo trace 2\n\n").is_err());
    }
}
