//! Connections that the node itself closes or refuses. They are counted by reason and logged, without letting strangers fill
//! the log.

use std::io;

use super::{ClientId, Connections};
use crate::sparing::{Sparing, and_more};

/// Why the node closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It speaks HTTP where RESP is spoken.
    Http,
    /// It has sent bytes that are not a command.
    Protocol,
    /// It has not authenticated in time.
    Preauth,
    /// It has not finished the TLS handshake in time.
    Handshake,
    /// Too many bytes of unfinished commands were kept, and its command was the oldest.
    Unfinished,
    /// It has not read its answers.
    Output,
    /// All connections together had too many unread bytes, and it was the slowest.
    OutputTotal,
    /// There were too many connections.
    Connections,
}

impl Closing {
    pub(crate) const ALL: [Closing; 8] = [
        Closing::Http,
        Closing::Protocol,
        Closing::Preauth,
        Closing::Handshake,
        Closing::Unfinished,
        Closing::Output,
        Closing::OutputTotal,
        Closing::Connections,
    ];

    /// The reason's name in the metrics, its count's name in `STATUS`, and what the connection did, for the log.
    fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Closing::Http => (
                "http",
                "closed_http_ever",
                "speaks HTTP to the RESP door; a page in a browser may be behind it",
            ),
            Closing::Protocol => (
                "protocol",
                "closed_protocol_ever",
                "has sent what is no command",
            ),
            Closing::Preauth => (
                "preauth",
                "closed_preauth_ever",
                "has not authenticated in time (preauth_ms)",
            ),
            Closing::Handshake => (
                "handshake",
                "closed_handshake_ever",
                "has not finished the handshake of TLS in time (handshake_ms)",
            ),
            Closing::Unfinished => (
                "unfinished",
                "closed_unfinished_ever",
                "has the oldest unfinished command, and all of them are too many bytes (unfinished_bytes)",
            ),
            Closing::Output => (
                "output",
                "closed_output_ever",
                "does not read its answers (output_bytes)",
            ),
            Closing::OutputTotal => (
                "output_total",
                "closed_output_total_ever",
                "reads slowest, and all unread answers are too many bytes (output_bytes_total)",
            ),
            Closing::Connections => (
                "connections",
                "closed_connections_ever",
                "is one too many (connections)",
            ),
        }
    }

    /// The reason's name in the metrics.
    pub(crate) fn name(self) -> &'static str {
        self.texts().0
    }

    /// The count's name in `STATUS`.
    pub(crate) fn status(self) -> &'static str {
        self.texts().1
    }
}

/// How often each reason occurred.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closings {
    counts: [u64; Closing::ALL.len()],
    warnings: [Sparing; Closing::ALL.len()],
    unaccepted: u64,
    unaccepted_warning: Sparing,
}

impl Closings {
    pub(crate) fn count(&self, why: Closing) -> u64 {
        self.counts[why as usize]
    }

    /// How often the system refused to accept a connection, for example because it had no descriptors left.
    pub(crate) fn unaccepted(&self) -> u64 {
        self.unaccepted
    }
}

impl Connections {
    /// Closes a connection after sending what is in its outbox, for this reason.
    pub(crate) fn close(&mut self, id: ClientId, why: Closing) {
        self.count_closing(id, why);
        self.dismiss(id);
    }

    /// Counts a closed connection.
    pub(crate) fn count_closing(&mut self, id: ClientId, why: Closing) {
        let address = self.clients.get(&id).map(|client| client.address.clone());
        self.count_closing_of(&address.unwrap_or_default(), why);
    }

    /// Counts a closed connection by its address.
    pub(crate) fn count_closing_of(&mut self, address: &str, why: Closing) {
        self.closings.counts[why as usize] += 1;
        let Some(left_out) = self.closings.warnings[why as usize].now(self.now) else {
            return;
        };
        let (.., deed) = why.texts();
        let more = and_more(left_out);
        log::warn!("a connection from {address} {deed}: closed{more}");
    }

    /// The system accepted no connection. Those that wait are tried again.
    pub(crate) fn count_unaccepted(&mut self, error: &io::Error) {
        self.closings.unaccepted += 1;
        if let Some(left_out) = self.closings.unaccepted_warning.now(self.now) {
            let more = and_more(left_out);
            log::warn!("no connection could be taken: {error}{more}; they wait");
        }
    }
}
