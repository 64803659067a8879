//! Connections that the node closes or refuses by itself: they are counted by their reason, and told to whoever reads
//! the log, without letting strangers fill it.

use super::{ClientId, House};
use crate::sparing::Sparing;

/// Why the node closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It speaks HTTP where RESP is spoken.
    Http,
    /// It has sent what is no command.
    Protocol,
}

impl Closing {
    pub(crate) const ALL: [Closing; 2] = [Closing::Http, Closing::Protocol];

    /// The reason's name in the metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Closing::Http => "http",
            Closing::Protocol => "protocol",
        }
    }

    /// The count's name in `STATUS`.
    pub(crate) fn status(self) -> &'static str {
        match self {
            Closing::Http => "closed_http_ever",
            Closing::Protocol => "closed_protocol_ever",
        }
    }

    /// What it did, for the log.
    fn deed(self) -> &'static str {
        match self {
            Closing::Http => "speaks HTTP to the RESP door; a page in a browser may be behind it",
            Closing::Protocol => "has sent what is no command",
        }
    }
}

/// How often each reason came up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closings {
    counts: [u64; Closing::ALL.len()],
    warnings: [Sparing; Closing::ALL.len()],
}

impl Closings {
    pub(crate) fn count(&self, why: Closing) -> u64 {
        self.counts[why as usize]
    }
}

impl House {
    /// Closes a connection once it was sent what stands in its outbox, and says why.
    pub(crate) fn close(&mut self, id: ClientId, why: Closing) {
        self.count_closing(id, why);
        self.dismiss(id);
    }

    /// Counts a connection that is closed.
    pub(crate) fn count_closing(&mut self, id: ClientId, why: Closing) {
        let client = self.clients.get(&id);
        let address = client.map_or("", |client| &client.address);
        self.closings.counts[why as usize] += 1;
        let Some(left_out) = self.closings.warnings[why as usize].now(self.now) else {
            return;
        };
        let (deed, id) = (why.deed(), id.0);
        let more = match left_out {
            0 => String::new(),
            more => format!(" (and {more} more since the last warning)"),
        };
        log::warn!("connection {id} from {address} {deed}: closed{more}");
    }
}
