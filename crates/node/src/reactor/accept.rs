//! Accepts connections, and closes those that never finish their TLS handshake.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use mio::Token;

use super::{LISTENERS_MAX, Reactor};
use crate::connection::{Connection, Stream};
use crate::house::{Closing, Outlet};

/// How long connections that found no free descriptor wait for another try.
const RETRY: Duration = Duration::from_millis(100);
/// Connections that are accepted in one turn at one address.
const ACCEPTS_MAX: usize = 64;

impl Reactor {
    /// Accepts all connections that are there, unless that has just failed.
    pub(super) fn accept_all(&mut self) {
        let now = Instant::now();
        if self.accept_again.is_some_and(|at| now < at) {
            return;
        }
        self.accept_again = None;
        for at in 0..self.listeners.len() {
            for nth in 0.. {
                if nth == ACCEPTS_MAX {
                    // The others come in the next turn.
                    self.accept_again = Some(now);
                    break;
                }
                match self.listeners[at].accept() {
                    Ok((stream, address)) => self.welcome(stream, address),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The peer was gone before it was accepted.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        self.shared.house().connections.count_unaccepted(&error);
                        self.accept_again = Some(now + RETRY);
                        break;
                    }
                }
            }
        }
    }

    fn welcome(&mut self, mut stream: Stream, address: String) {
        if self.sockets.len() >= self.wire.connections {
            let most = self.wire.connections;
            let line = format!("-LIMIT {most} connections are open, the limit connections\r\n");
            // It is told if that is possible at once.
            if !stream.is_handshaking() {
                let _ = stream.write(&[IoSlice::new(line.as_bytes())]);
            }
            let mut house = self.shared.house();
            house
                .connections
                .count_closing_of(&address, Closing::Connections);
            return;
        }
        let entry = self.sockets.vacant_entry();
        let token = Token(LISTENERS_MAX + entry.key());
        if let Err(error) = stream.register(self.poll.registry(), token) {
            self.shared.house().connections.count_unaccepted(&error);
            return;
        }
        let mut house = self.shared.house();
        let client = house.welcome(Outlet::Socket(entry.key()), address);
        let is_user = house.users().anybody().is_some();
        drop(house);
        if stream.is_handshaking() {
            let patience = Duration::from_millis(self.wire.handshake_ms);
            let due = Instant::now() + patience;
            self.greeting.push_back((due, entry.key(), client));
        }
        entry.insert(Connection::new(stream, client, is_user));
    }

    /// Closes connections that have begun a TLS handshake and did not finish it in time.
    pub(super) fn end_slow_greetings(&mut self) {
        while let Some((due, key, client)) = self.greeting.front().copied() {
            let still = |connection: &Connection| {
                connection.client == client && connection.stream.is_handshaking()
            };
            let greets = self.sockets.get(key).is_some_and(still);
            if greets && Instant::now() < due {
                return;
            }
            self.greeting.pop_front();
            if greets {
                let mut house = self.shared.house();
                house.connections.count_closing(client, Closing::Handshake);
                drop(house);
                self.close(key);
            }
        }
    }
}
