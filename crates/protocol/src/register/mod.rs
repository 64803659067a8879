//! Registers that are replicated on a majority of nodes (Attiya, Bar-Noy and Dolev, 1995; several writers as by Lynch
//! and Shvartsman, 1997): every load and store is atomic, and survives the loss of any minority.
//!
//! An operation has two rounds, and each is over when a majority has answered. A store first asks for the newest
//! stamp and then writes with a newer one. A load first asks for the newest value and then writes that back, so
//! that no later load finds an older one.

mod operation;
mod replica;

pub use operation::{Operation, Outcome};
pub use replica::{Answer, Question, Replica, Stamp};
