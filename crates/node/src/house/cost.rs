//! What commands cost. A turn of the reactor ends after [`TURN_COST`] units, whatever was sent, and within a turn each
//! connection is served [`SHARE_COST`] units at a time. A unit is about as much work as a look at one row: a microsecond.
//!
//! Everything that a client can make longer is counted where it is done: a command and its bytes, what is sent, a listener
//! who is told, a row in a slice of long work ([`SLICE_ROWS`](super::SLICE_ROWS) is the limit there). A command is carried
//! out whole, so what a turn exceeds its limit by is what one command can cost.

/// Units after which a turn serves no further command.
pub(crate) const TURN_COST: u64 = 2_000;
/// Units after which a connection's further commands wait until others have had their turn.
pub(crate) const SHARE_COST: u64 = 100;
/// Units of a turn that are kept for connections that have used up a share before.
pub(crate) const OLDER_COST: u64 = TURN_COST / 4;

/// What any command costs, and any reply.
const EACH: u64 = 1;
/// Bytes of a command, most of which are only copied, for a unit.
const HEARD_BYTES: usize = 4 << 10;
/// Words of a command for a unit.
const HEARD_WORDS: usize = 16;
/// Bytes of a reply, which are made, for a unit.
const SAID_BYTES: usize = 256;
/// A call of the system.
pub(crate) const CALL_COST: u64 = 4;

/// What has been spent since the start.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    spent: u64,
    /// When the connection that is being served has had its share.
    until: u64,
}

impl Cost {
    /// Everything spent so far; it only grows.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    pub(crate) fn spend(&mut self, units: u64) {
        self.spent = self.spent.saturating_add(units);
    }

    /// A command of so many words and bytes is carried out.
    pub(crate) fn hear(&mut self, words: usize, bytes: usize) {
        self.spend(EACH + (words / HEARD_WORDS + bytes / HEARD_BYTES) as u64);
    }

    /// So many bytes are sent.
    pub(crate) fn say(&mut self, bytes: usize) {
        self.spend(EACH + (bytes / SAID_BYTES) as u64);
    }

    /// Somebody may be served until so much is spent.
    pub(crate) fn allow(&mut self, units: u64) {
        self.until = self.spent.saturating_add(units);
    }

    /// Whether whoever is served has had its share.
    pub(crate) fn is_used_up(&self) -> bool {
        self.spent >= self.until
    }
}
