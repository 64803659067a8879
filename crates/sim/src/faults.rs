//! The kinds of fault that the sources name, as values that can be written on a command line:
//! `halt:2@5`, `pause:1@5..9`, `crash:1@5..9`, `amnesia:1@5..9`, `omit-send:1:0.1`,
//! `omit-receive:1:0.1`, `omit-channel:0>1:0.2`, `duplicate:0.1`, `late:0.1:20`, `wrong:2:0.5`,
//! `arbitrary:2:0.5`.

use std::fmt;
use std::str::FromStr;

use crate::parse::read;
use crate::{ParseError, Time};

/// One fault of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node is down for a time, or for ever.
    Outage(Outage),
    /// A node's messages are lost as it sends them.
    OmitSend(u32, Share),
    /// A node's messages are lost as they reach it.
    OmitReceive(u32, Share),
    /// The messages of one channel are lost.
    OmitChannel(u32, u32, Share),
    /// A message arrives twice.
    Duplicate(Share),
    /// A message takes this much longer than the link's latency (a performance fault).
    Late(Share, Time),
    /// A node answers, with a wrong value.
    Wrong(u32, Share),
    /// A node sends whatever its algorithm has a message for.
    Arbitrary(u32, Share),
}

/// A time during which a node does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    pub node: u32,
    pub window: Window,
    pub memory: Memory,
}

/// What a node still knows when it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Everything: it was only paused, and what reached it meanwhile waits for it.
    Whole,
    /// What its algorithm keeps on stable storage (partial amnesia).
    Stable,
    /// Nothing (total amnesia).
    Nothing,
}

/// From a time until another, or for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Time,
    pub until: Option<Time>,
}

impl Window {
    pub fn contains(&self, at: Time) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}

/// A probability, kept in millionths so that it prints as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Share(u32);

impl Share {
    pub const ALL: Share = Share(1_000_000);

    pub fn probability(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ALL.0)
    }
}

/// Groups of nodes that cannot hear each other for a time: `0,1|2,3@5..20`. Nodes that are not
/// named form a group of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub groups: Vec<Vec<u32>>,
    pub window: Window,
}

impl Partition {
    pub fn separates(&self, at: Time, a: u32, b: u32) -> bool {
        let side = |node| self.groups.iter().position(|group| group.contains(&node));
        self.window.contains(at) && side(a) != side(b)
    }
}

impl Fault {
    /// Every node that the fault names, so that a driver can refuse one that does not exist.
    pub fn nodes(&self) -> Vec<u32> {
        match self {
            Fault::Outage(outage) => vec![outage.node],
            Fault::OmitSend(n, _) | Fault::OmitReceive(n, _) => vec![*n],
            Fault::Wrong(n, _) | Fault::Arbitrary(n, _) => vec![*n],
            Fault::OmitChannel(a, b, _) => vec![*a, *b],
            Fault::Duplicate(_) | Fault::Late(..) => Vec::new(),
        }
    }
}

impl FromStr for Share {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Share, ParseError> {
        let bad = || ParseError::new(text, "a probability from 0 to 1, such as 0.05");
        let time: Time = text.parse().map_err(|_| bad())?;
        if time.0 > Time::UNIT {
            Err(bad())
        } else {
            Ok(Share(time.0 as u32))
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Time(u64::from(self.0)).fmt(f)
    }
}

impl FromStr for Window {
    type Err = ParseError;

    /// `5..9`, or `5` for "from 5 on".
    fn from_str(text: &str) -> Result<Window, ParseError> {
        let Some((from, until)) = text.split_once("..") else {
            return Ok(Window {
                from: text.parse()?,
                until: None,
            });
        };
        let (from, until): (Time, Time) = (from.parse()?, until.parse()?);
        if from >= until {
            return Err(ParseError::new(
                text,
                "a time span FROM..UNTIL with FROM before UNTIL",
            ));
        }
        Ok(Window {
            from,
            until: Some(until),
        })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.until {
            Some(until) => write!(f, "{}..{until}", self.from),
            None => write!(f, "{}", self.from),
        }
    }
}

const NODE: &str = "a node number";

fn outage(text: &str, memory: Memory) -> Result<Fault, ParseError> {
    let Some((node, window)) = text.split_once('@') else {
        return Err(ParseError::new(text, "NODE@FROM..UNTIL"));
    };
    Ok(Fault::Outage(Outage {
        node: read(node, NODE)?,
        window: window.parse()?,
        memory,
    }))
}

fn node_and_share(text: &str) -> Result<(u32, Share), ParseError> {
    let Some((node, share)) = text.split_once(':') else {
        return Err(ParseError::new(text, "NODE:PROBABILITY"));
    };
    Ok((read(node, NODE)?, share.parse()?))
}

impl FromStr for Fault {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Fault, ParseError> {
        const KINDS: &str = "a fault: halt:N@T, pause:N@T..U, crash:N@T..U, amnesia:N@T..U, omit-send:N:P, \
             omit-receive:N:P, omit-channel:A>B:P, duplicate:P, late:P:D, wrong:N:P or arbitrary:N:P";
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "halt" => {
                let fault = outage(rest, Memory::Nothing)?;
                match &fault {
                    Fault::Outage(outage) if outage.window.until.is_none() => Ok(fault),
                    _ => Err(ParseError::new(text, "halt:NODE@T (a halt has no end)")),
                }
            }
            "pause" => outage(rest, Memory::Whole),
            "crash" => outage(rest, Memory::Stable),
            "amnesia" => outage(rest, Memory::Nothing),
            "omit-send" => node_and_share(rest).map(|(n, p)| Fault::OmitSend(n, p)),
            "omit-receive" => node_and_share(rest).map(|(n, p)| Fault::OmitReceive(n, p)),
            "wrong" => node_and_share(rest).map(|(n, p)| Fault::Wrong(n, p)),
            "arbitrary" => node_and_share(rest).map(|(n, p)| Fault::Arbitrary(n, p)),
            "duplicate" => rest.parse().map(Fault::Duplicate),
            "omit-channel" => {
                let parts = rest.split_once(':').and_then(|(channel, share)| {
                    channel.split_once('>').map(|(from, to)| (from, to, share))
                });
                let Some((from, to, share)) = parts else {
                    return Err(ParseError::new(text, "omit-channel:A>B:PROBABILITY"));
                };
                Ok(Fault::OmitChannel(
                    read(from, NODE)?,
                    read(to, NODE)?,
                    share.parse()?,
                ))
            }
            "late" => match rest.split_once(':') {
                Some((share, by)) => Ok(Fault::Late(share.parse()?, by.parse()?)),
                None => Err(ParseError::new(text, "late:PROBABILITY:DELAY")),
            },
            _ => Err(ParseError::new(text, KINDS)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Outage(Outage {
                node,
                window,
                memory,
            }) => {
                let kind = match memory {
                    Memory::Whole => "pause",
                    Memory::Stable => "crash",
                    Memory::Nothing if window.until.is_none() => "halt",
                    Memory::Nothing => "amnesia",
                };
                write!(f, "{kind}:{node}@{window}")
            }
            Fault::OmitSend(n, p) => write!(f, "omit-send:{n}:{p}"),
            Fault::OmitReceive(n, p) => write!(f, "omit-receive:{n}:{p}"),
            Fault::OmitChannel(a, b, p) => write!(f, "omit-channel:{a}>{b}:{p}"),
            Fault::Duplicate(p) => write!(f, "duplicate:{p}"),
            Fault::Late(p, by) => write!(f, "late:{p}:{by}"),
            Fault::Wrong(n, p) => write!(f, "wrong:{n}:{p}"),
            Fault::Arbitrary(n, p) => write!(f, "arbitrary:{n}:{p}"),
        }
    }
}

impl FromStr for Partition {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Partition, ParseError> {
        let bad = || ParseError::new(text, "a partition such as 0,1|2,3@5..20");
        let (groups, window) = text.split_once('@').ok_or_else(bad)?;
        let groups = groups
            .split('|')
            .map(|group| group.split(',').map(|node| read(node, NODE)).collect())
            .collect::<Result<Vec<Vec<u32>>, ParseError>>()?;
        let mut named: Vec<u32> = groups.iter().flatten().copied().collect();
        named.sort_unstable();
        if named.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ParseError::new(
                text,
                "a partition: a node stands on two sides",
            ));
        }
        Ok(Partition {
            groups,
            window: window.parse()?,
        })
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |g: &Vec<u32>| g.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let groups: Vec<String> = self.groups.iter().map(group).collect();
        write!(f, "{}@{}", groups.join("|"), self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_prints_as_it_is_written() {
        for text in [
            "halt:2@5",
            "pause:1@5..9",
            "crash:1@5..9.5",
            "crash:1@5",
            "amnesia:0@0..1",
            "omit-send:1:0.1",
            "omit-receive:1:1",
            "omit-channel:0>1:0.25",
            "duplicate:0.1",
            "late:0.1:20",
            "wrong:2:0.5",
            "arbitrary:2:0.5",
        ] {
            assert_eq!(text.parse::<Fault>().expect("valid").to_string(), text);
        }
        let cut = "0,1|2@5..20";
        assert_eq!(cut.parse::<Partition>().expect("valid").to_string(), cut);
    }

    #[test]
    fn bad_faults_say_what_would_be_right() {
        for text in [
            "",
            "halt:2@5..9",
            "pause:x@5..9",
            "crash:1",
            "late:0.1",
            "duplicate:2",
            "fire:1",
        ] {
            let error = text.parse::<Fault>().expect_err(text).to_string();
            assert!(error.contains(" is not "), "{error}");
        }
        for text in ["0|0@5..6", "0,1", "0,a|1@5", "0|1@6..5"] {
            assert!(text.parse::<Partition>().is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn unnamed_nodes_stand_on_a_side_of_their_own() {
        let cut: Partition = "0,1@5..20".parse().expect("valid");
        assert!(cut.separates(Time::units(5), 1, 2));
        assert!(!cut.separates(Time::units(5), 0, 1));
        assert!(!cut.separates(Time::units(5), 2, 3));
        assert!(
            !cut.separates(Time::units(20), 1, 2),
            "the window's end is outside"
        );
    }
}
