//! Serving what a connection has sent: whole commands, one after the other, until one of them must wait.

use crate::commands::Serves;
use crate::house::{ClientId, House};
use crate::wire::{Frame, Framer, Reply, WireLimits};

/// Serves whole commands from the front of `input` until one blocks, the rest is incomplete, or the connection must
/// first read its answers. Gives how many bytes were used up, and whether the last was the case.
pub(crate) fn serve(
    house: &mut House,
    framer: &mut Framer,
    wire: &WireLimits,
    client: ClientId,
    input: &[u8],
) -> (usize, bool) {
    let mut at = 0;
    while at < input.len() {
        match house.clients.get(&client) {
            Some(client) if client.may_go_on(wire) => {}
            Some(client) if !client.leaving => return (at, client.blocked.is_none()),
            _ => return (input.len(), false),
        }
        match framer.read(&input[at..], wire) {
            Frame::Command(line, consumed) => {
                house.serve(client, line);
                at += consumed;
            }
            Frame::Incomplete => return (at, false),
            Frame::Violation(why) => {
                house.send(
                    client,
                    Reply::Error(format!("BADARG protocol error: {why}")),
                );
                house.dismiss(client);
                return (input.len(), false);
            }
        }
    }
    (at, false)
}
