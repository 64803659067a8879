//! The rules of a live run, which nodes recorded: each starts once, links keep their order, and the trace says where
//! the record stops. Clocks are those of several machines, so a message may take any time.

use testigo_protocol::{NodeId, Timer};

use super::Event;
use super::referee::{Allowed, Referee, unless};

/// What is known of each node of a live run.
#[derive(Debug)]
pub(super) struct Live {
    started: Vec<bool>,
    /// Nodes whose record has ended: what they do later is only heard.
    lost: Vec<bool>,
}

impl Live {
    pub(super) fn new(nodes: usize) -> Live {
        Live {
            started: vec![false; nodes],
            lost: vec![false; nodes],
        }
    }
}

impl Referee<'_> {
    /// Whether this can have been done in a live run.
    pub(super) fn allow_live(&mut self, event: &Event) -> Allowed {
        match event {
            Event::Start(node) => {
                let (started, lost) = (&mut self.live.started, &self.live.lost);
                let again = std::mem::replace(&mut started[node.index()], true);
                unless(again || lost[node.index()], || {
                    "a node that starts once".into()
                })
            }
            Event::Ask(user, ..) => self.has_record(self.header.home(*user)),
            Event::Deliver(number) => {
                self.has_record(self.under_way.flight(*number)?.to)?;
                self.allow_arrival(*number, true)
            }
            Event::Fire(node, timer) => {
                self.has_record(*node)?;
                self.allow_fire(*node, Timer(*timer))
            }
            Event::Heard { from, to, .. } => {
                self.live.lost[from.index()] = true;
                unless(from == to, || "a message from another node".into())
            }
            Event::Stop(_) => {
                self.over = true;
                Ok(())
            }
            Event::Send { .. } | Event::Tell(..) | Event::Timer(..) | Event::Violation(..) => {
                Ok(())
            }
            _ => Err("nothing that a live run has".into()),
        }
    }

    /// Whether a node has started, and what it does is recorded.
    fn has_record(&self, node: NodeId) -> Allowed {
        unless(!self.live.started[node.index()], || {
            "a node that has not started".into()
        })?;
        unless(self.live.lost[node.index()], || {
            "a node whose record has ended".into()
        })
    }
}
