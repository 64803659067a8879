//! An algorithm with its types erased: the only place where they are.

use std::sync::Arc;

use crate::cluster::Running;
use crate::explorer::Interned;
use crate::member::Hosted;
use crate::packet;
use crate::rooms::{Plan, Rooms};
use crate::{
    Cluster, Explorer, Member, NodeId, PacketError, PacketTag, Problem, Protocol, SetupError,
    Shape, UserId,
};

/// An algorithm, configured and ready to be driven in any of three ways.
pub trait Machine<Q: Problem>: Send + Sync {
    fn shape(&self) -> &Shape;

    /// A user before its first request.
    fn user(&self, user: UserId) -> Q::User;

    /// A run: all nodes live, changed in place.
    fn cluster(&self) -> Box<dyn Cluster<Q>>;

    /// A search: node states and messages by number, every step remembered.
    fn explorer(&self) -> Box<dyn Explorer<Q>>;

    /// One node by itself, whose messages are packets with this tag ([`Algorithm::tag`]). Refused where there
    /// is no such node, or where there are too many.
    ///
    /// [`Algorithm::tag`]: crate::Algorithm::tag
    fn member(&self, id: NodeId, tag: PacketTag) -> Result<Box<dyn Member<Q>>, SetupError>;

    /// What a message reads as in a trace, from its bytes without the head of its packet.
    fn label(&self, message: &[u8]) -> Result<String, PacketError>;

    /// Rooms whose groups compete by this algorithm, where it is a mutex.
    fn rooms(&self, plan: Plan) -> Option<Box<dyn Machine<Rooms>>>;
}

/// Erases the types of a configured algorithm whose users are all alike.
pub fn erase<P: Protocol>(shape: Shape, config: P::Config) -> Box<dyn Machine<P::Problem>> {
    erase_for::<P>(shape, |_| Default::default(), config)
}

/// Erases the types of a configured algorithm; `first` makes each of its users.
pub fn erase_for<P: Protocol>(
    shape: Shape,
    first: impl Fn(UserId) -> <P::Problem as Problem>::User,
    config: P::Config,
) -> Box<dyn Machine<P::Problem>> {
    Box::new(Configured::<P> {
        users: UserId::all(shape.users).map(first).collect(),
        shape,
        config: Arc::new(config),
    })
}

struct Configured<P: Protocol> {
    shape: Shape,
    users: Vec<<P::Problem as Problem>::User>,
    config: Arc<P::Config>,
}

impl<P: Protocol> Machine<P::Problem> for Configured<P> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn user(&self, user: UserId) -> <P::Problem as Problem>::User {
        self.users[user.index()].clone()
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

    fn member(
        &self,
        id: NodeId,
        tag: PacketTag,
    ) -> Result<Box<dyn Member<P::Problem>>, SetupError> {
        let (nodes, config) = (self.shape.nodes(), Arc::clone(&self.config));
        Ok(Box::new(Hosted::<P>::new(id, nodes, tag, config)?))
    }

    fn label(&self, message: &[u8]) -> Result<String, PacketError> {
        let message: P::Message = packet::read(self.shape.nodes(), message)?;
        Ok(format!("{message:?}"))
    }

    fn rooms(&self, plan: Plan) -> Option<Box<dyn Machine<Rooms>>> {
        P::Problem::rooms::<P>(&self.shape, &self.config, plan)
    }
}
