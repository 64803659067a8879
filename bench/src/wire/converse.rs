//! One question and its answer on a blocking connection.

use std::io::{Read, Write};
use std::net::TcpStream;

/// Says something and reads one answer, blocking; for greetings.
pub(crate) fn converse(
    stream: &mut TcpStream,
    say: &[u8],
    mut whole: impl FnMut(&[u8]) -> Result<bool, String>,
) -> Result<(), String> {
    let broken = |error| format!("the connection broke in its greeting: {error}");
    stream.write_all(say).map_err(broken)?;
    let mut heard = Vec::new();
    let mut chunk = [0; 4096];
    while !whole(&heard)? {
        match stream.read(&mut chunk).map_err(broken)? {
            0 => return Err("the server hung up in the greeting".into()),
            read => heard.extend_from_slice(&chunk[..read]),
        }
    }
    Ok(())
}
