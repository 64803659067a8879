//! The world that a simulated run happens in: how much is asked when, what links do, and what goes wrong.

use testigo_sim::{Fault, Latency, LinkOrder, Partition, Share, Time};

use crate::arrivals::Arrivals;
use crate::trace::Network;

/// Everything about a run but the algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// How many requests are made, in all: entries, elections, multicasts, decisions.
    pub entries: u64,
    pub seed: u64,
    pub latency: Latency,
    /// Links with a latency of their own.
    pub slow: Vec<(u32, u32, Latency)>,
    pub order: LinkOrder,
    pub loss: Share,
    pub faults: Vec<Fault>,
    pub partitions: Vec<Partition>,
    pub arrivals: Arrivals,
    /// How long a user stays inside.
    pub hold: Latency,
    /// After so many events a run is stopped, and counts as not live.
    pub events_max: u64,
}

/// How far a run is: told now and then, so that long work can show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub events: u64,
    pub entries: u64,
}

impl Default for World {
    fn default() -> Self {
        World {
            entries: 100,
            seed: 1,
            latency: Latency::Fixed(Time::units(1)),
            slow: Vec::new(),
            order: LinkOrder::Fifo,
            loss: Share::default(),
            faults: Vec::new(),
            partitions: Vec::new(),
            arrivals: Arrivals::FULL_LOAD,
            hold: Latency::Fixed(Time::units(1)),
            events_max: World::EVENTS_MAX_DEFAULT,
        }
    }
}

impl World {
    pub const EVENTS_MAX_DEFAULT: u64 = 100_000_000;

    /// The longest delay of a message: the bound that algorithms may rely on.
    pub fn delay_bound(&self) -> Time {
        self.network().delay_bound()
    }

    /// What its links and nodes may do.
    pub(crate) fn network(&self) -> Network {
        Network {
            order: self.order,
            latency: self.latency,
            slow: self.slow.clone(),
            loss: self.loss,
            faults: self.faults.clone(),
            partitions: self.partitions.clone(),
        }
    }

    /// Every node that a fault, a partition or a link names.
    pub fn nodes_named(&self) -> impl Iterator<Item = u32> + '_ {
        let faults = self.faults.iter().flat_map(Fault::nodes);
        let cuts = self
            .partitions
            .iter()
            .flat_map(|cut| cut.groups.iter().flatten().copied());
        let links = self.slow.iter().flat_map(|(from, to, _)| [*from, *to]);
        faults.chain(cuts).chain(links)
    }
}
