//! A flow as a picture, in the thesis' graphical language: a process is round, a queue a rectangle, an arrow says who puts
//! into or takes from which queue; a bar at the left of a process (⊢) says that it creates, one at its right (⊣) that
//! it deletes. Laid out here, so that the terminal, the documents and the console show the same picture.

mod layers;
mod lettering;
mod order;
mod picture;
mod place;
mod svg;

use std::fmt;

use serde::Serialize;

use crate::{Document, Graph, Name};

/// Processes and queues that a picture may have; nobody reads more at once.
pub const DRAWN_MAX: usize = 400;
/// Bends that the arrows of a picture may have, together.
pub const BENDS_MAX: usize = 20_000;

/// Where everything stands, in pixels from the upper left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    pub nodes: Vec<Node>,
    pub arrows: Vec<Arrow>,
}

/// A process or a queue, by its centre.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    pub kind: NodeKind,
    pub name: Name,
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    /// Where the bar of a creator is attached.
    pub create: Option<(f64, f64)>,
    /// Where the bar of a deleter is attached.
    pub delete: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    Process,
    Queue,
}

/// An arrow from one node to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrow {
    /// Places in [`Drawing::nodes`].
    pub from: usize,
    pub to: usize,
    /// It runs against the picture's direction, from right to left: it closes a cycle.
    pub back: bool,
    /// Start, then two points for each column that it crosses, then its end.
    pub points: Vec<(f64, f64)>,
}

/// A flow that is too large to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the flow is too large to be drawn: at most {DRAWN_MAX} processes and queues, and {BENDS_MAX} bends of arrows"
        )
    }
}

impl std::error::Error for TooLarge {}

/// Lays a flow out, from its creators at the left to its deleters at the right, and in the order of its text, if there is one.
pub fn lay_out(graph: &Graph, text: Option<&Document>) -> Result<Drawing, TooLarge> {
    if graph.processes.len() + graph.queues.len() > DRAWN_MAX {
        return Err(TooLarge);
    }
    let mut layers = layers::Layers::of(graph, text)?;
    order::untangle(&mut layers);
    Ok(place::place(graph, &layers))
}

/// A flow as SVG.
pub fn draw(graph: &Graph, text: Option<&Document>, title: &str) -> Result<String, TooLarge> {
    let drawing = lay_out(graph, text)?;
    Ok(picture::picture(graph, &drawing, title))
}
