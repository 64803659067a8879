//! For tests: one node by itself, which hears whatever a test says, however late or wrong.

use super::user::{Agreement, Ask, Value};
use crate::{Input, NodeId, Output, Problem, Protocol, Timer};

type Tells<P> = Vec<<<P as Protocol>::Problem as Problem>::Tell>;

pub(super) struct Alone<P: Protocol> {
    id: NodeId,
    pub(super) node: P,
    pub(super) config: P::Config,
    /// All that its user was told.
    pub(super) tells: Tells<P>,
}

impl<P: Protocol> Alone<P> {
    pub(super) fn new(id: u32, config: P::Config) -> Self {
        let id = NodeId(id);
        let mut alone = Alone {
            id,
            node: P::new(id, &config),
            config,
            tells: Vec::new(),
        };
        alone.give(Input::Start);
        alone
    }

    /// What it says in turn; what it says to several nodes counts once.
    pub(super) fn hear(&mut self, from: u32, message: P::Message) -> Vec<P::Message> {
        let from = NodeId(from);
        self.give(Input::Message { from, message })
    }

    pub(super) fn ask(&mut self, ask: <P::Problem as Problem>::Ask) -> Vec<P::Message> {
        self.give(Input::Ask(ask))
    }

    pub(super) fn fire(&mut self, timer: Timer) -> Vec<P::Message> {
        self.give(Input::Timer(timer))
    }

    /// It keeps what is on its stable storage.
    pub(super) fn crash_and_restart(&mut self) {
        self.node = self.node.restart(self.id, &self.config);
        self.give(Input::Start);
    }

    fn give(&mut self, input: Input<P>) -> Vec<P::Message> {
        let mut out = Output::new();
        out.run(self.id, &mut self.node, input, &self.config);
        self.tells.append(&mut out.tells);
        let mut said: Vec<P::Message> = out.sends.into_iter().map(|(_, said)| said).collect();
        said.dedup();
        said
    }
}

impl<P: Protocol<Problem = Agreement>> Alone<P> {
    /// Its user proposes a value, in the first instance.
    pub(super) fn propose(&mut self, value: Value) -> Vec<P::Message> {
        self.ask(Ask::Propose { instance: 0, value })
    }
}
