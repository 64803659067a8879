//! Readers and writers by class: a writer is inside alone, readers are inside together, and no class is
//! passed more often than promised. Several users share a node.

mod bounds;
mod canonical;
mod classes;
mod figures;
mod flaw;
mod office;
mod seats;
mod token;
mod user;

pub mod specimens;

pub use bounds::Bounds;
pub use classes::{Classes, Trade};
pub use user::{Ask, Class, Promise, Readers, Tell, User};

crate::registry::family! { Readers:
    box_office,
}
