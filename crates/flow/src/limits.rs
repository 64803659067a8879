//! Every bound of the language in one place: what can grow has a limit here, and a text that exceeds it is refused with
//! the limit in the message. Nothing nests deeper than a declaration's braces, so depth needs no bound.

/// Bytes of a flow's text, in any notation.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a process's, a queue's or a user's name. With the flow's own name before it, a queue's full name still
/// fits a name of the node.
pub const NAME_BYTES_MAX: usize = 100;
/// Queues of a flow.
pub const QUEUES_MAX: usize = 1_000;
/// Processes of a flow.
pub const PROCESSES_MAX: usize = 1_000;
/// Arrows of a flow: each says that one process puts into, or takes from, one queue.
pub const ARROWS_MAX: usize = 10_000;
/// Users in one list of rights.
pub const RIGHTS_MAX: usize = 100;
/// Bytes of a data directory's path.
pub const PATH_BYTES_MAX: usize = 1_024;
/// The largest limit that a queue or a process may declare.
pub const LIMIT_MAX: u32 = 1_000_000_000;
/// The most retries before a job is rejected.
pub const RETRIES_MAX: u32 = 1_000;
/// Retries where nothing is declared.
pub const RETRIES_DEFAULT: u32 = 3;
/// Errors that one reading reports; the first ones are what one mends.
pub const DIAGNOSTICS_MAX: usize = 20;
