//! What the network and the nodes of a simulated run may do, as its trace says: the promise of its links,
//! and its faults.

use std::fmt;

use testigo_sim::{Fault, Latency, LinkOrder, Partition, Share, Time};

/// The lines of a header that a simulated run has, and a schedule has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    pub order: LinkOrder,
    pub latency: Latency,
    /// Links with a latency of their own.
    pub slow: Vec<(u32, u32, Latency)>,
    pub loss: Share,
    pub faults: Vec<Fault>,
    pub partitions: Vec<Partition>,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            order: LinkOrder::Fifo,
            latency: Latency::Fixed(Time::units(1)),
            slow: Vec::new(),
            loss: Share::default(),
            faults: Vec::new(),
            partitions: Vec::new(),
        }
    }
}

impl Network {
    /// The longest delay of a message: the bound that algorithms may rely on.
    pub fn delay_bound(&self) -> Time {
        let slow = self.slow.iter().map(|(_, _, latency)| latency.longest());
        self.latency.longest().max(slow.max().unwrap_or_default())
    }

    pub(super) fn latency_of(&self, from: u32, to: u32) -> Latency {
        let own = self
            .slow
            .iter()
            .rev()
            .find(|(a, b, _)| (*a, *b) == (from, to));
        own.map_or(self.latency, |(_, _, latency)| *latency)
    }

    /// Reads a line of a header that is about the network.
    pub(super) fn read(&mut self, word: &str, value: &str) -> Result<(), String> {
        match word {
            "latency" => self.latency = parsed(value)?,
            "link" => self.slow.push(link(value)?),
            "loss" => self.loss = parsed(value)?,
            "fault" => self.faults.push(parsed(value)?),
            "partition" => self.partitions.push(parsed(value)?),
            _ => {
                self.order = match value {
                    "fifo" => LinkOrder::Fifo,
                    "any-order" => LinkOrder::Any,
                    _ => {
                        let what = "is not an order of links: fifo or any-order";
                        return Err(format!("`{value}` {what}"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn parsed<T: std::str::FromStr<Err = testigo_sim::ParseError>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{error}"))
}

fn link(value: &str) -> Result<(u32, u32, Latency), String> {
    let bad = || format!("`{value}` is not a link and its latency, such as 0>1=fixed:5");
    let (link, latency) = value.split_once('=').ok_or_else(bad)?;
    let (from, to) = link.split_once('>').ok_or_else(bad)?;
    let node = |text: &str| text.parse::<u32>().map_err(|_| bad());
    Ok((node(from)?, node(to)?, parsed(latency)?))
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            LinkOrder::Fifo => "fifo",
            LinkOrder::Any => "any-order",
        };
        writeln!(f, "links {order}")?;
        writeln!(f, "latency {}", self.latency)?;
        for (from, to, latency) in &self.slow {
            writeln!(f, "link {from}>{to}={latency}")?;
        }
        if self.loss != Share::default() {
            writeln!(f, "loss {}", self.loss)?;
        }
        for fault in &self.faults {
            writeln!(f, "fault {fault}")?;
        }
        for cut in &self.partitions {
            writeln!(f, "partition {cut}")?;
        }
        Ok(())
    }
}
