//! What must be true of the histories that clients record, whatever failed meanwhile. Every check is a function of a
//! history and nothing else, and each has a test with histories that it must reject.

pub(crate) mod exclusion;
pub(crate) mod fences;
pub(crate) mod jobs;
pub(crate) mod linear;
pub(crate) mod once;
pub(crate) mod reigns;
pub(crate) mod store;

/// Microseconds since the run began, by the harness's own monotonic clock.
pub(crate) type Time = u64;

/// An answer that never came is received at the end of time.
pub(crate) const NEVER: Time = Time::MAX;
