//! The Rust client of a Testigo node. A [`Client`] is one connection; a [`Session`] on it holds and waits, is kept alive
//! and resumed by itself; a [`Guard`] is the right to be inside a gate, and says when it is lost. A [`Connection`] is
//! for working on jobs: it repeats nothing, and by its end gives them back.
//!
//! Every call ends done, refused or unknown: `Ok`, [`NotDone::Refused`] or [`NotDone::Unknown`].
//!
//! ```no_run
//! use testigo_client::{Address, Client, Lock, SessionOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("127.0.0.1:7600".parse::<Address>()?).await?;
//! let session = client.open(SessionOptions::default()).await?;
//! let Some(guard) = session.lock(Lock::new("deploy")).await? else {
//!     return Ok(()); // the wait ended
//! };
//! println!("inside, with fence {}", guard.fence());
//! guard.release().await?;
//! session.close().await?;
//! # Ok(())
//! # }
//! ```

mod address;
mod addresses;
mod backoff;
mod client;
mod connection;
mod connector;
mod contact;
mod driver;
mod guard;
mod job;
mod machine;
mod news;
mod once;
mod refusal;
mod request;
mod session;
mod standing;
mod target;
mod tls;
mod unit;
mod value;

pub use address::{Address, BadAddress};
pub use addresses::Addresses;
pub use backoff::Backoff;
pub use client::{Client, Events};
pub use connection::Connection;
pub use connector::{BoxStream, Connector, Stream};
pub use guard::Guard;
pub use job::Job;
pub use once::{Attempt, OnceStart};
pub use refusal::{Call, NotDone, Refusal, Word};
pub use request::{Definition, GateOrder, Lock, Mode, Rule};
pub use session::{Session, SessionOptions};
pub use standing::{Loss, State};
pub use target::{Credentials, Target};
pub use tls::{Identity, Tls, TlsError};
pub use unit::Unit;
pub use value::Value;
