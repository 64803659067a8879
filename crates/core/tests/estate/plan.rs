//! How large a world is, and what its clients do in it.

use testigo_core::{Name, Using};

use crate::random::Random;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    pub(crate) gates: usize,
    pub(crate) workers: usize,
    pub(crate) queues: usize,
    /// The gates are elections.
    pub(crate) elections: bool,
    /// How the ownership of each gate travels, if that is not by the log.
    pub(crate) using: Vec<Using>,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Plan {
        let mut random = Random::new(seed ^ 0xa1);
        Plan {
            nodes: if random.one_in(3) { 5 } else { 3 },
            clients: random.between(3, 8) as usize,
            gates: random.between(1, 4) as usize,
            workers: 0,
            queues: 0,
            elections: false,
            using: Vec::new(),
        }
    }

    /// The name of a gate, or of an election.
    pub(crate) fn name(&self, at: usize) -> String {
        match self.elections {
            true => Name::election(&format!("gate{at}")).unwrap().to_string(),
            false => format!("gate{at}"),
        }
    }

    /// Gates that readers and writers share, and whose ownership travels by algorithms.
    pub(crate) fn of_using(seed: u64) -> Plan {
        let mut random = Random::new(seed ^ 0xc3);
        let gates = random.between(1, 3) as usize;
        let mut draw = || Using::ALL[random.between(1, Using::ALL.len() as u64 - 1) as usize];
        let using = (0..gates).map(|_| draw()).collect();
        Plan {
            gates,
            using,
            ..Plan::of(seed)
        }
    }

    /// Elections and no gates.
    pub(crate) fn of_elections(seed: u64) -> Plan {
        Plan {
            elections: true,
            ..Plan::of(seed)
        }
    }

    /// Jobs beside few locks.
    pub(crate) fn of_work(seed: u64) -> Plan {
        let mut random = Random::new(seed ^ 0xb2);
        Plan {
            clients: 1,
            gates: 1,
            workers: random.between(4, 8) as usize,
            queues: random.between(1, 3) as usize,
            ..Plan::of(seed)
        }
    }
}
