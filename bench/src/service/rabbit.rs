//! RabbitMQ, with everything that it would put elsewhere in its temporary directory, and with its port mapper.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::Signal;

use super::Service;
use super::debian::{apt, version};
use super::running::{directory, free_address, said, start as start_process, start_quietly};
use crate::wire::converse;

/// Without the wrapper that wants to be another user.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const LOOPBACK: &str = "127.0.0.1";
/// What its nodes know each other by.
const COOKIE: &str = "throwaway";
const COOKIE_FILE: &str = ".erlang.cookie";
/// What a client says first, and the first byte of what it is answered with.
const HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";
const METHOD_FRAME: u8 = 1;

/// Where the port mapper of its nodes is, and what they call themselves.
struct Names {
    mapper: u16,
    nodes: Vec<String>,
}

pub(crate) fn start() -> Result<Service, String> {
    let (names, child) = names(vec!["bench@localhost".into()])?;
    answering(launch(&names, 0)?.with(child))
}

/// Three that form a cluster.
pub(crate) fn start_three() -> Result<Vec<Service>, String> {
    let nodes = ["a", "b", "c"].map(|name| format!("{name}@localhost"));
    let (names, child) = names(nodes.to_vec())?;
    let mut services = Vec::new();
    for at in 0..3 {
        services.push(launch(&names, at)?);
    }
    let first = services.remove(0).with(child);
    services.insert(0, first);
    let services = services
        .into_iter()
        .map(answering)
        .collect::<Result<Vec<_>, _>>()?;
    // A quorum queue has as many copies as there are nodes when it is declared.
    let mut wait = Command::new("rabbitmqctl");
    wait.env("ERL_EPMD_PORT", names.mapper.to_string());
    wait.args(["--erlang-cookie", COOKIE, "-n", &names.nodes[0]]);
    said(wait.args(["await_online_nodes", "3"]))?;
    Ok(services)
}

fn names(nodes: Vec<String>) -> Result<(Names, Child), String> {
    if !Path::new(PROGRAM).is_file() {
        apt("rabbitmq-server")?;
    }
    let mapper = free_address()?.port();
    let mut program = Command::new("epmd");
    program.args(["-port", &mapper.to_string(), "-address", LOOPBACK]);
    Ok((Names { mapper, nodes }, start_process(&mut program)?))
}

/// Starts one of the nodes.
fn launch(names: &Names, at: usize) -> Result<Service, String> {
    let (data, address) = (directory()?, free_address()?);
    let nodes = free_address()?.port();
    let mut server = Command::new(PROGRAM);
    let path = |name: &str| data.path().join(name);
    let write = |name: &str, text: &str| {
        std::fs::write(path(name), text).map_err(|e| format!("cannot write: {e}"))
    };
    write("plugins", "[].\n")?;
    write(COOKIE_FILE, COOKIE)?;
    let private = std::fs::Permissions::from_mode(0o400);
    std::fs::set_permissions(path(COOKIE_FILE), private).map_err(|e| e.to_string())?;
    if names.nodes.len() > 1 {
        let mut config = "cluster_formation.peer_discovery_backend = classic_config\n".to_owned();
        for (number, node) in (1..).zip(&names.nodes) {
            config += &format!("cluster_formation.classic_config.nodes.{number} = {node}\n");
        }
        write("rabbitmq.conf", &config)?;
    }
    server
        .current_dir(data.path())
        .env("HOME", data.path())
        .env("ERL_EPMD_PORT", names.mapper.to_string())
        .env("RABBITMQ_NODENAME", &names.nodes[at])
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
    let mut service = Service::new(address, version, child, data);
    // It is a shell that starts it, which is deaf to an interrupt in the background.
    service.stop = Signal::TERM;
    Ok(service)
}

fn answering(service: Service) -> Result<Service, String> {
    service.once_it_answers(|stream| {
        converse(stream, HEADER, |heard| {
            Ok(heard.first() == Some(&METHOD_FRAME))
        })
    })
}
