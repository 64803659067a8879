//! The protocols that more than one measurement speaks, as far as they are needed.

mod asker;
mod client;
mod converse;
pub(crate) mod postgres;
pub(crate) mod resp;

pub(crate) use asker::{Asker, Unanswered};
pub(crate) use client::Client;
pub(crate) use converse::converse;
