//! Testigo as a library: hold a lock, work on jobs, or run a node inside a program.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let data = tempfile::tempdir()?;
//! # let mut config = testigo::Config::embedded(data.path());
//! # config.resp = Some("127.0.0.1:0".parse()?);
//! # let node = testigo::node::Node::start(config)?;
//! # let address = node.resp_address().ok_or("it listens")?.to_string();
//! # let address = address.as_str();
//! // let address = "127.0.0.1:7600";
//! let testigo = testigo::connect(address).await?;
//! let held = testigo.lock("deploy").await?;
//! println!("inside with fence {}", held.fence());
//! held.release().await?; // or drop it
//! # node.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! | To | use |
//! |---|---|
//! | reach a node, or run one in this process | [`connect`], [`Testigo::reach`], [`embed()`] |
//! | hold a gate | [`Testigo::lock`], [`Lock`], [`Guard`] |
//! | take slots of a pool | [`Session::take_slots`], [`Take`], [`Slot`] |
//! | hold many gates, or one after another | [`Testigo::session`], [`Session`] |
//! | define and show gates, watch events, record what was done once | [`Client`], which every [`Testigo`] is |
//! | agree on a value | [`Client::decide`] |
//! | send to a group, whose members all get the messages in one order | [`Session::join_group`], [`Member`] |
//! | take, pass and delete jobs | [`Connection`], [`Job`], [`Unit`] |
//! | do without an async runtime | [`blocking`] |
//! | lock within a microsecond, in the process of the node | [`node`] |
//! | lock between the threads of one program, without a node | [`memory::RoomLock`], [`memory::PermitLock`] |
#![cfg_attr(feature = "lab", doc = "| simulate and check algorithms | [`lab`] |")]
#![cfg_attr(
    not(feature = "lab"),
    doc = "| simulate and check algorithms | `lab`, with the feature of that name |"
)]
//!
//! Every call ends as done, refused or unknown: `Ok`, [`NotDone::Refused`] or [`NotDone::Unknown`].

pub mod blocking;
mod embed;
mod handle;
#[cfg(feature = "lab")]
pub mod lab;
mod lock;
pub mod node;

pub use embed::embed;
pub use handle::{Testigo, connect};

#[doc(inline)]
pub use testigo_client::{
    Address, Addresses, Attempt, BadAddress, Call, Campaign, Client, Connection, Credentials,
    Definition, Events, GateOrder, GroupEvent, GroupOrder, Guard, Identity, Job, Join, Leader,
    Lock, Loss, Member, Mode, NotDone, OnceStart, Refusal, Rule, Session, SessionOptions, Slot,
    State, Take, Target, Tls, TlsError, Unit, Value, Word,
};
#[doc(inline)]
pub use testigo_memory as memory;
#[doc(inline)]
pub use testigo_node::{Config, StopError};
