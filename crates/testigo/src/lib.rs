//! Testigo as a library: what a program embeds or connects to. For now it offers the laboratory.

pub use testigo_lab as lab;
pub use testigo_protocol as protocol;
