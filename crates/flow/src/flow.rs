//! A flow that may run: a graph that keeps every rule. There is no other way to get one than to check it.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use crate::{Diagnostics, Graph, Problem, Weight, check, parse};

/// A checked graph. It reads as the [`Graph`] that it is; to change it, change a copy and check that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow(Graph);

impl Flow {
    /// Checks a graph. What is left unsaid are warnings; [`check()`] tells them.
    pub fn new(graph: Graph) -> Result<Flow, Vec<Problem>> {
        let mut problems = check(&graph);
        problems.retain(|problem| problem.weight == Weight::Error);
        match problems.is_empty() {
            true => Ok(Flow(graph)),
            false => Err(problems),
        }
    }

    /// A graph that was found to keep the rules.
    pub(crate) fn checked(graph: Graph) -> Flow {
        Flow(graph)
    }

    pub fn graph(&self) -> &Graph {
        &self.0
    }

    pub fn into_graph(self) -> Graph {
        self.0
    }
}

impl Deref for Flow {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        &self.0
    }
}

impl FromStr for Flow {
    type Err = Diagnostics;
    fn from_str(text: &str) -> Result<Flow, Diagnostics> {
        parse(text).map_err(Diagnostics)
    }
}

/// The canonical text: equal flows give equal texts, and reading it gives the flow again.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::canonical(&self.0))
    }
}
