//! The central server: one more node keeps the queue and hands the section to one user at a time.
//!
//! Source: coordination and agreement §2.2, message exclusion §2.1. The server is not a user, so a
//! cluster of N users has N + 1 nodes. A server is the one point that everything fails with.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::{
    Algorithm, Channels, Cost, Input, Machine, Message, NodeId, Output, Profile, Protocol, Range,
    Setup, SetupError, Shape, Telling, erase,
};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "central",
        title: "Central server",
        source: "coordination and agreement §2.2, message exclusion §2.1",
        channels: Channels::AnyOrder,
        costs: &[
            Cost::messages("3", |_| Range::exactly(3)),
            Cost::entry_delay("2", |_| Range::exactly(2)),
            Cost::synchronisation_delay("2", |_| Range::exactly(2)),
        ],
        telling: Telling {
            nodes: 3,
            entries: 2,
        },
        ..Profile::PLAIN
    },
    machine: |setup| with_server(setup, VecDeque::pop_front),
};

/// Users and one server that serves `next` of its queue.
pub(super) fn with_server(
    setup: &Setup,
    next: fn(&mut VecDeque<NodeId>) -> Option<NodeId>,
) -> Result<Box<dyn Machine<Mutex>>, SetupError> {
    let users = setup.at_least(1)?;
    let shape = Shape::with_extra(users, vec!["server".into()]);
    Ok(erase::<Central>(shape, Config { users, next }))
}

#[derive(Clone, Copy, Debug)]
struct Config {
    users: usize,
    /// Whom the server serves next: the first in the queue, but for a specimen.
    next: fn(&mut VecDeque<NodeId>) -> Option<NodeId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Central {
    Client,
    Server {
        holder: Option<NodeId>,
        queue: VecDeque<NodeId>,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum ToServer {
    Request,
    Grant,
    Release,
}

impl Message for ToServer {}

impl Protocol for Central {
    type Problem = Mutex;
    type Message = ToServer;
    type Config = Config;

    fn equal_nodes(config: &Config) -> std::ops::Range<u32> {
        0..config.users as u32
    }

    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        if let Central::Server { holder, queue } = self {
            holder.iter_mut().for_each(|node| *node = new(*node));
            queue.iter_mut().for_each(|node| *node = new(*node));
        }
    }

    /// A client gets nothing but grants, and asks for nothing while it waits for one.
    fn is_quiet(&self, _: NodeId, message: &ToServer, _: &Config) -> bool {
        *self == Central::Client && *message == ToServer::Grant
    }

    fn new(id: NodeId, config: &Config) -> Self {
        if id.index() < config.users {
            Central::Client
        } else {
            Central::Server {
                holder: None,
                queue: VecDeque::new(),
            }
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        let server = NodeId(config.users as u32);
        match (self, input) {
            (Central::Client, Input::Ask(Ask::Enter)) => out.send(server, ToServer::Request),
            (Central::Client, Input::Ask(Ask::Leave)) => out.send(server, ToServer::Release),
            (
                Central::Client,
                Input::Message {
                    message: ToServer::Grant,
                    ..
                },
            ) => out.tell(Tell::Entered),
            (Central::Server { holder, queue }, Input::Message { from, message }) => {
                match message {
                    ToServer::Request => queue.push_back(from),
                    ToServer::Release => *holder = None,
                    ToServer::Grant => {}
                }
                if holder.is_none() {
                    *holder = (config.next)(queue);
                    out.send_all(*holder, &ToServer::Grant);
                }
            }
            _ => {}
        }
    }
}
