//! Testigo as a library: run a node inside a program, connect to one, or use the laboratory.
//!
//! [`node`] runs a node in this process, with or without sockets; [`client`] connects to one
//! elsewhere; [`core`] has the words that both speak; [`lab`] and [`protocol`] are the algorithms and
//! what is known about them.

pub use testigo_client as client;
pub use testigo_core as core;
pub use testigo_lab as lab;
pub use testigo_node as node;
pub use testigo_protocol as protocol;
