//! An algorithm with its types erased: the only place where they are.

use std::sync::Arc;

use crate::cluster::Running;
use crate::explorer::Interned;
use crate::{Cluster, Explorer, NodeId, Problem, Protocol};

/// An algorithm, configured and ready to be driven in either of two ways.
pub trait Machine<Q: Problem>: Send + Sync {
    fn shape(&self) -> &Shape;

    /// A run: all nodes live, changed in place.
    fn cluster(&self) -> Box<dyn Cluster<Q>>;

    /// A search: node states and messages by number, every step remembered.
    fn explorer(&self) -> Box<dyn Explorer<Q>>;
}

/// How many nodes there are, and which of them have users: the first ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub users: usize,
    /// Names of the nodes behind the users, such as `server`.
    pub extra: Vec<String>,
}

impl Shape {
    pub fn users(users: usize) -> Shape {
        Shape {
            users,
            extra: Vec::new(),
        }
    }

    pub fn nodes(&self) -> usize {
        self.users + self.extra.len()
    }

    pub fn name(&self, node: NodeId) -> String {
        match node.index().checked_sub(self.users) {
            Some(extra) if extra < self.extra.len() => self.extra[extra].clone(),
            _ => format!("p{node}"),
        }
    }
}

/// Erases the types of a configured algorithm.
pub fn erase<P: Protocol>(shape: Shape, config: P::Config) -> Box<dyn Machine<P::Problem>> {
    Box::new(Configured::<P> {
        shape,
        config: Arc::new(config),
    })
}

struct Configured<P: Protocol> {
    shape: Shape,
    config: Arc<P::Config>,
}

impl<P: Protocol> Machine<P::Problem> for Configured<P> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn cluster(&self) -> Box<dyn Cluster<P::Problem>> {
        Box::new(Running::<P>::new(
            self.shape.nodes(),
            Arc::clone(&self.config),
        ))
    }

    fn explorer(&self) -> Box<dyn Explorer<P::Problem>> {
        Box::new(Interned::<P>::new(Arc::clone(&self.config)))
    }
}
