//! Lock servers that are wrong on purpose. Before anything is measured the referee must stop them; if it lets one pass,
//! it would have let a wrong number pass as well.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::dialect::Dialect;
use super::generator::{Load, drive};
use super::resp::{Ping, Testigo};
use super::systems::CLIENTS;
use crate::pools::Slots;

/// Fails unless the referee stops a server that lets everybody in, one that repeats a fence, and one that gives everybody
/// the same slot.
pub(crate) fn referee_sees() -> Result<(), String> {
    let ping = || Box::new(Ping::default()) as Box<dyn Dialect>;
    let lock = || Box::new(Testigo::new("gate")) as Box<dyn Dialect>;
    let take = || Box::new(Slots::new("pool")) as Box<dyn Dialect>;
    stops("are inside", [true, false], &ping)?;
    stops("fence", [false, false], &lock)?;
    stops("are inside", [false, true], &take)
}

fn stops(
    why: &str,
    [contended, slots]: [bool; 2],
    dialect: &dyn Fn() -> Box<dyn Dialect>,
) -> Result<(), String> {
    let dialects = (0..CLIENTS).map(|_| dialect()).collect();
    let load = Load {
        contended,
        slots,
        warm_up: Duration::ZERO,
        span: Duration::from_millis(200),
    };
    match drive(&[careless()?], dialects, load) {
        Err(found) if found.contains(why) => Ok(()),
        other => {
            let other = other.map(|tally| tally.rate());
            Err(format!("the referee missed that `{why}`: {other:?}"))
        }
    }
}

/// Answers everybody at once, and grants with one fence, and one slot, for ever.
fn careless() -> Result<SocketAddr, String> {
    let failed = |error| format!("the specimen cannot listen: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    thread::spawn(move || {
        for stream in listener.incoming().take(CLIENTS).flatten() {
            // It ends with its client.
            thread::spawn(move || answer(stream).unwrap_or_default());
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut leaving = false;
    for line in BufReader::new(stream.try_clone()?).lines() {
        match line?.as_str() {
            "PING" => stream.write_all(b"+PONG\r\n")?,
            "LOCK" => leaving = false,
            "UNLOCK" => leaving = true,
            "gate" if leaving => stream.write_all(b"+OK\r\n")?,
            "gate" => stream.write_all(b":1\r\n")?,
            "TAKE" => stream.write_all(b"*2\r\n$1\r\n7\r\n:1\r\n")?,
            "GIVE" => stream.write_all(b"+OK\r\n")?,
            _ => {}
        }
    }
    Ok(())
}
