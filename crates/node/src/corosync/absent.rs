//! Replaces Corosync in a build without it.

use std::io;
use std::sync::Arc;

use testigo_core::pool::Process;

use crate::config::CorosyncConfig;
use crate::house::Multicast;
use crate::shared::Shared;

/// Why Corosync cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "this testigo was built without it; install libcpg-dev, libcfg-dev, libcmap-dev, libquorum-dev and libvotequorum-dev, and \
     build it with: cargo install --path crates/command --features corosync"
)]
pub struct CorosyncError;

/// There is none.
#[derive(Debug)]
pub(crate) enum Link {}

/// There is none.
#[derive(Debug)]
pub(crate) enum Corosync {}

impl Link {
    pub(crate) fn open(_: &CorosyncConfig) -> Result<Link, CorosyncError> {
        Err(CorosyncError)
    }

    pub(crate) fn own(&self) -> Process {
        match *self {}
    }

    pub(crate) fn outbox(&self) -> Arc<dyn Multicast> {
        match *self {}
    }

    pub(crate) fn start(self, _: &Arc<Shared>) -> io::Result<Corosync> {
        match self {}
    }
}
