//! All limits in one place: everything that can grow has one, and a command that would exceed it is refused with `LIMIT` (or
//! `BADARG` if it could never be granted) and the limit's name.

use serde::{Deserialize, Serialize};

/// The limits of a node. Lengths of texts are constants, because they are part of the wire protocol and of stored records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Gates, created and implicit together.
    pub gates: usize,
    /// Sessions, opened and implicit together.
    pub sessions: usize,
    /// Waiters in one gate's queue.
    pub waiters_per_gate: usize,
    /// Waiters in all queues.
    pub waiters: usize,
    /// Simultaneous waits of one session.
    pub waits_per_session: usize,
    /// Simultaneous holds of one session.
    pub holds_per_session: usize,
    /// Holds in total.
    pub holds: usize,
    /// Shards that one session may have touched. Beyond it they are recounted, and if that does not help, all shards count as
    /// touched. See [`Event::Touched`](crate::Event::Touched).
    pub touched_shards_per_session: usize,
    /// Touched shards of all sessions together. A session that would exceed it counts as having touched all shards.
    pub touched_shards: usize,
    /// Gates in one set.
    pub set_size: usize,
    /// Units of a `PERMITS` gate.
    pub permits: u32,
    /// Priority classes of a gate.
    pub classes: u32,
    /// How often a gate may allow a waiter to be overtaken.
    pub overtakes: u32,
    /// The session TTL if none is requested.
    pub ttl_ms_default: u64,
    /// The longest session TTL.
    pub ttl_ms_max: u64,
    /// The shortest session TTL, below which scheduling noise would end sessions.
    pub ttl_ms_min: u64,
    /// The longest wait, and the wait of a request that specifies none.
    pub wait_ms_max: u64,
    /// The longest hold limit and the longest stay of a room.
    pub lease_ms_max: u64,
    /// Answers kept per session for repeated IDs.
    pub ids_per_session: usize,
    /// Once-keys on record.
    pub once_keys: usize,
    /// Flows on record.
    pub flows: usize,
    /// Queues of one flow.
    pub flow_queues: usize,
    /// Processes of one flow.
    pub flow_processes: usize,
    /// Jobs of all flows.
    pub jobs: usize,
    /// Bytes of all jobs' names and bodies.
    pub job_bytes: u64,
    /// Queues that one take may name.
    pub take_queues: usize,
    /// Holders and waiters that are looked at to tell whether a wait could end. A wait that needs more is refused.
    pub deadlock_steps: usize,
}

/// The limits that decide the outcome of a log entry. They are part of the replicated half, the same on every node, and only
/// the log changes them ([`Change::Limits`](crate::Change::Limits)). [`Limits`] says what each means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in Limits")]
pub struct SharedLimits {
    pub gates: usize,
    pub sessions: usize,
    pub permits: u32,
    pub classes: u32,
    pub overtakes: u32,
    pub ttl_ms_max: u64,
    pub ttl_ms_min: u64,
    pub lease_ms_max: u64,
    pub once_keys: usize,
    pub flows: usize,
    pub flow_queues: usize,
    pub flow_processes: usize,
    pub jobs: usize,
    pub job_bytes: u64,
}

/// All logs begin with these limits, and older logs were written under them.
impl Default for SharedLimits {
    fn default() -> SharedLimits {
        Limits::default().shared()
    }
}

impl Limits {
    /// The limits on which the whole cluster must agree.
    pub fn shared(&self) -> SharedLimits {
        SharedLimits {
            gates: self.gates,
            sessions: self.sessions,
            permits: self.permits,
            classes: self.classes,
            overtakes: self.overtakes,
            ttl_ms_max: self.ttl_ms_max,
            ttl_ms_min: self.ttl_ms_min,
            lease_ms_max: self.lease_ms_max,
            once_keys: self.once_keys,
            flows: self.flows,
            flow_queues: self.flow_queues,
            flow_processes: self.flow_processes,
            jobs: self.jobs,
            job_bytes: self.job_bytes,
        }
    }

    /// Bytes of a gate's, room's or once-key's name.
    pub const NAME_BYTES: usize = 255;
    /// Bytes of a pattern of names, several stars in a row counted as one.
    pub const PATTERN_BYTES: usize = 512;
    /// Stars of a pattern, several in a row counted as one.
    pub const PATTERN_STARS: usize = 8;
    /// Bytes of a session's label.
    pub const LABEL_BYTES: usize = 255;
    /// Bytes of a reason.
    pub const REASON_BYTES: usize = 1024;
    /// Bytes of a candidate's value, and of a decided one.
    pub const VALUE_BYTES: usize = 4096;
    /// Groups that have members.
    pub const GROUPS: usize = 1_000;
    /// Members of one group.
    pub const GROUP_MEMBERS: usize = 1_000;
    /// Bytes of one message to a group.
    pub const GROUP_BODY_BYTES: usize = 64 << 10;
    /// Messages of one group that are kept for members that are away.
    pub const GROUP_KEPT: usize = 1_000;
    /// Bytes of the bodies of those messages.
    pub const GROUP_KEPT_BYTES: usize = 1 << 20;
    /// Messages from one node to one group that have no number yet, where an algorithm assigns it.
    pub const GROUP_UNDER_WAY: usize = 256;
    /// Bytes of the bodies of those messages.
    pub const GROUP_UNDER_WAY_BYTES: usize = 4 << 20;
    /// Slots of one take, and of one give. Each takes a step at its node, and everybody else there waits for all of them.
    pub const SLOTS_AT_ONCE: usize = 10_000;
    /// Slots that one entry of the log claims; with the longest names they still fit.
    pub const SLOTS_CLAIMED: usize = 2_000;
    /// Slots that one entry of the log gives back.
    pub const SLOTS_GIVEN: usize = 50_000;
    /// Bytes of the slots that a session names when it resumes, as encoded in an entry of the log.
    pub const SLOTS_NAMED_BYTES: usize = 900_000;
    /// Decisions on record.
    pub const DECISIONS: usize = 100_000;
    /// Bytes of an ID token.
    pub const ID_BYTES: usize = 128;
    /// Bytes of a job's body.
    pub const BODY_BYTES: usize = 512 << 10;
    /// Bytes of a flow's text.
    pub const FLOW_BYTES: usize = 256 << 10;
    /// Jobs per queue that are named when a change would strand them.
    pub const STRANDED_NAMES: usize = 5;
    /// Changes in one unit of work.
    pub const UNIT_CHANGES: usize = 256;
    /// Bytes of names and bodies in one unit of work, which is one entry of the log.
    pub const UNIT_BYTES: usize = 768 << 10;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            gates: 1_000_000,
            sessions: 100_000,
            waiters_per_gate: 10_000,
            waiters: 100_000,
            waits_per_session: 1_000,
            holds_per_session: 10_000,
            holds: 1_000_000,
            touched_shards_per_session: 4_096,
            touched_shards: 500_000,
            set_size: 64,
            permits: 1_000_000_000,
            classes: 16,
            overtakes: 1_000_000,
            ttl_ms_default: 10_000,
            ttl_ms_max: 60_000,
            ttl_ms_min: 100,
            wait_ms_max: 3_600_000,
            lease_ms_max: 7 * 24 * 3_600_000,
            ids_per_session: 64,
            once_keys: 1_000_000,
            flows: 1_000,
            flow_queues: 1_000,
            flow_processes: 1_000,
            jobs: 10_000_000,
            job_bytes: 2 << 30,
            take_queues: 64,
            deadlock_steps: 200_000,
        }
    }
}
