//! RabbitMQ, with everything that it would put elsewhere in its temporary directory, and with its port mapper.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::Service;
use super::debian::{apt, version};
use super::running::{directory, free_address, start as start_process, start_quietly};
use crate::wire::converse;

/// Without the wrapper that wants to be another user.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const LOOPBACK: &str = "127.0.0.1";
/// What a client says first, and the first byte of what it is answered with.
const HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";
const METHOD_FRAME: u8 = 1;

pub(crate) fn start() -> Result<Service, String> {
    if !Path::new(PROGRAM).is_file() {
        apt("rabbitmq-server")?;
    }
    let (data, address) = (directory()?, free_address()?);
    let (mapper, nodes) = (free_address()?.port(), free_address()?.port());
    let mut names = Command::new("epmd");
    names.args(["-port", &mapper.to_string(), "-address", LOOPBACK]);
    let names = start_process(&mut names)?;
    let mut server = Command::new(PROGRAM);
    let path = |name: &str| data.path().join(name);
    std::fs::write(path("plugins"), "[].\n").map_err(|e| format!("cannot write: {e}"))?;
    server
        .current_dir(data.path())
        .env("HOME", data.path())
        .env("ERL_EPMD_PORT", mapper.to_string())
        .env("RABBITMQ_NODENAME", "bench@localhost")
        .env("RABBITMQ_NODE_IP_ADDRESS", LOOPBACK)
        .env("RABBITMQ_NODE_PORT", address.port().to_string())
        .env("RABBITMQ_DIST_PORT", nodes.to_string())
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-kernel inet_dist_use_interface {127,0,0,1}",
        )
        .env("RABBITMQ_MNESIA_BASE", path("mnesia"))
        .env("RABBITMQ_LOG_BASE", path("logs"))
        .env("RABBITMQ_PID_FILE", path("pid"))
        .env("RABBITMQ_CONFIG_FILE", path("rabbitmq"))
        .env("RABBITMQ_CONF_ENV_FILE", path("env"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"));
    let child = start_quietly(&mut server, data.path())?;
    let version = format!("RabbitMQ {}", version("rabbitmq-server"));
    let mut service = Service::new(address, version, child, data).with(names);
    // It is a shell that starts it, which is deaf to an interrupt in the background.
    service.stop = Signal::TERM;
    service.once_it_answers(|stream| {
        converse(stream, HEADER, |heard| {
            Ok(heard.first() == Some(&METHOD_FRAME))
        })
    })
}
