//! A lock with the Rust client: the work stops when the lock is lost.
//!
//! ```sh
//! cargo run --example deploy [ADDRESS]
//! ```

use std::error::Error;
use std::time::Duration;

use testigo_client::{Address, Client, Lock, SessionOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| Address::DEFAULT.to_owned());
    println!("{}", deploy(&address).await?);
    Ok(())
}

/// Deploys, one at a time.
pub async fn deploy(address: &str) -> Result<String, Box<dyn Error>> {
    let client = Client::connect(address.parse()?, None).await?;
    let session = client.open(SessionOptions::default()).await?;
    let lock = Lock::new("deploy").wait(Duration::from_secs(10));
    let Some(guard) = session.lock(lock.reason("release 7")).await? else {
        return Ok("the wait ended".into());
    };
    tokio::select! {
        () = work(guard.fence()) => {}
        loss = guard.lost() => return Err(format!("stopped half-way: {loss:?}").into()),
    }
    let fence = guard.fence();
    guard.release().await?;
    session.close().await?;
    Ok(format!("done with fence {fence}"))
}

/// What must not be done by two at once. It hands the fence to whatever it changes.
async fn work(_fence: u64) {
    tokio::task::yield_now().await;
}
