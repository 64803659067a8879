//! etcd, alone in its cluster.

use std::net::TcpStream;
use std::process::Command;

use super::Service;
use super::debian::install;
use super::running::{directory, free_address, said, start_quietly};

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
    let version = said(Command::new("etcd").arg("--version"))?;
    let version = version.lines().next().unwrap_or("");
    let version = version.replace("etcd Version:", "etcd");
    let child = start_quietly(&mut server, data.path())?;
    Service::new(address, version, child, data).once_it_answers(probe)
}
