//! How long a lock and its release take through the handles, and through the low-level door, in an embedded node.

use std::time::Instant;

use testigo::node::Lock as LowLock;
use testigo::{Config, Lock, SessionOptions};

const PAIRS: u32 = 200_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let testigo = testigo::embed(Config::embedded(dir.path())).await?;
    let session = testigo.session(SessionOptions::default()).await?;
    let start = Instant::now();
    for _ in 0..PAIRS {
        let guard = session.lock(Lock::new("a")).await?;
        guard.ok_or("somebody else is inside")?.release().await?;
    }
    println!("handles: {:?} a pair", start.elapsed() / PAIRS);
    let low = testigo.node().ok_or("it is embedded")?.session()?;
    let lock = LowLock {
        gate: "b",
        ..LowLock::default()
    };
    let start = Instant::now();
    for _ in 0..PAIRS {
        let grant = low.lock(&lock)?.ok_or("somebody else is inside")?;
        low.unlock("b", Some(grant.fence))?;
    }
    println!("low-level door: {:?} a pair", start.elapsed() / PAIRS);
    drop(low);
    Ok(testigo.stop().await?)
}
