//! What a connection may cost. Every bound is checked before memory is spent on what exceeds it.

use testigo_core::Limits;

/// The limits of the RESP door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireLimits {
    /// Open connections; one more is told so and closed.
    pub connections: usize,
    /// Bytes of one command, headers included.
    pub frame_bytes: usize,
    /// Arguments of one command, its name included.
    pub arguments: usize,
    /// Bytes of one argument.
    pub argument_bytes: usize,
    /// Bytes of a command typed on one line.
    pub inline_bytes: usize,
    /// Bytes of unread replies from which on a connection's commands wait until its client reads.
    pub output_bytes_soft: usize,
    /// Bytes of unread replies and events at which the connection is closed.
    pub output_bytes: usize,
    /// Channels and patterns that one connection may subscribe to.
    pub subscriptions: usize,
    /// Rows of one `GATE LIST` or `SESSION LIST`.
    pub list_rows: usize,
    /// How long the greetings of TLS may take.
    pub handshake_ms: u64,
    /// How long a wrong password is not answered.
    pub password_delay_ms: u64,
    /// Wrong passwords after which a connection is closed.
    pub password_tries: usize,
    /// Hashed passwords that may wait to be worked out.
    pub password_queue: usize,
    /// Bytes of a connection's name, library name or library version.
    pub client_text_bytes: usize,
}

impl Default for WireLimits {
    fn default() -> WireLimits {
        WireLimits {
            connections: 20_000,
            frame_bytes: 4 << 20,
            arguments: 65_536,
            // A body that is a little too long is a mistake that is answered, and does not end the connection.
            argument_bytes: 4 * Limits::BODY_BYTES,
            inline_bytes: 64 << 10,
            output_bytes_soft: 1 << 20,
            output_bytes: 32 << 20,
            subscriptions: 1_000,
            list_rows: 100_000,
            handshake_ms: 10_000,
            password_delay_ms: 1_000,
            password_tries: 10,
            password_queue: 100,
            client_text_bytes: 255,
        }
    }
}
