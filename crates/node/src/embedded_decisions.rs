//! Decisions for the program that embeds the node.

use testigo_core::{Body, Change, Name, Outcome, Refusal};

use crate::node::Node;

impl Node {
    /// Proposes a value, and returns the decided one: the first that the log has under this name. Blocks until it is durable.
    pub fn decide(&self, name: &str, value: &[u8]) -> Result<Body, Refusal> {
        let (name, value) = (Name::new(name)?, Body::from(value));
        match self.submit(Change::Decide { name, value })?.wait()? {
            Outcome::Decided { value } => Ok(value),
            other => unreachable!("a proposal gave {other:?}"),
        }
    }

    /// Forgets a decision, and says whether there was one. Blocks until that is durable.
    pub fn forget_decision(&self, name: &str) -> Result<bool, Refusal> {
        let name = Name::new(name)?;
        match self.submit(Change::ForgetDecision { name })?.wait()? {
            Outcome::DecisionForgotten { was } => Ok(was),
            other => unreachable!("forgetting a decision gave {other:?}"),
        }
    }
}
