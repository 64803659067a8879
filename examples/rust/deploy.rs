//! A lock from Rust: the work stops when the lock is lost. With `--embed` the node runs inside of this program; nothing
//! else is different.
//!
//! ```sh
//! cargo run --example deploy [ADDRESS]
//! cargo run --example deploy -- --embed DIR
//! ```

use std::error::Error;
use std::time::Duration;

use testigo::{Address, Config, Lock, Testigo};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let testigo = match arguments[..] {
        [] => testigo::connect(Address::DEFAULT).await?,
        ["--embed", data] => testigo::embed(Config::embedded(data)).await?,
        [address] => testigo::connect(address).await?,
        _ => return Err("usage: deploy [ADDRESS | --embed DIR]".into()),
    };
    println!("{}", deploy(&testigo).await?);
    Ok(testigo.stop().await?)
}

/// Deploys, one at a time.
pub async fn deploy(testigo: &Testigo) -> Result<String, Box<dyn Error>> {
    let lock = Lock::new("deploy").wait(Duration::from_secs(10));
    let held = testigo.lock(lock.reason("release 7")).await?;
    let fence = held.fence();
    tokio::select! {
        () = work(fence) => {}
        loss = held.lost() => return Err(format!("stopped half-way: {loss:?}").into()),
    }
    held.release().await?;
    Ok(format!("done with fence {fence}"))
}

/// What must not be done by two at once. It hands the fence to whatever it changes.
async fn work(_fence: u64) {
    tokio::task::yield_now().await;
}
