//! The Rust client of a Testigo node. A [`Client`] is one connection; a [`Session`] on it holds and waits, and is kept alive
//! and resumed automatically; a [`Guard`] is the right to be inside a gate, and reports when it is lost. A [`Connection`] is
//! for working on jobs: it repeats nothing, and gives its jobs back when it ends.
//!
//! Programs use it through the crate `testigo`, which adds a lock in one line, a blocking interface and an embedded node.
//!
//! Every call ends as done, refused or unknown: `Ok`, [`NotDone::Refused`] or [`NotDone::Unknown`].
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let data = tempfile::tempdir()?;
//! # let mut config = testigo::Config::embedded(data.path());
//! # config.resp = Some("127.0.0.1:0".parse()?);
//! # let node = testigo::node::Node::start(config)?;
//! # let address = node.resp_address().ok_or("it listens")?.to_string();
//! use testigo_client::{Address, Client, Lock, SessionOptions};
//!
//! let client = Client::connect(address.parse::<Address>()?).await?;
//! let session = client.open(SessionOptions::default()).await?;
//! if let Some(guard) = session.lock(Lock::new("deploy")).await? {
//!     println!("inside, with fence {}", guard.fence());
//!     guard.release().await?;
//! }
//! session.close().await?;
//! # node.stop()?;
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
mod decision;
mod driver;
mod election;
mod group;
mod guard;
mod job;
mod machine;
mod news;
mod once;
mod pool;
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
pub use election::{Campaign, Leader};
pub use group::{GroupEvent, GroupOrder, Join, Member};
pub use guard::Guard;
pub use job::Job;
pub use once::{Attempt, OnceStart};
pub use pool::{Slot, Take};
pub use refusal::{Call, NotDone, Refusal, Word};
pub use request::{Definition, GateOrder, Lock, Mode, Rule};
pub use session::{Session, SessionOptions};
pub use standing::{Loss, State};
pub use target::{Credentials, Target};
pub use tls::{Identity, Tls, TlsError};
pub use unit::Unit;
pub use value::Value;
