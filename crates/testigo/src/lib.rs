//! Testigo as a library: run a node inside a program, connect to one, or use the laboratory.
//!
//! [`embed()`] runs a node in this process, without sockets; [`connect`] reaches one elsewhere. Both give a
//! [`Testigo`], so a program need not know which it has:
//!
//! ```
//! use std::time::Duration;
//! use testigo::{Call, Config, Lock, SessionOptions, Testigo};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let data = dir.path();
//! let testigo = testigo::embed(Config::embedded(data)).await?;
//! // or: let testigo = testigo::connect("127.0.0.1:7600").await?;
//! deploy(&testigo).await?;
//! testigo.stop().await?;
//! # Ok(())
//! # }
//!
//! async fn deploy(testigo: &Testigo) -> Call<()> {
//!     let session = testigo.session(SessionOptions::default()).await?;
//!     let lock = Lock::new("deploy").wait(Duration::from_secs(30)).reason("release 7");
//!     if let Some(guard) = session.lock(lock).await? {
//!         println!("inside with fence {}, {:?}", guard.fence(), guard.state());
//!         guard.release().await?;
//!     }
//!     session.close().await
//! }
//! ```
//!
//! Every call ends done, refused or unknown, here as there. [`Testigo::node`] is the low-level door of an embedded node:
//! blocking, without guards, and below a microsecond for a lock and its release. [`lab`] and [`protocol`] are the
//! algorithms and what is known about them; [`core`] has the services as state machines.

mod embed;
mod handle;

pub use embed::embed;
pub use handle::{Testigo, connect};

pub use testigo_client::{
    Address, Addresses, Attempt, Call, Client, Credentials, Definition, Events, GateOrder, Guard,
    Identity, Lock, Loss, Mode, NotDone, OnceStart, Refusal, Rule, Session, SessionOptions, State,
    Target, Tls, TlsError, Value, Word,
};
pub use testigo_node::Config;

pub use testigo_client as client;
pub use testigo_core as core;
pub use testigo_lab as lab;
pub use testigo_node as node;
pub use testigo_protocol as protocol;
