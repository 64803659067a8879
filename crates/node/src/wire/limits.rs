//! What a connection may cost. Every limit is checked before memory is spent on what exceeds it.

use std::fmt;

use testigo_core::Limits;

/// The limits of the RESP front door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireLimits {
    /// Open connections; one more is told so and closed.
    pub connections: usize,
    /// Bytes of one command, including its headers, and of unread answers, before AUTH.
    pub preauth_frame_bytes: usize,
    /// Arguments of one command, including its name, before AUTH.
    pub preauth_arguments: usize,
    /// How long a connection may take to authenticate, including the TLS handshake.
    pub preauth_ms: u64,
    /// Bytes of all connections' unfinished commands together; beyond it the oldest ones are closed.
    pub unfinished_bytes: usize,
    /// Bytes of one command, including headers.
    pub frame_bytes: usize,
    /// Arguments of one command, including its name.
    pub arguments: usize,
    /// Bytes of one argument.
    pub argument_bytes: usize,
    /// Bytes of a command typed on one line.
    pub inline_bytes: usize,
    /// With more bytes of unread replies, a connection's commands wait until its client reads.
    pub output_bytes_soft: usize,
    /// With more bytes of unread replies and events, the connection is closed.
    pub output_bytes: usize,
    /// Bytes of all connections' unread replies and events together; beyond it the slowest readers are closed.
    pub output_bytes_total: usize,
    /// Changes of one connection that may wait for the log; its further commands wait until these are answered.
    pub changes_under_way: usize,
    /// Channels and patterns that one connection may subscribe to.
    pub subscriptions: usize,
    /// Patterns among them.
    pub patterns: usize,
    /// Channels and patterns of all connections together.
    pub subscriptions_total: usize,
    /// Bytes of the patterns of all connections together.
    pub pattern_bytes_total: usize,
    /// Rows of one `GATE LIST` or `SESSION LIST`.
    pub list_rows: usize,
    /// How long the TLS handshake may take.
    pub handshake_ms: u64,
    /// How long the answer to a wrong password is held back.
    pub password_delay_ms: u64,
    /// Wrong passwords after which a connection is closed.
    pub password_tries: usize,
    /// The longest time for which passwords for one user from one address are not checked after wrong ones.
    pub password_wait_ms: u64,
    /// Pairs of address and user whose wrong passwords are remembered.
    pub password_pairs: usize,
    /// Hashed passwords that may wait to be checked.
    pub password_queue: usize,
    /// Bytes of a connection's name, library name or library version.
    pub client_text_bytes: usize,
}

impl Default for WireLimits {
    fn default() -> WireLimits {
        WireLimits {
            connections: 20_000,
            preauth_frame_bytes: 8 << 10,
            preauth_arguments: 16,
            preauth_ms: 10_000,
            unfinished_bytes: 32 << 20,
            frame_bytes: 4 << 20,
            arguments: 65_536,
            // A body that is a little too long is a mistake that gets an answer, and does not end the connection.
            argument_bytes: 4 * Limits::BODY_BYTES,
            inline_bytes: 64 << 10,
            output_bytes_soft: 1 << 20,
            output_bytes: 32 << 20,
            output_bytes_total: 64 << 20,
            changes_under_way: 256,
            subscriptions: 1_000,
            patterns: 100,
            subscriptions_total: 200_000,
            pattern_bytes_total: 64 << 20,
            list_rows: 100_000,
            handshake_ms: 10_000,
            password_delay_ms: 1_000,
            password_tries: 10,
            password_wait_ms: 60_000,
            password_pairs: 10_000,
            password_queue: 100,
            client_text_bytes: 255,
        }
    }
}

/// A limit's name and value, for a client that exceeds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    pub(crate) most: usize,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.name, self.most)
    }
}

/// What one command of a connection may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLimits {
    pub(crate) frame_bytes: Limit,
    pub(crate) arguments: Limit,
    pub(crate) argument_bytes: Limit,
    pub(crate) inline_bytes: Limit,
}

impl WireLimits {
    /// The limits of a connection whose user is known.
    pub(crate) fn of_users(&self) -> FrameLimits {
        let limit = |name, most| Limit { name, most };
        FrameLimits {
            frame_bytes: limit("frame_bytes", self.frame_bytes),
            arguments: limit("arguments", self.arguments),
            argument_bytes: limit("argument_bytes", self.argument_bytes),
            inline_bytes: limit("inline_bytes", self.inline_bytes),
        }
    }

    /// The limits of a connection before AUTH.
    pub(crate) fn of_strangers(&self) -> FrameLimits {
        let limit = |name, most| Limit { name, most };
        let bytes = limit("preauth_frame_bytes", self.preauth_frame_bytes);
        FrameLimits {
            frame_bytes: bytes,
            arguments: limit("preauth_arguments", self.preauth_arguments),
            argument_bytes: bytes,
            inline_bytes: bytes,
        }
    }

    pub(crate) fn of(&self, is_user: bool) -> FrameLimits {
        match is_user {
            true => self.of_users(),
            false => self.of_strangers(),
        }
    }
}
