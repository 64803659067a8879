//! NATS with JetStream on disk, flushed with every message where its version can.

use std::process::Command;

use super::Service;
use super::debian::{install, version};
use super::running::{directory, free_address, said, start_quietly};
use crate::wire::converse;

/// Known since version 2.10.
const FLUSH_ALWAYS: &str = "sync_interval: always";

pub(crate) fn start() -> Result<Service, String> {
    install("nats-server", "nats-server")?;
    let (data, address) = (directory()?, free_address()?);
    let file = data.path().join("nats.conf");
    let configure = |flush: &str| {
        let store = data.path().join("store");
        let store = store.display();
        let text = format!("listen: {address}\njetstream {{ store_dir: \"{store}\" {flush} }}\n");
        std::fs::write(&file, text).map_err(|e| format!("cannot configure NATS: {e}"))
    };
    let mut version = format!("NATS {}", version("nats-server"));
    configure(FLUSH_ALWAYS)?;
    if said(Command::new("nats-server").arg("-t").arg("-c").arg(&file)).is_err() {
        configure("")?;
        version += " (does not know `sync_interval: always`)";
    }
    let child = start_quietly(
        Command::new("nats-server").arg("-c").arg(&file),
        data.path(),
    )?;
    Service::new(address, version, child, data).once_it_answers(|stream| {
        converse(
            stream,
            b"CONNECT {\"verbose\":false}\r\nPING\r\n",
            |heard| Ok(heard.ends_with(b"PONG\r\n")),
        )
    })
}
