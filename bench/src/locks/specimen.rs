//! Lock servers that are wrong on purpose. Before anything is measured the referee must stop them; if it lets one pass,
//! it would have let a wrong number pass as well.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::dialect::Dialect;
use super::generator::{Load, drive};
use super::resp::Testigo;
use super::systems::CLIENTS;

/// Fails unless the referee stops a server that lets everybody in, and one that repeats a fence.
pub(crate) fn referee_sees() -> Result<(), String> {
    for (step, contended, why) in [(1, true, "are inside"), (0, false, "fence")] {
        let load = Load {
            contended,
            warm_up: Duration::ZERO,
            span: Duration::from_millis(200),
        };
        let dialects = (0..CLIENTS).map(|_| Box::new(Testigo::new("g")) as Box<dyn Dialect>);
        match drive(careless(step)?, dialects.collect(), load) {
            Err(found) if found.contains(why) => {}
            other => {
                let other = other.map(|tally| tally.rate());
                return Err(format!("the referee missed that `{why}`: {other:?}"));
            }
        }
    }
    Ok(())
}

/// Grants whatever is asked for, with fences that grow by `step`.
fn careless(step: u64) -> Result<SocketAddr, String> {
    let failed = |error| format!("the specimen cannot listen: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let fence = Arc::new(AtomicU64::new(1));
    thread::spawn(move || {
        for stream in listener.incoming().take(CLIENTS).flatten() {
            let fence = Arc::clone(&fence);
            // It ends with its client.
            thread::spawn(move || answer(stream, &fence, step).unwrap_or_default());
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, fence: &AtomicU64, step: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let lines = BufReader::new(stream.try_clone()?).lines();
    let mut leaving = false;
    for line in lines {
        // The last word of a command is the gate, or the fence after it.
        match line?.as_str() {
            "UNLOCK" => leaving = true,
            "g" if !leaving => {
                let fence = fence.fetch_add(step, Ordering::Relaxed);
                stream.write_all(format!(":{fence}\r\n").as_bytes())?;
            }
            word if leaving && word.starts_with(|c: char| c.is_ascii_digit()) => {
                leaving = false;
                stream.write_all(b"+OK\r\n")?;
            }
            _ => {}
        }
    }
    Ok(())
}
