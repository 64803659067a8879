//! To come.

pub mod draw;
