//! Readers and writers by class: a writer is inside alone, readers are inside together, and no class is
//! passed more often than promised. Several users share a node.

mod classes;
mod figures;
mod seats;
mod token;
mod user;

pub mod specimens;

pub use classes::{Classes, Trade};
pub use user::{Ask, Class, Promise, Readers, Tell, User};

crate::registry::family! { Readers:
    box_office,
}
