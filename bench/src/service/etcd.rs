//! etcd, alone in its cluster or one of three.

use std::net::TcpStream;
use std::process::Command;

use super::Service;
use super::debian::install;
use super::running::{directory, free_address, said, start_quietly};

/// Starts three that form a cluster; the probe asks whether each answers.
pub(crate) fn start_three(
    probe: impl Fn(&mut TcpStream) -> Result<(), String>,
) -> Result<Vec<Service>, String> {
    install("etcd", "etcd-server")?;
    let mut peers = Vec::new();
    for _ in 0..3 {
        peers.push(format!("http://{}", free_address()?));
    }
    let named = peers
        .iter()
        .enumerate()
        .map(|(at, url)| format!("n{at}={url}"));
    let cluster = named.collect::<Vec<_>>().join(",");
    let mut services = Vec::new();
    for (at, peer) in peers.iter().enumerate() {
        let (data, address) = (directory()?, free_address()?);
        let url = format!("http://{address}");
        let mut server = Command::new("etcd");
        server.args(["--name", &format!("n{at}")]);
        server.arg("--data-dir").arg(data.path().join("data"));
        server.args(["--listen-client-urls", &url]);
        server.args(["--advertise-client-urls", &url]);
        server.args(["--listen-peer-urls", peer]);
        server.args(["--initial-advertise-peer-urls", peer]);
        server.args(["--initial-cluster", &cluster]);
        let child = start_quietly(&mut server, data.path())?;
        services.push(Service::new(address, version()?, child, data));
    }
    let services = services.into_iter();
    services
        .map(|service| service.once_it_answers(&probe))
        .collect()
}

fn version() -> Result<String, String> {
    let version = said(Command::new("etcd").arg("--version"))?;
    let version = version.lines().next().unwrap_or("");
    Ok(version.replace("etcd Version:", "etcd"))
}

/// Starts it; the probe asks whether it answers.
pub(crate) fn start(
    probe: impl Fn(&mut TcpStream) -> Result<(), String>,
) -> Result<Service, String> {
    install("etcd", "etcd-server")?;
    let (data, address, peers) = (directory()?, free_address()?, free_address()?);
    let (url, peers) = (format!("http://{address}"), format!("http://{peers}"));
    let mut server = Command::new("etcd");
    server.arg("--data-dir").arg(data.path().join("data"));
    server.args(["--listen-client-urls", &url]);
    server.args(["--advertise-client-urls", &url]);
    server.args(["--listen-peer-urls", &peers]);
    server.args(["--initial-advertise-peer-urls", &peers]);
    server.args(["--initial-cluster", &format!("default={peers}")]);
    let child = start_quietly(&mut server, data.path())?;
    Service::new(address, version()?, child, data).once_it_answers(probe)
}
