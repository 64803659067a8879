//! Jobs, queues and flows: the words of the queue architecture, shared by both halves. A job is a named unit of work that
//! lies in one queue and has at most one holder; a flow says which process may do what with which queue.

mod blocks;
mod body;
mod record;
mod scheme;

pub(crate) use blocks::Blocks;
pub use body::Body;
pub use record::{Hop, Job, JobId, QueueId};
pub use scheme::{QueueAct, QueueOrder, QueueRule, Role, Scheme};
