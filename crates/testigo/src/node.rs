//! The node itself, for a program that configures more than [`Config::embedded`] does, or that wants its low-level interface:
//! blocking, without guards, and below a microsecond for a lock and its release.
//!
//! ```
//! use testigo::node::{Config, Lock, Node};
//!
//! # let data = tempfile::tempdir()?;
//! let node = Node::start(Config::embedded(data.path()))?;
//! let session = node.session()?;
//! let deploy = Lock { gate: "deploy", ..Lock::default() };
//! let grant = session.lock(&deploy)?.ok_or("somebody else is inside")?;
//! println!("inside with fence {}", grant.fence);
//! session.unlock("deploy", Some(grant.fence))?;
//! drop(session);
//! node.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Testigo::node`](crate::Testigo::node) returns the node that [`embed()`](crate::embed()) has started.

#[doc(inline)]
pub use testigo_core::{
    Change, Definition, Fence, FlowMark, GateOrder, GateSummary, GateView, Grant, GroupEvent,
    GroupJoined, GroupMessage, GroupOrder, GroupRecord, GroupUsing, Limits, Lock, LockAll, Mode,
    Outcome, Refusal, Rule, SessionId, SessionView, Settled, Ticket, Travels, Using, Word,
};
#[doc(inline)]
pub use testigo_node::{
    Campaign, ClusterConfig, ClusterConfigError, ClusterSecret, Config, ConfigError, Entering,
    HttpLimits, Leader, ListenError, Node, Opening, PeerTls, Rights, RightsError, Secret,
    SecretError, Session, SessionEvent, StartError, StopError, Stopper, Submitted, TlsError,
    TlsFiles, User, UserError, Wait, WireLimits,
};
