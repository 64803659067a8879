//! Links between nodes: when a message arrives, or why it never does.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::{Fault, Generator, Latency, Partition, Share, Time};

/// Whether messages of one link keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOrder {
    Fifo,
    Any,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Lost(Loss),
    Arrives(Time),
    ArrivesTwice(Time, Time),
}

/// Why a message was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Channel,
    Sender,
    Receiver,
    Partition,
    /// The receiver was down when it arrived.
    Down,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Channel => "channel",
            Loss::Sender => "sender",
            Loss::Receiver => "receiver",
            Loss::Partition => "partition",
            Loss::Down => "down",
        })
    }
}

/// All the links of a run.
#[derive(Clone, Debug)]
pub struct Links {
    pub order: LinkOrder,
    pub latency: Latency,
    /// Links with a latency of their own.
    pub slow: FxHashMap<(u32, u32), Latency>,
    pub loss: Share,
    pub partitions: Vec<Partition>,
    pub faults: Vec<Fault>,
    last: LastArrivals,
}

impl Links {
    pub fn new(nodes: usize, order: LinkOrder, latency: Latency) -> Links {
        Links {
            order,
            latency,
            slow: FxHashMap::default(),
            loss: Share::default(),
            partitions: Vec::new(),
            faults: Vec::new(),
            last: LastArrivals::new(nodes),
        }
    }

    /// The longest delay that any message can have: the run's delay bound. Late messages break it,
    /// which is what makes them faults.
    pub fn bound(&self) -> Time {
        let slowest = self.slow.values().map(Latency::longest).max();
        self.latency.longest().max(slowest.unwrap_or_default())
    }

    pub fn send(&mut self, now: Time, from: u32, to: u32, generator: &mut Generator) -> Fate {
        if self.separated(now, from, to) {
            return Fate::Lost(Loss::Partition);
        }
        if generator.chance(self.loss.probability()) {
            return Fate::Lost(Loss::Channel);
        }
        let mut late = Time::ZERO;
        let mut twice = false;
        for fault in &self.faults {
            match *fault {
                Fault::OmitSend(n, p) if n == from && generator.chance(p.probability()) => {
                    return Fate::Lost(Loss::Sender);
                }
                Fault::OmitReceive(n, p) if n == to && generator.chance(p.probability()) => {
                    return Fate::Lost(Loss::Receiver);
                }
                Fault::OmitChannel(a, b, p)
                    if (a, b) == (from, to) && generator.chance(p.probability()) =>
                {
                    return Fate::Lost(Loss::Channel);
                }
                Fault::Late(p, by) if generator.chance(p.probability()) => late = late + by,
                Fault::Duplicate(p) if generator.chance(p.probability()) => twice = true,
                _ => {}
            }
        }
        let latency = *self.slow.get(&(from, to)).unwrap_or(&self.latency);
        let mut arrival = |after: Time| {
            let at = after + latency.draw(generator) + late;
            // One constant latency keeps the order by itself, and needs no memory of the link.
            if self.order == LinkOrder::Any
                || (latency.is_constant() && late == Time::ZERO && self.faults.is_empty())
            {
                return at;
            }
            self.last.not_before(now, from, to, at)
        };
        let first = arrival(now);
        if twice {
            Fate::ArrivesTwice(first, arrival(now))
        } else {
            Fate::Arrives(first)
        }
    }

    /// Whether a partition lies between two nodes now.
    pub fn separated(&self, now: Time, from: u32, to: u32) -> bool {
        self.partitions
            .iter()
            .any(|cut| cut.separates(now, from, to))
    }
}

/// The last planned arrival of every link, dense while that is small.
#[derive(Clone, Debug)]
enum LastArrivals {
    Dense {
        nodes: u32,
        at: Vec<Time>,
    },
    /// Only links with something under way, and some that had: those are dropped at the limit.
    Sparse {
        at: FxHashMap<(u32, u32), Time>,
        limit: usize,
    },
}

impl LastArrivals {
    /// Above this, a square of times would cost more than the run.
    const DENSE_NODES_MAX: usize = 512;
    /// The smallest limit of a sparse table.
    const SPARSE_LIMIT_MIN: usize = 1_024;

    fn new(nodes: usize) -> LastArrivals {
        if nodes <= Self::DENSE_NODES_MAX {
            LastArrivals::Dense {
                nodes: nodes as u32,
                at: vec![Time::ZERO; nodes * nodes],
            }
        } else {
            LastArrivals::Sparse {
                at: FxHashMap::default(),
                limit: Self::SPARSE_LIMIT_MIN,
            }
        }
    }

    /// The arrival, put off until after the last one of the same link.
    fn not_before(&mut self, now: Time, from: u32, to: u32, at: Time) -> Time {
        let last = match self {
            LastArrivals::Dense { nodes, at } => &mut at[(from * *nodes + to) as usize],
            LastArrivals::Sparse { at, limit } => {
                if at.len() >= *limit {
                    at.retain(|_, last| *last > now);
                    *limit = Self::SPARSE_LIMIT_MIN.max(2 * at.len());
                }
                at.entry((from, to)).or_default()
            }
        };
        *last = at.max(*last);
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(order: LinkOrder) -> Vec<Time> {
        let latency = "uniform:0:10".parse().expect("valid");
        let mut links = Links::new(2, order, latency);
        let mut generator = Generator::new(11);
        let arrival = |now| match links.send(Time::units(now), 0, 1, &mut generator) {
            Fate::Arrives(at) => at,
            fate => panic!("no fault was asked for, yet {fate:?}"),
        };
        (0..50).map(arrival).collect()
    }

    #[test]
    fn fifo_links_keep_the_order_and_others_do_not() {
        assert!(arrivals(LinkOrder::Fifo).is_sorted());
        assert!(!arrivals(LinkOrder::Any).is_sorted());
    }

    #[test]
    fn many_nodes_keep_the_order_of_every_link_and_forget_idle_ones() {
        let latency: Latency = "uniform:0:10".parse().expect("valid");
        let nodes = LastArrivals::DENSE_NODES_MAX as u32 + 1;
        let mut links = Links::new(nodes as usize, LinkOrder::Fifo, latency);
        let mut generator = Generator::new(3);
        let mut last = FxHashMap::default();
        for sent in 0..200_000_u64 {
            let from = generator.below(u64::from(nodes)) as u32;
            // Many links are used once, and some again and again.
            let to = (from + 1 + generator.below(3) as u32 * generator.below(170) as u32) % nodes;
            let now = Time(sent * Time::UNIT / 100);
            let Fate::Arrives(at) = links.send(now, from, to, &mut generator) else {
                panic!("no fault was asked for");
            };
            let before = last.insert((from, to), at);
            assert!(before.is_none_or(|before| before <= at), "{from}>{to}");
        }
        let LastArrivals::Sparse { at, .. } = &links.last else {
            panic!("{nodes} nodes are too many for a square");
        };
        let under_way_max = 10 * 100;
        assert!(last.len() > 50_000, "{} links", last.len());
        assert!(at.len() <= 2 * under_way_max.max(LastArrivals::SPARSE_LIMIT_MIN));
    }

    #[test]
    fn each_fault_does_what_its_name_says() {
        let fates = |faults: &[&str], from, to| {
            let mut links = Links::new(3, LinkOrder::Fifo, Latency::Fixed(Time::units(1)));
            links.faults = faults.iter().map(|f| f.parse().expect("valid")).collect();
            links.send(Time::ZERO, from, to, &mut Generator::new(1))
        };
        assert_eq!(fates(&["omit-send:0:1"], 0, 1), Fate::Lost(Loss::Sender));
        assert_eq!(
            fates(&["omit-send:0:1"], 1, 0),
            Fate::Arrives(Time::units(1))
        );
        assert_eq!(
            fates(&["omit-receive:1:1"], 0, 1),
            Fate::Lost(Loss::Receiver)
        );
        assert_eq!(
            fates(&["omit-channel:0>1:1"], 0, 1),
            Fate::Lost(Loss::Channel)
        );
        assert_eq!(
            fates(&["omit-channel:0>1:1"], 0, 2),
            Fate::Arrives(Time::units(1))
        );
        assert_eq!(fates(&["late:1:4"], 0, 1), Fate::Arrives(Time::units(5)));
        assert_eq!(
            fates(&["duplicate:1"], 0, 1),
            Fate::ArrivesTwice(Time::units(1), Time::units(1))
        );
    }

    #[test]
    fn a_partition_loses_what_crosses_it() {
        let mut links = Links::new(3, LinkOrder::Fifo, Latency::Fixed(Time::units(1)));
        links.partitions = vec!["0|1,2@5..6".parse().expect("valid")];
        let mut send = |at, from, to| links.send(Time::units(at), from, to, &mut Generator::new(1));
        assert_eq!(send(5, 0, 1), Fate::Lost(Loss::Partition));
        assert_eq!(send(5, 1, 2), Fate::Arrives(Time::units(6)));
        assert_eq!(send(6, 0, 1), Fate::Arrives(Time::units(7)));
    }
}
