//! Redis, with its append-only file flushed as it is told.

use std::process::Command;

use super::Service;
use super::debian::install;
use super::running::{directory, free_address, said, start_quietly};
use crate::wire::converse;
use crate::wire::resp::{command, line};

pub(crate) fn start(flush: &str) -> Result<Service, String> {
    install("redis-server", "redis-server")?;
    let (data, address) = (directory()?, free_address()?);
    let mut server = Command::new("redis-server");
    server.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
    server.args(["--appendfsync", flush]);
    server.args(["--port", &address.port().to_string()]);
    server.arg("--dir").arg(data.path());
    let version = said(Command::new("redis-server").arg("--version"))?;
    let version = version
        .split_whitespace()
        .find(|word| word.starts_with("v="));
    let version = format!("Redis {}", version.unwrap_or("").trim_start_matches("v="));
    let child = start_quietly(&mut server, data.path())?;
    Service::new(address, version, child, data).once_it_answers(|stream| {
        converse(stream, &command(&["PING"]), |heard| {
            Ok(line(heard)? == Some("+PONG"))
        })
    })
}
