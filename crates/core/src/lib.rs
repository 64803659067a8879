//! The services of a node as deterministic state machines: gates (every kind of lock), sessions, fences, sets, once-keys.
//! No I/O, no clock, no random number: time (milliseconds of a clock that does not step), identities and seeds are
//! arguments, so the same code runs alone, in a cluster, in a simulator and under a model.
//!
//! # Two halves that must never be confused
//!
//! | | [`Replicated`] | [`Local`] |
//! |---|---|---|
//! | knows | definitions of gates, opened sessions, views and titles, once-keys, the key of receipts | holders, waiters, implicit gates and sessions, the counts of fences |
//! | changes by | a [`Change`], in the order of the log | a [`Command`], at memory speed |
//! | an answer means | it is on disk | it is so now |
//! | after `kill -9` | read from the log | rebuilt from what surviving sessions claim |
//! | after a clean stop | read from the log | restored from its [`Image`] |
//!
//! The types keep them apart. `GATE CREATE`, `GATE DELETE`, `SESSION OPEN`, `SESSION CLOSE` and everything about once-keys
//! are [`Change`]s, which the local half does not accept. It accepts an [`Applied`] instead, which only [`Replicated::apply`]
//! can make. `LOCK`, `UNLOCK`, `JOB TAKE`, `SESSION RESUME` and every other request that the log need not know are
//! [`Command`]s, which the replicated half does not accept.
//!
//! # How a node drives it
//!
//! ```
//! use testigo_core::*;
//!
//! // Every start begins with a view, in the log before anything else.
//! let mut replicated = Replicated::new(Limits::default());
//! let view = replicated.view_alone(NodeId(1), Start(1), 0);
//! let _ = replicated.apply(0, &view)?;
//! let mut local = Local::start(0, Limits::default(), 42, &replicated, None);
//! let mut events = Vec::new();
//!
//! // What must be durable goes through the log, then through both halves.
//! let session = SessionId::opened(7);
//! let open = Change::OpenSession { session, ttl_ms: 10_000, label: None, user: None };
//! let applied = replicated.apply(0, &open)?;
//! local.follow(0, &replicated, &applied, &mut events);
//!
//! // Everything else is answered at once.
//! let lock = Command::Lock(Lock { gate: "deploy", ..Lock::default() });
//! let answer = local.apply(5, &replicated, session, &lock, &mut events)?;
//! assert!(matches!(answer, Answer::Settled(Settled::Entered(_))));
//!
//! // Time is told: at the next deadline at the latest.
//! if let Some(at) = local.next_deadline() {
//!     local.tick(at, &mut events);
//! }
//! # Ok::<(), Refusal>(())
//! ```
//!
//! - A request that has to wait is answered [`Answer::Waiting`]; an [`Event::Settled`] with the same ticket ends the wait.
//! - [`Event::Touched`] must be stored where it survives a crash of the process, before the grants that follow it are told;
//!   [`Local::start_after`] uses it to know which gates wait for whom.
//! - [`Event::RunOut`] asks the node to log the close of a session, [`Event::FencesLow`] to log [`Change::Titles`].
//! - When a connection ends, send [`Command::Disconnect`]; when one resumes a session, [`Command::Resume`].
//! - [`Replicated::check`] and [`Local::check`] find changes that would be refused, before they are logged.
//!
//! # What a gate promises
//!
//! - **Who may be inside** is up to the rule: `MUTEX`, `SHARED`, `PERMITS k`, `ROOMS`. A release and the grants that follow
//!   from it are one step.
//! - **Order**: the queue is strict. A waiter that cannot enter holds up those behind it, so a large request is not starved
//!   by small ones. Later, more urgent requests overtake a waiter at most `OVERTAKES` times; then it and all who came before
//!   it go first. In a room gate, members of the room inside may enter past others while the door is open: as long as nobody
//!   of another room waits, and then as long as the room's leader stays.
//! - **Sets** stand in the queues of all of their gates and enter when their turn has come everywhere. A set that could enter
//!   here but waits elsewhere keeps its place; requests that are compatible with it go on.
//! - **Fences**: `number·2^26 + count`, the number of the gate's shard and a count of the grants under it, below 2^53. A
//!   grant's fence exceeds that of every earlier grant that it conflicts with; only fences of one gate are ever compared.
//!   Readers inside together share one, as do members of a room and permits, as long as all who ever had it could be inside
//!   at once. A downgraded writer gets a new one, which joining readers share.
//! - **Deadlock**: a wait that nobody could end is refused when it would close the cycle, and the refusal names the cycle.
//!   Wait limits, hold limits and TTLs do not count as ends: they are failures. An asynchronous wait blocks nobody and is
//!   never refused. If only waiters that wait for this very session hold up its request, it goes past them.
//! - **Errors** have one [`Word`] and a sentence, and change nothing.
//!
//! An election is a gate with one inside, in the order of the candidates' ranks and without a bound on overtaking: a
//! leadership is a hold, a candidacy a wait, and a term a fence. [`Name::election`] makes its name, which no gate can have.
//!
//! A holder learns in two ways that its hold has ended: by [`Event::Lost`], and because its fence is no longer the newest. A
//! session's end by silence is logged before anything it had is given to others.

mod arena;
mod branch;
pub mod chapter;
mod codec;
mod command;
mod error;
pub mod estate;
mod event;
mod fence;
mod gate;
mod job;
mod limits;
mod local;
pub mod monitor;
mod name;
mod ownership;
mod pattern;
pub mod pool;
mod receipt;
mod replicated;
mod session;
mod shared_map;
mod timer;
mod wait;
mod worklist;

pub use branch::{Counts, Forecast, Parcel, Plan, Visit, forecast};
pub use codec::{OwnedCommand, decode, encode};
pub use command::{
    Answer, Claim, ClaimEnd, Command, Grant, Lock, LockAll, Resumed, Settled, Take, Taken, WaitEnd,
};
pub use error::{CycleLink, Refusal, Word};
pub use event::{Event, Loss, Turn, Vacancy};
pub use fence::Fence;
pub use gate::{Ask, Candidacy, Definition, GateOrder, Mode, Rule, Travels, Using};
pub use job::{Body, Hop, Job, JobId, QueueAct, QueueId, QueueOrder, QueueRule, Role, Scheme};
pub use limits::{Limits, SharedLimits};
pub use local::{
    BlockedBy, Counters, Edge, GateSummary, GateView, HeldView, HoldView, HolderView, Image,
    JobCounters, LinePlace, Local, People, QueueView, SessionView, TakerView, Touch, Touches,
    WaiterView,
};
pub use name::{Name, bare_name};
pub use ownership::{
    Index, Member, NODES_MAX, NodeId, Number, OneOwner, Origin, Ownership, Shard, Span, Start,
    Title, View,
};
pub use pattern::{Matcher, Pattern};
pub use receipt::ReceiptKey;
pub use replicated::{
    Address, Admission, Applied, Change, Cluster, ClusterId, Flow, FlowMark, GroupEvent,
    GroupJoined, GroupMessage, GroupOrder, GroupRecord, GroupUsing, Home, JobChange, JobOutcome,
    Lost, Newcomer, OnceAnswer, OnceAttempt, OnceStart, Outcome, Queue, Records, Replicated,
    SessionRecord, Spot, Stamp, ambiguous_queue, before, late_resume, no_gate, no_job, no_queue,
    no_session,
};
pub use session::SessionId;
pub use wait::Ticket;
