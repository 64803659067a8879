//! Watches every run: nobody enters a gate in which another is, fences of a gate only grow, and how often a waiter was
//! passed by somebody who came later. A number from a run that it stopped is never printed.

/// What the clients' own eyes see. A client is inside from its answer until it asks to leave.
#[derive(Debug)]
pub(crate) struct Referee {
    gates: Vec<Gate>,
    waiters: Vec<Option<Waiter>>,
    arrivals: u64,
    bypass: u64,
}

#[derive(Clone, Debug, Default)]
struct Gate {
    inside: Option<usize>,
    fence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    gate: usize,
    arrival: u64,
    passed: u64,
}

impl Referee {
    pub(crate) fn new(clients: usize, gates: usize) -> Referee {
        Referee {
            gates: vec![Gate::default(); gates],
            waiters: vec![None; clients],
            arrivals: 0,
            bypass: 0,
        }
    }

    pub(crate) fn asks(&mut self, client: usize, gate: usize) {
        self.arrivals += 1;
        self.waiters[client] = Some(Waiter {
            gate,
            arrival: self.arrivals,
            passed: 0,
        });
    }

    pub(crate) fn enters(
        &mut self,
        client: usize,
        gate: usize,
        fence: Option<u64>,
    ) -> Result<(), String> {
        if gate >= self.gates.len() {
            self.gates.resize(gate + 1, Gate::default());
        }
        let state = &mut self.gates[gate];
        if let Some(other) = state.inside.replace(client) {
            return Err(format!(
                "clients {other} and {client} are inside gate {gate}"
            ));
        }
        if let Some(fence) = fence {
            if fence <= state.fence {
                let before = state.fence;
                return Err(format!("gate {gate}: fence {fence} after {before}"));
            }
            state.fence = fence;
        }
        let Some(served) = self.waiters[client].take() else {
            return Err(format!("client {client} is inside and did not ask"));
        };
        self.bypass = self.bypass.max(served.passed);
        for waiter in self.waiters.iter_mut().flatten() {
            if waiter.gate == gate && waiter.arrival < served.arrival {
                waiter.passed += 1;
            }
        }
        Ok(())
    }

    pub(crate) fn leaves(&mut self, client: usize, gate: usize) -> Result<(), String> {
        match self.gates[gate].inside.take() {
            Some(inside) if inside == client => Ok(()),
            other => Err(format!(
                "client {client} leaves gate {gate}, inside is {other:?}"
            )),
        }
    }

    /// The most that a waiter was passed by later ones before it was served.
    pub(crate) fn longest_bypass(&self) -> u64 {
        self.bypass
    }
}
