//! Servers as throw-away processes on loopback ports, with their data in a temporary directory. What is missing is
//! installed from Debian.

mod debian;
pub(crate) mod echo;
pub(crate) mod etcd;
pub(crate) mod nats;
pub(crate) mod postgres;
pub(crate) mod rabbit;
pub(crate) mod redis;
pub(crate) mod running;
pub(crate) mod testigo;

pub(crate) use debian::install;
pub(crate) use running::Service;
