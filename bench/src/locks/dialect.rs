//! What a client must say to a lock server, and how it reads the answers. The generator knows nothing else about the
//! system that it drives, so that all of them are driven alike.

use std::net::TcpStream;

/// One client's side of one system's way to lock and unlock.
pub(crate) trait Dialect {
    /// What is said once, before the clock runs.
    fn greet(&mut self, _stream: &mut TcpStream) -> Result<(), String> {
        Ok(())
    }

    /// Writes the request to enter.
    fn lock(&mut self, out: &mut Vec<u8>);

    /// Writes the request to leave.
    fn unlock(&mut self, out: &mut Vec<u8>);

    /// Reads one answer from the front of `input` and says how many bytes it took; nothing while it is incomplete. What
    /// the protocol wants said in return goes to `out`.
    fn read(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String>;
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Inside, with a fence where the system has them.
    Entered(Option<u64>),
    /// Inside, in this slot of a pool, with this fence.
    Took(usize, u64),
    /// Not inside: try again after the customary pause.
    Refused,
    Left,
    /// Nothing that concerns the lock.
    Aside,
}
