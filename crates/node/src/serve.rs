//! Serves what a connection has sent: whole commands, one after the other, until one of them must wait.

use crate::commands::{Serves, Turn};
use crate::house::{ClientId, Closing, House};
use crate::wire::{Frame, Framer, Progress, Reply, WireLimits, http};

/// What happened to the bytes that a connection has sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// How many bytes were used up.
    pub(crate) used: usize,
    /// Whether the connection must read its answers before its next command is served.
    pub(crate) paused: bool,
    /// Whether the rest waits behind a blocked command.
    pub(crate) blocked: bool,
    /// Whether the rest waits until others have had their turn.
    pub(crate) waits_its_turn: bool,
    /// Whether the connection's user is known.
    pub(crate) is_user: bool,
    /// Bytes of all connections that were not offered to a socket yet.
    pub(crate) in_outboxes: usize,
}

/// Serves whole commands from the front of `input` until one blocks, the rest is incomplete, or the connection must first
/// read its answers, or the connection has had its share of the turn . `progress` says how far the first one was read before, and then how far the next one is.
pub(crate) fn serve(
    house: &mut House,
    framer: &mut Framer,
    wire: &WireLimits,
    client: ClientId,
    input: &[u8],
    progress: &mut Progress,
) -> Served {
    let (used, paused) = serve_some(house, framer, wire, client, input, progress);
    let known = house.connections.client(client);
    Served {
        used,
        paused,
        blocked: known.is_some_and(|client| client.waits(wire)),
        waits_its_turn: used < input.len()
            && known.is_some_and(|client| client.may_go_on(wire))
            && house.connections.cost.is_used_up(),
        is_user: known.is_some_and(|client| client.user.is_some()),
        in_outboxes: house.connections.unread().in_outboxes(),
    }
}

/// Returns how many bytes were used up, and whether answers must be read first.
fn serve_some(
    house: &mut House,
    framer: &mut Framer,
    wire: &WireLimits,
    client: ClientId,
    input: &[u8],
    progress: &mut Progress,
) -> (usize, bool) {
    let mut at = 0;
    while at < input.len() {
        let limits = match house.connections.client(client) {
            Some(client) if client.may_go_on(wire) => wire.of(client.user.is_some()),
            Some(client) if !client.leaving => return (at, !client.waits(wire)),
            _ => return (input.len(), false),
        };
        if house.connections.cost.is_used_up() {
            return (at, false);
        }
        let (closing, why) = match framer.read(&input[at..], &limits, progress) {
            Frame::Command(line, consumed) => {
                match house.serve(client, line) {
                    Turn::Done => at += consumed,
                    Turn::NotYet => return (at, false),
                }
                continue;
            }
            Frame::Incomplete => return (at, false),
            Frame::Violation(why) => (Closing::Protocol, why),
            Frame::Http => (Closing::Http, String::new()),
        };
        if house.connections.has_under_way(client) {
            // Its answers come first.
            *progress = Progress::default();
            house.connections.wait_for_the_log(client);
            return (at, false);
        }
        let answer = match closing {
            Closing::Http => Reply::Raw(http::THIS_IS_RESP),
            _ => Reply::Error(format!("BADARG protocol error: {why}")),
        };
        house.connections.send(client, answer);
        house.connections.close(client, closing);
        return (input.len(), false);
    }
    (at, false)
}
